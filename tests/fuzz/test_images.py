"""Hostile bytes against every parser of boot images and firmware variables."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import FormatError
from fastness.formats.evidence.efi.signature_lists import SIG_X509
from fastness.images.errors import OsImageError
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.measurement import parse_manifest
from fastness.images.uki import write_uki
from tests.fuzz.driver import Target, run
from tests.fuzz.images import TARGETS
from tests.measuredboot import minted

_SIGNER = minted.Signer("signer")
_FIRMWARE = FirmwareVars(minted.keys(minted.siglist(SIG_X509, _SIGNER.der)))
_SIGNED = _SIGNER.sign(write_uki(minted.stub(), minted.sections()))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 30) | st.sampled_from(["", "00" * 32, "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["pcrs", "id", "value", "events", "hash", "pcr", "name"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_images_give_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(target)
    assert outcome.accepted > 0, "every mutation was refused: the corpus teaches nothing"
    assert len(outcome.refused) > 0, "no mutation was refused: the parser checks nothing"


@given(st.integers(0, len(_SIGNED) - 1), st.integers(0, 255))
def test_a_changed_byte_in_a_signed_image_gives_a_measurement_or_one_of_our_errors(at: int, value: int) -> None:
    changed = _SIGNED[:at] + bytes([value]) + _SIGNED[at + 1 :]
    before = measure_uki(_SIGNED, _FIRMWARE, secure_boot=True)
    try:
        after = measure_uki(changed, _FIRMWARE, secure_boot=True)
    except (FormatError, OsImageError):
        return
    # Only bytes that firmware does not hash can change without breaking the signature: then every register is the same.
    assert after.registers == before.registers


@given(_JSON)
def test_any_json_is_a_manifest_or_one_of_our_errors(value: object) -> None:
    with contextlib.suppress(OsImageError):
        assert parse_manifest(value).registers
