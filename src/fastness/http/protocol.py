"""uvicorn's protocol, with the peer's certificate and bounds on what a stranger may take.

uvicorn gives neither the certificate of a peer nor limits before the application is asked. Added here, and nothing else:

* the certificate that the peer showed is in the scope under `fastness.peer` (DER);
* a body that is complete when it is first asked for is under `fastness.arrived`, without a timer;
* head and body of an answer leave in one write (see `Whole`);
* a head above the bound is 431; a connection without a complete head in time is cut;
* a connection that holds a place in reserve (`arrivals.py`) is answered once. Whoever finds out who is at its other end says so
  through `fastness.known` in the scope;
* a body that the application did not wait for (it has answered already) is thrown away up to a bound, then the connection ends: a
  client that sends 100 MB after a 413 does not get to send them, and a small one keeps its connection;
* a client that does not take what is written to it is cut after a while without progress. What is buffered for it is at most
  one answer, or one batch of a watch: the next is not made before the last was taken;
* at shutdown a stream, or a request whose body never comes, ends at once instead of being waited for.
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from functools import partial
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fastness.http.arrivals import Arrival
from fastness.http.bounds import Bounds

_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Whole:
    """The transport of one answer, which keeps its head back until the body comes.

    uvicorn writes head and body one by one: two records of TLS, two packets and two wake-ups of the client.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""

    def write(self, data: bytes) -> None:
        """Keep the first write, send the second with it and all others at once."""
        if self._head is None or data == _CONTINUE:
            self._transport.write(data)
        elif not self._head:
            self._head = data
        else:
            head, self._head = self._head, None
            self._transport.write(head + data)

    def close(self) -> None:
        """Send what was kept, then close."""
        if self._head:
            self._transport.write(self._head)
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self._transport.is_closing()


def _arrived(cycle: RequestResponseCycle) -> bytes | None:
    """The body of a request, when all of it is here."""
    return None if cycle.more_body or cycle.disconnected else bytes(cycle.body)


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, bounds: Bounds, arrival: Arrival, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._bounds = bounds
        self._arrival = arrival
        self._peer: bytes | None = None
        self._head_bytes = 0
        self._discarded = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arrival.finished()
        secure = transport.get_extra_info("ssl_object")
        # From TLS itself: a header that names a certificate could be written by whoever connects.
        self._peer = secure.getpeercert(binary_form=True) if secure is not None else None
        self._expect(self._bounds.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._arrival.gone()
        self._stop_expecting()
        self._stop_watching_progress()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._discarded = 0
        if self._deadline is None:
            self._expect(self._bounds.head_seconds)
        self.scope["fastness.peer"] = self._peer  # type: ignore[typeddict-unknown-key]
        self.scope["fastness.known"] = self._arrival.recognised  # type: ignore[typeddict-unknown-key]

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_expecting()
        if not self.transport.is_closing():
            super().on_headers_complete()
            if self._arrival.brief:
                self.cycle.keep_alive = False
            if self.scope["method"] != "HEAD":  # whose head is all there is
                self.cycle.transport = Whole(self.transport)  # type: ignore[assignment]
            self.scope["fastness.arrived"] = partial(_arrived, self.cycle)  # type: ignore[typeddict-unknown-key]

    def on_body(self, body: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > self._bounds.discard_bytes and not self.flow.read_paused:
                # Not at once: a reset that overtakes the answer would take it away from a client that is still writing.
                self.flow.pause_reading()
                self._expect(self._bounds.linger_seconds)
            return
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle.response_complete:
            self.cycle.more_body = False
            self._stop_expecting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            self._expect(self._bounds.discard_seconds)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_progress(self._unread())

    def resume_writing(self) -> None:
        self._stop_watching_progress()
        super().resume_writing()

    def shutdown(self) -> None:
        super().shutdown()
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever uvicorn declares
        if cycle is None or cycle.response_complete or not (cycle.more_body or cycle.response_started):
            return
        if cycle.chunked_encoding and not self.transport.is_closing():
            # So that a watch ends as a whole answer, and not as a break that the client takes for a failure.
            self.transport.write(_LAST_CHUNK)
        cycle.disconnected = True
        cycle.message_event.set()
        self.flow.resume_writing()
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._bounds.head_bytes and not self.transport.is_closing():
            # Answered and not only cut: a client with a cookie that grew too long must learn why it gets nothing.
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def _expect(self, seconds: float) -> None:
        """Cut the connection unless something ends the wait."""
        self._stop_expecting()
        # Abort and not close: close would wait until a client that reads nothing has taken what is buffered.
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _watch_progress(self, waiting: int) -> None:
        self._stop_watching_progress()
        self._stalled = self.loop.call_later(self._bounds.stalled_seconds, self._check_progress, waiting)

    def _check_progress(self, before: int) -> None:
        waiting = self._unread()
        # By progress and not by time alone: a slow client that moves is served, one that never reads holds nothing for long.
        if waiting >= before:
            self.transport.abort()
        else:
            self._watch_progress(waiting)

    def _unread(self) -> int:
        """How many bytes the client has not taken yet, with those that the kernel holds for it.

        The kernel takes megabytes at once and asks for more when a third of them is gone: without its share a slow client
        that moves looks as if it stood still.
        """
        held = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return self.transport.get_write_buffer_size() + int.from_bytes(held, sys.byteorder)

    def _stop_watching_progress(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
