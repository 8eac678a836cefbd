"""A support bundle of a live API: what is in it, what never is, its bounds, its page, the manual's options."""

from __future__ import annotations

import asyncio
import base64
import gzip
import html.parser
import json
import os
import re
import zlib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.cli.support.gather import Bounds, Bundle, collected_kinds
from fastness.cli.support.layout import BundleFile, LeftOut, index_page, safe
from fastness.kinds.registry import find
from fastness.kube.client.client import KubeCluster
from fastness.kube.errors import Unavailable
from fastness.record.entry import RecordEntry as RecordEntry
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import ConfigMapTiles
from fastness.record.loops.sequencer import KEY, Sequencer
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock

INIT_DATA = "io.katacontainers.config.hypervisor.cc_init_data"
WORD = "swordfishcanary"
CANARY = "Canary7hQ2mVx9LpRtZ3nK8sWd"
NAMESPACES = find("", "v1", "namespaces").resource
NS = "openshift-sandboxed-containers-operator"


async def _run(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, ["support", "bundle", *arguments])


async def _make(embedded: Embedded, group: str, version: str, plural: str, body: dict[str, Any]) -> None:
    kind = find(group, version, plural)
    await embedded.cluster.create(kind.resource, {"apiVersion": kind.api_version, "kind": kind.kind, **body})


async def _world(embedded: Embedded) -> None:
    """Objects that hold the canary wherever a credential may stand."""
    pem = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"
    hidden = base64.b64encode(pem.encode()).decode()
    await _make(embedded, "", "v1", "namespaces", {"metadata": {"name": NS}})
    await _make(
        embedded, "", "v1", "secrets",
        {"metadata": {"name": "s", "namespace": NS, "labels": {"x": CANARY}}, "stringData": {"a": CANARY}},
    )  # fmt: skip
    notes = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"x": CANARY}})}
    await _make(
        embedded, "", "v1", "configmaps",
        {
            "metadata": {"name": "c", "namespace": NS, "annotations": notes},
            "data": {"key.pem": pem, "b64": hidden, "app.yaml": f"db:\n  password: {CANARY}\n", "plain": "kept <b>text</b>"},
        },
    )  # fmt: skip
    pod = {
        "name": "app",
        "image": "i",
        "env": [{"name": "API_TOKEN", "value": CANARY}],
        "args": [f"--password={CANARY}"],
    }
    await _make(
        embedded, "", "v1", "pods",
        {"metadata": {"name": "p", "namespace": NS}, "spec": {"runtimeClassName": "", "containers": [pod]}},
    )  # fmt: skip
    file = {"path": "/etc/x", "contents": {"source": f"data:,{CANARY}"}}
    config = {"ignition": {"version": "3.2.0"}, "storage": {"files": [file]},
              "passwd": {"users": [{"name": "core", "passwordHash": f"$6$x${CANARY}"}]}}  # fmt: skip
    await _make(
        embedded, "machineconfiguration.openshift.io", "v1", "machineconfigs",
        {"metadata": {"name": "99-x"}, "spec": {"config": config}},
    )  # fmt: skip
    await _make(
        embedded, "", "v1", "events",
        {
            "metadata": {"name": "e", "namespace": NS}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": NS},
            "reason": "Odd", "message": f"Authorization: Bearer {CANARY}\nfst_{CANARY}", "type": "Warning",
        },
    )  # fmt: skip
    await _make(embedded, "", "v1", "nodes", {"metadata": {"name": "worker-0"}})


