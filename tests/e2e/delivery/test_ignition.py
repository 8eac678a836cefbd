"""A machine with a real TPM and the real Ignition: its files land in the root, or nothing does and an operator learns why.

The agent is a process, the TPM is swtpm, its registers were extended with what an image measures, and its event log is that of
the image. Nothing of the machine is simulated; the cluster is not either.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastness.crypto.silicon.registers import hashed
from fastness.formats import json
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.protocol.pointer import image_pointer
from fastness.sim.tee.images import BootImage, changed, default_image
from tests.e2e.delivery.ignition import HOSTILE_FILES, Ignition, hostile, pointer_with_ticket
from tests.e2e.delivery.real_cluster import cluster, explained
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.swtpm import Maker, Swtpm

WAYS = ("Gate", "Broker")


@dataclass
class Agent:
    """`fastness agent boot` as a process."""

    process: asyncio.subprocess.Process
    port: int

    async def ended(self) -> tuple[int, str]:
        """How it ended, and what it told the console."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            stderr = await self.process.stderr.read()
            return await self.process.wait(), stderr.decode()


@asynccontextmanager
async def agent(
    tpm: Swtpm, place: Path, image: BootImage, trust: bytes, user_data: bytes | None = None
) -> AsyncIterator[Agent]:
    """An agent that waits for Ignition; with `user_data` its image carries the pointer, and that is what the host gives it."""
    (place / "trust.json").write_bytes(trust)
    if user_data is not None:
        (place / "user.ign").write_bytes(image_pointer())
        (place / "given").write_bytes(user_data)
    (place / "log").write_bytes(image.event_log)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fastness.cli.main", "agent", "boot", "--trust", str(place / "trust.json"),
        "--tpm", tpm.tcti, "--tee", "tpm", "--state", str(place / "identity"), "--event-log", str(place / "log"), "--port", "0",
        "--pointer", str(place / "user.ign"), "--user-data", str(place / "given"), "--measured", str(place / "measured"),
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stderr.readline()).decode()
        address = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert address is not None, line
        yield Agent(process, int(address[1]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def boot(tpm: Swtpm, image: BootImage) -> None:
    """Measure an image into a TPM, event by event, as firmware does."""
    words = [f"{event.register}:sha256={hashed('sha256', event.subject).hex()}" for event in image.events]
    tpm.tool("pcrextend", *words)


def first_new(image: BootImage, other: BootImage, register: int) -> int:
    """Which event of a log is the first in a register that an image does not have."""
    expected = {(event.register, event.subject) for event in image.events}
    events = enumerate(other.events)
    return next(n for n, event in events if event.register == register and (register, event.subject) not in expected)


async def test_the_files_of_a_proven_machine_land_in_its_root_where_ignition_brings_the_ticket(
    real_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    image = default_image()
    boot(swtpm, image)
    async with cluster(real_server, tpm_maker, "Broker") as world:
        await world.publish(image.reference_values("tpm"))
        async with agent(swtpm, tmp_path, image, world.trust_json) as running:
            ignition = Ignition(tmp_path)
            ignition.user_data(running.port, (await world.ticket()).reveal(), world.server)
            await landed(ignition, running)


async def landed(ignition: Ignition, running: Agent) -> None:
    """What the cluster signed is in the root, and the agent says so."""
    installed = await ignition.run()
    assert installed.status == 0, installed.log
    assert (ignition.root / "etc/fastness/secret").read_text() == "for this machine"
    assert (ignition.root / "etc/fastness/secret").stat().st_mode & 0o777 == 0o600
    assert "etc/systemd/system/hello.service" in ignition.files
    status, console = await running.ended()
    assert status == 0, console
    assert "Ignition has the configuration" in console


async def test_an_image_with_the_pointer_takes_three_words_from_its_host_and_no_file(
    real_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    """The host gives the agent what it should, and Ignition's platform whatever it likes."""
    image = default_image()
    boot(swtpm, image)
    async with cluster(real_server, tpm_maker, "Gate") as world:
        await world.publish(image.reference_values("tpm"))
        ticket = (await world.ticket()).reveal()
        given = pointer_with_ticket(22625, ticket, world.server)
        async with agent(swtpm, tmp_path, image, world.trust_json, json.encode(given)) as running:
            ignition = Ignition(tmp_path)
            ignition.with_image_pointer(running.port, hostile(given))
            await landed(ignition, running)
            assert not HOSTILE_FILES & ignition.files
        assert ticket.encode() not in (tmp_path / "measured").read_bytes()
        explanation = await explained(real_server, world, attested=True)
        assert f"pool worker, server {world.server}, ticket sha256:" in explanation, explanation
        assert "pass  user-data: ok" in explanation, explanation


async def test_user_data_with_anything_beside_the_pointer_gets_the_machine_nothing(
    real_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path
) -> None:
    """A unit, a sudoers file, another trust and a kubelet key beside the pointer: what a host tried once, and got applied."""
    image = default_image()
    boot(swtpm, image)
    async with cluster(real_server, tpm_maker, "Gate") as world:
        await world.publish(image.reference_values("tpm"))
        given = hostile(pointer_with_ticket(22625, (await world.ticket()).reveal(), world.server))
        async with agent(swtpm, tmp_path, image, world.trust_json, given) as running:
            ignition = Ignition(tmp_path)
            ignition.with_image_pointer(running.port, given)
            installed = await ignition.run()
            status, console = await running.ended()
        assert installed.status != 0
        assert ignition.files == set()
        assert status == 1
        assert (
            "this machine gets no configuration (user-data-refused): user-data is refused at /storage: files" in console
        )
        assert world.shelf.requests == []
        assert (await world.cluster.list(MACHINE.resource)).items == []
        assert not (tmp_path / "measured").exists()


@pytest.mark.parametrize("via", WAYS)
async def test_with_one_changed_event_nothing_lands_and_the_operator_is_told_which(
    real_server: Embedded, swtpm: Swtpm, tpm_maker: Maker, tmp_path: Path, via: str
) -> None:
    image = default_image()
    other = changed(image, command_line=f"{image.command_line} debug")
    boot(swtpm, other)
    async with cluster(real_server, tpm_maker, via) as world:
        await world.publish(image.reference_values("tpm"))
        async with agent(swtpm, tmp_path, other, world.trust_json) as running:
            ignition = Ignition(tmp_path)
            ignition.user_data(running.port, (await world.ticket()).reveal(), world.server)
            installed = await ignition.run()
            assert installed.status != 0
            assert ignition.files == set()
            assert world.shelf.requests == []
            status, console = await running.ended()
        assert status == 1
        assert "this machine gets no configuration" in console
        assert "fastness attest explain machine-" in console
        explanation = await explained(real_server, world)
        assert "FAIL  PCR 11 (unified kernel image): value-differs" in explanation, explanation
        assert f"number {first_new(image, other, register=11)}: EV_IPL" in explanation, explanation
