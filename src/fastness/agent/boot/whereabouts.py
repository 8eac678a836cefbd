"""Where the broker is: as the note or the config says, or where the enrolment door says that it went.

    where = Whereabouts(note.broker, note.server, trust, tell)
    where()                 # the address to ask at
    await where.look()      # nobody answered there: ask the enrolment door, and go on where it says

A machine that was off while the broker moved knows its old address alone. The enrolment door tells everybody where the doors are
(`GET /v1/doors`). Both addresses say where to knock and no more: whoever answers shows a certificate of the image's authority.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import httpx

from fastness.agent.boot.image_trust import ImageTrust
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kube.client.pool import HttpsClient, TooLong
from fastness.protocol.door import DoorRole, is_origin
from fastness.protocol.enrolment import DOORS

MAX_ANSWER: Final = 4096
SECONDS: Final = 10.0
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_ANSWER, max_depth=4)
NO_SERVER: Final = (
    "if the broker has moved, let the old address answer as well: this machine does not know its enrolment door"
)


class Whereabouts:
    """The address of one machine's broker."""

    def __init__(self, broker: str, server: str, trust: ImageTrust, tell: Callable[[str], None]) -> None:
        self._broker = broker
        self._server = server
        self._trust = trust
        self._tell = tell
        self._said = ""

    def __call__(self) -> str:
        """The address to ask at."""
        return self._broker

    async def look(self) -> None:
        """Ask the enrolment door where the broker is now; whatever goes wrong with that, the address stays."""
        # The note is the host's, and the image may be tied to one server.
        if not self._server or not self._trust.believes(self._server):
            self._say(NO_SERVER)
            return
        try:
            found = _broker(await self._ask())
        except (TimeoutError, OSError, httpx.HTTPError, httpx.InvalidURL, TooLong, JsonError):
            found = ""
        if not found:
            self._say(f"the enrolment door at {self._server} does not say where the broker is")
        elif found != self._broker:
            self._tell(f"the enrolment door says that the broker is at {found} now")
            self._broker = found

    async def _ask(self) -> bytes:
        client = HttpsClient(self._server, self._trust.tls, SECONDS, DoorRole.ENROLMENT)
        try:
            answer = await client.ask("GET", DOORS, {}, b"", lambda _: MAX_ANSWER)
        finally:
            await client.close()
        return answer.body if answer.status == 200 else b"{}"

    def _say(self, words: str) -> None:
        """Once for each news, as the wait itself is told."""
        if words != self._said:
            self._tell(words)
            self._said = words


def _broker(body: bytes) -> str:
    """The broker's address in an answer; empty for none that can be used. Raises JsonError."""
    value: Any = json.decode(body, _LIMITS)
    doors = value.get("doors") if isinstance(value, dict) else None
    found = doors.get("broker") if isinstance(doors, dict) else None
    return found if isinstance(found, str) and is_origin(found) else ""
