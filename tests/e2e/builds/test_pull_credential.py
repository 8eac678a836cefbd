"""A registry that asks who one is, and machines that pull an image from it: proven ones of the pool can, and nobody else.

From the Secret that an administrator names to the bytes of the image: the loop, the doors over TLS, the files of a machine as its
agent writes them, and skopeo in the place of the program that pulls.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fastness.agent.apply.trust_writer import TrustWriter
from fastness.agent.boot.boot import boot_once
from fastness.agent.host.engine import auth_link
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kube.port import PatchType
from fastness.protocol.node_trust import NodeTrust
from tests.bed.images import busybox_image, push
from tests.component.agent.directory_machine import make_machine
from tests.component.release.delivery.test_image_pull import handed_out, naming, pull_secret
from tests.component.release.delivery.test_node_trust import booted, configs
from tests.components import require_program
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

pytestmark = pytest.mark.processes
AUTH = "/etc/ostree/auth.json"
# Lines of htpasswd for the user nodes: bcrypt of the passwords `read today` and `read tomorrow`.
TODAY, TOMORROW = (
    ("read today", "$2b$05$abcdefghijklmnopqrstuuRPXsP86L566HUC/gIENiouNuBM4pL0."),
    ("read tomorrow", "$2b$05$abcdefghijklmnopqrstuujxMt0J9JIkR5w1g9rB5brnc4EVutI2S"),
)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[LocalRegistry]:
    """A registry that gives nothing to anybody without a login."""
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    (tmp_path / "r").mkdir()
    with running_registry(program, tmp_path / "r", f"nodes:{TODAY[1]}\n") as registry:
        yield registry


class Puller:
    """A machine in a directory that has what its agent wrote, and pulls."""

    def __init__(self, directory: Path, registry: LocalRegistry) -> None:
        self.machine = make_machine(directory)
        self.registry = registry

    def has(self, trust: NodeTrust) -> None:
        """As its agent takes a document."""
        TrustWriter(self.machine.host).write(trust, ())

    def pulls(self) -> str:
        """Why the image cannot be pulled; empty where it can."""
        auth_link(self.machine.host.root, AUTH)
        link = self.machine.root / AUTH.lstrip("/")
        login = self.machine.root / str(link.readlink()).lstrip("/")
        words = ["skopeo", "inspect", "--tls-verify=false", f"--authfile={login}" if login.exists() else "--no-creds"]
        done = subprocess.run(
            [*words, f"docker://{self.registry.address}/os/worker:1"],
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        return "" if done.returncode == 0 else done.stderr


@pytest.mark.row("003-42")
async def test_proven_machines_of_the_pool_pull_others_cannot_and_a_rotation_builds_nothing(
    embedded_server: Embedded, closed: LocalRegistry, tmp_path: Path
) -> None:
    image = replace(busybox_image(require_program(Path("/bin/busybox"), "busybox-static")), path="os/worker")
    await asyncio.to_thread(push, closed.url, image, ("nodes", TODAY[0]))
    mine, other = Puller(tmp_path / "mine", closed), Puller(tmp_path / "other", closed)
    async with naming(embedded_server, closed.address, TODAY[0]) as world:
        await handed_out(world, TODAY[0])
        agent = configs(world, await booted(world))
        attester = world.machine()
        await boot_once(attester, await world.ask("infra"), world.trust, world.patience())
        for puller, trust in (
            (mine, await agent.trust("worker")),
            (other, await configs(world, attester).trust("infra")),
        ):
            puller.has(trust)
        assert await asyncio.to_thread(mine.pulls) == ""
        assert "unauthorized" in await asyncio.to_thread(other.pulls), "a machine of another pool"
        assert not [path for path in files_of(other) if TODAY[0].encode() in path.read_bytes()]

        (tmp_path / "r/htpasswd").write_text(f"nodes:{TOMORROW[1]}\n")
        assert "unauthorized" in await asyncio.to_thread(mine.pulls), "what was good yesterday is not any more"
        secret = pull_secret("nodes", TOMORROW[0], registry=closed.address)
        patch = {"data": secret["data"]}
        await world.cluster.patch(SECRET.resource, "nodes", patch, PatchType.MERGE, names.OPERATOR_NAMESPACE)
        await handed_out(world, TOMORROW[0])
        mine.has(await agent.trust("worker"))
        assert await asyncio.to_thread(mine.pulls) == ""
        assert (await world.cluster.list(MACHINE_OS_BUILD.resource)).items == []
        assert mine.machine.power.reasons == [], "nothing boots for it"


def files_of(puller: Puller) -> list[Path]:
    return [path for path in puller.machine.root.rglob("*") if path.is_file() and not path.is_symlink()]
