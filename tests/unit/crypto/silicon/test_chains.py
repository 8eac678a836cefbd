"""Chains end in pins and nowhere else; revocation lists count only when signed and current."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fastness.crypto.errors import BadCertificate, BadKey, UntrustedCertificate
from fastness.crypto.silicon.chains import MissingIssuer, chain_to_pin, load_certificates, outside_validity, signed_by
from fastness.crypto.silicon.pins import AMD_ROOTS, INTEL_ROOT
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.silicon.verify import AttestationKey, p256_certified, p256_raw, p384_certified
from tests.evidence.authority import issue, new_key, pem, revocations
from tests.evidence.tdx import NOW, PLATFORM, ROOT, Platform

VENDOR = Platform()
LEAF, MIDDLE, TOP = load_certificates(pem(VENDOR.leaf, VENDOR.authority, VENDOR.root))


def test_a_chain_is_found_in_any_order_among_strangers() -> None:
    other = Platform()
    pool = load_certificates(pem(other.root, other.authority, VENDOR.root, VENDOR.authority))
    assert chain_to_pin(LEAF, pool, [VENDOR.pin]) == (LEAF, pool[3], pool[2])


def test_a_root_of_the_same_name_is_not_the_pinned_one() -> None:
    with pytest.raises(UntrustedCertificate, match="not pinned"):
        chain_to_pin(LEAF, [MIDDLE, TOP], [INTEL_ROOT, *AMD_ROOTS.values()])


def test_a_missing_link_is_named() -> None:
    with pytest.raises(MissingIssuer, match=PLATFORM):
        chain_to_pin(LEAF, [TOP], [VENDOR.pin])


def test_a_leaf_cannot_issue() -> None:
    key = new_key()
    (forged,) = load_certificates(issue("forged", key, VENDOR.leaf_name, VENDOR.pck_key))
    assert not signed_by(forged, LEAF)
    with pytest.raises(UntrustedCertificate, match="did not sign"):
        chain_to_pin(forged, [LEAF, MIDDLE, TOP], [VENDOR.pin])


def test_chains_are_short() -> None:
    keys = [new_key() for _ in range(7)]
    made = [issue(f"n{n}", keys[n], f"n{n + 1}", keys[n + 1], ca=True) for n in range(6)]
    certificates = [load_certificates(entry)[0] for entry in made]
    with pytest.raises(UntrustedCertificate, match="links"):
        chain_to_pin(certificates[0], certificates, [VENDOR.pin])


def test_dates_are_told_per_certificate() -> None:
    assert outside_validity([LEAF, TOP], NOW) == []
    assert len(outside_validity([LEAF, TOP], NOW + timedelta(days=5000))) == 2
    assert "is valid from" in outside_validity([LEAF], NOW - timedelta(days=5000))[0]


@pytest.mark.parametrize("spoil", ["tail", "cut", "algorithm", "loose bits"])
def test_a_certificate_has_one_spelling(spoil: str) -> None:
    raw = VENDOR.leaf
    signature = LEAF.handle.signature
    at = len(raw) - len(signature) - 1
    changed = {
        "tail": raw + b"\0",
        "cut": raw[:-1],
        "algorithm": raw[: at - 3] + b"\x03" + raw[at - 2 :],
        "loose bits": raw[:at] + b"\x01" + raw[at + 1 :],
    }[spoil]
    with pytest.raises(BadCertificate):
        load_certificates(changed)


def test_a_revocation_list_counts_when_signed_and_current() -> None:
    start, end = NOW, NOW + timedelta(days=1)
    listed = RevocationList(revocations(ROOT, VENDOR.root_key, (2,), start=start, end=end))
    assert listed.signed_by(TOP)
    assert not listed.signed_by(MIDDLE)
    assert listed.revokes(MIDDLE)
    assert not listed.revokes(LEAF)
    assert listed.current(start)
    assert listed.current(end)
    assert not listed.current(end + timedelta(seconds=1))
    assert not listed.current(start - timedelta(seconds=1))
    forged = RevocationList(revocations(ROOT, new_key(), start=start, end=end))
    assert not forged.signed_by(TOP)


def test_odd_keys_and_lengths_verify_nothing() -> None:
    assert not p256_raw(bytes(64), bytes(64), b"")
    assert not p256_raw(bytes(63), bytes(64), b"")
    assert not p256_certified(LEAF, bytes(63), b"")
    assert not p384_certified(LEAF, 1, 1, b"")
    with pytest.raises(BadKey):
        AttestationKey(b"no key")
