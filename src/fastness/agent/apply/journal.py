"""The apply journal, without I/O: what was begun, and what a restart has to do about it.

    begin    an update from one config to another: which actions follow
    doing    a step is about to happen; how to undo it
    commit   every step happened; from here the update goes on
    acted    an action happened
    booting  a reboot was asked for, in the boot with this id
    revert   an action failed after the commit; from here the update goes back
    aside    not all of it can be undone; from here the journal is put away, with the reason

One record is one line of JSON, on disk before what it announces happens. The end of an update is the removal of the file,
which is atomic. After a crash the records say it all:

- begun or reverting: undo every `doing`, newest first. Undoing twice, or undoing what did not happen, changes nothing, because an
  undo is a state and not a difference.
- committed: the actions that are not `acted` remain.
- booting: the same boot id means that the machine did not go down, so it is asked again; with another id it is done if the
  machine runs the system that was asked for, and goes back if it does not.
- committed and to reboot, in another boot than it began in: the machine lost power. It is done or goes back in the same way.
- aside: what could be undone is; the rest is moved away.

A last line without its newline was never announced and does not count; with damage anywhere else the journal is not used,
because guessing could destroy what was kept.

Lines are short: what a file was is in them only while it is small, otherwise the name of a copy (`copies.py`). Journals of
earlier versions hold whole files; such a line is left where it is (`Later`) and read again when its turn to be undone comes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from fastness.agent.apply.steps import Copy, Enable, Put, Stage, Step, Tree, Word
from fastness.agent.errors import DamagedJournal
from fastness.agent.host.states import ABSENT, Absent, Deployment, File, Link, Other, State, Stored
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject

PATH: Final = "/journal"
# Earlier versions kept files of up to 128 MiB in a line, in base64.
MAX_LINE: Final = 256 * 1024 * 1024
LONG_LINE: Final = 128 * 1024
LIMITS: Final = json.JsonLimits(max_bytes=MAX_LINE)


class Phase(StrEnum):
    """Where an update stands."""

    IDLE = "idle"
    BEGUN = "begun"
    COMMITTED = "committed"
    BOOTING = "booting"
    REVERTING = "reverting"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Begin:
    """An update begins; `actions` in the form of the API, `drained` whether pods were moved away for it.

    `image` is what the machine should boot afterwards, `boot` the boot in which it began.
    """

    source: str
    target: str
    actions: tuple[JsonObject, ...] = ()
    drained: bool = False
    image: str = ""
    boot: str = ""

    @property
    def reboots(self) -> bool:
        """Whether the update ends with a reboot."""
        return any(action["type"] == "Reboot" for action in self.actions)


@dataclass(frozen=True, slots=True)
class Doing:
    """A step is about to happen; undoing it is carrying out `undo`."""

    undo: Step


@dataclass(frozen=True, slots=True)
class Commit:
    """Every step happened."""


@dataclass(frozen=True, slots=True)
class Acted:
    """One more action happened."""


@dataclass(frozen=True, slots=True)
class Booting:
    """A reboot was asked for in this boot."""

    boot: str


@dataclass(frozen=True, slots=True)
class Revert:
    """The update goes back."""


@dataclass(frozen=True, slots=True)
class Aside:
    """What could be undone is, and the rest cannot be, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """An undo that is too long to be held: its line of the journal."""

    offset: int
    length: int


Record = Begin | Doing | Commit | Acted | Booting | Revert | Aside

_AFTER: Final[Mapping[type[Record], Mapping[Phase, Phase]]] = {
    Begin: {Phase.IDLE: Phase.BEGUN},
    Doing: {Phase.BEGUN: Phase.BEGUN},
    Commit: {Phase.BEGUN: Phase.COMMITTED},
    Acted: {Phase.COMMITTED: Phase.COMMITTED},
    Booting: {Phase.COMMITTED: Phase.BOOTING, Phase.BOOTING: Phase.BOOTING},
    # From BOOTING by the next boot alone, which finds that it is not the system that was asked for.
    Revert: {Phase.BEGUN: Phase.REVERTING, Phase.COMMITTED: Phase.REVERTING, Phase.BOOTING: Phase.REVERTING},
    Aside: {Phase.BEGUN: Phase.ASIDE, Phase.REVERTING: Phase.ASIDE},
}


@dataclass(frozen=True, slots=True)
class Journal:
    """What the records so far amount to."""

    phase: Phase = Phase.IDLE
    begin: Begin = Begin("", "")
    undo: tuple[Step | Later, ...] = ()
    acted: int = 0
    boot: str = ""
    reason: str = ""

    def after(self, record: Record) -> Journal:
        """The journal with one more record; raises DamagedJournal when it cannot follow."""
        phase = _AFTER[type(record)].get(self.phase)
        if phase is None:
            raise DamagedJournal(f"the journal has {type(record).__name__.lower()} while it is {self.phase}")
        match record:
            case Begin():
                return Journal(phase, record)
            case Doing(undo):
                # Newest first, as undoing needs them.
                return replace(self, phase=phase, undo=(undo, *self.undo))
            case Acted():
                return replace(self, phase=phase, acted=self.acted + 1)
            case Booting(boot):
                return replace(self, phase=phase, boot=boot)
            case Aside(reason):
                return replace(self, phase=phase, reason=reason)
            case _:
                return replace(self, phase=phase)

    @property
    def must_revert(self) -> bool:
        """Whether a restart has to go back."""
        return self.phase in (Phase.BEGUN, Phase.REVERTING)

    @property
    def boot_before(self) -> str:
        """The boot that a reboot was asked for in, or in which the update began; empty where nobody wrote it down."""
        return self.boot or self.begin.boot

    @property
    def remaining(self) -> tuple[JsonObject, ...]:
        """The actions that still have to happen."""
        return self.begin.actions[self.acted :]


