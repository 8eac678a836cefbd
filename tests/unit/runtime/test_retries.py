"""The loop that tries again; the header and the delays are tested with the Kubernetes client."""

from __future__ import annotations

import pytest

from fastness.runtime.retries import retry


class HandClock:
    """Writes down how long it was asked to wait."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def test_a_call_is_repeated_after_the_pauses_that_its_errors_ask_for() -> None:
    clock, errors = HandClock(), [KeyError(3.0), KeyError(0.0)]

    async def call() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    assert await retry(call, KeyError, lambda error: float(error.args[0]), clock) == "done"  # type: ignore[arg-type]
    assert clock.slept == [3.0], "a pause of nothing is none"


async def test_what_the_pause_raises_is_final_and_other_errors_are_not_asked_about() -> None:
    async def call() -> str:
        raise KeyError("first")

    def final(error: KeyError) -> float:
        raise ValueError("enough") from error

    with pytest.raises(ValueError, match="enough"):
        await retry(call, KeyError, final, HandClock())  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="first"):
        await retry(call, OSError, lambda _: 0.0, HandClock())  # type: ignore[arg-type]
