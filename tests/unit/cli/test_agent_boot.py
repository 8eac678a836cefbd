"""`fastness agent boot`: what vouches for the machine, and what the console says when nothing can."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.cli import agent
from fastness.cli.main import cli
from fastness.drivers import configfs_tsm
from fastness.drivers.configfs_tsm import TsmAttester
from fastness.drivers.errors import ReportFailure
from fastness.drivers.tpm import TpmAttester


def hardware(tee: str, place: Path) -> agent.Hardware:
    return agent.Hardware(tee, "swtpm:path=nowhere", place, place / "log")


def offered(monkeypatch: pytest.MonkeyPatch, tee: str) -> None:
    """A kernel that makes reports, or says that it cannot."""

    async def found(_: configfs_tsm.TsmReports) -> str:
        if not tee:
            raise ReportFailure("no provider")
        return tee

    monkeypatch.setattr(configfs_tsm.TsmReports, "offered", True)
    monkeypatch.setattr(configfs_tsm.TsmReports, "tee", found)


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_reports_of_the_processor_come_before_the_tpm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tee: str
) -> None:
    offered(monkeypatch, tee)
    chosen = await agent._attester(hardware("auto", tmp_path))
    assert isinstance(chosen, TsmAttester)
    assert chosen.tee == tee


async def test_without_reports_the_tpm_vouches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(configfs_tsm.TsmReports, "offered", False)
    assert isinstance(await agent._attester(hardware("auto", tmp_path)), TpmAttester)
    offered(monkeypatch, "")
    assert isinstance(await agent._attester(hardware("auto", tmp_path)), TpmAttester)
    assert "taking the TPM" in capsys.readouterr().err


@pytest.mark.parametrize(("tee", "kind"), [("tpm", TpmAttester), ("snp", TsmAttester), ("tdx", TsmAttester)])
async def test_what_was_asked_for_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tee: str, kind: type
) -> None:
    offered(monkeypatch, "snp")
    assert isinstance(await agent._attester(hardware(tee, tmp_path)), kind)


def test_an_image_that_believes_nobody_does_not_boot(tmp_path: Path) -> None:
    (tmp_path / "trust.json").write_text("{}")
    found = CliRunner().invoke(cli, ["agent", "boot", "--trust", str(tmp_path / "trust.json"), "--port", "0"])
    assert found.exit_code == 3
    assert "trust.json" in found.output


def test_a_port_that_is_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastness.agent import imagetrust

    monkeypatch.setattr(imagetrust.ImageTrust, "load", lambda path: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = CliRunner().invoke(cli, ["agent", "boot", "--tee", "tpm", "--state", str(tmp_path), "--port", port])
    assert found.exit_code == 3
    assert f"port {port}" in found.output
