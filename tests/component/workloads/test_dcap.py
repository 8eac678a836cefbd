"""`fastness dcap manifests`: what it prints is accepted by the API as it is, and its backup script works."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fastness.cli.main import cli
from fastness.cli.workloads.dcap import new_serving
from fastness.crypto.secret import SecretText
from fastness.crypto.x509 import Certificate, verify_server
from fastness.runtime.clock import SystemClock
from fastness.workloads.intel.dcap import BACKUP, KEPT, SERVICE_NAMES
from tests.embedded.fixtures import Embedded

pytestmark = pytest.mark.processes

KEY = {"PCCS_API_KEY": "0123456789abcdef" * 2}


def test_manifests_are_printed_with_the_admin_token_told_once() -> None:
    result = CliRunner().invoke(cli, ["dcap", "manifests", "--node", "m0"], env=KEY)
    assert result.exit_code == 0, result.output
    assert len(list(yaml.safe_load_all(result.stdout))) == 15
    assert "&id" not in result.stdout
    token = result.stderr.partition("shown only now: ")[2].strip()
    assert len(token) == 43
    assert token not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "env", "message"),
    [
        ([], KEY, "no node is named for PCCS to run on"),
        (["--node", "m"], {"PCCS_API_KEY": ""}, "Intel's API key is missing"),
        (["--node", "m"], {"PCCS_API_KEY": "<API_KEY_VALUE>"}, "the API key is not one of Intel's"),
        (["--node", "m"], {**KEY, "PCCS_USER_TOKEN": "mytoken"}, "a sample that everybody knows"),
        (["--node", "m", "--user-token-file", "missing"], KEY, "missing: No such file"),
        (
            ["--node", "m"],
            {**KEY, "PCCS_USER_TOKEN": "k9Xw-2pLq_7RtZ5vN8mB", "PCCS_ADMIN_TOKEN": "k9Xw-2pLq_7RtZ5vN8mB"},
            "are the same",
        ),
    ],
)
def test_bad_input_is_refused_with_what_to_do(arguments: list[str], env: dict[str, str], message: str) -> None:
    result = CliRunner().invoke(cli, ["dcap", "manifests", *arguments], env=env)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not result.stdout


def test_certificate_is_for_the_service_and_from_its_authority() -> None:
    serving = new_serving()
    authority = Certificate.from_pem(serving.authority)
    for name in SERVICE_NAMES:
        verify_server(Certificate.from_pem(serving.certificate), [authority], name, SystemClock().now())
    assert SecretText("x") != serving.key


async def test_api_accepts_every_object_under_strict_validation(embedded_server: Embedded) -> None:
    text = CliRunner().invoke(cli, ["dcap", "manifests", "--node", "m0"], env=KEY).stdout
    paths = {"Namespace": "/api/v1/namespaces"}
    core = {"ServiceAccount": "serviceaccounts", "Secret": "secrets", "ConfigMap": "configmaps", "Service": "services",
            "PersistentVolumeClaim": "persistentvolumeclaims", "RoleBinding": "rolebindings", "NetworkPolicy": "networkpolicies",
            "Deployment": "deployments", "CronJob": "cronjobs", "DaemonSet": "daemonsets"}  # fmt: skip
    async with embedded_server.client() as client:
        for obj in yaml.safe_load_all(text):
            group = obj["apiVersion"]
            root = f"/apis/{group}" if "/" in group else f"/api/{group}"
            path = paths.get(obj["kind"]) or f"{root}/namespaces/intel-dcap/{core[obj['kind']]}"
            if obj["kind"] == "RoleBinding":
                role = {
                    "apiVersion": group,
                    "kind": "ClusterRole",
                    "metadata": {"name": obj["roleRef"]["name"]},
                    "rules": [],
                }
                await client.post(f"{root}/clusterroles", json=role)
            made = await client.post(f"{path}?fieldValidation=Strict", json=obj)
            assert made.status_code == 201, (obj["kind"], made.text)


def test_backup_script_keeps_the_newest_copies(tmp_path: Path) -> None:
    (tmp_path / "cache" / "pccs").mkdir(parents=True)
    (tmp_path / "cache" / "pccs" / "pckcache.db").write_bytes(b"database")
    backup = tmp_path / "backup"
    backup.mkdir()
    for number in range(9):
        (backup / f"pccs-2020010{number}T000000Z.tar").write_bytes(b"")
    (backup / "mine.txt").write_text("stays")
    script = BACKUP.replace("/var/cache", str(tmp_path / "cache")).replace("/backup", str(backup))
    subprocess.run(["sh", "-c", script], check=True, timeout=60)
    copies = sorted(path.name for path in backup.glob("pccs-*.tar"))
    assert len(copies) == KEPT
    assert copies[-1] > "pccs-2021"
    assert (backup / "mine.txt").exists()
    listed = subprocess.run(["tar", "-tf", str(backup / copies[-1])], check=True, capture_output=True, text=True)
    assert "pccs/pckcache.db" in listed.stdout
