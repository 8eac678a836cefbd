"""What the MachineConfigNode says about pinned images: two conditions, and a line for each set.

They are applied in a name of their own, beside the steps of updates: each writer owns what it says, and takes nothing back
that the other said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fastness.agent.apply.pins import plan
from fastness.agent.apply.pins.plan import PinSet
from fastness.agent.apply.progress import FALSE, MAX_MESSAGE, PINS, TRUE, differs
from fastness.agent.apply.report import Persistent
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.objects import with_condition
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

_STATUS: Final = WriteOptions(manager="fastness-agent-pins", force=True, subresource="status")
_log = logger("agent")
Entries = Callable[[Sequence[JsonObject]], list[JsonObject]]


class PinReports:
    """Tells about the pinned images of one node."""

    def __init__(self, cluster: Cluster, node: str, clock: Clock) -> None:
        self._cluster = cluster
        self._node = node
        self._clock = clock
        self._persistent = Persistent(clock)

    async def begun(self, sets: Sequence[PinSet]) -> None:
        """Images are being pulled."""
        what = f"pulling the images of {', '.join(each.name for each in sets)}"
        await self._tell((TRUE, names.IMAGE_PREFETCH, what), None, lambda before: plan.begun(before, sets))

    async def done(self, sets: Sequence[PinSet]) -> None:
        """All images are there and pinned."""
        fine = (FALSE, names.AS_EXPECTED, "every image is pulled and pinned" if sets else "no images are pinned")
        await self._tell(fine, fine, lambda before: plan.reported(before, sets, "", frozenset()))

    async def failed(self, sets: Sequence[PinSet], why: str, absent: frozenset[str]) -> None:
        """Images are not there, or not pinned."""
        idle = (FALSE, names.PREFETCH_FAILED, "waiting before the next attempt")
        degraded = (TRUE, names.PREFETCH_FAILED, why)
        await self._tell(idle, degraded, lambda before: plan.reported(before, sets, why, absent))

    async def _tell(
        self, progressing: tuple[str, str, str], degraded: tuple[str, str, str] | None, entries: Entries
    ) -> None:
        try:
            await self._persistent.ask(lambda: self._apply(progressing, degraded, entries))
        except NotFound:
            return  # the control plane makes it; until then nobody asks
        except ApiError as error:
            _log.warning("agent.interrupted", node=self._node, reason=error.reason, error=error)

    async def _apply(
        self, progressing: tuple[str, str, str], degraded: tuple[str, str, str] | None, entries: Entries
    ) -> JsonObject:
        present = await self._cluster.get(MACHINE_CONFIG_NODE.resource, self._node)
        status = present.get("status") or {}
        before = [entry for entry in status.get("conditions") or () if entry.get("type") in PINS]
        sets = status.get("pinnedImageSets") or []
        conditions = before
        for kind, statement in zip(PINS, (progressing, degraded), strict=True):
            if statement is not None:
                state, reason, message = statement
                conditions = with_condition(
                    conditions, kind=kind, status=state, reason=reason, message=message[:MAX_MESSAGE],
                    now=self._clock.now(),
                )  # fmt: skip
        after = entries(sets)
        if after == sets and not differs(before, conditions):
            return present
        again = plan.restarted(sets, after)
        if again:
            await self._write(conditions, [entry for entry in after if entry["name"] not in again])
        return await self._write(conditions, after)

    async def _write(self, conditions: Sequence[JsonObject], sets: Sequence[JsonObject]) -> JsonObject:
        applied = {
            "apiVersion": MACHINE_CONFIG_NODE.api_version, "kind": MACHINE_CONFIG_NODE.kind,
            "metadata": {"name": self._node}, "status": {"conditions": conditions, "pinnedImageSets": sets},
        }  # fmt: skip
        return await self._cluster.patch(
            MACHINE_CONFIG_NODE.resource, self._node, applied, PatchType.APPLY, options=_STATUS
        )
