"""A small mutation fuzzer for parsers that must be total.

A `Target` is a parser, a corpus of inputs that mean something to it, and a dictionary of tokens. `run` mutates corpus entries
with a fixed seed, so a failure repeats, and checks three things of every input:

- only `FormatError` comes out, with a code and a hint;
- the work stays in proportion: Python calls are counted, never seconds, so a loaded machine cannot fail the test;
- the corpus itself is accepted, so the search starts from inputs that reach deep code.

The normal suite runs a short search; `FASTNESS_SOAK=1` runs a long one.
"""

import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from fastness.formats.errors import FormatError

SHORT_RUN: Final = 8_000
LONG_RUN: Final = 300_000
MAX_INPUT: Final = 4_096


@dataclass(frozen=True, slots=True)
class Target:
    """One parser under fuzz."""

    name: str
    parse: Callable[[bytes], object]
    corpus: tuple[bytes, ...]
    tokens: tuple[bytes, ...]
    calls_per_byte: int = 60
    base_calls: int = 3_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run went: how many inputs were accepted, and the codes of those that were refused."""

    accepted: int
    refused: dict[str, int]


def run(target: Target, seed: int = 20260, iterations: int | None = None) -> Outcome:
    """Fuzz one target; raises on the first input that breaks a promise, with that input in the message."""
    if iterations is None:
        iterations = LONG_RUN if os.environ.get("FASTNESS_SOAK") else SHORT_RUN
    for entry in target.corpus:
        target.parse(entry)
    generator = random.Random(seed)
    accepted, refused = 0, dict[str, int]()
    for _ in range(iterations):
        data = _mutate(generator, target)
        error = _check(target, data)
        if error is None:
            accepted += 1
        else:
            refused[error.code] = refused.get(error.code, 0) + 1
    return Outcome(accepted, refused)


def _check(target: Target, data: bytes) -> FormatError | None:
    calls, error = _counted(target.parse, data)
    if error is not None and not isinstance(error, FormatError):
        raise AssertionError(f"{target.name}: {type(error).__name__} escaped for {data!r}") from error
    if calls > target.base_calls + target.calls_per_byte * len(data):
        raise AssertionError(f"{target.name}: {calls} calls for {len(data)} bytes: {data!r}")
    if error is not None and not (error.code and error.hint and error.message):
        raise AssertionError(f"{target.name}: {error!r} lacks a code, message or hint for {data!r}")
    return error


def _counted(parse: Callable[[bytes], object], data: bytes) -> tuple[int, BaseException | None]:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse(data)
    except Exception as error:  # noqa: BLE001 - whatever escapes is the finding
        return calls, error
    finally:
        sys.setprofile(before)
    return calls, None


def _mutate(generator: random.Random, target: Target) -> bytes:
    data = bytearray(generator.choice(target.corpus))
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        generator.choice(_MUTATIONS)(generator, data, target)
    return bytes(data[:MAX_INPUT])


def _place(generator: random.Random, data: bytearray) -> int:
    return generator.randrange(len(data) + 1)


def _flip_bit(generator: random.Random, data: bytearray, _: Target) -> None:
    if data:
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)


def _set_byte(generator: random.Random, data: bytearray, _: Target) -> None:
    if data:
        data[generator.randrange(len(data))] = generator.choice(
            (0, 1, 0x20, 0x7F, 0x80, 0xFF, generator.randrange(256))
        )


def _cut(generator: random.Random, data: bytearray, _: Target) -> None:
    start = _place(generator, data)
    del data[start : start + generator.choice((1, 2, 8, len(data)))]


def _insert_token(generator: random.Random, data: bytearray, target: Target) -> None:
    start = _place(generator, data)
    data[start:start] = generator.choice(target.tokens) * generator.choice((1, 1, 2, 50))


def _repeat_slice(generator: random.Random, data: bytearray, _: Target) -> None:
    start = _place(generator, data)
    piece = data[start : start + generator.choice((1, 4, 32))]
    data[start:start] = piece * generator.choice((1, 2, 40))


def _splice(generator: random.Random, data: bytearray, target: Target) -> None:
    other = generator.choice(target.corpus)
    data[_place(generator, data) :] = other[generator.randrange(len(other) + 1) :]


_MUTATIONS: Final = (_flip_bit, _set_byte, _cut, _insert_token, _repeat_slice, _splice)
