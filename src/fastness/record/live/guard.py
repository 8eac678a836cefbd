"""Nothing is signed that does not continue what was signed before, wherever that is still known.

The state of the record is one ConfigMap. Whoever deletes it, or puts an old one back, would have the record begin again under the
same key and name, and every reader who was not there before would call it good. So before a step of the sequencer its state is
compared with the newest checkpoint of this record that is found anywhere:

    objects    the AuditCheckpoints of the cluster
    tiles      the checkpoint that lies beside the tiles
    memory     what this process has signed
    witnesses  how far others have seen the record: a size, without a root

A checkpoint of the first two counts when a key of the record signed it. The state must be at least as long, and its tiles must
lead to the root that was signed; otherwise `RecordBehind` says what is where, and nothing is added until a person has decided
(`fastness audit restart`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from fastness.crypto.digests import same
from fastness.crypto.errors import CryptoError
from fastness.crypto.notes import NoteVerifier, open_note, split_note
from fastness.formats.tlog import Checkpoint, TlogError, parse_checkpoint
from fastness.keys.errors import RecordBehind
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kube.port import Cluster
from fastness.record.live.head import RecordHead
from fastness.record.live.log import LogView
from fastness.record.live.log_key import known_keys
from fastness.record.live.tiles import TileStore

PIECE: Final = "checkpoint"
_HINT: Final = (
    "If an older backup was restored on purpose, run `fastness audit restart`; otherwise somebody cut the record:"
    " restore it from a backup or an export."
)


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint, and where it was found."""

    checkpoint: Checkpoint
    where: str


class RecordGuard:
    """Knows how far the record has come, whatever its state says."""

    def __init__(self, cluster: Cluster, tiles: TileStore) -> None:
        self._cluster = cluster
        self._tiles = tiles
        self._signed: Checkpoint | None = None
        self._continued: Checkpoint | None = None
        self._witnessed: dict[str, tuple[str, int]] = {}

    async def check(self, head: RecordHead, origin: str) -> None:
        """Compare the state of the record with what is known elsewhere; raises RecordBehind, ApiError."""
        # Whoever puts back an old copy of the whole store takes our checkpoints back with it; a witness is elsewhere.
        for witness, (of, size) in sorted(self._witnessed.items()):
            if of == origin and size > head.size:
                raise RecordBehind(
                    f"the record has {head.size} entries, and witness {witness} has seen {size} of it: it was rolled back",
                    _HINT,
                )
        newest = await self._newest(origin)
        if newest is None:
            return
        # The state is one ConfigMap, and whoever puts an older one back would have the rest signed a second time.
        if head.size < newest.checkpoint.size:
            raise RecordBehind(
                f"the record has {head.size} entries, and {newest.where} was signed over {newest.checkpoint.size}",
                _HINT,
            )
        # Reading the tiles is dear: it is done once for each checkpoint and not for each step.
        if newest.checkpoint != self._continued:
            await self._continues(head, newest)
            self._continued = newest.checkpoint

    async def signed(self, checkpoint: Checkpoint, note: str) -> None:
        """Remember what was signed, here and beside the tiles; raises OSError, ApiError."""
        # In memory, too: whoever replaces objects and tiles together still meets what this process remembers.
        self._signed = self._continued = checkpoint
        await self._tiles.write(PIECE, note.encode())

    def witnessed(self, witness: str, origin: str, size: int) -> None:
        """Remember how far a witness has seen the record of this name."""
        self._witnessed[witness] = (origin, size)

    async def candidates(self) -> AsyncIterator[SignedCheckpoint]:
        """Every checkpoint with a good signature that is found, of any name, longest first; raises ApiError.

        Signatures are checked one by one: whoever looks for the newest one pays for one.
        """
        keys = await known_keys(self._cluster)
        specs = [item["spec"] for item in (await self._cluster.list(AUDIT_CHECKPOINT.resource)).items]
        notes = [(int(spec["size"]), str(spec["note"]), "an AuditCheckpoint") for spec in specs]
        piece = await self._tiles.read(PIECE)
        if piece is not None:
            note = piece.decode("utf-8", "replace")
            notes.append((_claimed(note), note, "the checkpoint beside the tiles"))
        # By claimed size, unverified so far: a made-up claim comes first, fails its signature and is passed over.
        for _, note, where in sorted(notes, reverse=True):
            signed = _signed(note, keys, where)
            if signed is not None:
                yield signed

    async def _newest(self, origin: str) -> SignedCheckpoint | None:
        newest = None
        async for head in self.candidates():
            if head.checkpoint.origin == origin:
                newest = head
                break
        signed = self._signed
        if signed is not None and signed.origin == origin and (newest is None or signed.size > newest.checkpoint.size):
            return SignedCheckpoint(signed, "this process")
        return newest

    async def _continues(self, head: RecordHead, newest: SignedCheckpoint) -> None:
        signed = newest.checkpoint
        view = LogView(self._tiles, head.size)
        try:
            whole, root = await view.root(), await view.beginning(signed.size)
        except TlogError as error:
            raise RecordBehind(f"the record cannot be compared with {newest.where}: {error}", _HINT) from error
        if not same(whole, head.root):
            raise RecordBehind("the tiles of the record do not lead to the root that its state says", _HINT)
        if not same(root, signed.root):
            raise RecordBehind(
                f"the first {signed.size} entries are not those that {newest.where} was signed over", _HINT
            )


def _claimed(note: str) -> int:
    """The size that a note claims, believed by nobody yet."""
    try:
        return parse_checkpoint(split_note(note)[0]).size
    except (CryptoError, TlogError):
        return 0


def _signed(note: str, keys: Sequence[NoteVerifier], where: str) -> SignedCheckpoint | None:
    """The checkpoint in a note; None for what no key of the record signed, or what is none."""
    try:
        return SignedCheckpoint(parse_checkpoint(open_note(note, keys)), where)
    except (CryptoError, TlogError):
        return None
