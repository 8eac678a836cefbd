"""A witness over the wire: what the protocol says, what is remembered, and who may not confuse it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fastness.crypto.cosignatures import cosigned
from fastness.crypto.merkle import consistency_ranges, leaf_hash, tree_root
from fastness.crypto.notes import NoteSigner
from fastness.crypto.secret import SecretBytes
from fastness.formats.tlog import Checkpoint
from fastness.keys.errors import DamagedKeyFile, WitnessBusy
from fastness.protocol.witness import MAX_REQUEST, AddCheckpoint
from fastness.record.door.witness_server import WitnessServer, witness_server
from tests.virtual import SeededEntropy, VirtualClock

ORIGIN = "example.com/record"
LOG = NoteSigner(ORIGIN, SecretBytes(bytes(32)))
LEAVES = [leaf_hash(b"%d" % index) for index in range(300)]
OTHERS = [leaf_hash(b"another %d" % index) for index in range(300)]


def note(size: int, leaves: list[bytes] = LEAVES) -> str:
    return LOG.sign(Checkpoint(ORIGIN, size, tree_root(leaves[:size])).text())


def body(old: int, size: int, leaves: list[bytes] = LEAVES) -> bytes:
    ranges = consistency_ranges(old, size) if old else []
    return AddCheckpoint(old, tuple(tree_root(leaves[a:b]) for a, b in ranges), note(size, leaves)).encode()


class Talk:
    """Asks one witness."""

    def __init__(self, server: WitnessServer, client: httpx.AsyncClient) -> None:
        self.server = server
        self.client = client

    async def add(self, content: bytes) -> httpx.Response:
        return await self.client.post(f"http://127.0.0.1:{self.server.port}/add-checkpoint", content=content)


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with (
        witness_server(
            tmp_path / "w", "witness.example/w1", [LOG.verifier], VirtualClock(), SeededEntropy(1)
        ) as server,
        httpx.AsyncClient() as client,
    ):
        yield Talk(server, client)


async def test_a_log_that_grows_is_cosigned(talk: Talk) -> None:
    old = 0
    for size in (1, 5, 5, 256, 257, 300):
        answer = await talk.add(body(old, size))
        assert answer.status_code == 200, answer.text
        assert list(cosigned(note(size) + answer.text, [talk.server.key])) == ["witness.example/w1"]
        old = size


async def test_a_log_that_went_back_is_told_how_far_it_had_come(talk: Talk) -> None:
    assert (await talk.add(body(0, 20))).status_code == 200
    answer = await talk.add(body(0, 10))
    assert (answer.status_code, answer.text) == (409, "20\n")
    assert answer.headers["content-type"] == "text/x.tlog.size"


async def test_another_history_is_not_cosigned_by_any_old_size(talk: Talk) -> None:
    assert (await talk.add(body(0, 20))).status_code == 200
    codes = {(await talk.add(body(old, 30, OTHERS))).status_code for old in (0, 10, 20, 30)}
    assert codes == {409, 422}


async def test_what_a_witness_saw_outlives_it(tmp_path: Path) -> None:
    for expected in (200, 409):
        place = witness_server(tmp_path / "w", "w1", [LOG.verifier], VirtualClock(), SeededEntropy(1))
        async with place as server, httpx.AsyncClient() as client:
            answer = await Talk(server, client).add(body(0, 20))
            assert answer.status_code == expected


async def test_a_memory_that_was_damaged_is_not_taken_for_a_new_one(talk: Talk, tmp_path: Path) -> None:
    assert (await talk.add(body(0, 20))).status_code == 200
    (memory,) = (tmp_path / "w" / "logs").iterdir()
    memory.write_bytes(b"{}")
    assert (await talk.add(body(0, 10))).status_code == 503


async def test_two_processes_do_not_witness_with_one_memory(talk: Talk, tmp_path: Path) -> None:
    with pytest.raises(WitnessBusy):
        async with witness_server(tmp_path / "w", "w1", [], VirtualClock(), SeededEntropy(2)):
            pass


async def test_a_key_that_was_damaged_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_bytes(b"[]")
    (tmp_path / "key.json").chmod(0o600)
    with pytest.raises(DamagedKeyFile):
        async with witness_server(tmp_path, "w1", [], VirtualClock(), SeededEntropy(2)):
            pass


async def test_of_two_checkpoints_at_once_the_smaller_never_comes_last(talk: Talk) -> None:
    """Both continue the same tree; whichever is taken first, nothing is cosigned afterwards that goes back."""
    answers = await asyncio.gather(*(talk.add(body(0, size)) for size in (10, 300, 20, 250, 30)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]


async def test_a_request_that_is_too_large_is_refused_before_it_is_read(talk: Talk) -> None:
    assert (await talk.add(b"old 0\n\n" + b"x" * MAX_REQUEST)).status_code == 413


async def test_there_is_one_thing_to_ask_for(talk: Talk) -> None:
    base = f"http://127.0.0.1:{talk.server.port}"
    refused = await talk.client.get(f"{base}/add-checkpoint")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert (await talk.client.post(f"{base}/")).status_code == 404
    assert (await talk.client.get(f"{base}/healthz")).status_code == 200


async def test_whoever_asks_without_end_is_slowed_down(talk: Talk) -> None:
    codes = [(await talk.add(b"")).status_code for _ in range(80)]
    assert codes[0] == 400
    assert codes[-1] == 429
