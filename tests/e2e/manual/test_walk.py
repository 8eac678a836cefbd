"""The manual is followed, row by row, with the real kubectl, against a running control plane with virtual hosts."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components import require_program
from tests.e2e.docs.transcript import lines, matches
from tests.e2e.live import Live, environment
from tests.manual.table import HERE, Command, rows
from tests.patience import PATIENCE

PROGRAMS = {"jq": "jq", "xxd": "xxd", "openssl": "openssl", "curl": "curl", "envsubst": "gettext-base"}


class Walk:
    """A shell whose variables stay, in a directory with the manual's files."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.directory = live.home / "walk"
        shutil.copytree(HERE / "manifests", self.directory)
        self._kept = self.directory / ".session"
        usual = environment(live.home)
        # Nothing leaves this machine: addresses of the manual are not asked, whatever network there is.
        nowhere = dict.fromkeys(("https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9")
        self._env = {
            **usual, **nowhere, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PATH": f"{HERE}:{usual['PATH']}",
            "KUBECONFIG": str(live.kubeconfig), "STATE": str(live.state),
        }  # fmt: skip

    def say(self, command: str) -> tuple[int, list[str]]:
        """Run a command; its exit code and what it printed."""
        variables = self._kept
        script = f"[ -e {variables} ] && . {variables}\nset -a\n{command}\ncode=$?\nset +a\nexport -p > {variables}\nexit $code\n"
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.directory, env=self._env, text=True, timeout=PATIENCE, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, lines(done.stdout)

    def problem(self, command: Command) -> str:
        """What is wrong with how a command ends; empty when it is as the table says."""
        end = time.monotonic() + (PATIENCE if command.until else 0)
        while True:
            code, printed = self.say(command.run)
            if code == command.code and matches(list(command.ours), printed):
                return ""
            if time.monotonic() >= end:
                return (
                    f"$ {command.run}\n"
                    + "\n".join(printed)
                    + f"\n  exit {code}, wanted {command.code} and {list(command.ours)}"
                )
            time.sleep(0.3)


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    """A cluster with three hosts of confidential containers, and a shell beside it."""
    for name, package in PROGRAMS.items():
        require_program(Path(shutil.which(name) or f"/usr/bin/{name}"), package)
    with Live.start(tmp_path, "--profile", "containers", "--machines", "3") as live:
        for _ in range(900):
            if live.kubectl("get", "nodes", "-o", "name").out.count("worker-") == 3:
                break
            time.sleep(0.1)
        yield Walk(live)


@pytest.mark.long("all commands of the manual, one after the other")
@pytest.mark.row("001-20")
@pytest.mark.row("001-23")
@pytest.mark.row("001-35")
@pytest.mark.row("001-47")
@pytest.mark.row("001-65")
@pytest.mark.row("001-66")
@pytest.mark.row("001-89")
@pytest.mark.row("001-90")
@pytest.mark.row("001-94")
@pytest.mark.row("001-99")
@pytest.mark.row("001-112")
@pytest.mark.row("001-135")
@pytest.mark.row("001-142")
@pytest.mark.row("001-144")
@pytest.mark.row("001-145")
def test_the_manual_can_be_followed_row_by_row(walk: Walk) -> None:
    problems: list[str] = []
    for row in rows():
        if row.open:
            continue
        steps = [
            *([row.fails] if row.fails else ()),
            *(Command(command, ("…",)) for command in row.before),
            row.command,
            *row.then,
        ]
        problems += [f"row {row.n}: {problem}" for step in steps if (problem := walk.problem(step))]
    assert not problems, "\n".join(problems)


def _objects(walk: Walk) -> set[str]:
    """Every object of every kind that somebody could leave behind, by kind, namespace and name."""
    resources = walk.live.kubectl("api-resources", "--verbs=list,delete", "-o", "name").out.split()
    kinds = [
        resource
        for resource in resources
        if resource.partition(".")[0] not in ("events", "leases", "auditbatches", "auditcheckpoints")
    ]
    listed = walk.live.kubectl("get", ",".join(kinds), "-A", "-o", "json", "--ignore-not-found").json["items"]
    return {f"{obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}" for obj in listed}


INSTALL = (
    "oc create -f nfd-operator.yaml", "oc create -f my-nfd.yaml", "oc create -f my-nodefeaturerule.yaml",
    "oc create -f osc-namespace.yaml", "oc create -f osc-operatorgroup.yaml", "oc create -f osc-subscription.yaml",
    "oc create -f my-feature-gate.yaml", "oc create -f example-kataconfig.yaml",
)  # fmt: skip
UNINSTALL = (
    "oc delete pod coco-test-pod", "oc delete kataconfig example-kataconfig",
    "oc delete subscription sandboxed-containers-operator -n openshift-sandboxed-containers-operator",
    "oc delete namespace openshift-sandboxed-containers-operator",
    "oc delete -f my-nodefeaturerule.yaml", "oc delete -f my-nfd.yaml", "oc delete -f nfd-operator.yaml",
    "oc delete csv --all -n openshift-nfd",
)  # fmt: skip
BLOCKED = 'Existing pods using "kata-cc" RuntimeClass found. Please delete the pods manually for KataConfig deletion to proceed'


def test_uninstalling_as_the_manual_says_leaves_nothing_behind(walk: Walk) -> None:
    assert walk.problem(Command("oc get mcp worker -o jsonpath={.status.readyMachineCount}", ("3",), until=True)) == ""
    before = _objects(walk)
    for command in INSTALL:
        assert walk.say(command)[0] == 0, command
    done = Command("oc get kataconfig --no-headers", ("example-kataconfig   False   3   3   1s",), until=True)
    assert walk.problem(done) == ""
    assert walk.problem(Command("oc create -f test-pod.yaml", ("…", "pod/coco-test-pod created"), until=True)) == ""
    early = walk.say("oc delete namespace openshift-sandboxed-containers-operator --dry-run=server")[1]
    assert any(
        line.startswith("Warning: KataConfig example-kataconfig still exists: delete it first") for line in early
    )
    walk.say("oc delete kataconfig example-kataconfig --wait=false")
    path = "{.status.conditions[?(@.type=='InProgress')].message}"
    blocked = Command(f'oc get kataconfig example-kataconfig -o jsonpath="{path}"', (BLOCKED,), until=True)
    assert walk.problem(blocked) == ""
    for command in UNINSTALL:
        code, printed = walk.say(command)
        assert code == 0 or "NotFound" in " ".join(printed), (command, printed)
    for _ in range(450):
        after = _objects(walk)
        if after == before:
            break
        time.sleep(0.2)
    assert sorted(after - before) == []
    assert sorted(before - after) == []


LITERALS = (
    "Succeeded",
    "rendered-",
    "worker-",
    "kata",
    "log_level",
    "created",
    "1.12",
    "Running",
    "deleted",
    "patched",
)


def test_the_client_for_other_verbs_contains_no_answers() -> None:
    tree = ast.parse((HERE / "oc").read_text())
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [text for text in texts for word in LITERALS if word in text] == []


def test_every_command_of_the_manual_has_a_row_and_every_open_one_a_reason() -> None:
    table = rows()
    assert sorted(row.n for row in table) == list(range(1, 88))
    for row in table:
        assert row.state != "open" or re.search(r"\w{3}", row.open), row.n
        assert row.open or row.command.run, row.n
    assert json.dumps([row.expected for row in table])
