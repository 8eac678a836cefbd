"""Asking witnesses for their cosignatures (C2SP tlog-witness, the side of the log).

    witness = Witness.parse({"name", "key", "url"})
    line = await Witnesses().cosign(client, witness, note, view)      # raises WitnessFailed

A witness tells with a conflict how far it has seen the record. Where that is no farther than the record goes, it is asked once
more with a proof from there. Where it is farther, or the proof does not hold, this is not the record that it saw: it was rolled
back, or there are two of them, and `WitnessFailed.seen` says how far the other one went.

* An answer counts by its signature alone: the connection proves nothing, so an address may be plain HTTP.
* Answers are bounded in time and size, and redirects are not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from fastness.crypto.cosignatures import WitnessVerifier, own_line
from fastness.crypto.errors import BadKey
from fastness.crypto.notes import NoteRefused, split_note
from fastness.formats.tlog import TlogError, parse_checkpoint
from fastness.formats.words import counted
from fastness.keys.errors import WitnessFailed
from fastness.protocol.witness import MAX_ANSWER, AddCheckpoint, parse_latest
from fastness.record.live.log import LogView

# A witness that is slow holds up nobody: the record goes on without its line.
SECONDS: Final = 10.0
_OK: Final = 200
_CONFLICT: Final = 409
_UNPROVED: Final = 422
_REACH: Final = "Look whether it runs, and whether this machine can reach it."


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness that the cluster names."""

    name: str
    url: str
    key: WitnessVerifier

    @classmethod
    def parse(cls, entry: Mapping[str, Any]) -> Witness:
        """Read an entry of `spec.witnesses`; raises WitnessFailed for a key that is none."""
        name = str(entry["name"])
        try:
            return cls(name, str(entry["url"]).rstrip("/"), WitnessVerifier.parse(str(entry["key"])))
        except BadKey as error:
            raise WitnessFailed(f"the key of witness {name} is none: {error}", error.hint) from error


class Witnesses:
    """Asks witnesses; remembers how far each has seen the record, so that it need not be asked twice."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, str], int] = {}

    async def cosign(self, client: httpx.AsyncClient, witness: Witness, note: str, view: LogView) -> str:
        """The line of a witness for a signed checkpoint of this view; raises WitnessFailed, TlogError, ApiError."""
        text = split_note(note)[0]
        origin = parse_checkpoint(text).origin
        place = (origin, str(witness.key))
        old = min(self._sizes.get(place, 0), view.size)
        for _ in range(2):
            request = AddCheckpoint(old, tuple(await view.consistency(old)), note)
            status, body = await _ask(client, witness, request)
            if status == _OK:
                self._sizes[place] = view.size
                return _line(witness, body, text)
            if status != _CONFLICT:
                raise _refused(witness, status, body, old)
            size_there = _size_there(witness, body)
            self._sizes[place] = size_there
            # Farther than we are, or the same place and still a conflict: that witness saw another history under our name.
            if size_there > view.size or size_there == old:
                raise _other_history(witness, size_there, view.size)
            old = size_there
        raise WitnessFailed(f"witness {witness.name} moves while it is asked", "Another log may use the same name.")


async def _ask(client: httpx.AsyncClient, witness: Witness, request: AddCheckpoint) -> tuple[int, bytes]:
    url = f"{witness.url}/add-checkpoint"
    body = bytearray()
    try:
        async with client.stream("POST", url, content=request.encode(), timeout=SECONDS) as answer:
            async for piece in answer.aiter_raw():
                body += piece
                # Counted while it arrives: the length that a header claims is the sender's word.
                if len(body) > MAX_ANSWER:
                    raise WitnessFailed(f"witness {witness.name} answers without end", "Check its address.")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise WitnessFailed(f"witness {witness.name} cannot be reached: {reason}", _REACH) from error
    return answer.status_code, bytes(body)


def _line(witness: Witness, body: bytes, text: str) -> str:
    try:
        line = own_line(body.decode("utf-8", "replace"), text, witness.key)
    except NoteRefused as error:
        raise WitnessFailed(f"witness {witness.name} answered something else: {error}", "Check its address.") from error
    if line is None:
        raise WitnessFailed(
            f"witness {witness.name} signed with another key than the cluster names", "Compare `fastness witness key`."
        )
    return line


def _size_there(witness: Witness, body: bytes) -> int:
    try:
        return parse_latest(body)
    except TlogError as error:
        raise WitnessFailed(f"witness {witness.name} answered something else: {error}", "Check its address.") from error


def _refused(witness: Witness, status: int, body: bytes, old: int) -> WitnessFailed:
    if status == _UNPROVED:
        return WitnessFailed(
            f"witness {witness.name} saw another record of {counted(old, 'entry', 'entries')} than the beginning of this one",
            "The record was rewritten. Compare it with an older export: `fastness audit verify --against`.",
            old,
        )
    hint = "Give its operator the keys of `fastness audit key`." if status in (403, 404) else _REACH
    words = body.decode("utf-8", "replace").split("\n")[0][:200]
    return WitnessFailed(f"witness {witness.name} answered {status}: {words}", hint)


def _other_history(witness: Witness, size_there: int, size: int) -> WitnessFailed:
    return WitnessFailed(
        f"witness {witness.name} has seen {counted(size_there, 'entry', 'entries')} of this record, which has {size}"
        if size_there > size
        else f"witness {witness.name} has seen another record of {counted(size_there, 'entry', 'entries')}",
        "The record was rolled back or rewritten. If an older backup was restored on purpose, see `fastness audit restart`.",
        size_there,
    )
