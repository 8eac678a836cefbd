"""The server name in a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3), before anybody answers it.

    server_name(data)  →  the name | "" for none, or for what is no ClientHello | None while more bytes must come

Only the first record is looked at: a ClientHello that is spread over several has no name for us. TLS itself reads everything
again and decides what is wrong with it, so whatever cannot be understood here is simply no name.
"""

from __future__ import annotations

from typing import Final

_HANDSHAKE, _CLIENT_HELLO = 0x16, 0x01
_SERVER_NAME: Final = 0
_HOST_NAME: Final = 0
_HEADER: Final = 5
MAX_RECORD: Final = 16 * 1024
"""The most that a record holds (RFC 8446 §5.1); with its header, the most that anybody has to read."""


class _Short(Exception):
    """The bytes end in the middle of something."""


class _Bytes:
    """Bytes that are read in order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise _Short
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def vector(self, width: int) -> bytes:
        return self.take(self.number(width))

    @property
    def more(self) -> bool:
        return self._at < len(self._data)


def server_name(data: bytes) -> str | None:
    """The name that a client asks for, in lower case; see the module."""
    if data[:1] not in (b"", bytes([_HANDSHAKE])):
        return ""
    if len(data) < _HEADER:
        return None
    length = int.from_bytes(data[3:_HEADER], "big")
    if length > MAX_RECORD:
        return ""
    if len(data) < _HEADER + length:
        return None
    try:
        return _named(_Bytes(data[_HEADER : _HEADER + length]))
    except _Short:
        return ""


def _named(record: _Bytes) -> str:
    if record.number(1) != _CLIENT_HELLO:
        return ""
    hello = _Bytes(record.vector(3))
    hello.take(2 + 32)  # version and random
    for width in (1, 2, 1):  # session, cipher suites, compression
        hello.vector(width)
    extensions = _Bytes(hello.vector(2)) if hello.more else _Bytes(b"")
    while extensions.more:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            return _host(_Bytes(_Bytes(content).vector(2)))
    return ""


def _host(names: _Bytes) -> str:
    while names.more:
        kind, name = names.number(1), names.vector(2)
        if kind == _HOST_NAME:
            return name.decode("ascii").lower() if name.isascii() else ""
    return ""
