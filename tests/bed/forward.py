"""The door into a bed: listens on loopback outside its network namespace and dials the same port inside.

    python forward.py /proc/PID/ns/net PORT [PORT ...]       # "ready" on standard output when all of them listen

A socket stays in the namespace where it was made. So the listeners are bound first, then the process enters the bed's namespace,
and what it dials from then on is inside. The ports are equal on both sides: a kubeconfig that names 127.0.0.1 is right on either.
It is run as a file, on the standard library alone, because it starts with every bed.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from contextlib import suppress
from functools import partial

CLONE_NEWNET = 0x40000000
CHUNK = 64 * 1024


def enter_network(path: str) -> None:
    """Move this process into a network namespace; raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(handle, CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(handle)


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Carry bytes one way until they end; the other way may go on."""
    with suppress(OSError):
        while chunk := await source.read(CHUNK):
            sink.write(chunk)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()


async def carry(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection, from its beginning to the end of both directions."""
    try:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.close()  # nobody listens inside yet: the caller sees a closed connection and tries again
        return
    try:
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))
    finally:
        inner_writer.close()
        writer.close()


async def serve(listeners: list[socket.socket]) -> None:
    """Carry what comes to the listeners, for ever."""
    for listener in listeners:
        port = listener.getsockname()[1]
        await asyncio.start_server(partial(carry, port), sock=listener)
    print("ready", flush=True)
    await asyncio.Event().wait()


def main(namespace: str, ports: list[int]) -> None:
    """Bind outside, enter, serve."""
    listeners = [socket.create_server(("127.0.0.1", port)) for port in ports]
    enter_network(namespace)
    asyncio.run(serve(listeners))


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
