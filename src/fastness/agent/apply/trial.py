"""A system that was booted once: kept when the machine has proved itself with it, left when it cannot.

    ended()    keeps what runs when its kubelet runs and the machine proved itself, or says why it must not be kept
    watch()    goes back when nothing was decided in time: a machine that never hears from its cluster is not healthy

Going back is a reboot and nothing else: the boot loader takes the system before by itself, also after a power cut, a panic or a
boot that hangs until somebody presses the button. What was refused is left where the next boot finds it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from fastness.agent.apply.ports import Host
from fastness.agent.errors import AgentError, KubeletDown
from fastness.agent.host.errors import DriverError
from fastness.agent.host.states import ABSENT, File
from fastness.kube.errors import ApiError
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import uninterrupted

WINDOW: Final = 900.0
"""Seconds: a node comes up within minutes, and doors that are away for longer leave it on a system that is known to work."""
KUBELET: Final = "kubelet.service"
REFUSED: Final = "/trial-refused"
_MAX_REASON: Final = 2000
_log = logger("agent")


class Trial:
    """The trial of one boot."""

    def __init__(
        self, host: Host, prove: Callable[[], Awaitable[None]] | None, clock: Clock, window: float = WINDOW
    ) -> None:
        self._host = host
        self._prove = prove
        self._clock = clock
        self._window = window
        self._since = clock.monotonic()
        self._over = False

    async def ended(self) -> str:
        """Keep what runs, or say why it must not be kept; raises ApiError while nobody can judge, KubeletDown, DriverError."""
        if self._over or not await uninterrupted(self._host.system.on_trial):
            self._over = True
            return ""
        try:
            await uninterrupted(lambda: require_kubelet(self._host, "the system that is on trial"))
            if self._prove is not None:
                await self._prove()
        except (ApiError, KubeletDown) as error:
            if self._clock.monotonic() - self._since < self._window:
                raise
            return await self._left(f"it was not kept within {self._window:.0f} seconds: {error}")
        except (AgentError, DriverError) as error:
            return await self._left(f"this machine cannot prove itself with it: {error.message}")
        await uninterrupted(self._host.system.booted_well)
        self._over = True
        return ""

    async def watch(self) -> None:
        """Wait for the end of the trial, and go back where what runs was not kept until then."""
        await self._clock.sleep(self._window)
        try:
            if not self._over and await uninterrupted(self._host.system.on_trial):
                reason = await self._left(f"it was not kept within {self._window:.0f} seconds")
                await uninterrupted(lambda: self._host.power.reboot(f"back to the system before: {reason}"))
        except DriverError as error:
            _log.warning("agent.trial", code=error.code, error=error.message)

    async def _left(self, reason: str) -> str:
        text = reason[:_MAX_REASON]
        try:
            await uninterrupted(lambda: self._host.state.put(REFUSED, File(text.encode())))
        except DriverError as error:
            _log.warning("agent.trial", code=error.code, error=error.message)
        return text


def require_kubelet(host: Host, what: str) -> None:
    """Raise KubeletDown unless the kubelet runs with what the machine came to; where it is not enabled nobody waits for it."""
    if host.units.is_enabled(KUBELET) == "enabled" and not host.units.is_running(KUBELET):
        raise KubeletDown(f"{KUBELET} does not run with {what}")


def why_left(host: Host) -> str:
    """Why the boot before was left, told once; empty where nobody said; raises DriverError."""
    state = host.state.look(REFUSED)
    if not isinstance(state, File):
        return ""
    host.state.put(REFUSED, ABSENT)
    return state.content[:_MAX_REASON].decode(errors="replace")
