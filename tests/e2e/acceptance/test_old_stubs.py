"""Seed 002, older installers: a stub of spec 2 carries no ticket, and machines of such boot images scale up all the same.

Only where somebody says so: the pool does not attest, stubs are switched on for it, and the installer's authority was imported.
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.e2e.acceptance.cluster import GROUP, Acceptance
from tests.patience import eventually

POOL = "old"
NAME = "api-int.old.example.com"
# What Ignition 0.35 sends.
IGNITION = {
    "user-agent": "Ignition/0.35.0",
    "accept": "application/vnd.coreos.ignition+json; version=2.4.0, application/vnd.coreos.ignition+json; version=1; q=0.5,"
    " */*; q=0.1",
}


@dataclass(frozen=True)
class OldCluster:
    """A cluster with a pool of old boot images, and the authority of the installer that made their stubs."""

    cluster: Acceptance
    authority: Path

    def endpoint(self, part: str) -> str:
        """Where a door listens."""
        return str(json.loads((self.cluster.live.state / "endpoints.json").read_text())[part])

    def stub(self, path: str) -> httpx.Response:
        """What the gate answers a machine that boots with the old stub: no ticket, and what its TLS knows."""
        trust = ssl.create_default_context(cafile=str(self.authority))
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        with httpx.Client(verify=trust, trust_env=False, timeout=20) as http:
            request = http.build_request(
                "GET", f"{self.endpoint('gate')}{path}", headers=IGNITION, extensions={"sni_hostname": NAME}
            )
            return http.send(request)

    def answers(self) -> bool:
        """Whether the gate answers to the name."""
        try:
            self.stub("/config/nobody")
        except httpx.ConnectError:
            return False
        return True


def lower(cluster: Acceptance, spec: dict[str, object]) -> None:
    """Change the ConfidentialCluster as a person does who reads the refusal and confirms it."""
    words = ("patch", "confidentialcluster", "cluster", "--type=merge", "-p")
    refused = cluster.live.kubectl(*words, json.dumps({"spec": spec}))
    if "(no change)" in refused.out:  # a second attempt of this module, on the cluster of the first
        return
    assert refused.code != 0, "switching this on is a lowering"
    word = refused.err.partition("confirm-lower=")[2].split()[0]
    note = {"annotations": {"fastness.dev/confirm-lower": word}}
    cluster.kubectl(*words, json.dumps({"metadata": note, "spec": spec}))


@pytest.fixture(scope="module")
def old(cluster: Acceptance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldCluster]:
    """The steps of the page about older installers."""
    home = tmp_path_factory.mktemp("installer")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "root.key", "-out", "root.crt",
         "-days", "365", "-subj", "/CN=root-ca"],
        cwd=home, check=True, capture_output=True,
    )  # fmt: skip
    roles = {"key": f"{GROUP}/role", "operator": "In", "values": ["worker", POOL]}
    cluster.apply(
        {
            "apiVersion": f"{GROUP}/v1", "kind": "MachineConfigPool", "metadata": {"name": POOL},
            "spec": {
                "machineConfigSelector": {"matchExpressions": [roles]},
                "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{POOL}": ""}},
            },
        }
    )  # fmt: skip
    lower(cluster, {"pools": [{"name": POOL, "trustModel": "None"}]})
    lower(cluster, {"join": {"legacyStubs": [{"serverName": NAME, "pools": [POOL]}]}})
    eventually(lambda: cluster.events("LegacyStubsNotServed"), "the event that says what is missing")
    secret = cluster.kubectl(
        "create", "secret", "generic", "legacy-stubs-ca", "-n", "fastness-system", "--dry-run=client", "-o", "json",
        f"--from-file=tls.crt={home / 'root.crt'}", f"--from-file=tls.key={home / 'root.key'}",
    )  # fmt: skip
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=secret.json)
    made = OldCluster(cluster, home / "root.crt")
    eventually(made.answers, "an answer under the name")
    eventually(lambda: cluster.rendered(POOL), "a rendered config")
    yield made
    cluster.kubectl(
        "patch", "confidentialcluster", "cluster", "--type=merge", "-p", '{"spec":{"join":{"legacyStubs":[]}}}'
    )
    cluster.kubectl("delete", "mcp", POOL)


@pytest.mark.row("000-66")
@pytest.mark.row("002-22")
def test_old_ignition_without_a_ticket_gets_the_config_in_spec_2(old: OldCluster) -> None:
    answer = old.stub(f"/config/{POOL}")
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert document["ignition"]["version"] == "2.2.0"
    files = {file["path"]: file for file in document["storage"]["files"]}
    assert "/etc/kubernetes/kubelet.conf" in files, "all that makes it a node"
    assert files["/etc/kubernetes/kubeconfig"]["mode"] == 0o600
    assert old.stub("/config/worker").status_code == 403, "nothing of a pool that attests"


@pytest.fixture
def server(old: OldCluster) -> Iterator[httpx.Client]:
    """The config server, as a machine of the pool asks it that shows a ticket."""
    created = old.cluster.fastness("ticket", "create", "--pool", POOL, "--uses", "0")
    assert created.code == 0, created.err
    ticket = next(word for word in created.out.split() if word.startswith("fst_"))
    secret = old.cluster.get("secret", "doors-ca", "-n", "fastness-system")
    trust = ssl.create_default_context(cadata=base64.b64decode(secret["data"]["ca.crt"]).decode())
    headers = {"authorization": f"Bearer {ticket}"}
    with httpx.Client(
        base_url=old.endpoint("configServer"), headers=headers, verify=trust, trust_env=False, timeout=20
    ) as http:
        yield http


@pytest.mark.row("002-23")
def test_old_ignition_with_a_ticket_gets_the_config_in_spec_2(server: httpx.Client) -> None:
    answer = server.get(f"/config/{POOL}", headers=IGNITION)
    assert answer.status_code == 200, answer.text
    assert answer.json()["ignition"]["version"] == "2.2.0"


@pytest.mark.row("000-63")
def test_path_methods_and_versions_are_those_that_machines_have_always_asked_with(server: httpx.Client) -> None:
    kind = "application/vnd.coreos.ignition+json"
    for accept, version in (
        (
            IGNITION["accept"],
            "2.2.0",
        ),  # the generations of Ignition: 0.35, 2.6, 2.15 and one that is newer than we know
        (f"{kind};version=3.1.0, */*;q=0.1", "3.1.0"),
        (f"{kind};version=3.4.0, */*;q=0.1", "3.4.0"),
        (f"{kind};version=3.9.0", "3.5.0"),
        ("*/*", "2.2.0"),  # a person with curl
    ):
        answer = server.get(f"/config/{POOL}", headers={"accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), accept
        assert answer.json()["ignition"]["version"] == version, accept
        assert int(answer.headers["content-length"]) == len(answer.content)
        files = {file["path"] for file in answer.json()["storage"]["files"]}
        assert {"/etc/machine-config-daemon/node-annotations.json", "/etc/kubernetes/kubelet.conf"} <= files
        head = server.head(f"/config/{POOL}", headers={"accept": accept})
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == answer.headers["content-length"]
    assert server.get(f"/config/{POOL}", headers={"accept": f"{kind};version=4.0.0"}).status_code == 400
    assert server.get("/healthz").status_code == 200
    assert server.get("/elsewhere").status_code == 404
    assert server.post(f"/config/{POOL}").status_code == 405


@pytest.mark.row("002-36")
def test_the_stub_of_an_old_installer_stays_as_it_is_and_brings_machines_in(old: OldCluster) -> None:
    """The order that hurts: the installer is older than the control plane, and its machines go on booting with what it made."""
    authority = base64.b64encode(old.authority.read_bytes()).decode()
    stub = {
        "ignition": {
            "version": "2.2.0",
            "config": {"append": [{"source": f"https://{NAME}:22623/config/{POOL}", "verification": {}}]},
            "security": {"tls": {"certificateAuthorities": [{"source": f"data:text/plain;base64,{authority}"}]}},
        }
    }
    data = {"userData": base64.b64encode(json.dumps(stub).encode()).decode(), "disableTemplating": "dHJ1ZQo="}
    place = {"name": f"{POOL}-user-data", "namespace": "openshift-machine-api"}
    old.cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": place, "data": data})
    managed = ("secret", f"{POOL}-user-data-managed", "-n", "openshift-machine-api", "--ignore-not-found")
    eventually(lambda: old.cluster.kubectl("get", *managed).out, "the managed Secret beside it")
    stored = old.cluster.get("secret", place["name"], "-n", place["namespace"])["data"]
    assert stored == data, "not one byte changed"
    booted = json.loads(base64.b64decode(stored["userData"]))["ignition"]
    source = httpx.URL(booted["config"]["append"][0]["source"])
    believed = booted["security"]["tls"]["certificateAuthorities"][0]["source"].partition(",")[2]
    assert base64.b64decode(believed) == old.authority.read_bytes()
    answer = old.stub(source.path)
    assert (source.host, answer.status_code) == (NAME, 200), answer.text
