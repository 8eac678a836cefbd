"""kill -9 at every failpoint and at random moments: nothing acknowledged is lost, nothing half written is seen."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fastness.apiserver.store import Store, StoreDamaged, restore
from fastness.apiserver.store.failpoints import FAILPOINTS
from fastness.apiserver.store.restore import REVISION_JUMP
from tests.component.apiserver.store.store_parts import MACS, ToyCipher
from tests.e2e.store.child import CLIENTS, SETTINGS, change, key_of
from tests.patience import PATIENCE

CHILD = Path(__file__).with_name("child.py")
SOAK = bool(os.environ.get("FASTNESS_SOAK"))
REPEATED = ("write.", "commit.", "publish.", "compact.", "checkpoint.")
CASES = [
    f"{name}:{count}"
    for name in FAILPOINTS
    for count in (
        (1, 2, 3, 5, 8, 13) if SOAK else (1, 7) if name in ("commit.after-commit", "publish.before") else (3,)
    )
    if count == 1 or name.startswith(REPEATED)
] + [name for name in FAILPOINTS if not name.startswith(REPEATED)]


@dataclass
class Story:
    """What the child said: the last acknowledged value of each key, and what it was about to do to it."""

    acknowledged: dict[str, tuple[str, int]] = field(default_factory=dict)
    intended: dict[str, str] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    newest: int = 0

    def hear(self, line: str) -> None:
        match line.split():
            case ["I", name, value]:
                self.intended[name] = value
            case ["A", name, value, revision]:
                self.acknowledged[name] = (value, int(revision))
                self.newest = max(self.newest, int(revision))
                if self.intended.get(name) == value:
                    del self.intended[name]
            case ["REACHED", *names]:
                self.reached = set(names)
            case words:
                self.marks += words

    def possible(self, name: str) -> set[str]:
        """The values that a key may have now."""
        values = {self.acknowledged.get(name, ("-", 0))[0]}
        return values | ({self.intended[name]} if name in self.intended else set())


def command(*words: object) -> list[str]:
    return [sys.executable, str(CHILD), *map(str, words)]


def environment() -> dict[str, str]:
    root = CHILD.parents[3]
    return {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}


def live(directory: Path, spec: str, story: Story | None = None) -> tuple[Story, int]:
    done = subprocess.run(
        command("run", directory, spec), env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    story = story or Story()
    for line in done.stdout.splitlines():
        story.hear(line)
    assert not done.stderr, done.stderr
    return story, done.returncode


async def check(directory: Path, story: Story) -> None:
    """Open what is left and compare it with the story, the log with the state, and the revisions with what was told."""
    store = await Store.open(directory, settings=SETTINGS, cipher=ToyCipher(), macs=MACS)
    present = {record.key.name: record for record in store.range("example.dev", "things").records}
    for name in {*story.acknowledged, *story.intended}:
        value = present[name].body.decode() if name in present else "-"
        assert value in story.possible(name), (name, value, story.possible(name))
    for name, (value, revision) in story.acknowledged.items():
        if name not in story.intended and value != "-":
            assert present[name].revision == revision
    for number in range(CLIENTS):
        pair = [present[name].body if name in present else b"-" for name in (f"left{number}", f"right{number}")]
        assert pair[0] == pair[1]
        many = {present[name].body if name in present else b"-" for name in (f"many{number}-{i}" for i in range(5))}
        assert len(many) == 1
    assert store.revision >= story.newest
    _replay(store)
    before = store.revision
    await change(store, ["after-the-crash"], "alive")
    assert store.revision == before + 1
    await store.close()


def _replay(store: Store) -> None:
    """The oldest list plus the log is the present."""
    state = {record.key: record for record in store.range("example.dev", "things", at=store.compacted).records}
    for entry in store.subscribe("example.dev", "things", since=store.compacted).take(0):
        assert state.get(entry.record.key) == entry.previous
        if entry.type == "DELETED":
            del state[entry.record.key]
        else:
            state[entry.record.key] = entry.record
    assert sorted(state.values(), key=lambda record: record.key) == store.range("example.dev", "things").records


@pytest.mark.parametrize("spec", CASES)
def test_nothing_acknowledged_is_lost_when_the_process_dies_at(tmp_path: Path, spec: str) -> None:
    story, code = live(tmp_path, spec)
    assert code == -signal.SIGKILL, f"{spec} was not reached: {story.marks}"
    name = spec.partition(":")[0]
    if name == "restore.set-aside":
        with pytest.raises(StoreDamaged, match="interrupted"):
            asyncio.run(check(tmp_path / "state", story))
    if name.startswith("restore."):
        restore(tmp_path / "backup.db", tmp_path / "state", force=True, macs=MACS)
        asyncio.run(check_restored(tmp_path / "state", story))
    else:
        asyncio.run(check(tmp_path / "state", story))
    if (tmp_path / "backup.db").exists():
        assert restore(tmp_path / "backup.db", tmp_path / "elsewhere", macs=MACS).objects > 0


async def check_restored(directory: Path, story: Story) -> None:
    store = await Store.open(directory, cipher=ToyCipher(), macs=MACS)
    present = {record.key.name: record.body.decode() for record in store.range("example.dev", "things").records}
    assert present == {name: value for name, (value, _) in story.acknowledged.items() if value != "-"}
    assert store.revision >= story.newest + REVISION_JUMP
    await store.close()


def test_a_life_without_death_reaches_every_failpoint(tmp_path: Path) -> None:
    story, code = live(tmp_path, "nothing")
    assert code == 0
    assert story.marks == ["OPEN", "BACKUP", "CLOSED", "RESTORED"]
    assert story.reached == set(FAILPOINTS)
    assert story.intended == {"reported-failed": "unknown"}


def test_every_failpoint_has_a_death() -> None:
    assert {spec.partition(":")[0] for spec in CASES} == set(FAILPOINTS)


@pytest.mark.parametrize("seed", range(40 if SOAK else 4))
def test_nothing_acknowledged_is_lost_when_the_process_is_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    story = Story()
    for _ in range(3):
        child = subprocess.Popen(command("write", tmp_path), env=environment(), stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        remaining = chance.randrange(1, 400)
        for line in child.stdout:
            story.hear(line)
            remaining -= line.startswith("A")
            if remaining <= 0:
                break
        child.kill()
        for line in child.stdout:
            story.hear(line)
        child.stdout.close()
        assert child.wait(PATIENCE) == -signal.SIGKILL
        asyncio.run(check(tmp_path / "state", story))
        story = asyncio.run(_as_found(tmp_path / "state"))


async def _as_found(directory: Path) -> Story:
    """The next run starts from what is there, whatever happened to the last intents."""
    store = await Store.open(directory, settings=SETTINGS, cipher=ToyCipher(), macs=MACS)
    records = store.range("example.dev", "things").records
    story = Story({record.key.name: (record.body.decode(), record.revision) for record in records})
    story.newest = store.revision
    assert store.get(key_of("after-the-crash")) is not None
    await store.close()
    return story