def replay(lines: Iterable[bytes]) -> tuple[Journal, int]:
    """What the lines of a journal file say, and the length of those that are whole; raises DamagedJournal.

    A line ends with its newline; a piece without one counts as the unfinished last line, and is damage if more follows.
    """
    journal, length, unfinished = Journal(), 0, False
    undo: list[Step | Later] = []
    for number, line in enumerate(lines, 1):
        if unfinished:
            raise DamagedJournal(f"line {number - 1} of the journal is longer than any that is written")
        if not line.endswith(b"\n"):
            # A crash in the middle of an append: its step did not happen, because it waits for the fsync of its line.
            unfinished = True
            continue
        try:
            record = decode(line)
        except (JsonError, KeyError, ValueError, TypeError, binascii.Error) as error:
            # By its kind alone: what a line holds may be a secret, and this is told to the cluster.
            raise DamagedJournal(f"line {number} of the journal cannot be read ({type(error).__name__})") from None
        if isinstance(record, Doing) and journal.phase is Phase.BEGUN:
            # Collected here: copying the tuple for each of thousands would be quadratic.
            undo.append(record.undo if len(line) <= LONG_LINE else Later(length, len(line)))
        else:
            journal = journal.after(record)
        length += len(line)
    return replace(journal, undo=tuple(reversed(undo))), length


def encode(record: Record) -> bytes:
    """One line."""
    value: JsonObject = {"is": type(record).__name__.lower()}
    match record:
        case Begin(source, target, actions, drained, image, boot):
            value |= {"from": source, "to": target, "actions": list(actions), "drained": drained}
            value |= {"image": image, "boot": boot}
        case Doing(undo):
            value["undo"] = _step_to_json(undo)
        case Booting(boot):
            value["boot"] = boot
        case Aside(reason):
            value["reason"] = reason
        case Commit() | Acted() | Revert():
            pass
    return json.encode(value) + b"\n"


def decode(line: bytes) -> Record:
    """The record of one line; raises JsonError, KeyError, ValueError, TypeError."""
    value = json.decode_encoded(line, LIMITS)
    match value["is"]:
        case "begin":
            return Begin(
                str(value["from"]), str(value["to"]), tuple(value["actions"]), bool(value["drained"]),
                str(value.get("image", "")), str(value.get("boot", "")),
            )  # fmt: skip
        case "doing":
            return Doing(_step_from_json(value["undo"]))
        case "booting":
            return Booting(str(value["boot"]))
        case "commit":
            return Commit()
        case "acted":
            return Acted()
        case "revert":
            return Revert()
        case "aside":
            return Aside(str(value["reason"]))
        case other:
            raise ValueError(f"there is no record {other!r}")


def _step_to_json(step: Step) -> JsonObject:
    match step:
        case Put():
            return {
                "put": step.path, "tree": str(step.tree), "state": _state_to_json(step.state),
                "directoryMode": step.directory_mode, "own": step.own_directories, "prune": list(step.prune),
            }  # fmt: skip
        case Enable(unit, word):
            return {"enable": unit, "word": str(word)}
        case Stage(deployment, old, back=back, back_packages=packages):
            # Earlier agents know `stage` alone, and drop what is staged: an image may bring one of them back.
            undo = {"back": list(back), "from": list(old), "packages": packages} if back is not None else {}
            return {"stage": list(deployment) if deployment is not None else None, **undo}
        case Copy():
            # What stood at the path before is a state; the source of the copy may be gone when the undo comes.
            raise ValueError("a copy is undone by a state")


def _step_from_json(value: Mapping[str, Any]) -> Step:
    if "put" in value:
        return Put(
            str(value["put"]), _state_from_json(value["state"]), Tree(value["tree"]), int(value["directoryMode"]),
            bool(value["own"]), tuple(value["prune"]),
        )  # fmt: skip
    if "enable" in value:
        return Enable(str(value["enable"]), Word(value["word"]))
    staged: Sequence[Any] | None = value["stage"]
    if staged is None and "back" in value:
        back, old = _deployment_from_json(value["back"]), _deployment_from_json(value["from"])
        return Stage(None, old, back=back, back_packages=str(value["packages"]))
    return Stage(_deployment_from_json(staged) if staged is not None else None)


def _deployment_from_json(value: Sequence[Any]) -> Deployment:
    image, arguments, kernel, extensions = value
    return Deployment(str(image), tuple(arguments), str(kernel), tuple(extensions))


def _state_to_json(state: State | Stored) -> JsonObject | None:
    match state:
        case Absent():
            return None
        case File(content, mode, uid, gid):
            return {"content": base64.b64encode(content).decode(), "mode": mode, "uid": uid, "gid": gid}
        case Stored(name, digest, mode, uid, gid):
            return {"kept": name, "digest": digest, "mode": mode, "uid": uid, "gid": gid}
        case Link(target):
            return {"link": target}
        case Other(what):
            raise ValueError(f"{what} cannot be kept")


def _state_from_json(value: Mapping[str, Any] | None) -> State | Stored:
    if value is None:
        return ABSENT
    if "link" in value:
        return Link(str(value["link"]))
    mode, uid, gid = int(value["mode"]), value["uid"], value["gid"]
    if "kept" in value:
        return Stored(str(value["kept"]), str(value["digest"]), mode, uid, gid)
    return File(base64.b64decode(value["content"], validate=True), mode, uid, gid)
