"""Our record and our witness beside somebody else's: the C2SP code of transparency-dev, over the wire.

That two ends of our own agree proves little: both could be wrong in the same way. Here the other end shares no line with ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.cli.trust.audit import audit
from fastness.crypto.notes import NoteVerifier
from fastness.record.door.witness_server import witness_server
from fastness.record.live.log_key import known_keys, log_key
from fastness.record.live.reader import whole_note
from tests.component.record.conftest import World
from tests.component.record.test_witnessed import Watched, watched
from tests.patience import PATIENCE
from tests.peerwitness import peer_program
from tests.virtual import SeededEntropy, VirtualClock

pytestmark = pytest.mark.processes

__all__ = ["watched"]
NAME = "peer.example/w"


@pytest.fixture(scope="session")
def program() -> Path:
    return peer_program()


@asynccontextmanager
async def started(*words: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The other program for the time of the block."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(PATIENCE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def named_peer(watched: Watched, process: asyncio.subprocess.Process) -> str:
    """The witness that runs in a process becomes the cluster's; its key."""
    key, url = await line(process), await line(process)
    await watched.name([{"name": "peer", "key": key, "url": url}])
    return key


async def own_key(world: World) -> str:
    await log_key(world.cluster, SeededEntropy(1), world.clock.now())
    (key,) = await known_keys(world.cluster)
    return str(key)


async def test_their_witness_cosigns_our_record_and_audit_verify_takes_its_word(
    watched: Watched, program: Path, tmp_path: Path
) -> None:
    log = await own_key(watched.world)
    async with started(program, "serve", NAME, log) as process:
        key = await named_peer(watched, process)
        await watched.grow(1, 2, 3)  # the first checkpoint has no proof, the second one has
        await watched.grow(*range(4, 12))
        newest = await watched.newest()
        assert newest["status"]["witnesses"] == "1/1"
        assert await watched.condition("Witnessed") == ("True", "Cosigned", "1 of 1 witness cosigned the record")
        for path, data in {**watched.tiles.pieces, "checkpoint": whole_note(newest).encode()}.items():
            (tmp_path / "export" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "export" / path).write_bytes(data)
    words = ["verify", str(tmp_path / "export"), "--key", log, "--witness", key]
    checked = CliRunner().invoke(audit, words)
    assert (checked.exit_code, "cosigned by 1 of 1 witness" in checked.stdout) == (0, True), checked.output


async def test_their_witness_refuses_our_record_when_it_was_rolled_back(watched: Watched, program: Path) -> None:
    log = await own_key(watched.world)
    async with started(program, "serve", NAME, log) as process:
        await named_peer(watched, process)
        await watched.grow(1, 2)
        yesterday = await watched.backup()
        await watched.grow(3, 4, 5)
        await watched.roll_back(yesterday)
        await watched.turn()
        status, reason, message = await watched.condition("Witnessed")
        assert (status, reason) == ("False", "RolledBack"), message
        assert "witness peer has seen 5 entries of this record, which has 2" in message


async def test_our_witness_cosigns_what_their_client_submits_and_tells_it_of_a_rollback(
    program: Path, tmp_path: Path
) -> None:
    """Their client opens each answer with their verifier, and begins again at 0 in the end: ours says how far it had come."""
    async with started(program, "feed", "40") as process:
        log = NoteVerifier.parse(await line(process))
        async with witness_server(tmp_path / "w", "our.example/w", [log], VirtualClock(), SeededEntropy(1)) as server:
            assert process.stdin is not None
            process.stdin.write(f"http://127.0.0.1:{server.port} {server.key}\n".encode())
            answer = await line(process)
            assert answer == "cosigned 40", (await process.communicate())[1].decode()
