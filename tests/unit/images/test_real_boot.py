"""The evidence of two real boots, kept: one of the predicted image, one with another command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from fastness.attestation.evidence.checks import Findings
from fastness.attestation.evidence.replay import replay
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.attestation.policy.policy import PolicySet
from fastness.attestation.values.from_images import set_of_image
from fastness.attestation.values.prediction import first_differences, judge_measurement
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict.conclude import Conclusion, Facts, concluding
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.eventlog.log import parse_log
from fastness.formats.evidence.tpm.envelope import TpmEvidence, parse_envelope
from fastness.images.measurement import Measurement, parse_manifest
from tests.measuredboot.keep import NONCE
from tests.unit.attestation.inprocess import decided

FOLDER = Path(__file__).resolve().parents[2] / "evidence" / "data" / "measured-boot"
IMAGE = "registry.example/os@sha256:" + "ab" * 32
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def evidence(name: str) -> TpmEvidence:
    return parse_envelope((FOLDER / f"{name}.json").read_bytes())


def predicted() -> Measurement:
    return parse_manifest(json.loads((FOLDER / "manifest.json").read_bytes()))


def concluded(name: str) -> Conclusion:
    """What a cluster concludes in which the predicted image is approved."""
    given = evidence(name)
    expectations = TpmExpectations(nonce=NONCE, known_key=AttestationKey(given.ak_public), event_log=given.event_log)
    approval = {
        "metadata": {
            "name": "os",
            "creationTimestamp": "2026-02-01T00:00:00Z",
            "annotations": {"fastness.dev/measurements": (FOLDER / "manifest.json").read_text()},
        }
    }
    book = ReferenceValues.of([set_of_image(IMAGE, [approval])], NOW)
    return decided(concluding(appraise_tpm(given, expectations), Facts(), PolicySet.of([]), book))


def test_the_log_of_a_real_boot_is_the_prediction() -> None:
    given = evidence("good")
    log = parse_log(given.event_log)
    assert first_differences(predicted(), log.events) == []
    ends = replay(log)["sha256"]
    assert {pcr: given.pcrs[pcr] for pcr in predicted().registers} == dict(predicted().registers)
    assert {pcr: ends.get(pcr, bytes(32)) for pcr in given.pcrs} == dict(given.pcrs)


def test_the_boot_of_a_changed_image_differs_first_in_the_image() -> None:
    given, findings = evidence("changed"), Findings()
    first = judge_measurement(findings, predicted(), given.pcrs, given.event_log)
    assert str(first).startswith("event 3 of PCR 4 differs: expected the unified kernel image")
    assert [check.name for check in findings.checks if check.refuses] == [
        "measured PCR 4",
        "measured PCR 9",
        "measured PCR 11",
    ]


def test_a_cluster_that_approved_the_image_trusts_one_machine_and_refuses_the_other() -> None:
    good, changed = concluded("good"), concluded("changed")
    assert good.accepted, good.detail
    assert not changed.accepted
    refusing = {check.name: check.hint for check in changed.checks if check.refuses}
    assert any(name.startswith("PCR 4") and "number" in hint for name, hint in refusing.items()), refusing
