"""An event loop whose time is made up: whenever everybody waits, it is at once as late as the first of them waits for.

A process can be stopped (`freeze`): whatever it was about to do waits, while time passes for everybody else.

Nothing sleeps and nothing runs in another thread, so a run is a function of its seed. A run in which everybody waits for
something that nobody will do is an error here, not a test that hangs.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from contextvars import Context, ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

START = datetime(2026, 1, 1, tzinfo=UTC)
OWNER: ContextVar[str] = ContextVar("owner", default="")
"""The process that runs, by name; machines and the world itself have none."""
MOST_TURNS = 20_000
T = TypeVar("T")


class Stuck(Exception):
    """Everybody waits for somebody else."""


class _Leaping(selectors.SelectSelector):
    """Nothing ever becomes readable but our own wake-up calls; waiting moves the time."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("everybody waits, and nothing is planned")
        self._turns = 0 if timeout > 0 else self._turns + 1
        if self._turns > MOST_TURNS:
            raise Stuck("somebody is busy for ever, and no time passes")
        self.elapsed += max(timeout, 0.0)
        return []


class _Numbered(asyncio.Task[T]):
    """A task whose place in a set does not depend on where in memory it is: groups cancel theirs in the same order always."""

    def __init__(self, number: int, work: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)
        self._stopped: dict[str, list[asyncio.Handle]] = {}
        numbers = itertools.count()
        self.set_task_factory(lambda loop, work, **options: _Numbered(next(numbers), work, loop=loop, **options))

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._leaping.elapsed

    def call_soon(  # type: ignore[override]  # the types of the arguments are the caller's business
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As ever; what belongs to a stopped process waits until it goes on."""
        owner = context.get(OWNER, "") if context is not None else OWNER.get()
        if owner and owner in self._stopped:
            handle = asyncio.Handle(callback, args, self, context)
            self._stopped[owner].append(handle)
            return handle
        return super().call_soon(callback, *args, context=context)

    def freeze(self, owner: str) -> None:
        """Stop a process, as SIGSTOP does: it notices nothing, and its clock goes on."""
        self._stopped.setdefault(owner, [])

    def thaw(self, owner: str) -> None:
        """Let it go on where it was."""
        self._ready.extend(handle for handle in self._stopped.pop(owner, ()) if not handle.cancelled())  # type: ignore[attr-defined]

    def run_in_executor(self, _executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Work that blocks is done here and now."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to whoever waits
            future.set_exception(error)
        return future


def virtual_loop() -> VirtualLoop:
    """The loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do something in virtual time, to its end."""
    gc.disable()  # a run is over before its garbage matters, and looking for it takes long
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(work)
    finally:
        gc.enable()


class LoopClock:
    """The clock of one process; `skew` is by how much it is wrong."""

    def __init__(self) -> None:
        self.skew = timedelta()

    def now(self) -> datetime:
        """What the process believes."""
        return START + timedelta(seconds=asyncio.get_running_loop().time()) + self.skew

    def monotonic(self) -> float:
        """Seconds; never wrong."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        # What is left of a wait after rounding is less than the loop can tell from nothing: time must pass all the same.
        await asyncio.sleep(max(seconds, 1e-6) if seconds > 0 else 0)


class Inline(Executor):
    """A thread that is none: work is done where it is handed in."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    def submit(self, work: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """Do it."""
        future: Future[T] = Future()
        try:
            future.set_result(work(*args, **named))
        except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to whoever waits
            future.set_exception(error)
        return future
