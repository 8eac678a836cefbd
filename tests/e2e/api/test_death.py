"""What an acknowledged write is worth: kill -9 under load, signals at any moment, and the same state afterwards."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import httpx
import pytest

from tests.e2e.api.process import CONFIGMAPS, Up, fastness
from tests.patience import PATIENCE
from tests.soaking import soaking

CLIENTS = 16


async def write_until_it_dies(up: Up, number: int, acknowledged: dict[str, int]) -> None:
    """Create objects and remember those that the server said yes to."""
    async with up.client() as client:
        for count in range(10_000):
            name = f"w{number}-{count}"
            try:
                answer = await client.post(CONFIGMAPS, json={"metadata": {"name": name}, "data": {"k": "v" * 200}})
            except httpx.TransportError:
                return
            assert answer.status_code == 201, answer.text
            acknowledged[name] = int(answer.json()["metadata"]["resourceVersion"])


async def names(client: httpx.AsyncClient) -> dict[str, int]:
    answer = await client.get(CONFIGMAPS)
    return {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in answer.json()["items"]}


async def test_kill_9_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    state = tmp_path / "state"
    acknowledged: dict[str, int] = {}
    for life in range(2):
        async with Up(state) as up:
            numbers = range(life * CLIENTS, (life + 1) * CLIENTS)
            writers = [asyncio.create_task(write_until_it_dies(up, number, acknowledged)) for number in numbers]
            target = len(acknowledged) + 200
            async with asyncio.timeout(PATIENCE):
                while len(acknowledged) < target:  # noqa: ASYNC110  # clients of another process
                    await asyncio.sleep(0.02)
            up.kill()
            await asyncio.gather(*writers)
    async with Up(state) as up, up.client() as client:
        assert acknowledged.items() <= (await names(client)).items()
        newest = max(acknowledged.values())
        fresh = await client.post(CONFIGMAPS, json={"metadata": {"generateName": "after-"}})
        assert int(fresh.json()["metadata"]["resourceVersion"]) > newest
        assert await _resumes(client, newest)
        assert up.stop() == 0


async def _resumes(client: httpx.AsyncClient, version: int) -> bool:
    """A watch from before the death goes on after it, or is told to list again."""
    query = f"{CONFIGMAPS}?watch=1&resourceVersion={version}&timeoutSeconds=1"
    answer = await client.get(query)
    return answer.status_code == 410 or (
        answer.status_code == 200 and ('"after-' in answer.text or "410" in answer.text)
    )


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, soaking(signal.SIGINT, why="tests/e2e/cli/test_processes.py ends it without load by both")],
)
async def test_a_signal_under_load_ends_it_within_seconds_and_cleanly(tmp_path: Path, number: int) -> None:
    state = tmp_path / "state"
    acknowledged: dict[str, int] = {}
    async with Up(state) as up:
        assert up.children() == []
        writers = [asyncio.create_task(write_until_it_dies(up, index, acknowledged)) for index in range(4)]
        watching = asyncio.create_task(_watch(up))
        while len(acknowledged) < 50:  # noqa: ASYNC110  # clients of another process
            await asyncio.sleep(0.02)
        assert await asyncio.to_thread(up.stop, number) == 0
        await asyncio.gather(*writers, watching)
        assert "Traceback" not in up.stderr_text()
    async with Up(state) as up, up.client() as client:
        assert acknowledged.items() <= (await names(client)).items()
        assert up.stop() == 0


async def _watch(up: Up) -> None:
    try:
        async with up.client() as client, client.stream("GET", f"{CONFIGMAPS}?watch=1") as answer:
            async for _ in answer.aiter_bytes():
                pass
    except httpx.TransportError:
        return


async def test_a_signal_at_any_moment_of_the_start_leaves_a_state_that_opens(tmp_path: Path) -> None:
    state = tmp_path / "state"
    chance = random.Random(7)
    for _ in range(6):
        up = Up(state)
        up.start()
        await asyncio.sleep(chance.uniform(0.05, 1.6))
        code = await asyncio.to_thread(up.stop, signal.SIGTERM)
        assert code in (0, -signal.SIGTERM), up.stderr_text()
        assert "Traceback" not in up.stderr_text()
    async with Up(state) as up:
        assert up.stop() == 0


async def test_a_backup_while_clients_write_can_be_restored(tmp_path: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    acknowledged: dict[str, int] = {}
    async with Up(state) as up:
        writers = [asyncio.create_task(write_until_it_dies(up, index, acknowledged)) for index in range(4)]
        while len(acknowledged) < 50:  # noqa: ASYNC110  # clients of another process
            await asyncio.sleep(0.02)
        before = dict(acknowledged)
        done = await asyncio.to_thread(fastness, "backup", "--state", state, tmp_path / "copy.db")
        assert done.returncode == 0, done.stderr
        assert await asyncio.to_thread(up.stop) == 0
        await asyncio.gather(*writers)
    key = state / "vault.json"
    restored = await asyncio.to_thread(fastness, "restore", "--state", other, "--vault", key, tmp_path / "copy.db")
    assert restored.returncode == 0, restored.stderr
    async with Up(other) as up, up.client() as client:
        present = await names(client)
        assert before.keys() <= present.keys()
        written = await client.post(CONFIGMAPS, json={"metadata": {"name": "after"}})
        assert int(written.json()["metadata"]["resourceVersion"]) > max(acknowledged.values())
        assert up.stop() == 0
