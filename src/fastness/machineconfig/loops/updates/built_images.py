"""The images that were built for pools, as the rollout sees them, and image mode of the whole cluster."""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.openshift.node_settings import CLUSTER, FEATURE_GATE
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kube.informers import Informers
from fastness.machineconfig.rollout.built import Built, built_for
from fastness.machineconfig.rollout.image_mode import ImageMode, gets_an_image, image_mode


class ImageModes:
    """Knows what the cluster says about image mode."""

    reads: Sequence[Resource] = (MACHINE_CONFIGURATION.resource, FEATURE_GATE.resource)

    def __init__(self, informers: Informers) -> None:
        self._settings = informers.of(MACHINE_CONFIGURATION.resource)
        self._gates = informers.of(FEATURE_GATE.resource)

    def now(self) -> ImageMode:
        """What holds."""
        return image_mode(self._settings.get("", CLUSTER), self._gates.get("", CLUSTER))


class BuiltImages:
    """Knows the build of every pool."""

    reads: Sequence[Resource] = (MACHINE_OS_CONFIG.resource, MACHINE_OS_BUILD.resource)

    def __init__(self, informers: Informers) -> None:
        self._configs = informers.of(MACHINE_OS_CONFIG.resource)
        self._builds = informers.of(MACHINE_OS_BUILD.resource)
        self._modes = ImageModes(informers)

    def of(self, pool: JsonObject) -> Built | None:
        """How the image of a pool stands; None for a pool that has none of its own."""
        return built_for(
            pool, self._configs.list(), self._builds.list(), default=gets_an_image(pool, self._modes.now())
        )

    def problem(self, pool: JsonObject) -> tuple[str, str]:
        """Why a pool that should have an image gets none, as a reason and a sentence; both empty where nothing is missing."""
        mode = self._modes.now()
        has_machines = bool((pool.get("status") or {}).get("machineCount"))
        return (mode.reason, mode.problem) if has_machines else ("", "")
