"""The process that dies: it writes to a store, tells what it intends and what was acknowledged, and is killed on the way.

    child.py run DIRECTORY FAILPOINT[:COUNT]     a whole life: open, write, compact, back up, close, restore
    child.py write DIRECTORY                     write until killed
    child.py full DIRECTORY BYTES                write until the file size limit, then lift it and go on
    child.py open-as DIRECTORY UID               open as another user
    child.py hold DIRECTORY                      open, say so, wait for the end of stdin

Lines on stdout: `I key value` (intent; `-` deletes), `A key value revision` (acknowledged), and marks such as `OPEN`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path

from fastness.apiserver.store import Key, Store, StoreError, StoreSettings, StoreUnavailable, WriteStep, restore
from tests.component.apiserver.store.store_parts import MACS, ToyCipher

SETTINGS = StoreSettings(
    log_entries=12,
    statement_rows=2,
    batch_changes=8,
    compact_every=4,
    checkpoint_bytes=1,
    sealed_kinds=frozenset({("example.dev", "things")}),
)
CLIENTS, ROUNDS = 4, 6


def say(*words: object) -> None:
    """One line, written at once: a pipe keeps it when the process dies."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class DieAt:
    """A failpoint that kills the process at its n-th call, and tells which names were reached."""

    def __init__(self, spec: str) -> None:
        self._name, _, count = spec.partition(":")
        self._count = int(count or 1)
        self.reached: Counter[str] = Counter()
        self.fail = ""

    def __call__(self, name: str) -> None:
        self.reached[name] += 1
        if name == self._name and self.reached[name] == self._count:
            os.kill(os.getpid(), signal.SIGKILL)
        if name == self.fail:
            self.fail = ""
            raise sqlite3.OperationalError("disk I/O error")


def key_of(name: str) -> Key:
    return Key("example.dev", "things", "default", name)


async def change(store: Store, names: list[str], value: str) -> None:
    """Write the same value under several names in one write, or delete them (`-`)."""
    for name in names:
        say("I", name, value)
    body, last = (None, b"-") if value == "-" else (value.encode(), b"")
    records = await store.write(lambda _: [WriteStep(key_of(name), body, None, last) for name in names])
    for name, record in zip(names, records, strict=True):
        say("A", name, value, record.revision)


async def client(store: Store, number: int, rounds: int) -> None:
    """Create, change, delete one object over and over; now and then write a pair and a large batch at once."""
    for turn in range(rounds):
        await change(store, [f"solo{number}"], f"{turn}.1")
        await change(store, [f"solo{number}"], f"{turn}.2")
        await change(store, [f"left{number}", f"right{number}"], str(turn))
        await change(store, [f"solo{number}"], "-")
        await change(store, [f"many{number}-{index}" for index in range(5)], str(turn))


async def live(directory: Path, spec: str) -> None:
    point = DieAt(spec)
    store = await Store.open(directory / "state", settings=SETTINGS, failpoints=point, cipher=ToyCipher(), macs=MACS)
    say("OPEN")
    await asyncio.gather(*(client(store, number, ROUNDS) for number in range(CLIENTS)))
    point.fail = "commit.after-commit"
    with contextlib.suppress(StoreUnavailable):
        await change(store, ["reported-failed"], "unknown")
    await store.compact(keep=3)
    await store.reseal()
    await store.backup(directory / "backup.db")
    say("BACKUP")
    await store.close()
    say("CLOSED")
    restore(directory / "backup.db", directory / "state", force=True, macs=MACS, failpoints=point)
    say("RESTORED")
    say("REACHED", *sorted(point.reached))


async def write_for_ever(directory: Path) -> None:
    store = await Store.open(directory / "state", settings=SETTINGS, cipher=ToyCipher(), macs=MACS)
    say("OPEN")
    await asyncio.gather(*(client(store, number, 1_000_000) for number in range(CLIENTS)))


async def fill(directory: Path, limit: int) -> None:
    """The limit on file sizes stands in for a full disk: it needs no privileges and no mount."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    store = await Store.open(directory / "state", settings=StoreSettings(checkpoint_bytes=1))
    number = 0
    try:
        while number < 1_000:
            await change(store, [f"n{number}"], "x" * 10_000)
            number += 1
    except StoreError as error:
        say("REFUSED", error.code, store.count("example.dev", "things"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    await change(store, ["after"], "room")
    await store.close()
    say("CLOSED")


async def open_as(directory: Path, uid: int) -> None:
    if os.getuid() == 0:
        os.setuid(uid)
    try:
        store = await Store.open(directory / "state")
    except StoreError as error:
        say("REFUSED", error.code)
        return
    await store.close()
    say("OPENED")


async def hold(directory: Path) -> None:
    store = await Store.open(directory / "state")
    say("OPEN")
    await asyncio.to_thread(sys.stdin.read)
    await store.close()


def main() -> None:
    verb, directory, *rest = sys.argv[1:]
    match verb:
        case "run":
            asyncio.run(live(Path(directory), rest[0]))
        case "write":
            asyncio.run(write_for_ever(Path(directory)))
        case "full":
            asyncio.run(fill(Path(directory), int(rest[0])))
        case "open-as":
            asyncio.run(open_as(Path(directory), int(rest[0])))
        case "hold":
            asyncio.run(hold(Path(directory)))
        case _:
            sys.exit(f"unknown verb {verb}")


if __name__ == "__main__":
    main()
