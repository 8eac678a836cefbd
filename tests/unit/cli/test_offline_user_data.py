"""`fastness userdata --offline`: what is refused before a key is made, and what machines that attest are given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.cli.errors import CliError
from fastness.cli.main import cli
from fastness.cli.manifests import read

URL = ("--config-url", "https://configs.example:22624")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "--config-url is not an https URL"),
        (["--config-url", "http://configs.example"], "--config-url is not an https URL"),
        ([*URL, "--confidential", "worker"], "--enrol-url is not an https URL"),
        ([*URL, "--pool", "../worker"], "no name of a pool"),
        ([*URL, "--pointer-version", "9"], "there is no Ignition spec '9'"),
        ([*URL, "--lifetime", "soon"], "is not a time"),
        ([*URL, "--bundle", "other.yaml"], "has no Secret doors-ca"),
        (["worker", *URL], "do not go together"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: another}\n")
    outcome = CliRunner().invoke(cli, ["userdata", "--offline", "first", *words])
    assert outcome.exit_code == 2, outcome.output
    assert reason in outcome.output or (isinstance(outcome.exception, CliError) and reason in outcome.exception.message)
    assert not Path("first").exists()


def test_machines_that_will_attest_are_led_to_their_forwarder_with_a_ticket_that_is_counted(tmp_path: Path) -> None:
    words = ["userdata", "--offline", str(tmp_path / "first"), *URL, "--pool", "master", "--confidential", "worker"]
    outcome = CliRunner().invoke(cli, [*words, "--enrol-url", "https://enrol.example:8000", "--machines", "3"])
    assert outcome.exit_code == 0, outcome.output
    pointer = json.loads((tmp_path / "first/worker.ign").read_text())["ignition"]
    assert "security" not in pointer, "their trust comes from the measured image"
    [merge] = pointer["config"]["merge"]
    assert merge["source"] == "http://127.0.0.1:22625/config/worker"
    assert {"name": "X-Fastness-Server", "value": "https://enrol.example:8000"} in merge["httpHeaders"]
    tickets = read([tmp_path / "first/bundle.yaml"]).of("JoinTicket")
    assert {obj["spec"]["pool"]: obj["spec"]["uses"] for obj in tickets} == {"master": 0, "worker": 3}
