"""The broker's answer about a volume, read strictly."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.protocol.disk_keys import BadDiskAnswer, is_volume, read_answer

HEADER = {
    "uuid": "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab", "cipher": "aes-xts-plain64", "integrity": "none", "sectorSize": 4096,
    "segmentsDigest": "sha256:" + "ab" * 32,
}  # fmt: skip


def key(number: int, size: int = 32) -> dict[str, str]:
    return {"id": f"k{number}", "key": base64.urlsafe_b64encode(bytes([number]) * size).decode().rstrip("=")}


def answer(**changes: Any) -> dict[str, Any]:
    whole = {
        "version": 1, "volume": "var", "keys": [key(1)], "expect": None, "settings": {"integrity": "none"}, "opening": 9,
        "recorded": 7,
    }  # fmt: skip
    return {**whole, **changes}


def read(value: object) -> Any:
    return read_answer(SecretBytes(json.encode(value)), "var")


def test_an_answer_has_keys_newest_first_and_what_was_recorded() -> None:
    disk = read(answer(keys=[key(2), key(1)], expect=HEADER, settings={"integrity": "hmac-sha256"}))
    assert (disk.newest.id, disk.newest.key.reveal()) == ("k2", bytes([2]) * 32)
    assert [entry.id for entry in disk.keys] == ["k2", "k1"]
    assert disk.expect == HEADER
    assert disk.integrity == "hmac-sha256"
    assert (disk.opening, disk.recorded) == (9, 7)
    assert read(answer()).expect is None


@pytest.mark.parametrize(
    "value",
    [
        [], {}, answer(version=2), answer(volume="root"), answer(keys=[]), answer(keys=[key(1), key(2), key(3)]),
        answer(keys=[key(1), key(1)]), answer(keys=[key(1, 31)]), answer(keys=[{"id": "k1", "key": "!"}]),
        answer(keys=[{"id": "1", "key": key(1)["key"]}]), answer(keys=[{**key(1), "more": 1}]), answer(keys=["k1"]),
        answer(expect={}), answer(expect={**HEADER, "sectorSize": True}), answer(expect={**HEADER, "cipher": ""}),
        answer(settings={}), answer(settings={"integrity": "some"}), answer(settings=None), {**answer(), "more": 1},
        {name: value for name, value in answer().items() if name != "expect"}, answer(opening=7), answer(opening="9"),
        answer(opening=True, recorded=0), answer(recorded=-1), answer(recorded=None), answer(opening=2**53),
    ],
)  # fmt: skip
def test_half_an_answer_decides_nothing(value: object) -> None:
    with pytest.raises(BadDiskAnswer) as refused:
        read(value)
    assert key(1)["key"] not in str(refused.value)


def test_an_answer_that_is_no_json_does_not_quote_itself() -> None:
    with pytest.raises(BadDiskAnswer) as refused:
        read_answer(SecretBytes(b"{hunter2"), "var")
    assert "hunter2" not in repr(refused.value) + str(refused.value.__cause__)


def test_a_member_that_is_there_twice_is_an_error() -> None:
    text = json.encode(answer()).replace(b'"version":1', b'"expect":{},"version":1')
    with pytest.raises(BadDiskAnswer, match="each once"):
        read_answer(SecretBytes(text), "var")


@pytest.mark.parametrize("name", [None, 7, b"var", ["var"], "", "../var", "var/../root", "Var", "a b", "var\n"])
def test_what_cannot_be_the_name_of_a_volume_leads_to_no_resource(name: object) -> None:
    assert not is_volume(name)
    assert is_volume("var")
