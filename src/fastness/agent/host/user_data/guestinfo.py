"""User-data of VMware: variables that the host sets on a machine, asked through the back door by `vmware-rpctool`.

Machine controllers write base64 and say so beside it; a compressed value is refused, because none of them writes one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import Final

from fastness.agent.host.errors import BadUserData, CommandFailed, UserDataFailure
from fastness.agent.host.process import Run, run
from fastness.agent.host.user_data.files import bounded
from fastness.protocol.user_data import MAX_BYTES

DATA: Final = "guestinfo.ignition.config.data"
ENCODING: Final = f"{DATA}.encoding"
SECONDS: Final = 10.0
BASE64: Final = ("base64", "b64")
_ABSENT: Final = "No value found"


@dataclass(frozen=True, slots=True)
class GuestInfo:
    """The variables of this machine."""

    name: str = "guestinfo"
    run: Run = lambda command: run(command, seconds=SECONDS)

    async def read(self) -> bytes | None:
        """What the host set; raises UserDataFailure."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes | None:
        value, encoding = self._variable(DATA), self._variable(ENCODING)
        if not value:
            return None
        # An encoding that is skipped would make a ticket out of whatever the bytes happen to be.
        if encoding not in ("", *BASE64):
            raise BadUserData(f"{ENCODING} is neither base64 nor empty")
        try:
            data = base64.b64decode(value, validate=True) if encoding else value.encode()
        except binascii.Error as error:
            raise BadUserData(f"{DATA} is not base64") from error
        return bounded(data, DATA)

    def _variable(self, name: str) -> str:
        try:
            value = self.run(["vmware-rpctool", f"info-get {name}"])
        except CommandFailed as error:
            if _ABSENT in error.message:
                return ""
            raise UserDataFailure(f"{name} cannot be asked for: {error.message}") from error
        if len(value) > 2 * MAX_BYTES:
            raise BadUserData(f"{name} has more than {2 * MAX_BYTES} characters")
        return value.strip()
