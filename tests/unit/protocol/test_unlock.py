"""The members of unlock sessions and of reports of disks: what is signed, and what is refused before anybody looks further."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.formats import json
from fastness.protocol.disk_report import BadReport, DiskReport, disks_member, reported_disks
from fastness.protocol.kbs_path import disk_key, disk_of, parse_path
from fastness.protocol.unlock import BadUnlock, claimed_unlock, proved_unlock, unlock_member, unlock_message
from fastness.runtime.clock import SystemEntropy

ENTROPY = SystemEntropy()
UID = "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11"
OTHER = "9d3b2f60-1c55-4d4f-8f0a-6a2f6f0f7b22"
SESSION = dict(public_jwk(PrivateKey.generate(ENTROPY)))
HEADER = {
    "uuid": UID, "cipher": "aes-xts-plain64", "integrity": "none", "sectorSize": 4096, "segmentsDigest": "sha256:" + "a" * 64,
}  # fmt: skip


def member_text(key: PrivateKey, machine: str = UID, nonce: str = "n", changes: Any = None) -> str:
    member = unlock_member(machine, dict(public_jwk(key)), key.sign(unlock_message(nonce, SESSION, machine)))
    return json.canonical({"fastness-unlock": {**member["fastness-unlock"], **(changes or {})}}).decode()


def test_the_unlock_key_signs_machine_nonce_and_session() -> None:
    key = PrivateKey.generate(ENTROPY)
    claimed = claimed_unlock(member_text(key))
    assert claimed is not None
    assert claimed.machine == UID
    thumbprint = proved_unlock(claimed, "n", SESSION)
    again = claimed_unlock(member_text(key))
    assert again is not None
    assert proved_unlock(again, "n", SESSION) == thumbprint
    for nonce, session in (("m", SESSION), ("n", dict(public_jwk(key)))):
        with pytest.raises(BadUnlock, match="did not sign"):
            proved_unlock(claimed, nonce, session)


def test_a_signature_for_one_machine_is_none_for_another() -> None:
    claimed = claimed_unlock(member_text(PrivateKey.generate(ENTROPY), machine=UID).replace(UID, OTHER))
    assert claimed is not None
    with pytest.raises(BadUnlock):
        proved_unlock(claimed, "n", SESSION)


def test_an_ordinary_session_asks_for_no_unlock() -> None:
    assert claimed_unlock("") is None
    assert claimed_unlock('{"fastness-identity":{"note":"fastness-unlock"}}') is None


@pytest.mark.parametrize(
    "change",
    [{"machine": "me"}, {"machine": None}, {"machine": UID.upper()}, {"key": {}}, {"signature": 7}, {"more": 1}],
)
def test_a_member_with_anything_else_in_it_is_refused(change: Any) -> None:
    with pytest.raises(BadUnlock) as refused:
        claimed_unlock(member_text(PrivateKey.generate(ENTROPY), changes=change))
    assert refused.value.code == "unlock-unreadable"


def test_a_member_that_is_there_twice_is_refused() -> None:
    text = member_text(PrivateKey.generate(ENTROPY))
    with pytest.raises(BadUnlock):
        claimed_unlock(text[:-1] + "," + text[1:])


@given(
    st.text(max_size=300),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=8,
    ),
)
def test_reading_a_member_ends_in_a_value_or_its_own_error(text: str, value: Any) -> None:
    for additional in (text, "fastness-unlock fastness-disks" + text, json.encode({"fastness-unlock": value}).decode()):
        with suppress(BadUnlock):
            claimed_unlock(additional)
    for additional in (
        text,
        json.encode({"fastness-disks": value}).decode(),
        json.encode({"fastness-disks": [value]}).decode(),
    ):
        with suppress(BadReport):
            reported_disks(additional)


def test_a_report_is_read_as_it_was_written() -> None:
    reports = (DiskReport("var", 9, 6, "k2", HEADER, (7, 8)), DiskReport("root", 0, 0, "k1", HEADER))
    assert reported_disks(json.canonical(disks_member(reports)).decode()) == reports
    assert reported_disks("{}") == ()


@pytest.mark.parametrize(
    "change",
    [
        {"volume": "../x"}, {"volume": ""}, {"generation": -1}, {"generation": True}, {"generation": 2**60}, {"key": "k0"},
        {"after": -1}, {"after": True}, {"after": None}, {"since": None}, {"since": [-1]}, {"since": [True]},
        {"since": [1] * 513},
        {"key": "2"}, {"header": {}}, {"header": {**HEADER, "sectorSize": 3}}, {"header": {**HEADER, "more": ""}}, {"more": 1},
    ],
)  # fmt: skip
def test_a_report_with_anything_else_in_it_is_refused(change: Any) -> None:
    good = disks_member([DiskReport("var", 7, 6, "k2", HEADER)])["fastness-disks"][0]
    with pytest.raises(BadReport):
        reported_disks(json.encode({"fastness-disks": [{**good, **change}]}).decode())


def test_two_volumes_of_one_name_are_refused() -> None:
    twice = [DiskReport("var", 7, 6, "k2", HEADER), DiskReport("var", 8, 7, "k2", HEADER)]
    with pytest.raises(BadReport):
        reported_disks(json.encode(disks_member(twice)).decode())


def test_both_names_of_a_disk_key_mean_the_same_disk() -> None:
    assert disk_of(disk_key(UID, "root")) == (UID, "root")
    for text, disk in {
        f"default/{UID}/root": (UID, "root"), f"machine/{UID}/disk-var": (UID, "var"), "default/credentials/root": None,
        f"machine/{UID}/key": None, f"default/{UID}/key": None, f"pool/{UID}/disk-var": None,
    }.items():  # fmt: skip
        path = parse_path(text)
        assert path is not None
        assert disk_of(path) == disk
