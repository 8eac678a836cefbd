"""A witness as one thing that can be opened and closed: its directory, its key, its listener."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastness.crypto.cosignatures import WitnessVerifier
from fastness.crypto.notes import NoteVerifier
from fastness.http.listener import Listener
from fastness.http.opening import Listening
from fastness.record.door.witness import WitnessDoor
from fastness.record.live.witness_memory import WitnessMemory, witness_key
from fastness.runtime.clock import Clock, Entropy


@dataclass(frozen=True, slots=True)
class WitnessServer:
    """A running witness: where it listens, and the key that others verify with."""

    port: int
    key: WitnessVerifier


def by_origin(keys: Iterable[NoteVerifier]) -> Mapping[str, Sequence[NoteVerifier]]:
    """The keys of the logs that a witness knows: the name of a log's key is its origin."""
    logs: dict[str, list[NoteVerifier]] = {}
    for key in keys:
        logs.setdefault(key.name, []).append(key)
    return logs


@asynccontextmanager
async def witness_server(
    directory: Path,
    name: str,
    logs: Iterable[NoteVerifier],
    clock: Clock,
    entropy: Entropy,
    listening: Listening = Listening(),  # noqa: B008  # frozen
    *,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[WitnessServer]:
    """A witness that listens for the time of the block; raises WitnessBusy, DamagedKeyFile, UnsafeKeyFile, OSError.

    Without TLS it speaks plain HTTP: what it answers is signed, and what it reads is public.
    """
    memory = WitnessMemory(directory)
    try:
        signer = witness_key(directory, name, entropy)
        door = WitnessDoor(signer, by_origin(logs), memory, clock)
        listener = Listener(door, host=listening.host, port=listening.port, tls=tls)
        await listener.start()
        try:
            yield WitnessServer(listener.port, signer.verifier)
        finally:
            await listener.stop()
    finally:
        memory.close()
