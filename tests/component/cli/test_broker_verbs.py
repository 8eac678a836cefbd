"""`fastness secret`, `fastness resource` and `fastness broker` as users type them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.trust.resources import broker, resource
from fastness.cli.workloads.sealing import secret
from fastness.crypto import jwe
from tests.component.release.broker.brokered_cluster import BrokeredCluster, brokered_cluster


def run(*arguments: str, data: bytes = b"") -> Result:
    return CliRunner().invoke(secret, list(arguments), input=data)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "sealing.pem"
    assert run("keygen", str(path)).exit_code == 0
    return path


SIGNED = ("--kid", "kbs:///default/sealing/pub", "--key")


def test_a_key_is_private_and_never_overwritten(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    assert json.loads(Path(f"{key}.pub").read_text())["crv"] == "P-256"
    assert run("keygen", str(key)).exit_code == 2


def test_a_vault_secret_is_sealed_verified_and_printed_as_a_manifest(key: Path) -> None:
    made = run("seal", "vault", "--uri", "kbs:///default/db/password", *SIGNED, str(key))
    assert made.exit_code == 0, made.output
    verified = run("verify", "--key", f"{key}.pub", data=made.stdout_bytes)
    assert verified.stdout.strip() == "vault of kbs: kbs:///default/db/password"
    assert run("unseal", "--key", f"{key}.pub", data=made.stdout_bytes).stdout.strip() == "kbs:///default/db/password"
    manifest = run("seal", "vault", "--uri", "kbs:///a/b/c", *SIGNED, str(key), "--manifest", "db", "--field", "pass")
    parsed = json.loads(manifest.stdout)
    assert (parsed["kind"], parsed["metadata"]["name"], list(parsed["data"])) == ("Secret", "db", ["pass"])


def test_an_envelope_is_sealed_and_unsealed(key: Path, tmp_path: Path) -> None:
    wrapping = tmp_path / "wrap.key"
    wrapping.write_bytes(b"w" * 32)
    wrapping.chmod(0o600)
    options = ("--key-id", "kbs:///default/wrap/1", "--wrapping", str(wrapping))
    made = run("seal", "envelope", *options, *SIGNED, str(key), data=b"hunter2")
    assert made.exit_code == 0, made.output
    assert "hunter2" not in made.output
    opened = run("unseal", "--key", f"{key}.pub", "--wrapping", str(wrapping), data=made.stdout_bytes)
    assert opened.stdout_bytes == b"hunter2"
    assert run("unseal", "--key", f"{key}.pub", data=made.stdout_bytes).exit_code == 2


def test_refusals_have_the_exit_code_of_their_kind(key: Path, tmp_path: Path) -> None:
    made = run("seal", "vault", "--uri", "kbs:///a/b/c", *SIGNED, str(key)).stdout_bytes
    other = tmp_path / "other.pem"
    run("keygen", str(other))
    assert run("verify", "--key", f"{other}.pub", data=made).exit_code == 1
    assert run("verify", "--key", f"{key}.pub", data=b"nonsense").exit_code == 2
    assert run("seal", "vault", "--uri", "nowhere", *SIGNED, str(key)).exit_code == 2
    key.chmod(0o644)
    assert run("seal", "vault", "--uri", "kbs:///a/b/c", *SIGNED, str(key)).exit_code == 3


async def _typed(here: BrokeredCluster, group: object, *arguments: str, data: bytes = b"") -> Result:
    await asyncio.sleep(0)
    return await asyncio.to_thread(CliRunner().invoke, group, list(arguments), input=data)  # type: ignore[arg-type]


async def test_resources_are_set_listed_and_deleted_and_a_minted_token_counts(tmp_path: Path) -> None:
    async with brokered_cluster(tmp_path / "state") as here:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_bytes(here.kubeconfig())
        kubeconfig.chmod(0o600)
        at = ("--broker", f"https://127.0.0.1:{here.door.port}", "--kubeconfig", str(kubeconfig))
        guest = await here.guest()
        path = f"machine/{guest.who.machine}/key"
        done = await _typed(here, resource, "set", path, "-", *at, data=b"from the command line")
        assert done.exit_code == 0, done.output
        listed = await _typed(here, resource, "list", *at)
        assert listed.stdout.split() == [path]
        await guest.attest()
        answer = await guest.get(path)
        assert jwe.opened(answer.content, guest.key).reveal() == b"from the command line"
        assert (await _typed(here, resource, "delete", path, *at)).exit_code == 0
        gone = await _typed(here, resource, "delete", path, *at)
        assert (gone.exit_code, "there is no such resource" in gone.output) == (1, True)
        assert (await _typed(here, resource, "set", "Bad/Path", "-", *at)).exit_code == 2
        minted = await _typed(here, broker, "admin-token", "--role", "resources", *at[2:])
        http = await here.client()
        credential = {"authorization": f"Bearer {minted.stdout.strip()}"}
        assert (await http.get("/kbs/v0/resource", headers=credential)).json() == []
        assert (await http.get("/kbs/v0/resource-policy", headers=credential)).status_code == 403
        assert (await _typed(here, broker, "admin-token", "--role", "king", *at[2:])).exit_code == 2
        long = await _typed(here, broker, "admin-token", "--role", "admin", "--lifetime", "9h", *at[2:])
        assert long.exit_code == 3
        away = await _typed(here, resource, "list", "--broker", "https://127.0.0.1:9", *at[2:])
        assert away.exit_code == 4
