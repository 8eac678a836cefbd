"""A wrong word to `fastness serve` ends in one sentence and a hint: never in a traceback, never in a group of exceptions."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.app.parts import Part
from fastness.cli.main import cli

NOWHERE = {"KUBECONFIG": "", "HOME": "/nonexistent", "KUBERNETES_SERVICE_HOST": ""}
COMBINATIONS = [",".join(chosen) for count in range(1, len(Part) + 1) for chosen in itertools.combinations(Part, count)]


def serve(*words: str) -> Result:
    return CliRunner().invoke(cli, ["serve", "--metrics-port", "0", *words], env=NOWHERE)


def one_sentence(outcome: Result) -> bool:
    lines = outcome.output.strip().splitlines()
    sentences = [line for line in lines if line.startswith(("fastness: ", "Error: "))]
    # CliRunner gives what was raised: anything but an orderly end is what `main` would print as a traceback.
    return isinstance(outcome.exception, SystemExit) and len(sentences) == 1 and "Traceback" not in outcome.output


def test_no_combination_of_roles_ends_in_more_than_a_sentence() -> None:
    for roles in COMBINATIONS:
        outcome = serve("--roles", roles)
        assert one_sentence(outcome), (roles, outcome.output)
        assert outcome.exit_code in (2, 3), roles


@pytest.mark.parametrize("role", Part)
def test_with_all_that_it_needs_a_role_misses_the_cluster_alone(role: Part, tmp_path: Path) -> None:
    needed = ("--internal-url", "https://configs:22626", "--vault", str(tmp_path / "vault.json"))
    outcome = serve("--roles", role, *needed)
    assert one_sentence(outcome), outcome.output
    assert "no kubeconfig was found" in outcome.output


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("--roles", ""), "unknown role ''"),
        (("--roles", "gate,"), "unknown role ''"),
        (("--roles", "gate, broker"), "unknown role ' broker'"),
        (("--roles", "cook"), "unknown role 'cook'"),
        (("--roles", "gate"), "does not know where the config server is"),
        (("--roles", "broker"), "has no key for what it keeps"),
        (("--roles", "broker", "--vault", "x", "--vault-secret"), "two places for one key"),
        (("--roles", "enrol", "--gate-url", "http://gate"), "--gate-url is not an https URL"),
        (("--health-host", "0.0.0.0"), "--health-host is for a port of its own"),
        (("--metrics-port", "70000"), "--metrics-port"),
        (("--metrics-host", "no such host", "--roles", "page"), "no such host"),
        (("--metrics-host", "192.0.2.1", "--roles", "page"), "192.0.2.1"),
        (("--health-port", "0", "--health-host", "192.0.2.1", "--roles", "page"), "192.0.2.1"),
        (("--adopt", "all"), "neither one of"),
        (("--kubeconfig", "/nonexistent/config", "--roles", "page"), "No such file or directory"),
        (("--lease-seconds", "0"), "--lease-seconds"),
    ],
)
def test_a_wrong_flag_is_named(words: tuple[str, ...], word: str) -> None:
    outcome = serve(*words)
    assert one_sentence(outcome), outcome.output
    assert word in outcome.output
