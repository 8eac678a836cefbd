"""The configs that this machine had, by name: going back to one of them is never refused for what drifted.

One record in the agent's own directory, newest last. A config enters when the machine was seen to be well with it. Old ones fall
out at the end: going back that far is an update like any other.
"""

from __future__ import annotations

from typing import Final

from fastness.agent.apply.ports import Files
from fastness.agent.host.states import File
from fastness.formats import json
from fastness.formats.errors import JsonError

PATH: Final = "/earlier-configs"
MOST: Final = 64


def read_earlier(state: Files) -> tuple[str, ...]:
    """The configs that the machine had; none where the record cannot be read: the worst that follows is a refusal."""
    entry = state.look(PATH)
    if not isinstance(entry, File):
        return ()
    try:
        value = json.decode(entry.content)
    except JsonError:
        return ()
    return tuple(str(name) for name in value[-MOST:]) if isinstance(value, list) else ()


def remember_config(state: Files, name: str) -> None:
    """The machine is well with a config; raises DriverError."""
    before = read_earlier(state)
    if before[-1:] == (name,):
        return
    newest = [*(each for each in before if each != name), name][-MOST:]
    state.put(PATH, File(json.encode(newest), 0o600))
