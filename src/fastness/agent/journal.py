"""The apply journal, without I/O: what was begun, and what a restart has to do about it.

    begin    an update from one config to another: which actions follow
    doing    a step is about to happen; how to undo it
    commit   every step happened; from here the update goes on
    acted    an action happened
    booting  a reboot was asked for, in the boot with this id
    revert   an action failed after the commit; from here the update goes back

One record is one line of JSON, on disk before what it announces happens. The end of an update is the removal of the file,
which is atomic. After a crash the records say it all:

- begun or reverting: undo every `doing`, newest first. Undoing twice, or undoing what did not happen, changes nothing, because an
  undo is a state and not a difference.
- committed: the actions that are not `acted` remain.
- booting: the same boot id means that the machine did not go down, so it is asked again; another id means done.

A last line without its newline was never announced and does not count; damage anywhere else is refused, because guessing could
destroy what was kept.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from fastness.agent.errors import DamagedJournal
from fastness.agent.steps import Enable, Put, Stage, Step, Tree, Word
from fastness.drivers.deployments import Deployment
from fastness.drivers.files import MAX_FILE
from fastness.drivers.states import ABSENT, Absent, File, Link, Other, State
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.model.kind import JsonObject

PATH: Final = "/journal"
# A record holds what a file was, in base64; files are limited where they are read.
LIMITS: Final = json.JsonLimits(max_bytes=2 * MAX_FILE)


class Phase(StrEnum):
    """Where an update stands."""

    IDLE = "idle"
    BEGUN = "begun"
    COMMITTED = "committed"
    BOOTING = "booting"
    REVERTING = "reverting"


@dataclass(frozen=True, slots=True)
class Begin:
    """An update begins; `actions` in the form of the API, `drained` whether pods were moved away for it."""

    source: str
    target: str
    actions: tuple[JsonObject, ...] = ()
    drained: bool = False


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


Record = Begin | Doing | Commit | Acted | Booting | Revert

_AFTER: Final[Mapping[type[Record], Mapping[Phase, Phase]]] = {
    Begin: {Phase.IDLE: Phase.BEGUN},
    Doing: {Phase.BEGUN: Phase.BEGUN},
    Commit: {Phase.BEGUN: Phase.COMMITTED},
    Acted: {Phase.COMMITTED: Phase.COMMITTED},
    Booting: {Phase.COMMITTED: Phase.BOOTING, Phase.BOOTING: Phase.BOOTING},
    Revert: {Phase.BEGUN: Phase.REVERTING, Phase.COMMITTED: Phase.REVERTING},
}


@dataclass(frozen=True, slots=True)
class Journal:
    """What the records so far amount to."""

    phase: Phase = Phase.IDLE
    begin: Begin = Begin("", "")
    undo: tuple[Step, ...] = ()
    acted: int = 0
    boot: str = ""

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
            case _:
                return replace(self, phase=phase)

    @property
    def must_revert(self) -> bool:
        """Whether a restart has to go back."""
        return self.phase in (Phase.BEGUN, Phase.REVERTING)

    @property
    def remaining(self) -> tuple[JsonObject, ...]:
        """The actions that still have to happen."""
        return self.begin.actions[self.acted :]


def replay(data: bytes) -> tuple[Journal, bytes]:
    """What a journal file says, and its bytes without an unfinished last line; raises DamagedJournal."""
    end = data.rfind(b"\n") + 1
    journal = Journal()
    undo: list[Step] = []
    for number, line in enumerate(data[:end].splitlines(), 1):
        try:
            record = decode(line)
        except (JsonError, KeyError, ValueError, TypeError, binascii.Error) as error:
            raise DamagedJournal(f"line {number} of the journal cannot be read: {error}") from error
        if isinstance(record, Doing) and journal.phase is Phase.BEGUN:
            undo.append(record.undo)  # collected here: copying the tuple for each of thousands would be quadratic
        else:
            journal = journal.after(record)
    return replace(journal, undo=tuple(reversed(undo))), data[:end]


def encode(record: Record) -> bytes:
    """One line."""
    value: JsonObject = {"is": type(record).__name__.lower()}
    match record:
        case Begin(source, target, actions, drained):
            value |= {"from": source, "to": target, "actions": list(actions), "drained": drained}
        case Doing(undo):
            value["undo"] = _step_to_json(undo)
        case Booting(boot):
            value["boot"] = boot
        case Commit() | Acted() | Revert():
            pass
    return json.encode(value) + b"\n"


def decode(line: bytes) -> Record:
    """The record of one line; raises JsonError, KeyError, ValueError, TypeError."""
    value = json.decode(line, LIMITS)
    match value["is"]:
        case "begin":
            return Begin(str(value["from"]), str(value["to"]), tuple(value["actions"]), bool(value["drained"]))
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
        case Stage(deployment):
            return {"stage": list(deployment) if deployment is not None else None}


def _step_from_json(value: Mapping[str, Any]) -> Step:
    if "put" in value:
        return Put(
            str(value["put"]), _state_from_json(value["state"]), Tree(value["tree"]), int(value["directoryMode"]),
            bool(value["own"]), tuple(value["prune"]),
        )  # fmt: skip
    if "enable" in value:
        return Enable(str(value["enable"]), Word(value["word"]))
    staged: Sequence[Any] | None = value["stage"]
    if staged is None:
        return Stage(None)
    image, arguments, kernel, extensions = staged
    return Stage(Deployment(str(image), tuple(arguments), str(kernel), tuple(extensions)))


def _state_to_json(state: State) -> JsonObject | None:
    match state:
        case Absent():
            return None
        case File(content, mode, uid, gid):
            return {"content": base64.b64encode(content).decode(), "mode": mode, "uid": uid, "gid": gid}
        case Link(target):
            return {"link": target}
        case Other(what):
            raise ValueError(f"{what} cannot be kept")


def _state_from_json(value: Mapping[str, Any] | None) -> State:
    if value is None:
        return ABSENT
    if "link" in value:
        return Link(str(value["link"]))
    content = base64.b64decode(value["content"], validate=True)
    return File(content, int(value["mode"]), value["uid"], value["gid"])
