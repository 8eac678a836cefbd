"""What a machine asks of the broker beside the path, and what it finds in the sealed answer."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import json
from fastness.protocol.delivered import (
    MAX_ACCEPT,
    MAX_RENDERED,
    MAX_SIGNATURE,
    Delivered,
    DeliveredError,
    Question,
    Sealed,
    envelope,
    parse_envelope,
    parse_question,
    parse_rendered,
)

NONCE = "n" * 22
ACCEPT = "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1"


@given(st.binary(max_size=300))
def test_what_is_written_is_read(config: bytes) -> None:
    for copy in (None, Sealed("rendered-worker-1", "machine-a", NONCE)):
        delivered = Delivered(config, "head..tail", copy)
        assert parse_envelope(envelope(delivered)) == delivered


@pytest.mark.parametrize("accept", ["", ACCEPT])
def test_a_question_survives_its_query(accept: str) -> None:
    question = Question(NONCE, accept)
    assert parse_question(dict(parse_qsl(question.query()))) == question


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({}, "bad-nonce"),
        ({"nonce": "short"}, "bad-nonce"),
        ({"nonce": "n" * 129}, "bad-nonce"),
        ({"nonce": NONCE + "\n"}, "bad-nonce"),
        ({"nonce": "ü" * 22}, "bad-nonce"),
        ({"nonce": NONCE, "accept": "x" * (MAX_ACCEPT + 1)}, "bad-accept"),
        ({"nonce": NONCE, "accept": "a\r\nb"}, "bad-accept"),
        ({"nonce": NONCE, "version": "3.3.0"}, "unknown-parameter"),
    ],
)
def test_a_question_that_is_not_one_is_refused(query: dict[str, str], code: str) -> None:
    with pytest.raises(DeliveredError) as refused:
        parse_question(query)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"null", b"{}", b'{"config":"e30="}', b'{"signature":"a..b"}',
        b'{"config":"e30=","signature":"a..b","pool":"worker"}',
        b'{"config":"e30=","signature":"a..b","config":"e30="}',
        b'{"config":"e30","signature":"a..b"}', b'{"config":"e3 0=","signature":"a..b"}',
        '{"config":"é","signature":"a..b"}'.encode(), b'{"config":null,"signature":"a..b"}',
        b'{"config":"e30=","signature":""}', b'{"config":"e30=","signature":7}',
        b'{"config":"e30=","signature":"' + b"x" * (MAX_SIGNATURE + 1) + b'"}',
        b'{"config":"e30=","signature":"a\\u0000b"}',
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_refused(data: bytes) -> None:
    with pytest.raises(DeliveredError):
        parse_envelope(data)


@pytest.mark.parametrize(
    "change",
    [{"rendered": 7}, {"machine": None}, {"nonce": "n" * (MAX_RENDERED + 1)}, {"pool": "worker"}],
    ids=repr,
)
def test_a_copy_of_another_shape_is_refused(change: dict[str, Any]) -> None:
    copy = {"rendered": "rendered-worker-1", "machine": "machine-a", "nonce": NONCE}
    for value in ({**copy, **change}, list(copy), dict(list(copy.items())[1:])):
        with pytest.raises(DeliveredError) as refused:
            parse_envelope(json.encode({"config": "e30=", "signature": "a..b", "copy": value}))
        assert refused.value.code == "bad-copy"


def test_a_query_names_a_rendered_config_or_none() -> None:
    assert parse_rendered({}) == ""
    assert parse_rendered({"rendered": "rendered-worker-1"}) == "rendered-worker-1"


@pytest.mark.parametrize(
    "name", ["", "worker", "rendered-", "rendered-../x", "rendered-a\n", "rendered-A", "rendered-" + "a" * MAX_RENDERED]
)
def test_a_name_of_no_rendered_config_is_refused(name: str) -> None:
    with pytest.raises(DeliveredError):
        parse_rendered({"rendered": name})


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_an_error(data: bytes) -> None:
    with suppress(DeliveredError):
        parse_envelope(data)
