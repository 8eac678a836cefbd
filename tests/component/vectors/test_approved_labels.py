"""Labels of real images become values that affirm a machine which measured them, and no other."""

from __future__ import annotations

import json

import pytest

from fastness.attestation.policy.policy import default_policy
from fastness.attestation.values.from_images import joined, states_of_manifest
from fastness.attestation.values.values import ReferenceValues
from fastness.kinds.kind import JsonObject
from tests.evidence.vectors import vectors
from tests.unit.attestation.policyinputs import NOW

ZERO = "0" * 64
UNTOUCHED = (11, 12)


def label(system: str) -> JsonObject:
    measured: JsonObject = json.loads((vectors() / "pcrs" / system / "all-pcrs.json").read_text())
    return {"pcrs": [*measured["pcrs"], *({"id": number, "value": ZERO, "events": []} for number in UNTOUCHED)]}


def book(system: str) -> ReferenceValues:
    values = joined(states_of_manifest(label(system)))
    return ReferenceValues.of([{"metadata": {"name": system}, "spec": {"source": "manual", "values": values}}], NOW)


def measured(system: str) -> JsonObject:
    registers = {"pcr08": ZERO} | {f"pcr{row['id']:02}": row["value"] for row in label(system)["pcrs"]}
    checks = {"attestation-key": "Pass"}
    return {"tpm": registers, "appraisal": {"authentic": True, "acceptable": True, "checks": checks}}


@pytest.mark.parametrize("system", ["fedora-42-ovmf", "rhel-9.6-ovmf"])
def test_a_machine_that_measured_the_label_is_affirmed(system: str) -> None:
    assert default_policy("tpm").evaluate(measured(system), book(system)).affirms("tpm")


def test_a_machine_that_measured_another_label_is_refused() -> None:
    vector = default_policy("tpm").evaluate(measured("fedora-42-ovmf"), book("rhel-9.6-ovmf"))
    assert "executables" in vector.unaffirmed("tpm")


def test_a_label_alone_does_not_cover_registers_that_it_does_not_name() -> None:
    system = "rhel-9.6-ovmf"
    values = joined(states_of_manifest(json.loads((vectors() / "pcrs" / system / "all-pcrs.json").read_text())))
    named = ReferenceValues.of([{"metadata": {"name": "l"}, "spec": {"source": "manual", "values": values}}], NOW)
    assert not default_policy("tpm").evaluate(measured(system), named).affirms("tpm")


def test_the_boot_loader_of_a_label_is_known_by_name() -> None:
    owner = book("rhel-9.6-ovmf").owner(
        "event_pcr4", "71f09da2978dfd9b92150b6b96329e728a21c938e23f483fed8bd22789692ee6"
    )
    assert owner is not None
    assert owner.note == "Pcr4Grub"
