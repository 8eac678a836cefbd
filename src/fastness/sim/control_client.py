"""Asking a running simulation: the other end of `control_socket.py`, without anything of the simulator.

A path of more than 108 bytes is no address of a socket, so the directory is opened and the socket is named through it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError, Unavailable
from fastness.sim.errors import DoneAlready, NoSuch, NotPossible

FILE: Final = "sim.sock"
MAX_REQUEST: Final = 16 * 1024
MAX_ANSWER: Final = 16 * 1024 * 1024
ANSWER_SECONDS: Final = 120.0
AuditHook = Callable[[int, JsonObject, int], None]
"""Hears of everything that was asked and is more than looking: the user's id, the request, the code of its outcome."""


def ask_control(state: Path, request: JsonObject) -> JsonObject:
    """Ask the simulation of a state directory; raises OSError when nobody listens, ApiError for a refusal."""
    with short_path(state) as path, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(path)
        connection.sendall(json.encode(request) + b"\n")
        with connection.makefile("rb") as file:
            line = file.readline(MAX_ANSWER)
    try:
        answer: Any = json.decode(line, json.JsonLimits(max_bytes=MAX_ANSWER, max_depth=8))
    except JsonError as error:
        raise Unavailable("the simulator ended before it answered") from error
    if not isinstance(answer, dict):
        raise Unavailable("the simulator's answer cannot be understood")
    if "error" in answer:
        raise refusal(answer["error"])
    return answer


def refusal(answer: JsonObject) -> ApiError:
    """The error that the simulator answered with."""
    refusals: tuple[type[ApiError], ...] = (*ApiError.__subclasses__(), NoSuch, NotPossible, DoneAlready)
    kinds = {kind.reason: kind for kind in refusals}
    return kinds.get(str(answer.get("reason")), Unavailable)(str(answer.get("message", "")))


@contextmanager
def short_path(directory: Path) -> Iterator[str]:
    """The socket of a directory under a name that is short enough, however deep the directory lies; raises OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{FILE}"
    finally:
        os.close(handle)