async def _plain_world(embedded: Embedded) -> None:
    """A word that nothing tells from another word, wherever users may have written it, as it is and wrapped up."""
    await _make(
        embedded, "", "v1", "namespaces", {"metadata": {"name": "theirs", "annotations": {"example.com/x": WORD}}}
    )
    init_data = base64.b64encode(gzip.compress(f'x = "{WORD}"'.encode())).decode()
    container = {
        "name": "app", "image": "i", "command": ["run", WORD], "args": ["--x", WORD], "env": [{"name": "PLAIN", "value": WORD}],
    }  # fmt: skip
    for name, content in (
        ("plain", WORD),
        ("wrapped", base64.b64encode(WORD.encode()).decode()),
        ("quoted", quote(WORD)),
    ):
        body = {"metadata": {"name": name, "namespace": "theirs"}, "data": {"x": content}}
        await _make(embedded, "", "v1", "configmaps", body)
    await _make(
        embedded, "", "v1", "pods",
        {
            "metadata": {"name": "p", "namespace": "theirs", "annotations": {INIT_DATA: init_data}},
            "spec": {"containers": [container]},
        },
    )  # fmt: skip
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"x": WORD}}, "spec": {"containers": [container]}}
    await _make(
        embedded, "apps", "v1", "deployments",
        {"metadata": {"name": "d", "namespace": "theirs"},
         "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}},
    )  # fmt: skip
    unit = {"name": "x.service", "contents": f"[Service]\nEnvironment=X={WORD}\n",
            "dropins": [{"name": "y.conf", "contents": f"[Service]\nEnvironment=Y={WORD}\n"}]}  # fmt: skip
    packed = base64.b64encode(gzip.compress(WORD.encode())).decode()
    files = [
        {"path": "/etc/a", "contents": {"source": f"data:,{quote(WORD)}"}},
        {"path": "/etc/b", "contents": {"source": f"data:;base64,{packed}", "compression": "gzip"}},
    ]
    config = {"ignition": {"version": "3.2.0"}, "systemd": {"units": [unit]}, "storage": {"files": files}}
    for name in ("99-y", "rendered-worker-" + "ab" * 16):
        await _make(
            embedded,
            "machineconfiguration.openshift.io",
            "v1",
            "machineconfigs",
            {"metadata": {"name": name}, "spec": {"config": config}},
        )
    headers = {"kubeletConfig": {"staticPodURLHeader": {"X-Plain": [WORD]}}}
    await _make(
        embedded,
        "machineconfiguration.openshift.io",
        "v1",
        "kubeletconfigs",
        {"metadata": {"name": "k"}, "spec": headers},
    )
    case = {"name": "x", "input": {"a": WORD}, "expect": "Refused"}
    await _make(
        embedded, "fastness.dev", "v1alpha1", "appraisalpolicies",
        {"metadata": {"name": "a"}, "spec": {"for": "tpm", "rego": f"package policy\n# {WORD}\n", "cases": [case]}},
    )  # fmt: skip


def _unwrapped(text: str) -> str:
    """A text, and what stands in it in percent, base64 and gzip."""
    forms = [text, unquote(text)]
    for run in re.findall(r"[A-Za-z0-9+/_-]{8,}={0,2}", text):
        plain = run.replace("-", "+").replace("_", "/")
        data = base64.b64decode(plain[: len(plain) // 4 * 4])
        forms.append(data.decode("latin-1"))
        with suppress(OSError, EOFError, zlib.error):
            forms.append(gzip.decompress(data).decode("latin-1"))
    return "\n".join(forms)


async def test_no_word_leaves_from_where_users_write_and_the_bundle_lists_what_was_taken_out(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    await _plain_world(embedded_server)
    target = tmp_path / "bundle"
    done = await _run("--dest-dir", str(target), "--kubeconfig", str(embedded_server.kubeconfig))
    assert done.exit_code == 0, done.output
    assert WORD in _unwrapped(quote(base64.b64encode(gzip.compress(WORD.encode())).decode(), safe="+/=")), "it is seen"
    for path in (child for child in target.rglob("*") if child.is_file()):
        assert WORD not in _unwrapped(path.read_text()), path
    listed = (target / "redacted.txt").read_text()
    for line in (
        "namespaces/theirs/core/configmaps.yaml  ConfigMap theirs/plain  data.x",
        "namespaces/theirs/core/pods.yaml  Pod theirs/p  spec.containers[0].env[0].value",
        "MachineConfig 99-y  spec.config.systemd.units[0].contents",
        "MachineConfig 99-y  spec.config.systemd.units[0].dropins[0].contents",
        "AppraisalPolicy a  spec.rego",
    ):
        assert line in listed, line


def _text(root: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(root.rglob("*")) if path.is_file())


async def test_a_bundle_has_what_helps_and_no_credential(embedded_server: Embedded, tmp_path: Path) -> None:
    await _world(embedded_server)
    target, config = tmp_path / "bundle", str(embedded_server.kubeconfig)
    image = "registry.example/osc-must-gather-rhel9:1.12.0"
    done = await _run("--dest-dir", str(target), "--image", image, "--run-namespace", NS, "--kubeconfig", config)
    assert done.exit_code == 0, done.output
    text = _text(target)
    assert CANARY not in text
    assert base64.b64encode(CANARY.encode()).decode()[4:-4] not in text
    assert "kept <b>text</b>" in (target / f"namespaces/{NS}/core/configmaps.yaml").read_text()
    assert not list(target.rglob("*secrets*"))
    assert "worker-0: not ready" in (target / "nodes/skipped_nodes.txt").read_text()
    assert "Warning  Odd  Pod/p" in (target / f"namespaces/{NS}/events.txt").read_text()
    summary = json.loads((target / "summary.json").read_text())
    assert summary["images"] == f"{image} (noted, not run)"
    assert summary["run namespace"] == NS
    assert {"secrets", "audit_logs", "record"} <= {omission["what"] for omission in summary["leftOut"]}
    for path in (target, *(child for child in target.rglob("*") if child.is_file())):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_two_bundles_of_one_state_are_equal_and_every_file_is_on_the_page(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    await _world(embedded_server)
    config = str(embedded_server.kubeconfig)
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        assert (await _run("--dest-dir", str(root), "--kubeconfig", config)).exit_code == 0
    first, second = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()} for root in roots
    )
    assert first == second
    links = _links((roots[0] / "index.html").read_text())
    assert links == {str(path) for path in first if path.name not in ("index.html", "summary.json")}
    for path in roots[0].rglob("*.yaml"):
        list(yaml.safe_load_all(path.read_text()))


async def test_audit_logs_are_collected_on_request_and_alone(embedded_server: Embedded, tmp_path: Path) -> None:
    async with embedded_server.client() as client:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seen"}}
        (await client.post("/api/v1/namespaces", json=body)).raise_for_status()
    target, config = tmp_path / "bundle", str(embedded_server.kubeconfig)
    done = await _run("--dest-dir", str(target), "--kubeconfig", config, "--", "/usr/bin/gather_audit_logs")
    assert done.exit_code == 0, done.output
    assert {path.name for path in target.rglob("*") if path.is_file()} == {
        "audit.log", "index.html", "summary.json", "redacted.txt",
    }  # fmt: skip
    assert '"resource":"namespaces"' in (target / "audit_logs/audit.log").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--run-namespace", "nowhere"), 1, "there is no namespace nowhere"),
        (("--", "/usr/bin/rm"), 2, "there is no collector"),
        (("--max-size", "0"), 2, "0"),
    ],
)
async def test_bad_options_are_refused_and_nothing_is_written(
    embedded_server: Embedded, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    target, config = tmp_path / "bundle", str(embedded_server.kubeconfig)
    done = await _run("--dest-dir", str(target), "--kubeconfig", config, *arguments)
    assert (done.exit_code, words in done.output) == (code, True), done.output
    assert not [name for name in os.listdir(tmp_path) if "bundle" in name]


async def test_a_directory_with_something_in_it_is_left_alone(embedded_server: Embedded, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    done = await _run("--dest-dir", str(tmp_path), "--kubeconfig", str(embedded_server.kubeconfig))
    assert (done.exit_code, "is not empty" in done.output) == (2, True)


async def test_what_may_not_be_read_is_named_and_the_rest_is_there(
    embedded_server: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = KubeCluster.list

    async def broken(self: KubeCluster, resource: Any, *args: Any, **more: Any) -> Any:
        if resource.plural == "configmaps":
            raise Unavailable(f"etcd said token={CANARY}")
        return await real(self, resource, *args, **more)

    monkeypatch.setattr(KubeCluster, "list", broken)
    target = tmp_path / "bundle"
    done = await _run("--dest-dir", str(target), "--kubeconfig", str(embedded_server.kubeconfig))
    assert done.exit_code == 0, done.output
    (why,) = [
        omission["why"]
        for omission in json.loads((target / "summary.json").read_text())["leftOut"]
        if omission["what"] == "configmaps"
    ]
    assert why.startswith("it could not be read")
    assert CANARY not in _text(target)
    assert (target / "cluster-scoped-resources/core/namespaces.yaml").exists()


async def test_the_newest_entries_of_the_record_are_there_without_credentials(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock(datetime.now(UTC))
    record = ClusterRecord(cluster, clock, SeededEntropy(3), "broker")
    for number in range(3):
        await record.append(
            RecordEntry("refusal", "sha256:" + "c" * 64, resource=f"default/a/{number}", detail={"token": CANARY})
        )
    await Sequencer(cluster, ConfigMapTiles(cluster), clock, SeededEntropy(4)).reconcile(KEY)
    target = tmp_path / "bundle"
    done = await _run("--dest-dir", str(target), "--kubeconfig", str(embedded_server.kubeconfig))
    assert done.exit_code == 0, done.output
    tail = json.loads((target / "record/tail.json").read_text())
    assert [(entry["index"], entry["resource"]) for entry in tail] == [
        (number, f"default/a/{number}") for number in range(3)
    ]
    assert CANARY not in _text(target)


def test_files_are_cut_and_a_full_bundle_says_what_is_missing(tmp_path: Path) -> None:
    bundle = Bundle(tmp_path, Bounds(total=300, file=100))
    bundle.put("a.txt", "x" * 500)
    bundle.put("b.txt", "y" * 400)
    bundle.put("c.txt", "z")
    bundle.finish({})
    assert [(file.path, file.cut) for file in bundle.entries] == [
        ("a.txt", True), ("b.txt", True), ("c.txt", False), ("redacted.txt", False),
    ]  # fmt: skip
    tight = Bundle(tmp_path / "t", Bounds(total=50, file=100))
    tight.root.mkdir()
    tight.put("a.txt", "x" * 60)
    tight.finish({})
    assert [omission.what for omission in tight.left_out] == ["a.txt"]
    assert "a.txt" in (tight.root / "index.html").read_text()


@pytest.mark.parametrize("name", ["..", ".", "", "a/../../etc", "x\x00y", "ü" * 300, "system:node:a"])
def test_a_name_never_leads_out_of_its_directory(name: str) -> None:
    made = safe(name)
    assert made not in ("", ".", "..")
    assert "/" not in made
    assert "\x00" not in made
    assert len(made) < 255


def test_text_on_the_page_is_escaped() -> None:
    bad = '<script>alert("x")</script>'
    page = index_page({bad: bad}, [BundleFile(f"top/{bad}", 1)], [LeftOut(bad, bad)])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 5


def test_secrets_are_not_even_asked_for() -> None:
    kinds = {(kind.group, kind.plural) for kind in collected_kinds()}
    assert ("", "secrets") not in kinds
    assert ("kataconfiguration.openshift.io", "kataconfigs") in kinds


def _links(text: str) -> set[str]:
    links: set[str] = set()

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.update(str(value) for name, value in attrs if tag == "a" and name == "href")

    Reader().feed(text)
    return links
