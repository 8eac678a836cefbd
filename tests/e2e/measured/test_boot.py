"""A real machine measures what was predicted from its image; a changed command line is seen, refused and named.

Boots of QEMU with OVMF, swtpm and Debian's kernel, each with a quote that answers our nonce. The short form boots once; the
changed machine boots in the long form.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from fastness.attestation.evidence.checks import Appraisal, Findings
from fastness.attestation.evidence.replay import replay
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.attestation.values.prediction import judge_measurement
from fastness.cli.main import cli
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.eventlog.log import parse_log
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.formats.evidence.tpm.public import parse_public
from fastness.images.measure import REGISTERS
from fastness.images.measurement import Measurement
from tests.measuredboot.initrd import QUOTED
from tests.measuredboot.run import CHANGED_LINE, COMMAND_LINE, Run, image, run
from tests.soaking import SOAK

pytestmark = pytest.mark.long("whichever test comes first boots a machine under emulation")
CHALLENGES = {"good": b"first challenge".ljust(32, b"."), "changed": b"second challenge".ljust(32, b".")}
LOGGED = (*range(10), 11, 12, 13, 14)
HOLDING_THE_LINE = {4, 9, 11}
# With blanks of all kinds as well: one boot shows that what the stub makes of them was predicted.
LINE = COMMAND_LINE.replace(b"quiet ", b"quiet\t") + b" \n"


@pytest.fixture(scope="module")
def good() -> Run:
    return run(image(LINE), CHALLENGES["good"])


@pytest.fixture(scope="module")
def changed() -> Run:
    if not SOAK:
        # And tests/e2e/sim/test_real_machines.py has a machine with another line that is refused.
        pytest.skip("in `make soak`: tests/unit/images/test_real_boot.py judges the evidence of such a boot")
    return run(image(CHANGED_LINE), CHALLENGES["changed"])


def judged(boot: Run, expected: Measurement) -> tuple[Appraisal, str]:
    """The verifier's checks on the quote, then the registers against a prediction."""
    evidence = parse_envelope(boot.booted.evidence)
    expectations = TpmExpectations(
        nonce=boot.nonce,
        known_key=AttestationKey(boot.booted.ak),
        registers=frozenset(QUOTED),
        event_log=boot.booted.event_log,
    )
    appraisal = appraise_tpm(evidence, expectations)
    findings = Findings()
    first = judge_measurement(findings, expected, evidence.pcrs, boot.booted.event_log, "the image")
    return msgspec.structs.replace(appraisal, checks=(*appraisal.checks, *findings.checks)), str(first) if first else ""


def refused(appraisal: Appraisal) -> list[str]:
    return [check.name for check in appraisal.checks if check.refuses]


@pytest.mark.parametrize("pcr", REGISTERS)
def test_the_machine_measures_what_was_predicted(good: Run, pcr: int) -> None:
    assert good.booted.registers[pcr].hex() == good.predicted.registers[pcr].hex()


def test_the_log_is_the_predicted_events_in_their_order(good: Run) -> None:
    log = parse_log(good.booted.event_log)
    for pcr in REGISTERS:
        logged = [(event.name, event.digests["sha256"]) for event in log.events if event.register == pcr]
        assert logged == [(event.name, event.digest) for event in good.predicted.of_register(pcr)], f"PCR {pcr}"


def test_the_log_replays_to_the_registers_of_the_machine(request: pytest.FixtureRequest) -> None:
    for name in ("good", "changed") if SOAK else ("good",):
        boot: Run = request.getfixturevalue(name)
        ends = replay(parse_log(boot.booted.event_log))["sha256"]
        assert {pcr: ends.get(pcr, bytes(32)) for pcr in LOGGED} == {pcr: boot.booted.registers[pcr] for pcr in LOGGED}


def test_the_verifier_accepts_the_quote_against_the_prediction(good: Run) -> None:
    appraisal, first = judged(good, good.predicted)
    assert appraisal.acceptable, refused(appraisal)
    assert not first


def test_the_key_that_quotes_is_one_that_only_quotes(good: Run) -> None:
    area = parse_public(good.booted.ak_area)
    assert area.is_attestation_key
    assert area.spki == good.booted.ak


def test_the_tools_of_the_tpm_accept_the_quote_as_well(good: Run, tmp_path: Path) -> None:
    for name, data in (("ak", good.booted.ak_area), ("message", good.booted.message), ("sig", good.booted.signature)):
        (tmp_path / name).write_bytes(data)
    check = ["tpm2_checkquote", "-u", "ak", "-m", "message", "-s", "sig", "-g", "sha256", "-q"]
    assert subprocess.run([*check, good.nonce.hex()], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert subprocess.run([*check, "00" * 32], cwd=tmp_path, capture_output=True, check=False).returncode != 0


@pytest.mark.soak
def test_a_changed_command_line_changes_exactly_the_predicted_registers(good: Run, changed: Run) -> None:
    before, after = good.booted.registers, changed.booted.registers
    # 10 is the kernel's own list of files (IMA); its first entry covers registers 0 to 9.
    assert {pcr for pcr in before if before[pcr] != after[pcr]} == HOLDING_THE_LINE | {10}
    assert {pcr: after[pcr] for pcr in REGISTERS} == dict(changed.predicted.registers)


@pytest.mark.soak
def test_the_verifier_refuses_the_changed_machine_and_names_the_first_differing_event(good: Run, changed: Run) -> None:
    appraisal, first = judged(changed, good.predicted)
    assert appraisal.authentic, "the quote itself is good"
    assert not appraisal.acceptable
    assert refused(appraisal) == [f"measured PCR {pcr}" for pcr in sorted(HOLDING_THE_LINE)]
    assert first.startswith("event 3 of PCR 4 differs: expected the unified kernel image")
    hints = {check.name: check.hint for check in appraisal.checks}
    assert "section .cmdline" in hints["measured PCR 11"]
    assert "command line: console=ttyS0 quiet no_timer_check panic=1 x=1" in hints["measured PCR 9"]


def test_the_quote_of_one_boot_does_not_answer_the_challenge_of_another(good: Run) -> None:
    appraisal, _ = judged(replace(good, nonce=CHALLENGES["changed"]), good.predicted)
    assert refused(appraisal) == ["nonce"]


def test_the_command_gives_the_registers_of_the_machine(good: Run, tmp_path: Path) -> None:
    path = tmp_path / "image.efi"
    path.write_bytes(good.uki)
    measurement = json.loads(CliRunner().invoke(cli, ["measure", str(path), "-o", "json"]).stdout)
    assert {row["id"]: row["value"] for row in measurement["pcrs"]} == {
        pcr: good.booted.registers[pcr].hex() for pcr in REGISTERS
    }
