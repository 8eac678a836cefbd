"""What stands in front of replicas: it passes bytes on to the first that accepts, and knows nothing of what they mean."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence

SECONDS = 30.0


class Balancer:
    """One port for several; `meet` is called once, in the middle of the next conversation, when an answer is due."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.backends = list(ports)
        self.meet: Callable[[], None] | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where machines knock."""
        return f"https://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Accept nobody any more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            server = self._connected()
            if server is None:
                return
            with server:
                back = threading.Thread(target=_pass, args=(server, client), daemon=True)
                back.start()
                # The second message of a client ends the handshake, and what it came for is in it or follows at once.
                _pass(client, server, self._met)
                back.join(SECONDS)

    def _connected(self) -> socket.socket | None:
        for port in self.backends:
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), SECONDS)
        return None

    def _met(self, messages: int) -> None:
        meet = self.meet
        if meet is not None and messages >= 2:
            self.meet = None
            meet()


def _pass(source: socket.socket, target: socket.socket, each: Callable[[int], None] | None = None) -> None:
    """Bytes from one to the other until one ends; `each` is told how many pieces there were."""
    count = 0
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            count += 1
            if each is not None:
                each(count)
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
