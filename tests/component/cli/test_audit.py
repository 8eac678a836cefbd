"""`fastness audit`: what was decided can be read, exported and proved to somebody who has only a key."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.trust.audit import audit
from fastness.formats.tlog import tile_path
from fastness.keys.authorities import NAMESPACES
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kube.errors import AlreadyExists
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import ConfigMapTiles
from fastness.record.loops.sequencer import KEY, PACE_SECONDS, Sequencer
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock

CANARY = "sha256:" + "c" * 64


class Clerk:
    """Writes entries, folds them in, and runs the command as a user would."""

    def __init__(self, embedded: Embedded) -> None:
        self.kubeconfig = embedded.kubeconfig
        cluster, self._clock = embedded.cluster, VirtualClock(datetime.now(UTC))
        self._record = ClusterRecord(cluster, self._clock, SeededEntropy(3), "broker")
        self._sequencer = Sequencer(cluster, ConfigMapTiles(cluster), self._clock, SeededEntropy(4))

    async def write(self, count: int) -> None:
        for number in range(count):
            what = "release" if number % 2 else "refusal"
            await self._record.append(
                RecordEntry(what, CANARY, resource=f"default/test/{number}", detail={"code": "why"})
            )
        await self._clock.advance(
            PACE_SECONDS
        )  # a step of the sequencer that comes too soon after another does nothing
        await self._sequencer.reconcile(KEY)

    async def leave(self) -> None:
        """Write an entry and fold nothing in."""
        await self._record.append(RecordEntry("release", CANARY, resource="default/test/late"))

    async def fold(self) -> None:
        await self._clock.advance(PACE_SECONDS)
        await self._sequencer.reconcile(KEY)

    async def run(self, *words: str, online: bool = True) -> Result:
        where = ["--kubeconfig", str(self.kubeconfig)] if online else []
        return await asyncio.to_thread(CliRunner().invoke, audit, [*words, *where])

    async def key(self) -> str:
        return (await self.run("key")).stdout.strip()


@pytest.fixture
async def clerk(embedded_server: Embedded) -> Clerk:
    with suppress(AlreadyExists):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await embedded_server.cluster.create(NAMESPACES, body)
    return Clerk(embedded_server)


async def test_show_prints_the_newest_entries_and_filters_them(clerk: Clerk) -> None:
    await clerk.write(6)
    result = await clerk.run("show", "--last", "2")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["INDEX", "TIME", "WHAT", "WHO", "RESOURCE", "BECAUSE"]
    assert [line.split()[0] for line in lines[1:]] == ["4", "5"]
    filtered = json.loads((await clerk.run("show", "--what", "refusal", "--who", CANARY[:12], "-o", "json")).stdout)
    assert [entry["index"] for entry in filtered] == [0, 2, 4]


async def test_an_export_is_verified_offline_with_the_key_alone(clerk: Clerk, tmp_path: Path) -> None:
    await clerk.write(300)
    exported = tmp_path / "out"
    assert (await clerk.run("export", str(exported))).exit_code == 0
    result = await clerk.run("verify", str(exported), "--key", await clerk.key(), online=False)
    assert (result.exit_code, result.stdout.startswith("good: 300 entries")) == (0, True), result.output


async def test_a_changed_entry_a_changed_tile_and_a_missing_tile_are_each_found(clerk: Clerk, tmp_path: Path) -> None:
    await clerk.write(5)
    key = await clerk.key()
    for number, damage in enumerate(("entries", "hashes", "missing", "checkpoint")):
        exported = tmp_path / str(number)
        await clerk.run("export", str(exported))
        tile, bundle = exported / tile_path(0, 0, 5), exported / "tile/entries/000.p/5"
        if damage == "entries":
            bundle.write_bytes(bundle.read_bytes().replace(b"refusal", b"release", 1))
        elif damage == "hashes":
            bundle.unlink()
            tile.write_bytes(bytes([tile.read_bytes()[0] ^ 1]) + tile.read_bytes()[1:])
        elif damage == "missing":
            tile.unlink()
        else:
            note = exported / "checkpoint"
            note.write_text(note.read_text().replace("\n5\n", "\n4\n"))
        result = await clerk.run("verify", str(exported), "--key", key, online=False)
        assert (result.exit_code, result.stdout[:8]) == (1, "not good"), damage


async def test_one_entry_is_proved_and_another_entry_is_not(clerk: Clerk, tmp_path: Path) -> None:
    await clerk.write(20)
    made = await clerk.run("prove", "7")
    proof = tmp_path / "proof.json"
    proof.write_text(made.stdout)
    key = await clerk.key()
    good = await clerk.run("verify", str(proof), "--key", key, online=False)
    assert (good.exit_code, good.stdout.strip()[:16]) == (0, "good: entry 7 of"), good.output
    content = json.loads(made.stdout)
    changes: list[dict[str, object]] = [{"index": 8}, {"entry": {}}, {"inclusion": content["inclusion"][1:]}]
    for change in changes:
        proof.write_text(json.dumps(content | change))
        assert (await clerk.run("verify", str(proof), "--key", key, online=False)).exit_code == 1


async def test_a_record_that_only_grew_continues_an_older_checkpoint_and_a_rewritten_one_does_not(
    clerk: Clerk, tmp_path: Path, embedded_server: Embedded
) -> None:
    await clerk.write(5)
    await clerk.run("export", str(tmp_path / "old"))
    await clerk.write(9)
    await clerk.run("export", str(tmp_path / "new"))
    key, old = await clerk.key(), str(tmp_path / "old" / "checkpoint")
    grown = await clerk.run("verify", str(tmp_path / "new"), "--key", key, "--against", old, online=False)
    assert (grown.exit_code, "continues the checkpoint of size 5" in grown.stdout) == (0, True), grown.output
    proof = tmp_path / "proof.json"
    proof.write_text((await clerk.run("prove", "3", "--since", "5")).stdout)
    assert (await clerk.run("verify", str(proof), "--key", key, "--against", old, online=False)).exit_code == 0
    backwards = str(tmp_path / "new" / "checkpoint")
    shrunk = await clerk.run("verify", str(tmp_path / "old"), "--key", key, "--against", backwards, online=False)
    assert shrunk.exit_code == 1


@pytest.mark.parametrize("verb", ["show", "prove", "export"])
async def test_a_record_that_grows_while_it_is_read_is_read_as_it_was(
    clerk: Clerk, tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await clerk.write(5)
    loop, read, grown = asyncio.get_running_loop(), ConfigMapTiles.read, list[str]()

    async def growing(tiles: ConfigMapTiles, path: str) -> bytes | None:
        if asyncio.get_running_loop() is not loop and len(grown) < 2:  # the command's own reads, in its own thread
            grown.append(path)
            asyncio.run_coroutine_threadsafe(clerk.write(3), loop).result(30)
        return await read(tiles, path)

    monkeypatch.setattr(ConfigMapTiles, "read", growing)
    proof, exported = tmp_path / "proof.json", tmp_path / "out"
    words = {"show": ["show", "-o", "json"], "prove": ["prove", "4"], "export": ["export", str(exported)]}[verb]
    result = await clerk.run(*words)
    assert (result.exit_code, len(grown)) == (0, 2), result.output
    if verb == "show":
        assert [entry["index"] for entry in json.loads(result.stdout)] == [0, 1, 2, 3, 4]
        return
    proof.write_text(result.stdout)
    made = proof if verb == "prove" else exported
    checked = await clerk.run("verify", str(made), "--key", await clerk.key(), online=False)
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.startswith({"prove": "good: entry 4 of 5 in", "export": "good: 5 entries"}[verb])


async def test_a_damaged_record_is_told_in_a_sentence(clerk: Clerk, embedded_server: Embedded) -> None:
    await clerk.write(3)
    await ConfigMapTiles(embedded_server.cluster).remove("tile/entries/000.p/3")
    result = await clerk.run("show")
    assert (result.exit_code, "is missing" in result.stderr, "restore it" in result.stderr) == (1, True, True)


async def test_the_wrong_key_no_key_and_what_is_no_proof_are_told_apart(clerk: Clerk, tmp_path: Path) -> None:
    await clerk.write(2)
    exported = tmp_path / "out"
    await clerk.run("export", str(exported))
    assert (await clerk.run("verify", str(exported), online=False)).exit_code == 2
    key = await clerk.key()
    name, _, _ = key.partition("+")
    other = f"{name}x+{key.split('+', 1)[1]}"
    assert (await clerk.run("verify", str(exported), "--key", other, online=False)).exit_code == 1
    junk = tmp_path / "junk"
    junk.write_bytes(b"\xff\xfe")
    assert (await clerk.run("verify", str(junk), "--key", key, online=False)).exit_code == 2


async def test_an_empty_record_and_an_entry_that_is_not_there_are_plain_answers(clerk: Clerk) -> None:
    empty = await clerk.run("show")
    assert empty.exit_code == 1
    await clerk.write(1)
    assert (await clerk.run("prove", "1")).exit_code == 1


async def test_whoever_reads_waits_for_what_was_decided_before(clerk: Clerk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastness.cli.trust.audit.TAKEN_IN_PAUSE", 0.02)
    await clerk.write(2)
    await clerk.leave()
    reading = asyncio.create_task(clerk.run("show", "-o", "json"))
    await asyncio.sleep(0.1)
    await clerk.fold()
    assert [entry["resource"] for entry in json.loads((await reading).stdout)][-1] == "default/test/late"


async def test_a_record_that_takes_nothing_in_is_shown_as_it_is_and_said_so(
    clerk: Clerk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastness.cli.trust.audit.TAKEN_IN_TRIES", 2)
    await clerk.write(2)
    await clerk.leave()
    result = await clerk.run("show", "-o", "json")
    assert (result.exit_code, len(json.loads(result.stdout))) == (0, 2)
    assert "1 batch of entries waits to be taken into the record" in result.stderr
