"""Files of other operators outlive a boot whose /etc is another one.

Most hosts carry /etc over when they boot another image. A sealed system has the /etc of its image at every boot, and so has one
that was installed anew into the same /var. What operators wrote there would be gone, and they learn late, or never, that it is.

    keep(host, others)        copies of what is declared below /etc, with mode and owner, in the agent's own state; before reboots
    bring_back(host, others)  what is missing after a boot; whatever stands at a path stays as it is

What was deleted is deleted from the copies too, so nothing comes back that its owner took away. Bounds: 512 files, 1 MiB each,
16 MiB together. What is beyond is not copied, and said in the log.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from fastness.agent.apply.ports import Files, Host
from fastness.agent.host.states import ABSENT, Absent, File, Large, Link, Other
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.observe.logs import logger
from fastness.protocol.files_of_others import FilesOfOthers

COPIES: Final = "/others"
INDEX: Final = "/others.json"
MOST_FILES: Final = 512
MOST_BYTES: Final = 1 << 20
MOST_TOGETHER: Final = 16 << 20
_log = logger("agent")


def keep(host: Host, others: FilesOfOthers) -> None:
    """Copy what others keep below /etc; raises DriverError."""
    copied: list[str] = []
    lacking: list[str] = []
    room = MOST_TOGETHER
    for path in _below(host.root, others):
        state = host.root.inspect(path, MOST_BYTES)
        size = len(state.content) if isinstance(state, File) else 0
        if not isinstance(state, File | Link) or size > room or len(copied) >= MOST_FILES:
            lacking.append(path)
            continue
        room -= size
        copied.append(path)
        if host.state.inspect(f"{COPIES}{path}", MOST_BYTES) != state:
            host.state.put(f"{COPIES}{path}", state, directory_mode=0o700)
    for path in set(_copied_before(host)) - set(copied):
        host.state.put(f"{COPIES}{path}", ABSENT)
    if copied != _copied_before(host):
        host.state.put(INDEX, File(json.encode(copied), 0o600))
    if lacking:
        _log.warning("agent.others_not_kept", paths=", ".join(lacking[:10]), count=len(lacking))


def bring_back(host: Host, others: FilesOfOthers) -> tuple[str, ...]:
    """Write what is missing since the last boot; the paths; raises DriverError."""
    written = []
    for path in _copied_before(host):
        copy = host.state.inspect(f"{COPIES}{path}", MOST_BYTES)
        if others.owner_of(path) and isinstance(copy, File | Link) and isinstance(host.root.inspect(path, 0), Absent):
            host.root.put(path, copy)
            written.append(path)
    if written:
        _log.info("agent.others_brought_back", paths=", ".join(written[:10]), count=len(written))
    return tuple(written)


def _below(root: Files, others: FilesOfOthers) -> Iterator[str]:
    """Every file and link that is declared, below /etc; bounded by what is copied, and once more."""
    waiting = sorted((path for path in others.owners if path.startswith("/etc/")), reverse=True)
    looked_at = 0
    while waiting and looked_at <= 2 * MOST_FILES:
        path = waiting.pop()
        looked_at += 1
        match root.inspect(path, 0):
            case File() | Link() | Large():
                yield path
            case Other("a directory"):
                waiting += [posixpath.join(path, name) for name in reversed(root.names(path))]
            case _:
                continue


def _copied_before(host: Host) -> list[str]:
    state = host.state.look(INDEX)
    try:
        value = json.decode(state.content) if isinstance(state, File) else []
    except JsonError:
        return []
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []
