"""The images that were built for pools, as the rollout sees them."""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kube.informers import Informers
from fastness.machineconfig.rollout.built import Built, built_for


class BuiltImages:
    """Knows the build of every pool."""

    reads: Sequence[Resource] = (MACHINE_OS_CONFIG.resource, MACHINE_OS_BUILD.resource)

    def __init__(self, informers: Informers) -> None:
        self._configs = informers.of(MACHINE_OS_CONFIG.resource)
        self._builds = informers.of(MACHINE_OS_BUILD.resource)

    def of(self, pool: JsonObject) -> Built | None:
        """How the image of a pool stands; None for a pool that has none of its own."""
        return built_for(pool, self._configs.list(), self._builds.list())
