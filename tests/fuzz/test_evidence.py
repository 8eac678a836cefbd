"""Hostile bytes against every parser of evidence."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.live.collateral_files import NUMBERS, Numbers, Shelf
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.credential import CredentialBlob, EndorsementKey, open_credential
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import FormatError
from tests.evidence import tpm
from tests.fuzz.driver import Target, run
from tests.fuzz.evidence import COLLATERAL, TARGETS


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_evidence_gives_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(target)
    assert outcome.accepted > 0, "every mutation was refused: the corpus teaches nothing"
    assert len(outcome.refused) > 0, "no mutation was refused: the parser checks nothing"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_give_a_value_or_a_format_error(target: Target, data: bytes) -> None:
    try:
        target.parse(data)
    except FormatError:
        return


def test_damaged_collateral_gives_a_value_or_an_evidence_error() -> None:
    data, parse = COLLATERAL
    parse(data)
    generator, refused = random.Random(7), 0
    for _ in range(400):
        changed = bytearray(data)
        changed[generator.randrange(len(data))] = generator.randrange(256)
        try:
            parse(bytes(changed))
        except EvidenceError:
            refused += 1
    assert refused > 0


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_certificate_list_or_key(data: bytes) -> None:
    for read in (load_certificates, RevocationList, AttestationKey, EndorsementKey):
        with pytest.raises(CryptoError):
            read(data)


@given(st.binary(max_size=200), st.binary(max_size=300))
def test_arbitrary_bytes_are_no_credential(credential: bytes, secret: bytes) -> None:
    for key in (tpm.ec_key(), tpm.rsa_key()):
        with pytest.raises(CryptoError):
            open_credential(key, b"\x00\x0b" + bytes(32), CredentialBlob(credential, secret))


@given(st.binary(max_size=300))
def test_arbitrary_bytes_kept_as_numbers_of_documents_are_passed_over(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        shelf = Shelf(Path(place))
        shelf.write(NUMBERS, data)
        assert Numbers(shelf).behind({"a name that nobody wrote": 0}) == []
