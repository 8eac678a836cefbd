"""`fastness up --machines N`: confidential machines enrol, attest and join over the real protocol; nobody else gets anything."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.e2e.agent.test_virtual_machines import MOTD, machine_config
from tests.e2e.live import FASTNESS, Live, environment, run
from tests.patience import eventually

KERNEL = machine_config("99-worker-args", kernelArguments=["debug"])


class Confidential:
    """A running confidential cluster."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def machines(self) -> list[dict[str, Any]]:
        return list(self.live.kubectl("get", "machines", "-A", "-o", "json").json["items"])

    def attested(self) -> int:
        cluster = self.live.kubectl("get", "confidentialcluster", "cluster", "-o", "json").json
        return int(cluster.get("status", {}).get("attested", 0))

    def nodes(self) -> list[str]:
        return [row[0] for row in self.live.kubectl("get", "nodes", "--no-headers").rows if row[1] == "Ready"]

    def fastness(self, *words: str) -> Any:
        return run([FASTNESS, *words], environment(self.live.home, KUBECONFIG=str(self.live.kubeconfig)))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confidential]:
    with Live.start(tmp_path_factory.mktemp("confidential"), "--machines", "3") as live:
        made = Confidential(live)
        eventually(lambda: len(made.nodes()) == 3 and made.attested() == 3, "three attested nodes")
        yield made


def test_every_kind_of_machine_proved_itself_and_joined_under_the_name_that_enrolment_gave_it(
    cluster: Confidential,
) -> None:
    machines = cluster.machines()
    assert sorted(machine["status"]["tee"] for machine in machines) == ["snp", "tdx", "tpm"]
    assert sorted(machine["status"]["nodeName"] for machine in machines) == sorted(cluster.nodes())
    assert all(machine["status"]["simulated"] for machine in machines)


def test_each_machine_is_explained_as_attested_and_simulated(cluster: Confidential) -> None:
    for machine in cluster.machines():
        explanation = cluster.fastness("attest", "explain", machine["metadata"]["name"])
        bare_tpm = (machine.get("status") or {}).get("tee") == "tpm"
        marks = "[simulated, host not proved]" if bare_tpm else "[simulated]"
        assert (explanation.code, "is attested" in explanation.out, marks in explanation.out) == (0, True, True), (
            explanation.out
        )


def test_a_config_reaches_the_machines_and_a_measured_setting_is_refused(cluster: Confidential) -> None:
    assert cluster.live.kubectl("apply", "-f", "-", stdin=MOTD).code == 0
    motds = [cluster.live.state / "machines" / f"worker-{number}" / "root/etc/motd" for number in range(3)]
    eventually(lambda: all(file.exists() for file in motds), "the file")
    refused = cluster.live.kubectl("apply", "-f", "-", stdin=KERNEL)
    assert "Warning" in refused.err
    eventually(
        lambda: (
            "RenderDegraded" in cluster.live.kubectl("describe", "mcp", "worker").out
            and "99-worker-args" in cluster.live.kubectl("describe", "mcp", "worker").out
        ),
        "the refusal of kernel arguments",
    )
    assert cluster.live.kubectl("delete", "mc", "99-worker-args").code == 0


def test_every_release_is_on_the_record(cluster: Confidential) -> None:
    def whats() -> list[str]:
        record = cluster.fastness("audit", "show", "-o", "json")
        return [entry["what"] for entry in record.json] if record.code == 0 else []

    eventually(lambda: whats().count("release") >= 3, "three releases on the record")
    assert whats().count("enrol") == 3


@pytest.mark.row("000-43")
def test_a_stranger_with_the_ticket_gets_nothing_from_any_port(cluster: Confidential) -> None:
    import base64

    secret = cluster.live.kubectl(
        "get", "secret", "-n", "openshift-machine-api", "worker-user-data-managed", "-o", "json"
    ).json
    pointer = orjson.loads(base64.b64decode(secret["data"]["userData"]))
    headers = {header["name"]: header["value"] for header in pointer["ignition"]["config"]["merge"][0]["httpHeaders"]}
    assert pointer["ignition"]["config"]["merge"][0]["source"].startswith("http://127.0.0.1:22625/config/worker")
    authority = cluster.live.kubectl("get", "secret", "-n", "fastness-system", "doors-ca", "-o", "json").json
    trust = ssl.create_default_context(cadata=base64.b64decode(authority["data"]["ca.crt"]).decode())
    endpoints = orjson.loads((cluster.live.state / "endpoints.json").read_bytes())
    expected = {
        ("configServer", "/config/worker"): 403,
        ("gate", "/config/worker"): 401,
        ("broker", "/kbs/v0/resource/pool/worker/config"): 401,
        ("enrolment", "/config/worker"): 404,
    }
    for (door, path), status in expected.items():
        answer = httpx.get(f"{endpoints[door]}{path}", headers=headers, verify=trust, trust_env=False)
        assert answer.status_code == status, (door, answer.text)
        assert b"storage" not in answer.content


def test_after_a_restart_the_same_machines_are_known_and_attest_again(tmp_path: Path) -> None:
    with Live.start(tmp_path, "--machines", "1") as live:
        first = Confidential(live)
        eventually(lambda: len(first.nodes()) == 1, "a node")
        before = [machine["metadata"]["uid"] for machine in first.machines()]
    with Live.start(tmp_path, "--machines", "1") as live:
        again = Confidential(live)
        eventually(lambda: len(again.nodes()) == 1, "the node")
        assert [machine["metadata"]["uid"] for machine in again.machines()] == before
