"""Whether the container runtime of a node knows the handlers of confidential containers, and what they start is there.

A package that is listed as installed proves nothing about that: the drop-ins are read as the container runtime reads them, and
the programs that they name are looked for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from fastness.agent.apply.ports import Files
from fastness.agent.host.states import File
from fastness.kinds.kata import names, runtime

_DIRECTORY: Final = str(PurePosixPath(names.RUNTIME_FILE).parent)


def lacking(files: Files) -> Iterator[tuple[str, str]]:
    """Every path that keeps a node from running such pods, with what is wrong there; raises DriverError."""
    handlers = _handlers(files)
    unknown = [name for name in runtime.HANDLERS if name not in handlers]
    if unknown:
        words = "handlers" if len(unknown) > 1 else "handler"
        yield names.RUNTIME_FILE, f"the container runtime does not know the {words} {', '.join(unknown)}"
    for program in dict.fromkeys(handlers[name] for name in runtime.HANDLERS if name in handlers):
        path = PurePosixPath(program)
        if not path.is_absolute() or path.name not in files.names(str(path.parent)):
            yield program or names.RUNTIME_FILE, "the program that runs such pods is missing"


def _handlers(files: Files) -> dict[str, str]:
    """The handlers in all drop-ins, each with the program that it starts; later files win."""
    paths: dict[str, str] = {}
    for name in files.names(_DIRECTORY):
        state = files.look(f"{_DIRECTORY}/{name}")
        handlers = _in_drop_in(state.content) if isinstance(state, File) else {}
        paths |= {
            str(key): str(value.get("runtime_path") or "")
            for key, value in handlers.items()
            if isinstance(value, Mapping)
        }
    return paths


def _in_drop_in(content: bytes) -> Mapping[str, Any]:
    """The handlers of one drop-in; one that cannot be read has none."""
    try:
        value: Any = tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return {}
    for key in ("crio", "runtime", "runtimes"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
