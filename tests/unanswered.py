"""An address where nobody answers, for as long as somebody holds it.

A port that was free a moment ago is given to the next program that asks for one, and five lanes of tests ask all the time. So it
is not let go of: a socket has it that never listens, and whoever connects is refused.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unanswered_port() -> Iterator[int]:
    """A port of 127.0.0.1 that refuses every connection until the block ends."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield int(silent.getsockname()[1])
