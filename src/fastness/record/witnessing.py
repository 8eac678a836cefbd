"""Whether a witness cosigns a checkpoint (C2SP tlog-witness).

    submission = submitted(body, logs)              # from a log that this witness knows, signed by it
    weigh(submission, latest of that log)           # continues what was cosigned last, or is refused

A witness keeps one size and one root for each log. What it cosigns must continue exactly that, so a log that goes back, or that
tells two people two histories, gets no second cosignature. Every refusal has the status that the protocol gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastness.crypto.digests import same
from fastness.crypto.merkle import EMPTY_ROOT, verify_consistency
from fastness.crypto.notes import NoteRefused, NoteVerifier, open_note, split_note
from fastness.formats.tlog import Checkpoint, TlogError, parse_checkpoint
from fastness.formats.words import counted
from fastness.protocol.witness import parse_add_checkpoint


@dataclass(frozen=True, slots=True)
class Latest:
    """The tree of a log that a witness cosigned last."""

    size: int = 0
    root: bytes = EMPTY_ROOT


NEVER: Final = Latest()


@dataclass(frozen=True, slots=True)
class Submission:
    """A checkpoint that its log signed, and how it is said to continue an older one."""

    checkpoint: Checkpoint
    text: str
    old: int
    proof: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Declined:
    """No cosignature. A conflict tells the size that was cosigned last, so that the log can prove from there."""

    status: int
    reason: str
    size: int | None = None


def submitted(body: bytes, logs: Mapping[str, Sequence[NoteVerifier]]) -> Submission | Declined:
    """Read a request of a log; `logs` are the keys of those that this witness knows, by origin."""
    try:
        request = parse_add_checkpoint(body)
        claimed = parse_checkpoint(split_note(request.note)[0])
    except (TlogError, NoteRefused) as error:
        return Declined(400, str(error))
    # Known before the signature is checked: strangers cannot make a witness verify signatures of logs that it never heard of.
    keys = logs.get(claimed.origin)
    if not keys:
        return Declined(404, f"this witness does not know a log {claimed.origin}")
    try:
        text = open_note(request.note, keys)
    except NoteRefused as error:
        return Declined(403, str(error))
    # Statuses are those of the protocol: 400 for this, 404 and 403 above, 409 and 422 below (C2SP tlog-witness).
    if request.old > claimed.size:
        return Declined(400, f"a log of {counted(request.old, 'entry', 'entries')} cannot grow to {claimed.size}")
    return Submission(claimed, text, request.old, request.proof)


def weigh(submission: Submission, latest: Latest) -> Latest | Declined:
    """What to remember and cosign, or why not."""
    checkpoint = submission.checkpoint
    # Exactly the size that was cosigned last: a proof from an older one would leave what lies between unproved.
    if submission.old != latest.size:
        return Declined(
            409, f"the last tree that was cosigned here has {counted(latest.size, 'entry', 'entries')}", latest.size
        )
    # Of the same size with another root there is no proof to check: it is a second history.
    if checkpoint.size == latest.size and not same(checkpoint.root, latest.root):
        return Declined(
            409, f"another tree of {counted(latest.size, 'entry', 'entries')} was cosigned here", latest.size
        )
    if not verify_consistency(latest.size, checkpoint.size, submission.proof, latest.root, checkpoint.root):
        return Declined(
            422, f"the proof does not lead from {counted(latest.size, 'entry', 'entries')} to {checkpoint.size}"
        )
    return Latest(checkpoint.size, checkpoint.root)
