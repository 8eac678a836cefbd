"""Continue tokens: they come back as they went out, and nothing else passes."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.continue_token import MAX_TOKEN_CHARS, ContinueToken, decode_continue_token
from fastness.formats.errors import TokenError


@given(st.integers(1, 2**63 - 1), st.text(st.characters(codec="utf-8"), min_size=1, max_size=200))
def test_a_token_comes_back_as_it_went_out(version: int, start: str) -> None:
    token = ContinueToken(version, start)
    text = token.encode()
    assert decode_continue_token(text) == token
    assert text.isascii()
    assert not set(text) & set("+/= ")


def _token(body: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(body).encode()).rstrip(b"=").decode()


_GOOD = {"v": "fastness.dev/v1", "rv": 7, "start": "/a"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!",
        "a",
        "AAAA",
        "A" * (MAX_TOKEN_CHARS + 1),
        "e30=",
        "é",
        _token([]),
        _token({}),
        _token({**_GOOD, "v": "meta.k8s.io/v1"}),
        _token({**_GOOD, "rv": 0}),
        _token({**_GOOD, "rv": -1}),
        _token({**_GOOD, "rv": 2**63}),
        _token({**_GOOD, "rv": True}),
        _token({**_GOOD, "rv": "7"}),
        _token({**_GOOD, "start": ""}),
        _token({**_GOOD, "start": 1}),
        _token({**_GOOD, "start": "x" * 2049}),
        _token({**_GOOD, "more": 1}),
        _token({"v": "fastness.dev/v1", "rv": 7}),
        base64.urlsafe_b64encode(b'{"v":"fastness.dev/v1","rv":1,"rv":7,"start":"/a"}').rstrip(b"=").decode(),
        _token(_GOOD) + "\n",
    ],
)
def test_anything_this_server_did_not_write_is_refused(text: str) -> None:
    with pytest.raises(TokenError) as caught:
        decode_continue_token(text)
    assert caught.value.code == "continue-token-invalid"
    assert caught.value.hint


def test_the_pattern_of_a_good_token_is_accepted() -> None:
    assert decode_continue_token(_token(_GOOD)) == ContinueToken(7, "/a")


@pytest.mark.parametrize(
    "token", [ContinueToken(0, "a"), ContinueToken(1, ""), ContinueToken(1, "x" * 2049), ContinueToken(1, "\0" * 2000)]
)
def test_a_position_that_cannot_be_read_back_is_not_written(token: ContinueToken) -> None:
    with pytest.raises(TokenError):
        token.encode()
