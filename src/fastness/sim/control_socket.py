"""The control socket of a simulation: a Unix socket in the state directory, through which `fastness sim` asks for things.

    STATE/sim.sock   one line of JSON in, one line of JSON out, and the connection is closed

    {"verb": "list"}                                 → {"machines": […], "faults": […], "kinds": […]}
    {"verb": "do", "kind": …, "machine": …, …}       → {"said": "…"}
    anything that cannot be done                     → {"error": {"code", "reason", "message", "hint"}}

* Only the user who started the control plane may ask: the socket is theirs (0600), and the kernel says who is at the other end.
* Everything that is more than looking is reported with its outcome, for the audit log.
* Requests are bounded in size, in time and in number; what is not in the table of verbs is refused by name.
* `control_client.py` is the other end.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import ApiError, BadRequest, TooManyRequests, Unavailable
from fastness.observe.logs import logger
from fastness.page.simulator import ActiveFault
from fastness.sim.control_client import FILE, MAX_REQUEST, AuditHook, short_path
from fastness.sim.simulation import Simulation

SECONDS: Final = 10.0
TOGETHER: Final = 16
# struct ucred of unix(7): pid, uid, gid. The kernel fills it in, so nobody can claim to be another user.
_CREDENTIALS: Final = struct.Struct("3i")
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_REQUEST, max_depth=4)
_TEXTS: Final = {
    "list": (), "do": ("kind", "machine", "argument"), "undo": ("fault",), "add": ("tee", "pool"), "remove": ("machine",),
    "reboot": ("machine",), "push": ("image",), "withdraw": ("image",), "manifest": ("image",),
}  # fmt: skip
_log = logger("simulator")


def _unnoted(_user: int, _request: JsonObject, _code: int) -> None:
    """Where nobody keeps lines about it."""


class ControlSocket:
    """Answers what is asked of a simulation; `noted` hears of everything that is more than looking."""

    def __init__(self, simulation: Simulation, noted: AuditHook = _unnoted) -> None:
        self._simulation = simulation
        self._noted = noted
        self._busy = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one question, one answer."""
        self._busy += 1
        try:
            writer.write(json.encode(await self._reply(reader, writer)) + b"\n")
            async with asyncio.timeout(SECONDS):
                await writer.drain()
        except (OSError, TimeoutError):
            _log.debug("simulator.hung_up")
        finally:
            self._busy -= 1
            writer.close()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> JsonObject:
        try:
            # Read first, whoever it is: a connection that is closed with something unread loses the answer.
            line = await _line(reader)
            connection = writer.get_extra_info("socket")
            if not ours(connection):
                raise Unavailable("the simulator answers only the user who started it")
            # A page that hangs must not fill the process with tasks that wait for machines.
            if self._busy > TOGETHER:
                raise TooManyRequests(f"the simulator answers {TOGETHER} at once: ask again in a moment")
            return await self.answer(line, asking(connection))
        except ApiError as error:
            return {"error": {"code": error.code, "reason": error.reason, "message": error.message, "hint": error.hint}}

    async def answer(self, line: bytes, user: int = -1) -> JsonObject:
        """The answer to one line of a user; raises ApiError."""
        request = _request(line)
        if request["verb"] == "list":
            return overview(self._simulation)
        if request["verb"] == "manifest":
            return {"said": await self._simulation.manifest(request.get("image", ""))}
        code = 500
        try:
            result = await self._done(request)
            code = 200
        except ApiError as error:
            code = error.code
            raise
        finally:
            self._noted(user, request, code)
        return {"said": result}

    async def _done(self, request: JsonObject) -> str:
        verb, words = request["verb"], {name: request.get(name, "") for name in _TEXTS[request["verb"]]}
        if verb == "add":
            return await self._simulation.add(request.get("count", 1), **words)
        return str(await getattr(self._simulation, verb)(**words))


def overview(simulation: Simulation) -> JsonObject:
    """Everything there is to see."""
    consoles = simulation.consoles()
    return {
        "simulated": True,
        "machines": [
            {
                "name": row.name, "node": row.node, "tee": row.tee, "running": row.running, "network": row.network,
                "console": consoles.get(row.name, ""), "faults": [_fault(fault) for fault in row.faults],
            }
            for row in simulation.machines()
        ],
        "images": [
            {"image": image.reference, "version": image.version, "installed": image.reference == simulation.registry.installed}
            for image in simulation.registry.images()
        ],
        "faults": [_fault(fault) for fault in simulation.fleet_faults()],
        "kinds": [
            {"id": kind.id, "title": kind.title, "explanation": kind.explanation, "scope": kind.scope}
            for kind in simulation.kinds()
        ],
    }  # fmt: skip


def _fault(fault: ActiveFault) -> JsonObject:
    return {"id": fault.id, "kind": fault.kind, "machine": fault.machine, "since": rfc3339(fault.since)}


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(SECONDS):
            line = await reader.readline()
    except TimeoutError as error:
        raise BadRequest(f"no whole line came within {SECONDS:.0f} seconds") from error
    except ValueError as error:  # longer than the limit of the stream
        raise BadRequest(f"a request has at most {MAX_REQUEST} bytes") from error
    return line


def _request(line: bytes) -> JsonObject:
    try:
        value: Any = json.decode(line, _LIMITS)
    except JsonError as error:
        raise BadRequest(f"the request is not JSON: {error.message}") from error
    if not isinstance(value, dict) or not isinstance(value.get("verb"), str) or value["verb"] not in _TEXTS:
        raise BadRequest(f"a request names a verb: {', '.join(_TEXTS)}")
    members = {"verb", *_TEXTS[value["verb"]], *(("count",) if value["verb"] == "add" else ())}
    if unknown := sorted(value.keys() - members):
        raise BadRequest(f"{value['verb']} does not know {', '.join(unknown)}")
    if not all(isinstance(value.get(name, ""), str) for name in _TEXTS[value["verb"]]):
        raise BadRequest(f"{', '.join(_TEXTS[value['verb']])} are texts")
    if not isinstance(value.get("count", 1), int) or isinstance(value.get("count"), bool):
        raise BadRequest("count is a number")
    return value


def asking(connection: socket.socket) -> int:
    """The user at the other end, as the kernel says."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(raw)[1])


def ours(connection: socket.socket) -> bool:
    """Whether the other end belongs to the user of this process, or to root."""
    return asking(connection) in (os.geteuid(), 0)


@asynccontextmanager
async def control_socket(simulation: Simulation, noted: AuditHook = _unnoted) -> AsyncIterator[None]:
    """Listen for the time of the block; raises OSError."""
    listening = _bound(simulation.state)
    server = await asyncio.start_unix_server(
        ControlSocket(simulation, noted).connected, sock=listening, limit=MAX_REQUEST
    )
    try:
        yield
    finally:
        server.close()
        with suppress(FileNotFoundError):
            (simulation.state / FILE).unlink()


def _bound(state: Path) -> socket.socket:
    """The listening socket. The state directory is locked by now, so one that is there is left over from a crash."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            (state / FILE).unlink()
        # The mode of a socket comes from the umask at bind(2); a chmod afterwards would leave a moment for others.
        before = os.umask(0o177)
        try:
            with short_path(state) as path:
                listening.bind(path)
        finally:
            os.umask(before)
        listening.listen(TOGETHER)
    except OSError:
        listening.close()
        raise
    return listening
