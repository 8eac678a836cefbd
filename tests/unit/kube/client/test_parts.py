"""The small parts of the adapter: lines, retries, tokens, back-off."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.secret import SecretText
from fastness.kube.client.retry import LONGEST, Safety, pause_after
from fastness.kube.client.tokens import FRESH_SECONDS, Token
from fastness.kube.client.watching import Lines
from fastness.kube.errors import TooLarge
from fastness.runtime.retries import Backoff, retry_after
from tests.unit.kube.virtual import VirtualClock


@given(st.lists(st.binary(min_size=1, max_size=20).filter(lambda line: b"\n" not in line and line.strip())), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    splitter, received = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        received += splitter.feed(stream[start:end])
    assert received == lines
    assert not splitter.partial


def test_a_line_without_an_end_is_held_back() -> None:
    splitter = Lines()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.partial
    assert splitter.feed(b"o\n") == [b"two"]


def test_a_line_beyond_the_limit_is_refused_before_it_is_complete() -> None:
    splitter = Lines(limit=10)
    splitter.feed(b"x" * 10)
    with pytest.raises(TooLarge):
        splitter.feed(b"x")


@pytest.mark.parametrize(
    ("code", "retry_after", "safety", "again"),
    [
        (429, 1, Safety.READ, True), (429, 1, Safety.REPEATABLE, True), (429, 1, Safety.ONCE, True),
        (429, 1, Safety.ANSWER, False), (429, None, Safety.ONCE, False), (429, LONGEST + 1, Safety.READ, False),
        (503, None, Safety.READ, True), (503, 1, Safety.REPEATABLE, True), (503, None, Safety.REPEATABLE, False),
        (503, 1, Safety.ONCE, False), (502, None, Safety.READ, True), (504, 1, Safety.READ, False),
        (504, 1, Safety.ONCE, False), (500, 1, Safety.READ, False), (404, None, Safety.READ, False),
        (409, 1, Safety.REPEATABLE, False),
    ],
)  # fmt: skip
def test_only_what_is_safe_is_asked_again(code: int, retry_after: float | None, safety: Safety, again: bool) -> None:
    assert (pause_after(code, retry_after, safety, 0.1) is not None) is again


def test_the_server_s_wish_and_the_back_off_both_count() -> None:
    assert pause_after(429, 3, Safety.READ, 0.5) == 3
    assert pause_after(429, 1, Safety.READ, 2.5) == 2.5


@pytest.mark.parametrize(
    ("header", "expected"),
    [("7", 7.0), (None, None), ("soon", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("9" * 30, None)],
)
def test_retry_after_is_seconds_or_nothing(header: str | None, expected: float | None) -> None:
    assert retry_after(header) == expected


@given(st.integers(0, 100), st.floats(0, 1, exclude_max=True))
def test_back_off_grows_to_its_cap_and_never_to_nothing(attempt: int, fraction: float) -> None:
    backoff = Backoff(first=0.2, most=30.0)
    delay = backoff.delay(attempt, fraction)
    assert 0.1 <= delay <= 30.0
    assert delay <= backoff.delay(attempt + 1, fraction)


class TokenFile:
    """A file that somebody renews."""

    def __init__(self, content: bytes) -> None:
        self.content: bytes | None = content
        self.reads = 0

    def read(self, path: Path) -> bytes:
        """What is in it now."""
        self.reads += 1
        if self.content is None:
            raise FileNotFoundError(2, "gone")
        return self.content


def test_a_fixed_token_never_changes() -> None:
    token = Token(SecretText("fixed"), None, VirtualClock(), Path.read_bytes)
    assert token.current().reveal() == "fixed"
    assert not token.renewed()


def test_a_token_file_is_read_again_after_a_minute_and_not_before() -> None:
    clock, file = VirtualClock(), TokenFile(b"one\n")
    token = Token(SecretText(""), Path("/token"), clock, file.read)
    assert token.current().reveal() == "one"
    file.content = b"two\n"
    clock.seconds += FRESH_SECONDS - 1
    assert token.current().reveal() == "one"
    clock.seconds += 1
    assert token.current().reveal() == "two"
    assert file.reads == 2


def test_a_refusal_reads_the_file_at_once_and_says_whether_that_helps() -> None:
    file = TokenFile(b"one")
    token = Token(SecretText(""), Path("/token"), VirtualClock(), file.read)
    token.current()
    assert not token.renewed()
    file.content = b"two"
    assert token.renewed()
    assert token.current().reveal() == "two"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_a_file_that_went_bad_leaves_the_last_token_in_use(content: bytes | None) -> None:
    clock, file = VirtualClock(), TokenFile(b"one")
    token = Token(SecretText(""), Path("/token"), clock, file.read)
    token.current()
    file.content = content
    clock.seconds += FRESH_SECONDS
    assert token.current().reveal() == "one"
