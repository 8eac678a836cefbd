"""`fastness agent boot`: what vouches for the machine, and what the console says when nothing can."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.agent.boot.boot import BootedConfig
from fastness.agent.boot.enrol import Doors, Enrolled
from fastness.agent.host.errors import ReportFailure
from fastness.agent.host.tee import configfs_tsm
from fastness.agent.host.tee.configfs_tsm import TsmAttester
from fastness.agent.host.tee.tpm import TpmAttester
from fastness.cli.machine import agent_attest, agent_attester, agent_boot, agent_hardware
from fastness.cli.main import cli


def hardware(tee: str, place: Path) -> agent_hardware.Hardware:
    return agent_hardware.Hardware(tee, "swtpm:path=nowhere", place, place / "log")


def offered(monkeypatch: pytest.MonkeyPatch, tee: str) -> None:
    """A kernel that makes reports, or says that it cannot."""

    async def offered_tee(_: configfs_tsm.TsmReports) -> str:
        if not tee:
            raise ReportFailure("no provider")
        return tee

    monkeypatch.setattr(configfs_tsm.TsmReports, "offered", True)
    monkeypatch.setattr(configfs_tsm.TsmReports, "tee", offered_tee)


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_reports_of_the_processor_come_before_the_tpm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tee: str
) -> None:
    offered(monkeypatch, tee)
    chosen = await agent_attester.attester_of(hardware("auto", tmp_path))
    assert isinstance(chosen, TsmAttester)
    assert chosen.tee == tee


async def test_without_reports_the_tpm_vouches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(configfs_tsm.TsmReports, "offered", False)
    assert isinstance(await agent_attester.attester_of(hardware("auto", tmp_path)), TpmAttester)
    offered(monkeypatch, "")
    assert isinstance(await agent_attester.attester_of(hardware("auto", tmp_path)), TpmAttester)
    assert "taking the TPM" in capsys.readouterr().err


@pytest.mark.parametrize(("tee", "kind"), [("tpm", TpmAttester), ("snp", TsmAttester), ("tdx", TsmAttester)])
async def test_what_was_asked_for_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tee: str, kind: type
) -> None:
    offered(monkeypatch, "snp")
    assert isinstance(await agent_attester.attester_of(hardware(tee, tmp_path)), kind)


def test_an_image_that_believes_nobody_does_not_boot(tmp_path: Path) -> None:
    (tmp_path / "trust.json").write_text("{}")
    result = CliRunner().invoke(cli, ["agent", "boot", "--trust", str(tmp_path / "trust.json"), "--port", "0"])
    assert result.exit_code == 3
    assert "trust.json" in result.output


def test_a_port_that_is_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastness.agent.boot import image_trust as imagetrust

    monkeypatch.setattr(imagetrust.ImageTrust, "load", lambda path: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(cli, ["agent", "boot", "--tee", "tpm", "--state", str(tmp_path), "--port", port])
    assert result.exit_code == 3
    assert f"port {port}" in result.output


def booted(broker: str) -> BootedConfig:
    doors = Doors(broker, "https://gate.example", "Gate")
    return BootedConfig(b"{}", Enrolled("uid", "machine-a", "node-a", "worker", "Approved", doors))


def test_the_broker_of_the_boot_is_kept_beside_the_key_and_found_again(tmp_path: Path) -> None:
    agent_boot._remember_doors(tmp_path / "identity", booted("https://broker.example:8080"))
    broker_file = tmp_path / "identity/broker"
    assert broker_file.stat().st_mode & 0o777 == 0o600
    assert agent_attest.known_broker("", tmp_path / "identity") == "https://broker.example:8080"
    assert agent_attest.known_broker("https://other.example", tmp_path / "identity") == "https://other.example"


def test_a_broker_that_cannot_be_kept_does_not_take_the_configuration_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    agent_boot._remember_doors(tmp_path / "file", booted("https://broker.example:8080"))
    assert "agent attest will need --broker" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (None, 3, "No such file"),
        ("http://broker.example", 2, "is not the address of a broker"),
        ("https://broker.example/path", 2, "is not the address of a broker"),
        ("", 2, "is not the address of a broker"),
    ],
)
def test_attest_says_what_is_wrong_with_the_broker_that_it_finds(
    tmp_path: Path, content: str | None, status: int, message: str
) -> None:
    if content is not None:
        (tmp_path / "broker").write_text(content)
    done = CliRunner().invoke(cli, ["agent", "attest", "--state", str(tmp_path)])
    assert (done.exit_code, message in done.output) == (status, True), done.output
