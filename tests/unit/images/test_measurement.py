"""Manifests, reference values, and where a boot left the prediction."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Findings
from fastness.attestation.values.prediction import judge_measurement
from fastness.images.errors import BadManifest
from fastness.images.measurement import MeasuredEvent, Measurement, parse_manifest
from tests.evidence import tpm

LOGGED = [
    (4, 0x80000007, b"call"),
    (4, 4, b"sep"),
    (7, 4, b"sep"),
    (4, 0x80000003, b"image"),
    (9, 6, b"line"),
    (0, 8, b"fw"),
]


def event(pcr: int, data: bytes) -> MeasuredEvent:
    return MeasuredEvent(pcr, "EV", hashlib.sha256(data).digest(), data.decode(), f"Pcr{pcr}{data.decode()}")


def predicted(logged: list[tuple[int, int, bytes]] = LOGGED) -> Measurement:
    return Measurement.of((4, 7, 9, 12), [event(pcr, data) for pcr, _, data in logged])


def signed(logged: list[tuple[int, int, bytes]]) -> dict[int, bytes]:
    everything = Measurement.of(range(24), [event(pcr, data) for pcr, _, data in logged])
    return dict(everything.registers)


def test_events_outside_the_predicted_registers_are_dropped() -> None:
    assert {entry.pcr for entry in predicted().events} == {4, 7, 9}


def test_reference_values_have_the_names_that_policies_ask_for() -> None:
    rows = predicted().reference_values()
    assert [row["name"] for row in rows] == ["tpm_pcr4", "tpm_pcr7", "tpm_pcr9", "tpm_pcr12"]
    assert rows[0] == {
        "name": "tpm_pcr4",
        "register": "pcr4",
        "algorithm": "sha256",
        "value": predicted().registers[4].hex(),
        "state": "Current",
    }


def test_a_manifest_reads_back_as_it_was_written() -> None:
    manifest = parse_manifest(predicted().to_manifest())
    assert manifest.registers == predicted().registers
    assert manifest.to_manifest() == predicted().to_manifest()


def changed(path: list[Any], value: object) -> object:
    manifest: Any = copy.deepcopy(predicted().to_manifest())
    place = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return manifest


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ([], "not-a-manifest"),
        ({"pcrs": []}, "not-a-manifest"),
        ({"pcrs": [4]}, "not-a-manifest"),
        (changed(["pcrs", 0, "id"], 24), "bad-register"),
        (changed(["pcrs", 0, "id"], True), "bad-register"),
        (changed(["pcrs", 1, "id"], 4), "bad-register"),
        (changed(["pcrs", 0, "value"], "00" * 32), "does-not-add-up"),
        (changed(["pcrs", 0, "value"], "AA" * 32), "bad-digest"),
        (changed(["pcrs", 0, "events"], {}), "not-a-manifest"),
        (changed(["pcrs", 0, "events", 0, "hash"], "00" * 32), "does-not-add-up"),
        (changed(["pcrs", 0, "events", 0, "hash"], 5), "bad-digest"),
        (changed(["pcrs", 0, "events", 0, "pcr"], 7), "bad-event"),
        (changed(["pcrs", 0, "events", 0, "name"], None), "bad-event"),
        (changed(["pcrs", 0, "events"], predicted().to_manifest()["pcrs"][0]["events"] * 4097), "too-many-events"),
    ],
)
def test_a_manifest_that_does_not_add_up_is_refused(manifest: object, code: str) -> None:
    with pytest.raises(BadManifest) as caught:
        parse_manifest(manifest)
    assert caught.value.code == code


def judged(logged: list[tuple[int, int, bytes]], log: bytes | None = None) -> tuple[dict[str, Any], str]:
    findings = Findings()
    data = tpm.event_log(logged) if log is None else log
    first = judge_measurement(findings, predicted(), signed(logged), data, "image x")
    return {check.name: check for check in findings.checks if check.refuses}, str(first) if first else ""


def test_a_boot_as_predicted_passes_every_register() -> None:
    refused, first = judged(LOGGED)
    assert not refused
    assert not first


def test_the_first_differing_event_is_named_and_others_have_their_own() -> None:
    boot = [*LOGGED[:3], (4, 0x80000003, b"evil"), (9, 6, b"other"), LOGGED[5]]
    refused, first = judged(boot)
    assert list(refused) == ["measured PCR 4", "measured PCR 9"]
    assert first.startswith("event 3 of PCR 4 differs: expected image (")
    assert hashlib.sha256(b"evil").hexdigest() in first
    assert refused["measured PCR 4"].hint == first[:1].upper() + first[1:] + "."
    assert "Event 1 of PCR 9 differs" in refused["measured PCR 9"].hint
    assert {check.code for check in refused.values()} == {"measurement-differs"}
    assert {check.source for check in refused.values()} == {"image x"}


def test_added_and_missing_events_are_named() -> None:
    assert judged([*LOGGED, (12, 13, b"credentials")])[1].startswith("event 1 of PCR 12 was not expected: EV_IPL")
    assert judged([row for row in LOGGED if row[2] != b"line"])[1].startswith("event 1 of PCR 9 is missing: line (")


def test_records_that_extend_nothing_are_passed_over() -> None:
    log = tpm.event_log([(4, 3, b"a remark"), *LOGGED])
    boot = [*LOGGED[:3], (4, 0x80000003, b"evil"), *LOGGED[4:]]
    assert not judged(LOGGED, log)[1]
    assert judged(boot, tpm.event_log([(4, 3, b"a remark"), *boot]))[1].startswith("event 3 of PCR 4 differs")


@pytest.mark.parametrize("log", [b"", b"damaged", tpm.event_log(LOGGED), tpm.event_log(LOGGED, ("sha1",))])
def test_a_log_that_the_registers_do_not_prove_explains_nothing(log: bytes) -> None:
    boot = [*LOGGED[:3], (4, 0x80000003, b"evil"), *LOGGED[4:]]
    refused, first = judged(boot, log)
    assert list(refused) == ["measured PCR 4"]
    assert not first
    assert "event log" in refused["measured PCR 4"].hint


def test_a_register_that_was_not_quoted_is_refused() -> None:
    findings = Findings()
    judge_measurement(findings, predicted(), {4: predicted().registers[4]})
    codes = {check.name: check.code for check in findings.checks}
    assert codes == {
        "measured PCR 4": "ok",
        "measured PCR 7": "measurement-missing",
        "measured PCR 9": "measurement-missing",
        "measured PCR 12": "measurement-missing",
    }
    assert {check.hint for check in findings.checks if check.code != "ok"} == {"Quote this register as well."}
