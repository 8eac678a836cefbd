"""`fastness serve` with both roles on a real kube-apiserver: from user-data to a served config, and on after CA rotation."""

from __future__ import annotations

import base64
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import orjson
import pytest
import yaml

from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import CertificateAuthority
from fastness.keys.pki import kubeconfig
from fastness.kinds.machineconfiguration import names
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.e2e.live import FASTNESS, environment, run
from tests.patience import PATIENCE, eventually
from tests.realkube import RealKube

SECRETS = "/api/v1/namespaces/{}/secrets/{}"
USER_DATA = SECRETS.format("openshift-machine-api", "worker-user-data-managed")
DOORS = SECRETS.format("fastness-system", "doors-ca")
ACCEPT = {"accept": "application/vnd.coreos.ignition+json;version=3.4.0"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def admin(bare_kube: RealKube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    env = environment(tmp_path_factory.mktemp("home"), KUBECONFIG=str(bare_kube.kubeconfig))
    crds = run([FASTNESS, "crds", "--with", "all"], env).out
    assert run(["kubectl", "apply", "--server-side", "-f", "-"], env, stdin=crds).code == 0
    run(["kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], env)
    accounts = run([FASTNESS, "crds", "--accounts"], env).out
    assert run(["kubectl", "apply", "--server-side", "-f", "-"], env, stdin=accounts).code == 0
    with bare_kube.client() as client:
        yield client


@pytest.fixture
def served(bare_kube: RealKube, admin: httpx.Client, tmp_path: Path) -> Iterator[list[str]]:
    """The process; what it said."""
    with serving("controllers,configserver", bare_kube.kubeconfig, tmp_path) as announced:
        yield announced


@contextmanager
def serving(roles: str, kubeconfig: Path, home: Path) -> Iterator[list[str]]:
    """`fastness serve` with these roles and this credential; the first two lines that it said."""
    port = free_port()
    command = [
        FASTNESS, "serve", "--roles", roles, "--kubeconfig", kubeconfig, "--metrics-port", "0",
        "--config-port", port, "--internal-port", "0", "--name", "configs.example", "--log-level", "warning",
        "--config-url", f"https://127.0.0.1:{port}",
    ]  # fmt: skip
    child = subprocess.Popen([str(word) for word in command], env=environment(home), stderr=subprocess.PIPE, text=True)
    alarm = threading.Timer(PATIENCE, child.kill)
    alarm.start()
    assert child.stderr is not None
    announced = [child.stderr.readline(), child.stderr.readline()]
    alarm.cancel()
    try:
        yield announced
        child.send_signal(signal.SIGTERM)
        rest = child.communicate(timeout=PATIENCE)[1]
        assert child.returncode == 0, rest
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()


def pointer(admin: httpx.Client) -> Any:
    """The pointer of the pool as a new machine gets it; nothing while there is none."""
    answer = admin.get(USER_DATA)
    return orjson.loads(base64.b64decode(answer.json()["data"]["userData"])) if answer.is_success else None


def authorities(user_data: Any) -> str:
    [entry] = user_data["ignition"]["security"]["tls"]["certificateAuthorities"]
    head, _, content = entry["source"].partition(",")
    return base64.b64decode(content).decode() if head.endswith("base64") else unquote(content)


def fetch(user_data: Any) -> httpx.Response:
    """What Ignition does with a pointer."""
    merge = user_data["ignition"]["config"]["merge"][0]
    headers = {entry["name"]: entry["value"] for entry in merge["httpHeaders"]}
    trust = ssl.create_default_context(cadata=authorities(user_data))
    return httpx.get(merge["source"], headers={**headers, **ACCEPT}, verify=trust, trust_env=False)


@pytest.mark.row("002-13")
def test_a_machine_is_led_from_its_user_data_to_its_config_also_after_the_authority_changed(
    served: list[str], admin: httpx.Client
) -> None:
    assert served[0].startswith("serving controllers, configserver as ")
    assert served[1].startswith("configs on https://127.0.0.1:")
    user_data = eventually(lambda: pointer(admin), "user-data")
    answer = eventually(lambda: (got := fetch(user_data)).status_code == 200 and got, "a served config")
    assert answer.json()["ignition"]["version"] == "3.4.0"
    assert fetch({"ignition": {**user_data["ignition"], "config": _without_ticket(user_data)}}).status_code == 401

    patch = {"metadata": {"annotations": {"fastness.dev/rotate": "now"}}}
    admin.patch(DOORS, json=patch, headers={"content-type": "application/merge-patch+json"}).raise_for_status()
    both = eventually(
        lambda: (now := pointer(admin)) and authorities(now).count("BEGIN CERTIFICATE") == 2 and now, "both authorities"
    )
    assert fetch(both).status_code == 200
    assert fetch(user_data).status_code == 200  # machines with the user-data of before are served on

    url = served[0].split()[-1]
    with httpx.Client(base_url=url, trust_env=False) as plain:
        assert plain.get("/readyz").text == "ok"
        lines = plain.get("/metrics").text
    for name in ("config-server", "config-server-internal", "doors-ca", "internal-ca"):
        assert f'fastness_certificate_expiry_seconds{{certificate="{name}"}}' in lines


def test_an_agent_of_a_node_that_never_attested_gets_its_config_for_the_certificate_of_the_node_alone(
    served: list[str], bare_kube: RealKube, admin: httpx.Client, tmp_path: Path
) -> None:
    """All that it has is what a kubelet has: the API refuses it MachineConfigs."""
    person = environment(tmp_path, KUBECONFIG=str(bare_kube.kubeconfig))
    trusted = run([FASTNESS, "image", "trust", "-f", str(tmp_path / "trust.json")], person)
    assert trusted.code == 0, trusted.err
    pool = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker"
    rendered = eventually(lambda: (admin.get(pool).json().get("spec") or {}).get("configuration"), "a config")["name"]
    notes = {names.DESIRED_CONFIG: rendered}
    meta = {"name": "byhand", "labels": {"node-role.kubernetes.io/worker": ""}, "annotations": notes}
    admin.post("/api/v1/nodes", json={"metadata": meta}).raise_for_status()

    pair = bare_kube.credentials
    issuing = CertificateAuthority.load(pair.ca.read_bytes(), SecretBytes(pair.ca_key.read_bytes()), SystemEntropy())
    now = SystemClock().now()
    credential = issuing.issue_client("system:node:byhand", ["system:nodes"], timedelta(hours=1), now)
    (tmp_path / "kubeconfig").write_bytes(orjson.dumps(kubeconfig(bare_kube.url, pair.ca.read_bytes(), credential)))
    root = tmp_path / "machine"
    root.mkdir()
    command = [
        FASTNESS, "agent", "run", "--node", "byhand", "--root", root, "--fast", "--kubeconfig", tmp_path / "kubeconfig",
        "--config-server", "URL", "--trust", tmp_path / "trust.json",
    ]  # fmt: skip
    with (
        serving("configserver", account(person, tmp_path), tmp_path) as door,
        (tmp_path / "agent.log").open("w") as log,
    ):
        command[command.index("URL")] = door[1].split()[2].rstrip(",")
        agent = subprocess.Popen([str(word) for word in command], env=environment(tmp_path), stderr=log)
        try:
            node = "/api/v1/nodes/byhand"
            eventually(
                lambda: admin.get(node).json()["metadata"]["annotations"].get(names.CURRENT_CONFIG) == rendered,
                "a node that has its config",
            )
            assert rendered in (root / names.CURRENT_CONFIG_FILE.lstrip("/")).read_text()
            configs = {name for name in released(person) if not name.startswith("trust-")}
            assert configs == {rendered}, "beside it only whom the node shall believe"
        finally:
            agent.kill()
            agent.wait(timeout=PATIENCE)
            print((tmp_path / "agent.log").read_text())
            admin.delete("/api/v1/nodes/byhand")


def account(person: dict[str, str], tmp_path: Path) -> Path:
    """A kubeconfig with the account of the config server: nobody else writes to the record in its name."""
    words = ["kubectl", "create", "token", "fastness-configserver", "-n", "fastness-system"]
    config = yaml.safe_load(Path(person["KUBECONFIG"]).read_text())
    config["users"][0]["user"] = {"token": run(words, person).out.strip()}
    (tmp_path / "configserver.kubeconfig").write_text(yaml.safe_dump(config))
    return tmp_path / "configserver.kubeconfig"


def released(person: dict[str, str]) -> set[str]:
    """The configs that left for the node, as the record says."""
    words: list[str | Path] = [
        FASTNESS,
        "audit",
        "show",
        "--what",
        "release",
        "--who",
        "system:node:byhand",
        "-o",
        "json",
    ]
    return {entry["detail"]["config"] for entry in orjson.loads(run(words, person).out)}


def _without_ticket(user_data: Any) -> Any:
    merge = {**user_data["ignition"]["config"]["merge"][0], "httpHeaders": []}
    return {"merge": [merge]}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--roles", "configsever"], "unknown role 'configsever'"),
        (["--roles", "controllers", "--config-url", "http://plain"], "--config-url is not an https URL"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(words: list[str], reason: str, tmp_path: Path) -> None:
    outcome = run([FASTNESS, "serve", *words], environment(tmp_path))
    assert outcome.code == 2
    assert reason in outcome.err
