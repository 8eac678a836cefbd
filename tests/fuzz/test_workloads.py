"""The parsers of confidential containers under fuzz: encoded and plain init data, recorded machines."""

from __future__ import annotations

import base64
import gzip

import pytest

from fastness.formats.errors import FormatError
from fastness.formats.initdata import (
    InitDataError,
    decode_init_data,
    encode_init_data,
    parse_init_data,
    write_init_data,
)
from tests.fuzz.driver import Target, run

_DOCUMENT = write_init_data("sha256", {"aa.toml": 'url = "x"\n', "policy.rego": "package agent_policy\n"})


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InitDataError("not-text", "not UTF-8") from error


def _encoded(data: bytes) -> object:
    text = decode_init_data(_text(data))
    assert decode_init_data(encode_init_data(text)) == text
    return text


def _plain(data: bytes) -> object:
    init_data = parse_init_data(_text(data))
    assert parse_init_data(write_init_data(init_data.algorithm, init_data.data)).data == init_data.data
    return init_data


TARGETS = (
    Target(
        "encoded init data",
        _encoded,
        (encode_init_data(_DOCUMENT.encode()).encode(), base64.b64encode(gzip.compress(b"x" * 4000))),
        (b"H4sI", b"=", b"==", b"A", b"/", b"+", b"\n", b"\xff"),
    ),
    Target(
        "init data",
        _plain,
        (_DOCUMENT.encode(), b'version = "0.1.0"\nalgorithm = "sha-512"\ndata = {a = "b"}\n'),
        (b"'''", b'"""', b"[data]", b"=", b'"', b"\\", b"\n", b"[[", b"{", b"sha384", b"\x00", b"\r\n"),
        calls_per_byte=400,
    ),
)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_only_errors_of_ours_come_out(target: Target) -> None:
    outcome = run(target)
    assert outcome.refused
    assert issubclass(InitDataError, FormatError)
