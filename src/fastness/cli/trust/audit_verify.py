"""What `fastness audit verify` says about an export or a proof: one line of result, or what is wrong."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastness.cli.errors import CliError, Exit
from fastness.cli.trust.record_check import RecordProblem, check_export, consistent, included
from fastness.crypto.cosignatures import WitnessVerifier, cosigned
from fastness.crypto.errors import CryptoError
from fastness.crypto.notes import NoteVerifier, open_note
from fastness.formats import json, tlog
from fastness.formats.errors import JsonError
from fastness.formats.words import counted

MAX_PROOF: Final = 1024 * 1024
MAX_HASHES: Final = 64


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome in words, and as data."""

    good: bool
    text: str
    facts: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {"good": self.good, "message": self.text, **self.facts}


@dataclass(frozen=True, slots=True)
class Quorum:
    """Witnesses whose cosignatures are looked for, and how many of them are needed."""

    witnesses: tuple[WitnessVerifier, ...] = ()
    needed: int = 0

    @classmethod
    def parse(cls, keys: Sequence[str], needed: int | None) -> Quorum:
        """Read keys of witnesses; all of them are needed unless a number says otherwise. Raises BadKey, CliError."""
        witnesses = tuple(WitnessVerifier.parse(key) for key in keys)
        names = {witness.name for witness in witnesses}
        if len(names) < len(witnesses):
            raise CliError("a witness is named twice", "Give each witness once: one key, one vote.", Exit.USAGE)
        if needed is not None and needed > len(witnesses):
            raise CliError(
                f"--quorum {needed} needs more witnesses than the {len(witnesses)} whose keys are given",
                "Give --witness for each, out of `fastness witness key`.",
                Exit.USAGE,
            )
        return cls(witnesses, len(witnesses) if needed is None else needed)

    def count(self, note: str) -> list[str]:
        """The names of those that cosigned a note; raises RecordProblem when they are too few."""
        names = sorted(cosigned(note, self.witnesses))
        if len(names) < self.needed:
            cosigned_by = (
                f"{len(names)} of {counted(len(self.witnesses), 'witness', 'witnesses')} cosigned the checkpoint"
            )
            raise RecordProblem(
                f"{cosigned_by}, and {counted(self.needed, 'is', 'are')} needed: the record may have been rolled back"
            )
        return names

    def words(self, names: Sequence[str]) -> list[str]:
        """For the line of the result."""
        return (
            [f"cosigned by {len(names)} of {counted(len(self.witnesses), 'witness', 'witnesses')}"]
            if self.witnesses
            else []
        )


def verify_directory(directory: Path, keys: Sequence[str], older: Sequence[Path], quorum: Quorum) -> Verified:
    """Judge an export."""
    try:
        verifiers = [NoteVerifier.parse(key) for key in keys]
        checkpoints = [tlog.parse_checkpoint(open_note(_text(path), verifiers)) for path in older]
        checked = check_export(directory, verifiers, checkpoints)
        names = quorum.count(_text(directory / "checkpoint"))
    except (RecordProblem, CryptoError, tlog.TlogError) as problem:
        return Verified(False, f"not good: {problem}", {})
    parts = [f"good: {counted(checked.size, 'entry', 'entries')} of {checked.origin}"]
    parts += [f"{checked.pruned} of them only as hashes"] if checked.pruned else []
    parts += [f"continues the checkpoint of size {checkpoint.size}" for checkpoint in checkpoints]
    parts += quorum.words(names)
    facts = {"origin": checked.origin, "size": checked.size, "entries": checked.entries, "witnesses": names}
    return Verified(True, ", ".join(parts), facts)


def verify_proof(path: Path, keys: Sequence[str], older: Sequence[Path], quorum: Quorum) -> Verified:
    """Judge a proof of one entry; with an older checkpoint also that the record only grew since."""
    proof = _proof(path)
    try:
        verifiers = [NoteVerifier.parse(key) for key in keys]
        signed = tlog.parse_checkpoint(open_note(proof["checkpoint"], verifiers))
        data = base64.b64decode(proof["leaf"], validate=True)
        leaf = hashlib.sha256(b"\0" + data).digest()
        if not included(leaf, int(proof["index"]), signed.size, _hashes(proof["inclusion"]), signed.root):
            raise RecordProblem("the proof does not lead from the entry to the signed root")
        if proof.get("entry") != json.decode(data):
            raise RecordProblem("the entry that is shown is not the one that is proved")
        checkpoints = [tlog.parse_checkpoint(open_note(_text(path), verifiers)) for path in older]
        for checkpoint in checkpoints:
            _check_growth(proof.get("consistency"), checkpoint, signed)
        names = quorum.count(proof["checkpoint"])
    except (RecordProblem, CryptoError, tlog.TlogError, JsonError) as problem:
        return Verified(False, f"not good: {problem}", {})
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise CliError(f"{path}: this is not a proof", "Make one with `fastness audit prove`.", Exit.USAGE) from error
    parts = [f"good: entry {proof['index']} of {signed.size} in {signed.origin}", *quorum.words(names)]
    facts = {"origin": signed.origin, "size": signed.size, "entry": proof["entry"], "witnesses": names}
    return Verified(True, ", ".join(parts), facts)


def _check_growth(proof: Any, old: tlog.Checkpoint, new: tlog.Checkpoint) -> None:
    if not isinstance(proof, dict) or proof.get("size") != old.size:
        raise RecordProblem(
            f"the proof says nothing about the record of size {old.size}: make it with --since {old.size}"
        )
    if not consistent(old.size, new.size, _hashes(proof["hashes"]), old.root, new.root):
        raise RecordProblem(f"the record of size {old.size} is not the beginning of this one: history was rewritten")


def _proof(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()[: MAX_PROOF + 1]
        proof = json.decode(data) if len(data) <= MAX_PROOF else None
    except (OSError, JsonError) as error:
        raise CliError(f"{path}: {error}", "Make a proof with `fastness audit prove`.", Exit.USAGE) from error
    if not isinstance(proof, dict):
        raise CliError(f"{path}: this is not a proof", "Make one with `fastness audit prove`.", Exit.USAGE)
    return proof


def _hashes(texts: Any) -> list[bytes]:
    if not isinstance(texts, list) or len(texts) > MAX_HASHES:
        raise RecordProblem("the proof has no list of hashes")
    return [base64.b64decode(text, validate=True) for text in texts]


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(tlog.MAX_NOTE).decode("utf-8", "replace")
