"""A key on an open disk is said wherever the machine is shown."""

from __future__ import annotations

import pytest

from fastness.attestation.evidence.checks import Result
from fastness.attestation.policy.claims import TrustVector
from fastness.attestation.verdict.conclude import Conclusion, warned_of_key
from fastness.attestation.verdict.machine_standing import NOTE, identity_notes, identity_place
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine

ACCEPTED = Conclusion((), TrustVector({}), {}, "Affirmed", "", accepted=True)


@pytest.mark.parametrize(("tee", "place"), [("tpm", "TPM"), ("snp", "OpenDisk"), ("tdx", "OpenDisk")])
def test_a_guest_key_is_a_file_and_the_verdict_warns(tee: str, place: str) -> None:
    assert identity_place(tee) == place
    verdict = warned_of_key(ACCEPTED, tee)
    assert verdict.accepted
    results = [(check.result, check.code) for check in verdict.checks]
    assert results == ([(Result.WARN, "identity-on-open-disk")] if place == "OpenDisk" else [])


@pytest.mark.parametrize(
    ("status", "notes"),
    [
        ({"identity": "OpenDisk", "tee": "snp"}, (NOTE,)),
        ({"tee": "tdx"}, (NOTE,)),  # a Machine of before
        ({"identity": "TPM", "tee": "tpm"}, ()),
        ({"tee": "tpm"}, ()),
        ({}, ()),
    ],
)
def test_views_say_it_beside_the_machine(status: dict[str, str], notes: tuple[str, ...]) -> None:
    assert identity_notes(view({"spec": {"id": "i"}, "status": status}, Machine)) == notes
