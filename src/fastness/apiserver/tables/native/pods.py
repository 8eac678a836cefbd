"""How a pod prints: its status is a judgement over all its containers.

The order of judgement: the phase or the reason that the pod itself gives; then the first init container that is not done;
then, from the last container to the first, whatever waits or has ended; then deletion, which overrides all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.ages import human_duration, parse_time
from fastness.apiserver.tables.native.reading import (
    NONE,
    Cells,
    Obj,
    age_of,
    count,
    entries,
    is_true,
    name_of,
    part,
    text,
)

TERMINAL: Final = ("Failed", "Succeeded")


@dataclass
class Judgement:
    """What is known of a pod while its containers are looked at."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None
    initializing: bool = False

    def count_restarts(self, status: Obj) -> None:
        """Add the restarts of one container and keep the latest end."""
        self.restarts += count(status, "restartCount")
        ended = parse_time(part(status, "lastState", "terminated").get("finishedAt"))
        if ended is not None and (self.last_restart is None or ended > self.last_restart):
            self.last_restart = ended


def pod(obj: Obj, now: datetime) -> list[Any]:
    """The cells of a pod."""
    spec, status = part(obj, "spec"), part(obj, "status")
    sidecars = {text(container, "name") for container in entries(spec, "initContainers") if _restarts_always(container)}
    judgement = judge(spec, status, sidecars)
    reason = _deleted(obj, judgement.reason)
    total = len(entries(spec, "containers")) + len(sidecars)
    restarts = str(judgement.restarts)
    if judgement.restarts and judgement.last_restart is not None:
        restarts = f"{restarts} ({human_duration(now - judgement.last_restart)} ago)"
    ips = entries(status, "podIPs")
    return [
        name_of(obj),
        f"{judgement.ready}/{total}",
        reason,
        restarts,
        age_of(obj, now),
        text(ips[0], "ip", default=NONE) if ips else NONE,
        text(spec, "nodeName", default=NONE),
        text(status, "nominatedNodeName", default=NONE),
        _readiness_gates(spec, status),
    ]


def judge(spec: Obj, status: Obj, sidecars: set[str]) -> Judgement:
    """Reason, ready containers and restarts of a pod that is not being deleted."""
    conditions = entries(status, "conditions")
    reason = text(status, "reason") or text(status, "phase")
    gated = ("PodScheduled", "SchedulingGated")
    if any((text(entry, "type"), text(entry, "reason")) == gated for entry in conditions):
        reason = "SchedulingGated"
    starting, of_sidecars = _init(spec, status, sidecars, reason)
    if starting.initializing and not is_true(conditions, "Initialized"):
        return starting
    of_sidecars.ready = starting.ready
    of_sidecars.reason = starting.reason
    _main(status, of_sidecars, ready=is_true(conditions, "Ready"))
    return of_sidecars


def _init(spec: Obj, status: Obj, sidecars: set[str], reason: str) -> tuple[Judgement, Judgement]:
    """The judgement over all init containers, and over the sidecars among them only."""
    all_of_them, of_sidecars = Judgement(reason), Judgement(reason)
    for index, container in enumerate(entries(status, "initContainerStatuses")):
        is_sidecar = text(container, "name") in sidecars
        all_of_them.count_restarts(container)
        if is_sidecar:
            of_sidecars.count_restarts(container)
        ended, waiting = part(container, "state").get("terminated"), text(container, "state", "waiting", "reason")
        if ended is not None and count(ended, "exitCode") == 0:
            continue
        if is_sidecar and container.get("started") is True:
            all_of_them.ready += container.get("ready") is True
            continue
        if ended is not None:
            all_of_them.reason = f"Init:{_end_reason(ended)}"
        elif waiting and waiting != "PodInitializing":
            all_of_them.reason = f"Init:{waiting}"
        else:
            all_of_them.reason = f"Init:{index}/{len(entries(spec, 'initContainers'))}"
        all_of_them.initializing = True
        break
    return all_of_them, of_sidecars


def _main(status: Obj, judgement: Judgement, *, ready: bool) -> None:
    running, failure = False, ""
    for container in reversed(entries(status, "containerStatuses")):
        judgement.count_restarts(container)
        state = part(container, "state")
        ended, waiting = state.get("terminated"), text(state, "waiting", "reason")
        if waiting:
            judgement.reason = waiting
        elif ended is not None:
            judgement.reason = _end_reason(ended)
            if count(ended, "exitCode") != 0:
                failure = judgement.reason
        elif container.get("ready") is True and "running" in state:
            running = True
            judgement.ready += 1
    if judgement.reason == "Completed":
        if running and ready:
            judgement.reason = "Running"
        elif failure:
            judgement.reason = failure
        elif running:
            judgement.reason = "NotReady"


def _end_reason(ended: Any) -> str:
    signal = count(ended, "signal")
    return text(ended, "reason") or (f"Signal:{signal}" if signal else f"ExitCode:{count(ended, 'exitCode')}")


def _deleted(obj: Obj, reason: str) -> str:
    if not part(obj, "metadata").get("deletionTimestamp"):
        return reason
    if text(obj, "status", "reason") == "NodeLost":
        return "Unknown"
    return reason if text(obj, "status", "phase") in TERMINAL else "Terminating"


def _restarts_always(container: Obj) -> bool:
    return container.get("restartPolicy") == "Always"


def _readiness_gates(spec: Obj, status: Obj) -> str:
    gates: Sequence[Obj] = entries(spec, "readinessGates")
    if not gates:
        return NONE
    conditions = entries(status, "conditions")
    passed = sum(is_true(conditions, text(gate, "conditionType")) for gate in gates)
    return f"{passed}/{len(gates)}"


CELLS: Final[dict[tuple[str, str], Cells]] = {("", "Pod"): pod}
