"""A port that passes from one listening socket to the next, both of a library that gives neither away.

Sockets with SO_REUSEPORT on one port are a group. The kernel keeps them in the order in which they began to listen, and puts the
last into the place of one that ends. A filter of the group (classic BPF) says which of them gets a new connection; without one,
or where its answer is no place, the kernel picks any.

Our filter is one instruction and never changes: **the second**. While two listen that is the newer one; when the older one ends
the newer is alone, and gets everything. So nobody has to know the sockets, but there may never be more than two.

Only a socket of the group can give it a filter. Ours begins the group, brings the filter, and goes as soon as the first of the
library listens. Until then it drops what comes: whoever connects that early is heard when its kernel tries again, in a second.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from fastness.http.listener import bind_to

_SO_ATTACH_REUSEPORT_CBPF: Final = 51
_SO_ATTACH_FILTER: Final = 26
_BPF_RETURN_CONSTANT: Final = 0x06
_SECOND: Final = 1
_NOTHING: Final = 0
_LISTENING: Final = "0A"


class SharedPort:
    """One port for listening sockets of which a newer one takes the place of an older one."""

    def __init__(self, host: str, port: int) -> None:
        """Take the port; raises OSError when somebody listens on it."""
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._first = socket.socket(self._family, socket.SOCK_STREAM)
        self._first.setblocking(False)  # so that no `sweep` means it, be it that of a listener which ended here before
        try:
            # A restart must not wait for the TIME_WAIT of connections of before.
            self._first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bind_to(self._first, host, port)
            # Not before: the kernel would let a second process of the same user in beside the first.
            self._first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        except OSError:
            self._first.close()
            raise
        name = self._first.getsockname()
        self.host, self.port = str(name[0]), int(name[1])

    def begin(self) -> None:
        """Begin the group with its filter, before the first socket of the library.

        Where the filter is refused the kernel picks any of two sockets, and the last connections of the older one are cut.
        """
        with suppress(OSError):
            _attach(self._first, _SO_ATTACH_REUSEPORT_CBPF, _SECOND)
            _attach(self._first, _SO_ATTACH_FILTER, _NOTHING)
            self._first.listen(1)

    def hand_over(self) -> None:
        """Leave the port to the sockets of the library."""
        self._first.close()

    def listeners(self) -> int:
        """How many sockets listen here."""
        words = struct.unpack(
            "=4I" if self._family == socket.AF_INET6 else "=I", socket.inet_pton(self._family, self.host)
        )
        address = "".join(f"{word:08X}" for word in words) + f":{self.port:04X}"
        count = 0
        with Path("/proc/net/tcp6" if self._family == socket.AF_INET6 else "/proc/net/tcp").open(
            encoding="ascii"
        ) as table:
            next(table)  # the names of its columns
            for line in table:
                _, local, _, state, *_ = line.split()
                if state != _LISTENING:  # they come first, before any number of connections
                    break
                count += local == address
        return count

    def sweep(self) -> None:
        """Close sockets that are bound here, do not listen and have no peer.

        Before granian listens it binds one to see whether it may, and forgets it: a descriptor for each renewal, and a port
        that is not free at the end. Sockets that it uses do not block, so none of them can be meant.
        """
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):  # no socket, or closed meanwhile
                if self._is_forgotten(descriptor):
                    os.close(descriptor)

    def _is_forgotten(self, descriptor: int) -> bool:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_NONBLOCK:
            return False
        candidate = socket.socket(fileno=descriptor)
        try:
            return (
                (candidate.family, candidate.type) == (self._family, socket.SOCK_STREAM)
                and candidate.getsockname()[:2] == (self.host, self.port)
                and not candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                and not _has_peer(candidate)
            )
        finally:
            candidate.detach()


def _has_peer(connection: socket.socket) -> bool:
    try:
        connection.getpeername()
    except OSError as error:
        return error.errno != errno.ENOTCONN
    return True


def _attach(listening: socket.socket, option: int, answer: int) -> None:
    """Attach a filter that always gives the same answer; raises OSError."""
    program = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RETURN_CONSTANT, 0, 0, answer))
    listening.setsockopt(socket.SOL_SOCKET, option, struct.pack("HxxxxxxP", 1, ctypes.addressof(program)))
