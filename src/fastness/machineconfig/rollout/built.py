"""The image that was built for a pool: how far its build is, and what nodes boot when it is done.

    built = built_for(pool, config, builds)       None: the pool has no MachineOSConfig, and nodes boot what their config names

A pool with a MachineOSConfig waits for the build of exactly the config that it has: an image of another config would be one that
nobody asked for. What the loop of builds has not looked at yet is a build that is still to come, and so is that of a pool
which the cluster is about to describe an image for (`image_mode.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition, is_being_deleted, labels_of, metadata, object_name
from fastness.machineconfig.rollout.status import BuildPhase

Object = Mapping[str, Any]
NOT_YET: Final = "~"
"""Behind every time: what is only planned comes after what is there."""
_PHASES: Final = (
    BuildPhase.SUCCEEDED, BuildPhase.FAILED, BuildPhase.INTERRUPTED, BuildPhase.BUILDING, BuildPhase.PREPARED,
)  # fmt: skip


class Built(NamedTuple):
    """A pool's image: how far its build is, the image by digest when it is there, and what keeps it from being built."""

    phase: BuildPhase
    image: str = ""
    reason: str = ""
    problem: str = ""

    @property
    def ready(self) -> bool:
        """Whether nodes may boot it."""
        return self.phase is BuildPhase.SUCCEEDED and bool(self.image)


def config_for(pool: str, configs: Iterable[Object]) -> Object | None:
    """The MachineOSConfig of a pool: the one that was there first, should there be several."""
    mine = [each for each in configs if _pool_of(each) == pool and not is_being_deleted(each)]
    return min(mine, key=seniority, default=None)


def seniority(config: Object) -> tuple[str, str]:
    """The order of MachineOSConfigs: a second one takes nothing from the first, whatever it is called."""
    return str(metadata(config).get("creationTimestamp") or NOT_YET), object_name(config).name


def built_for(
    pool: Object, configs: Iterable[Object], builds: Iterable[Object], *, default: bool = False
) -> Built | None:
    """How the image of a pool stands; None for a pool without a MachineOSConfig, unless it gets one by default."""
    config = config_for(object_name(pool).name, configs)
    if config is None:
        return Built(BuildPhase.INITIAL) if default else None
    status = config.get("status") or {}
    refused = condition(config, names.BUILDABLE) or {}
    if refused.get("status") == "False":
        return Built(BuildPhase.INITIAL, "", str(refused.get("reason") or ""), str(refused.get("message") or ""))
    current = str((status.get("machineOSBuild") or {}).get("name") or "")
    build = next((each for each in builds if object_name(each).name == current and not is_being_deleted(each)), None)
    rendered = str((((pool.get("spec") or {}).get("configuration")) or {}).get("name") or "")
    stale = status.get("observedGeneration") != metadata(config).get("generation")
    if build is None or stale or ((build.get("spec") or {}).get("machineConfig") or {}).get("name") != rendered:
        return Built(BuildPhase.INITIAL)
    phase = phase_of(build)
    if phase is BuildPhase.FAILED:
        return Built(phase, "", "BuildFailed", str((condition(build, phase) or {}).get("message") or ""))
    return Built(phase, str((build.get("status") or {}).get("digestedImagePushSpec") or ""))


def phase_of(build: Object) -> BuildPhase:
    """How far a build is, by its conditions."""
    holds = (phase for phase in _PHASES if (condition(build, phase) or {}).get("status") == "True")
    return next(holds, BuildPhase.INITIAL)


def pool_of_build(obj: Object) -> str:
    """The pool that a MachineOSConfig or a MachineOSBuild is for."""
    return labels_of(obj).get(names.BUILD_POOL_LABEL, "") or _pool_of(obj)


def _pool_of(config: Object) -> str:
    return str(((config.get("spec") or {}).get("machineConfigPool") or {}).get("name") or "")
