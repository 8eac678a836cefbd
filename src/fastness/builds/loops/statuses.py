"""What the loop of builds writes: conditions and current build of a MachineOSConfig, the life of a MachineOSBuild."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fastness.attestation.values.pushed_here import PUSHED_HERE
from fastness.builds import life
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import GROUP, names
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.os_config import MACHINE_OS_CONFIG
from fastness.kinds.objects import annotations_of, metadata, object_name, rfc3339, with_condition
from fastness.kube.controllers.statuses import write_status
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.rollout.status import BuildPhase
from fastness.runtime.clock import Clock

CONFIGS: Final = MACHINE_OS_CONFIG.resource
BUILDS: Final = MACHINE_OS_BUILD.resource
MANAGER: Final = "machine-os-builds"
AS: Final = WriteOptions(manager=MANAGER)
_STATUS: Final = WriteOptions(manager=MANAGER, subresource="status")
AS_EXPECTED: Final = "AsExpected"


class BuildStatuses:
    """Writes statuses, and only what is new."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def buildable(self, config: JsonObject, reason: str, message: str) -> JsonObject | None:
        """Say whether the image of a MachineOSConfig can be built; an empty reason says that it can."""
        generation = metadata(config).get("generation")

        def change(current: JsonObject) -> JsonObject:
            before = current.get("status") or {}
            conditions = with_condition(
                before.get("conditions") or (), kind=names.BUILDABLE, status="False" if reason else "True",
                reason=reason or AS_EXPECTED, message=message, now=self._clock.now(), generation=generation,
            )  # fmt: skip
            status = {"conditions": conditions, "observedGeneration": generation}
            return {name: value for name, value in status.items() if before.get(name) != value}

        return await write_status(self._cluster, CONFIGS, config, change, _STATUS)

    async def current(self, config: JsonObject, build: str, image: str) -> None:
        """Name the build that a MachineOSConfig asks for now and, once it is there, its image."""
        reference = {"name": build, "group": GROUP, "resource": BUILDS.plural}
        status = {"machineOSBuild": reference, **({"currentImagePullSpec": image} if image else {})}

        def change(current: JsonObject) -> JsonObject:
            before = current.get("status") or {}
            return {name: value for name, value in status.items() if before.get(name) != value}

        await write_status(self._cluster, CONFIGS, config, change, _STATUS)
        if image and annotations_of(config).get(names.CURRENT_BUILD) != build:
            await self._annotate(config, {names.CURRENT_BUILD: build})

    async def seeded(self, config: JsonObject, image: str) -> None:
        """The pool has the image that it was to start with: say so, and take the wish off the object."""
        generation = metadata(config).get("generation")
        text = f"the pool starts on {image}, which was built elsewhere"

        def change(current: JsonObject) -> JsonObject:
            conditions = with_condition(
                (current.get("status") or {}).get("conditions") or (), kind=names.SEEDED, status="True",
                reason=names.PRE_BUILT_SEEDED, message=text, now=self._clock.now(), generation=generation,
            )  # fmt: skip
            return {"conditions": conditions}

        await write_status(self._cluster, CONFIGS, config, change, _STATUS)
        await self._annotate(config, {names.PRE_BUILT: None})

    async def rebuilding(self, config: JsonObject) -> None:
        """The wish for another build was heard."""
        await self._annotate(config, {names.REBUILD: None})

    async def _annotate(self, config: JsonObject, notes: dict[str, str | None]) -> None:
        patch = {"metadata": {"annotations": notes}}
        with suppress(NotFound):
            await self._cluster.patch(CONFIGS, object_name(config).name, patch, PatchType.MERGE, "", AS)

    async def progress(self, build: JsonObject, message: str) -> None:
        """Say how far a build is that goes on."""

        def change(current: JsonObject) -> JsonObject | None:
            conditions = life.told(current, message, self._clock.now())
            return None if conditions is None else {"conditions": conditions}

        await write_status(self._cluster, BUILDS, build, change, _STATUS)

    async def vouched(self, build: JsonObject, note: str) -> None:
        """Put the controllers' word for its image on a build, before anything says that the image is there."""
        patch = {"metadata": {"annotations": {PUSHED_HERE: note}}}
        if note and annotations_of(build).get(PUSHED_HERE) != note:
            with suppress(NotFound):
                await self._cluster.patch(BUILDS, object_name(build).name, patch, PatchType.MERGE, "", AS)

    async def runs(self, build: JsonObject, runner: JsonObject) -> None:
        """Name the object that runs a build. What else it made has its label: statuses cannot name kinds of the core group."""

        def change(current: JsonObject) -> JsonObject | None:
            return None if (current.get("status") or {}).get("builder") == runner else {"builder": runner}

        await write_status(self._cluster, BUILDS, build, change, _STATUS)

    async def move(self, build: JsonObject, phase: BuildPhase, message: str, image: str = "") -> JsonObject | None:
        """Let a build go on to a phase; the build as it is then, None when it is gone."""
        now = self._clock.now()

        def change(current: JsonObject) -> JsonObject | None:
            conditions = life.moved(current, phase, message, now)
            if conditions is None:
                return None
            status: JsonObject = {"conditions": conditions}
            if not (current.get("status") or {}).get("buildStart"):
                status["buildStart"] = rfc3339(now)
            if not phase.under_way:
                status["buildEnd"] = life.ended_at({"status": {**(current.get("status") or {}), **status}}, now)
            if image:
                status["digestedImagePushSpec"] = image
            return status

        return await write_status(self._cluster, BUILDS, build, change, _STATUS)
