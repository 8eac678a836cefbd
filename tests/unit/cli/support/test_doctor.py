"""What `doctor` looks for, what it says, and when its answer is no."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.attestation.evidence.snp_floors import DATE
from fastness.cli.errors import Exit
from fastness.cli.support import doctor
from fastness.cli.support.finding import Finding
from fastness.formats.evidence.snp.tcb import Generation
from fastness.sim.tee import SimVendor
from tests.patience import PATIENCE

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def nowhere(_: str) -> str | None:
    return None


def test_programs_that_are_not_there_are_optional_and_named_with_their_package(tmp_path: Path) -> None:
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, nowhere)}
    assert findings["kubectl"].state == "optional"
    assert findings["swtpm"].fix == "apt-get install swtpm swtpm-tools"


def test_programs_that_are_there_are_shown_with_their_place(tmp_path: Path) -> None:
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, lambda name: f"/bin/{name}")}
    assert (findings["kubectl"].state, findings["kubectl"].found) == ("ok", "/bin/kubectl")


def test_every_declared_dependency_is_looked_for(tmp_path: Path) -> None:
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, nowhere)}
    assert {"click", "cryptography", "orjson"} <= set(findings)
    assert {finding.state for finding in findings.values() if finding.purpose == "a dependency"} == {"ok"}


def test_a_dependency_that_is_missing_makes_the_answer_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["no-such-package>=1; python_version > '3'"])
    result = CliRunner().invoke(doctor.doctor, ["--state", str(tmp_path)])
    assert result.exit_code == Exit.NO
    assert "pip install no-such-package" in result.output
    assert "1 required thing is missing." in result.output


def test_it_says_which_dependency_is_missing_where_that_cannot_be_imported(tmp_path: Path) -> None:
    script = (
        "import sys, importlib.metadata as metadata\n"
        "version = metadata.version\n"
        "def without(name):\n"
        "    if name in ('httpx', 'cryptography', 'msgspec'): raise metadata.PackageNotFoundError(name)\n"
        "    return version(name)\n"
        "metadata.version = without\n"
        "for name in ('httpx', 'cryptography', 'msgspec'): sys.modules[name] = None\n"
        "from fastness.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "doctor", "--state", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (Exit.NO, "")
    assert "pip install cryptography" in done.stdout


def test_a_place_that_cannot_be_written_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    [state] = [finding for finding in doctor.examine(tmp_path / "file" / "state", nowhere) if finding.name == "state"]
    assert state.state == "missing"
    assert "--state" in state.fix


def test_json_says_the_same(tmp_path: Path) -> None:
    result = CliRunner().invoke(doctor.doctor, ["--state", str(tmp_path), "-o", "json"])
    report = json.loads(result.output)
    assert report["ok"] is True
    assert {"name", "state", "found", "purpose", "fix"} == set(report["findings"][0])


def imported(state: Path, at: datetime) -> None:
    """What an operator of a site imported at that time."""
    vendor = SimVendor()
    documents = {
        "tdx/50806f000000-platform.json": vendor.collateral(at).raw.encode(),
        "snp/Genoa/crl.der": vendor.revocations(Generation.GENOA, at),
    }
    for name, data in documents.items():
        path = state / "collateral" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(data)


def test_documents_of_vendors_are_told_with_the_day_on_which_the_first_runs_out(tmp_path: Path) -> None:
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, nowhere, NOW)}
    assert (findings["collateral"].state, findings["collateral"].found) == ("optional", "none")
    assert "--vendor-services" in findings["collateral"].fix
    imported(tmp_path, NOW)
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, nowhere, NOW)}
    assert findings["collateral"].state == "ok"
    assert findings["collateral"].found.startswith("2 documents, the first runs out on 20")


def test_documents_that_ran_out_or_cannot_be_read_are_named(tmp_path: Path) -> None:
    imported(tmp_path, NOW)
    (tmp_path / "collateral" / "snp" / "Genoa" / "crl.der").write_bytes(b"no list")
    findings = {finding.name: finding for finding in doctor.examine(tmp_path, nowhere, NOW + timedelta(days=365))}
    assert findings["collateral/snp/Genoa/crl.der"].found == "cannot be read"
    assert findings["collateral/tdx/50806f000000-platform.json"].found.startswith("ran out on ")
    assert "collateral" not in findings


def test_an_old_table_of_minimums_is_told_with_what_to_do(tmp_path: Path) -> None:
    def finding(now: datetime) -> Finding:
        return next(
            candidate for candidate in doctor.examine(tmp_path, nowhere, now) if candidate.name == "snp-minimums"
        )

    made = datetime(DATE.year, DATE.month, DATE.day, tzinfo=UTC)
    assert (finding(made + timedelta(days=180)).state, finding(made).fix) == ("ok", "")
    old = finding(made + timedelta(days=181))
    assert (old.state, "more than 180 days old" in old.found, "minimumTcb" in old.fix) == ("optional", True, True)
