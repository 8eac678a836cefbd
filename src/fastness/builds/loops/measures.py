"""What is counted of builds: how each pool stands, and how long its builds take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from fastness.builds import life
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.machineconfig.rollout.built import phase_of
from fastness.machineconfig.rollout.status import BuildPhase
from fastness.observe import metrics
from fastness.runtime.clock import Clock

Object = Mapping[str, Any]
Measure = Callable[[BuildPhase, bool | None], None]


@contextmanager
def measured(pool: str, build: JsonObject, clock: Clock) -> Iterator[Measure]:
    """Count a build while it runs; what the block calls says how it ended."""
    began, start = clock.now(), clock.monotonic()
    ordered = str(metadata(build).get("creationTimestamp") or "")
    waited = (began - datetime.fromisoformat(ordered)).total_seconds() if ordered else 0.0
    metrics.BUILDS.began(pool, began.timestamp(), waited)

    def ended(phase: BuildPhase, pushed: bool | None) -> None:
        metrics.BUILDS.ended(pool, phase.lower(), clock.now().timestamp(), clock.monotonic() - start, pushed)

    try:
        yield ended
    finally:
        metrics.BUILDS.left()


def show(
    pool: str, config: Object | None, builds: Iterable[JsonObject], described: Object | None, nodes: Iterable[JsonObject],
    configs: Sequence[JsonObject],
) -> None:  # fmt: skip
    """Show how one pool stands, once it has, or had, a MachineOSConfig."""
    mine = [each for each in builds if labels_of(each).get(names.BUILD_POOL_LABEL) == pool]
    if config is None and not mine:
        return
    current = str((((config or {}).get("status") or {}).get("machineOSBuild") or {}).get("name") or "")
    build = next((each for each in mine if object_name(each).name == current), None)
    images = {life.image_of(each) for each in mine} - {""}
    layered = sum(annotations_of(node).get(names.BOOTED_IMAGE) in images for node in nodes)
    status = (described or {}).get("status") or {}
    counts = layered, int(status.get("updatedMachineCount") or 0), int(status.get("machineCount") or 0)
    metrics.BUILDS.show(pool, phase_of(build).lower() if build and config else "", counts, len(configs))
