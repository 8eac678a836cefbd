"""The log of a build, bounded: how it began, how it goes on, how far it is, and no credential in it.

    log = BuildLog(secrets)
    log.add(b"STEP 2/5: RUN make\n")
    log.text, log.progress            the whole of it, and "step 2 of 5: RUN make"

A build prints as much as it likes. The first part is kept, for it says what was asked for, and the last part, for it says what
went wrong; what was in between is counted. Nothing that a build can see is a credential (decision 88), but what transfers say
stands in the same log: whatever credentials they had are taken out, word by word, before anybody keeps the text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Final

HEAD: Final = 16 * 1024
TAIL: Final = 112 * 1024
SHORT: Final = 2048
MOST_LINE: Final = 160
REMOVED: Final = "[removed]"
_STEP: Final = re.compile(r"STEP (\d{1,4})/(\d{1,4}): ([^\n]*)")
_SHORTEST: Final = 4
"""What is shorter is no secret, and taking it out would tear words apart."""


class BuildLog:
    """What a build said so far."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = sorted({each for each in secrets if len(each) >= _SHORTEST}, key=len, reverse=True)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._progress = ""
        self.version = 0
        """Changes whenever the text does."""

    def add(self, content: bytes) -> None:
        """Take in what was printed."""
        if not content:
            return
        self.version += 1
        space = HEAD - len(self._head)
        self._head += content[:space]
        self._tail += content[space:] if space > 0 else content
        over = len(self._tail) - TAIL
        if over > 0:
            # Of what goes, and the rest of a line: looking through all of it for each line would be most of a build's cost.
            self._note_step(bytes(self._tail[: over + MOST_LINE]))
            self._left_out += over
            del self._tail[:over]

    def say(self, sentence: str) -> None:
        """Add a sentence of ours, which is how far the build is until it says itself."""
        self.add(f"{sentence}\n".encode())
        self._progress = sentence

    def replace(self, content: bytes) -> None:
        """Take what somebody else kept in the place of all that was taken in before."""
        if bytes(self._head + self._tail) == content and not self._left_out:
            return
        version = self.version
        self._head.clear()
        self._tail.clear()
        self._left_out = 0
        self.add(content)
        self.version = version + 1

    @property
    def text(self) -> str:
        """All that is kept, without credentials."""
        note = f"\n[… {self._left_out} bytes left out …]\n" if self._left_out else ""
        head, tail = (bytes(part).decode(errors="replace") for part in (self._head, self._tail))
        return self._without_secrets(
            f"{head}{note}{tail}" if note else (self._head + self._tail).decode(errors="replace")
        )

    def tail(self, most: int = SHORT) -> str:
        """The end of it, for a sentence about what went wrong."""
        return self.text.strip()[-most:]

    @property
    def progress(self) -> str:
        """The step that is under way, in a few words; empty before the first."""
        self._note_step(bytes(self._tail or self._head))
        return self._without_secrets(self._progress)

    def _note_step(self, content: bytes) -> None:
        if steps := _STEP.findall(content.decode(errors="replace")):
            number, total, words = steps[-1]
            self._progress = f"step {number} of {total}: {words.strip()}"[:MOST_LINE]

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REMOVED)
        return text


def forms_of(logins: Iterable[tuple[str, str] | None]) -> list[str]:
    """Everything by which a login could be read: the password, and what `Basic` makes of it."""
    forms = []
    for login in logins:
        if login is not None:
            user, password = login
            forms += [password, base64.b64encode(f"{user}:{password}".encode()).decode()]
    return forms
