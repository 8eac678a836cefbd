"""`fastness agent join`: the key first, then the token for it, and nothing for a machine that is refused."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from fastness.agent.boot.boot import BootRefused
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.join import JoinFileFailed, prepare_join
from fastness.agent.boot.prove import DoorRefused
from fastness.agent.host.tee.tpm import TpmAttester, TpmTools
from fastness.crypto.digests import sha256
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.live.bootstrap_tokens import join_token
from fastness.enrolment.live.tpm_makers import CONFIG_MAPS, NAME
from fastness.enrolment.loops.join_tokens import BootstrapTokenController
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kube.controllers.runner import Runner
from fastness.release.live.signed_configs import ConfigSigner
from fastness.runtime.clock import SystemClock
from fastness.runtime.tasks import background
from fastness.sim.tee.images import changed, default_image
from tests.attesting import ENTROPY, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.swtpm import Maker, Swtpm

QUOTED = (4, 7, 11, 12, 14)


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world, publishing(world):
        await world.approve("tpm")
        yield world


def publishing(world: AttestingWorld) -> AbstractAsyncContextManager[None]:
    """The loop that has the API accept what the broker hands out."""
    loop = BootstrapTokenController(world.cluster, world.informers, world.clock)
    return background("joins", tokens=Runner([loop], world.informers, world.clock, ENTROPY).run)


async def image_trust(world: AttestingWorld, path: Path) -> Path:
    """The file that an image of this cluster carries."""
    signer = await ConfigSigner.open(world.cluster, world.informers, world.clock, ENTROPY)
    path.write_text(json.dumps({"ca": world.doors.broker.doors.bundle, "configKeys": signer.jwks()}))  # noqa: ASYNC240
    return path


def broker_of(world: AttestingWorld) -> str:
    return f"https://127.0.0.1:{world.doors.broker.port}"


def patience(seconds: float = 5.0) -> RetryBudget:
    return RetryBudget(SystemClock(), ENTROPY, seconds, pause=0.05)


async def test_the_token_is_for_the_key_that_lies_where_the_kubelet_looks(here: AttestingWorld, tmp_path: Path) -> None:
    machine, path = await here.enrolled("tpm"), tmp_path / "pki" / "kubelet-client.key.tmp"
    trust = ImageTrust.load(await image_trust(here, tmp_path / "trust.json"))
    prepared = await prepare_join(broker_of(here), machine, trust, path, patience())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = PrivateKey.from_pem(SecretBytes(path.read_bytes()))
    found_machine = await here.machine_object(machine)
    assert prepared.machine == found_machine["metadata"]["uid"]
    assert prepared.node_name == found_machine["status"]["nodeName"]
    identity = prepared.token.reveal().decode().partition(".")[0]
    join_secret = join_token(await here.cluster.get(SECRETS, f"{bootstrap.PREFIX}{identity}", bootstrap.NAMESPACE))
    assert join_secret is not None
    assert (join_secret.machine, join_secret.key) == (prepared.machine, str(sha256(key.public_der())))


@pytest.mark.parametrize("planted", ["file", "link"])
async def test_a_key_that_the_host_planted_where_the_kubelet_looks_is_replaced_unread(
    here: AttestingWorld, tmp_path: Path, planted: str
) -> None:
    """The host wrote the disk before this boot: a key that it knows, readable by all, or a link to where it reads along."""
    machine, path, elsewhere = (
        await here.enrolled("tpm"),
        tmp_path / "pki" / "kubelet-client.key.tmp",
        tmp_path / "host",
    )
    path.parent.mkdir()
    theirs = PrivateKey.generate(ENTROPY)
    elsewhere.write_bytes(theirs.to_pem().reveal())
    if planted == "link":
        path.symlink_to(elsewhere)
    else:
        path.write_bytes(theirs.to_pem().reveal())
        path.chmod(0o644)
    trust = ImageTrust.load(await image_trust(here, tmp_path / "trust.json"))
    prepared = await prepare_join(broker_of(here), machine, trust, path, patience())
    assert (path.is_symlink(), stat.S_IMODE(path.stat().st_mode)) == (False, 0o600)
    key = PrivateKey.from_pem(SecretBytes(path.read_bytes()))
    assert key.public_der() != theirs.public_der()
    assert elsewhere.read_bytes() == theirs.to_pem().reveal()
    identity = prepared.token.reveal().decode().partition(".")[0]
    join_secret = join_token(await here.cluster.get(SECRETS, f"{bootstrap.PREFIX}{identity}", bootstrap.NAMESPACE))
    assert join_secret is not None
    assert join_secret.key == str(sha256(key.public_der()))


async def test_a_refusal_is_final_and_leaves_no_token(here: AttestingWorld, tmp_path: Path) -> None:
    machine = await here.enrolled("tpm", changed(default_image(), command_line="quiet init=/bin/sh"))
    trust = ImageTrust.load(await image_trust(here, tmp_path / "trust.json"))
    with pytest.raises(BootRefused):
        await prepare_join(broker_of(here), machine, trust, tmp_path / "key", patience())
    secrets = [secret["metadata"]["name"] for secret in (await here.cluster.list(SECRETS)).items]
    assert not [name for name in secrets if name.startswith((bootstrap.PREFIX, bootstrap.ASKED_PREFIX))]


async def test_a_broker_that_is_not_there_is_waited_for(here: AttestingWorld, tmp_path: Path) -> None:
    machine = await here.enrolled("tpm")
    trust = ImageTrust.load(await image_trust(here, tmp_path / "trust.json"))
    with pytest.raises(DoorRefused) as missing:
        await prepare_join("https://127.0.0.1:1", machine, trust, tmp_path / "key", patience(0.2))
    assert missing.value.passing


async def test_a_key_that_cannot_be_written_is_said(here: AttestingWorld, tmp_path: Path) -> None:
    machine, path = await here.enrolled("tpm"), tmp_path / "file" / "key"
    path.parent.write_text("no directory")
    trust = ImageTrust.load(await image_trust(here, tmp_path / "trust.json"))
    with pytest.raises(JoinFileFailed):
        await prepare_join(broker_of(here), machine, trust, path, patience())


async def test_the_command_joins_a_machine_with_a_real_tpm(
    embedded_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    root = {"sha256": tpm_maker.root, "for": "tpm", "reason": "the TPM of this test"}
    spec = {"mode": "Enforce", "simulated": True, "attestation": {"extraRoots": [root]}}
    async with attesting_world(embedded_server.cluster, spec) as world, publishing(world):
        await trusted(world, tpm_maker)
        attester = TpmAttester(TpmTools(swtpm.tcti, event_log=tmp_path / "none"), tmp_path / "identity")
        enrolled = await world.enrol(attester, await world.ticket())
        trust = await image_trust(world, tmp_path / "trust.json")
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fastness.cli.main", "agent", "join", "--broker", broker_of(world), "--trust", str(trust),
            "--tee", "tpm", "--tpm", swtpm.tcti, "--state", str(tmp_path / "identity"), "--event-log", str(tmp_path / "none"),
            "--key", str(tmp_path / "key"), "--token", str(tmp_path / "run" / "token"), "--wait", "20",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE):
            output, _ = await child.communicate()
        assert child.returncode == 0, output.decode()
        token = (tmp_path / "run" / "token").read_text()
        assert stat.S_IMODE((tmp_path / "run" / "token").stat().st_mode) == 0o600
        assert (tmp_path / "run" / "node-name").read_text() == enrolled.node_name
        assert token not in output.decode()


async def trusted(world: AttestingWorld, maker: Maker) -> None:
    """What an operator publishes about this TPM: its maker, and the registers of a machine that measured nothing."""
    pem = b"".join(entry.pem for entry in maker.certificates).decode()
    body = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"swtpm": pem}
    }  # fmt: skip
    await world.cluster.create(CONFIG_MAPS, body)
    zero = "00" * 32
    values = [
        {"name": f"tpm_pcr{register}", "value": zero, "register": f"pcr{register}", "algorithm": "sha256"}
        for register in QUOTED
    ]
    spec = {"source": "manual", "values": values}
    meta = {"name": "as-it-left-the-factory"}
    made = {"apiVersion": REFERENCE_VALUE_SET.api_version, "kind": REFERENCE_VALUE_SET.kind, "metadata": meta}
    await world.cluster.create(REFERENCE_VALUE_SET.resource, {**made, "spec": spec})
    sets = world.informers.of(REFERENCE_VALUE_SET.resource)
    await until(lambda: _true(sets.get("", "as-it-left-the-factory") is not None))


async def _true(value: bool) -> bool:
    return value
