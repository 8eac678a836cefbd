"""Tell the service manager that this process is ready (`Type=notify`); silent where nobody asked to be told."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

VARIABLE: Final = "NOTIFY_SOCKET"


def tell_ready(environment: Mapping[str, str], status: str = "") -> bool:
    """Send READY to the socket that the environment names; whether somebody was there."""
    address = environment.get(VARIABLE, "")
    if not address.startswith(("/", "@")):
        return False
    target = f"\0{address[1:]}" if address.startswith("@") else address
    message = "READY=1" + (f"\nSTATUS={status}" if status else "")
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(message.encode(), target)
        return True
    return False
