"""`fastness initdata` and `fastness policy agent`: the verbs from end to end, and values published to a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.workloads.agent_policy.requests import REQUESTS
from fastness.workloads.initdata.workload import ANNOTATION
from fastness.workloads.live.agent_policies import ask_policy
from tests.unit.workloads.initdata.test_samples import permissive, with_gaps

AA = '[token_configs.kbs]\nurl = "https://kbs.example.com"\ncert = "PEM"\n'
ALLOW_ALL = "package agent_policy\n" + "".join(f"default {name} := true\n" for name in REQUESTS)
POD = "kind: Pod\nmetadata: {name: web}\nspec:\n  containers: [{name: a, image: r.example/a, command: [/a]}]\n"


def _run(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, list(arguments), input=given)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "aa.toml").write_text(AA)
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "policy.rego").write_text(_run("policy", "agent", "write", str(tmp_path / "pod.yaml")).output)
    (tmp_path / "open.rego").write_text(ALLOW_ALL)
    return tmp_path


def _built(files: Path, *more: str) -> str:
    done = _run("initdata", "build", "--aa", str(files / "aa.toml"), "--policy", str(files / "policy.rego"), *more)
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_what_is_built_shows_every_entry_and_is_built_alike_again(files: Path) -> None:
    encoded = _built(files)
    assert encoded == _built(files)
    entries = json.loads(_run("initdata", "show", "-", "-o", "json", given=encoded).output)
    assert entries == {
        "algorithm": "sha256",
        "data": {"aa.toml": AA, "policy.rego": (files / "policy.rego").read_text()},
    }
    assert "--- policy.rego" in _run("initdata", "show", "-", given=encoded).output


def test_a_document_is_encoded_byte_by_byte(files: Path) -> None:
    document = _run("initdata", "build", "--aa", str(files / "aa.toml"), "--toml").stdout
    (files / "odd.toml").write_text("# by hand\n" + document)
    encoded = _run("initdata", "build", str(files / "odd.toml")).stdout
    digests = {
        _run("initdata", "digest", name, "--register", "digest", given=encoded).stdout
        for name in (str(files / "odd.toml"), "-")
    }
    assert len(digests) == 1
    again = _run("initdata", "diff", str(files / "odd.toml"), "-", given=document)
    assert again.exit_code == 1
    assert "digest:" in again.output


def test_the_digest_has_three_registers_and_no_pcr_8_for_longer_ones(files: Path) -> None:
    short = json.loads(_run("initdata", "digest", "-", "-o", "json", given=_built(files)).output)
    assert (len(short["hostdata"]), len(short["mrconfigid"]), len(short["pcr8"])) == (64, 96, 64)
    long = _built(files, "--algorithm", "sha384")
    assert "refused" in _run("initdata", "digest", "-", given=long).output
    alone = _run("initdata", "digest", "-", "--register", "pcr8", given=long)
    assert (alone.exit_code, "SHA-256 bank" in alone.output) == (1, True)


def test_lint_ends_with_one_for_what_gives_the_host_too_much(files: Path) -> None:
    assert _run("initdata", "lint", "-", given=_built(files)).exit_code == 0
    built = _run("initdata", "build", "--aa", str(files / "aa.toml"), "--policy", str(files / "open.rego")).stdout
    done = _run("initdata", "lint", "-", "-o", "json", given=built)
    assert done.exit_code == 1
    codes = [finding["code"] for finding in json.loads(done.stdout)["-"]]
    assert "P2" in codes
    assert codes.count("P1") >= 15


@pytest.mark.parametrize(
    ("sample", "codes"),
    [(permissive(), {"P1", "P2", "E8", "W2"}), (with_gaps(), {"E2", "E4", "E6", "E12", "W3", "P1"})],
)
def test_samples_that_people_copy_end_with_one(tmp_path: Path, sample: str, codes: set[str]) -> None:
    (tmp_path / "initdata.toml").write_text(sample)
    done = _run("initdata", "lint", str(tmp_path / "initdata.toml"), "-o", "json")
    assert done.exit_code == 1
    (findings,) = json.loads(done.stdout).values()
    assert codes <= {finding["code"] for finding in findings}


def test_a_policy_that_does_not_parse_is_an_error_and_not_a_crash(files: Path) -> None:
    (files / "broken.rego").write_text("package agent_policy\ndefault ExecProcessRequest := {\n")
    built = _run("initdata", "build", "--policy", str(files / "broken.rego")).stdout
    done = _run("initdata", "lint", "-", given=built)
    assert (done.exit_code, "E12" in done.output) == (1, True)
    assert _run("policy", "agent", "ask", str(files / "broken.rego"), "exec").exit_code == 1


def test_init_data_is_applied_and_found_again_in_the_manifest(files: Path) -> None:
    (files / "initdata.txt").write_text(_built(files))
    (files / "all.yaml").write_text(POD + "---\nkind: Service\nmetadata: {name: s}\n")
    done = _run("initdata", "apply", str(files / "initdata.txt"), str(files / "all.yaml"))
    pod, service = yaml.safe_load_all(done.stdout)
    assert pod["metadata"]["annotations"][ANNOTATION] == _built(files)
    assert pod["spec"]["runtimeClassName"] == "kata-cc"
    assert service == {"kind": "Service", "metadata": {"name": "s"}}
    (files / "applied.yaml").write_text(done.stdout)
    assert "aa.toml" in _run("initdata", "show", str(files / "applied.yaml")).output
    assert _run("initdata", "lint", str(files / "pod.yaml"), "--strict").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["initdata", "build"], 2),
        (["initdata", "show", "/no/such"], 2),
        (["initdata", "show", "POD"], 1),
        (["initdata", "apply", "TXT", "/no/such"], 2),
        (["policy", "agent", "write", "AA"], 2),
        (["policy", "agent", "ask", "POLICY", "dance"], 2),
        (["policy", "agent", "ask", "POLICY", "exec", "--input", "["], 2),
        (["policy", "agent", "ask", "AA", "exec"], 2),
    ],
)
def test_wrong_use_is_told_with_its_code(files: Path, arguments: list[str], code: int) -> None:
    names = {"POD": "pod.yaml", "AA": "aa.toml", "POLICY": "policy.rego", "TXT": "i.txt"}
    (files / "i.txt").write_text(_built(files))
    done = _run(*(str(files / names[argument]) if argument in names else argument for argument in arguments))
    assert (done.exit_code, bool(done.output)) == (code, True), done.output


@pytest.mark.parametrize(
    ("policy", "request_name", "command", "allowed"),
    [("open.rego", "exec", ["sh"], True), ("policy.rego", "exec", ["sh"], False), ("policy.rego", "logs", [], False)],
)
def test_asking_answers_by_exit_code_and_names_the_line(
    files: Path, policy: str, request_name: str, command: list[str], allowed: bool
) -> None:
    done = _run("policy", "agent", "ask", str(files / policy), request_name, "--", *command)
    assert done.exit_code == (0 if allowed else 1)
    assert "line" in done.output


async def test_a_policy_that_takes_too_long_is_a_policy_that_does_not_parse() -> None:
    body = "; ".join(f"a{n} := numbers.range(0, 200)[_]" for n in range(4))
    answer = await ask_policy(
        f"package agent_policy\nExecProcessRequest {{ {body}; a0 + a1 + a2 + a3 == 1000000 }}\n", seconds=2
    )
    assert answer.error


async def test_a_policy_that_prints_is_still_answered() -> None:
    answer = await ask_policy('package agent_policy\nExecProcessRequest { print("x") }\n', [("ExecProcessRequest", {})])
    assert [decision.allowed for decision in answer.decisions] == [True]
