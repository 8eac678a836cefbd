"""A builder elsewhere: every build is a Kubernetes Job, asked for here, followed, and read.

The Job holds everything that the build needs, so it goes on while no control plane runs, and whoever leads next finds it by its
name and its owner. What registries do is tried again by Kubernetes, three times; a Containerfile that failed is not.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from fastness.builds import containerfile, job
from fastness.builds.build_objects import NAMESPACE, metadata_of, named, reference
from fastness.builds.errors import BuildError, BuildFailed, TransferFailed
from fastness.builds.job import (
    CONTAINERFILE_KEY,
    CONTEXT_KEY,
    IMAGE,
    LAYERS,
    MOST_CONTEXT,
    PUSH,
    WAY_KEY,
    JobOutcome,
    JobSettings,
)
from fastness.builds.live import transfers, workshop
from fastness.builds.live.builder import Order
from fastness.builds.live.transfers import Way
from fastness.builds.log import HEAD, TAIL, BuildLog
from fastness.builds.signing import Beside
from fastness.formats import json, oci
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, POD, SECRET
from fastness.kinds.kubernetes.native import JOB
from fastness.kinds.objects import is_being_deleted, metadata
from fastness.kube.errors import AlreadyExists, ApiError, NotFound
from fastness.kube.port import Cluster, DeleteOptions, Scope, WriteOptions
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import uninterrupted

JOBS: Final = JOB.resource
PODS: Final = POD.resource
MAPS: Final = CONFIG_MAP.resource
SECRETS: Final = SECRET.resource
AS: Final = WriteOptions(manager="machine-os-builds")
FIRST_LOOK: Final = 0.5
LONGEST_LOOK: Final = 5.0
MOST_LINES: Final = 5000
_log = logger("builds")


class PodLogs(Protocol):
    """Who can read what containers print."""

    async def log(self, pod: str, namespace: str, container: str, *, lines: int, most: int) -> bytes:
        """The newest lines of a container's log, each with its time; raises ApiError."""


class JobBuilder:
    """Builds in Jobs of a cluster."""

    def __init__(self, cluster: Cluster, logs: PodLogs, clock: Clock, settings: JobSettings) -> None:
        self._cluster = cluster
        self._logs = logs
        self._clock = clock
        self._settings = settings

    async def obstacle(self) -> str:
        """Why nothing can be built; whether a node can make the sandbox shows the first build."""
        return (
            ""
            if self._settings.image
            else "no image of the builder is named: set builds.enabled in the chart, or --builder-image"
        )

    async def build(self, order: Order, log: BuildLog) -> str:
        """Have a Job build, or go on with the one that does; the image by digest; raises BuildFailed, TransferFailed."""
        if not oci.reference(order.inputs.base).digest:
            raise BuildFailed(f"{order.inputs.base} is no image by digest")
        try:
            ended = await self._followed(order, await self._running(order, log), log)
        except ApiError as error:
            # Another try finds the Job and goes on with it.
            raise TransferFailed(f"the Job of the build cannot be followed: {error.message}") from error
        if not ended.image:
            raise _failure(ended)
        await transfers.require(ended.image, order.push)
        _log.info("build.pushed", build=order.name, image=ended.image)
        return ended.image

    async def forget(self, name: str) -> None:
        """Delete the Job with its pods, and what they were given."""
        things = ((JOBS, "build"), (MAPS, "containerfile"), (MAPS, "context"), (SECRETS, "base"), (SECRETS, "final"))
        for resource, prefix in things:
            with suppress(NotFound):
                await self._cluster.delete(resource, named(prefix, name), NAMESPACE)

    def runs(self, name: str) -> JsonObject | None:
        """The Job."""
        return {"imageBuilderType": "Job", "job": reference("batch", "jobs", job.job_name(name))}

    async def require(self, image: str, access: RegistryAccess) -> None:
        """Have the registry show an image; raises TransferFailed."""
        await transfers.require(image, access)

    async def delete(self, image: str, access: RegistryAccess) -> None:
        """Take an image out of its registry; raises TransferFailed."""
        await transfers.delete(image, access)

    async def put_beside(self, image: str, beside: Beside, access: RegistryAccess) -> None:
        """Put what belongs to an image beside it; raises TransferFailed."""
        await transfers.put_beside(Way.to_write(access, image), beside)

    # ------------------------------------------------------------ ask

    async def _running(self, order: Order, log: BuildLog) -> JsonObject:
        """The Job of a build, made when it is not there; raises ApiError, BuildFailed."""
        while (present := await self._job(order.name)) is not None:
            if job.belongs_to(present, order.uid) and not is_being_deleted(present):
                return present
            # Of an earlier build of this name: it is on its way out, or somebody else's.
            await self._drop(present)
            await self._clock.sleep(FIRST_LOOK)
        for resource, thing in await uninterrupted(lambda: _given(order)):
            await self._put(resource, thing)
        log.say(f"asking for the Job {job.job_name(order.name)}")
        with suppress(AlreadyExists):
            return await self._cluster.create(JOBS, job.job(order.name, order.uid, self._settings), AS)
        return await self._running(order, log)

    async def _job(self, build: str) -> JsonObject | None:
        try:
            return await self._cluster.get(JOBS, job.job_name(build), NAMESPACE)
        except NotFound:
            return None

    async def _drop(self, present: JsonObject) -> None:
        options = DeleteOptions(uid=str(metadata(present)["uid"]))
        with suppress(NotFound):
            await self._cluster.delete(JOBS, str(metadata(present)["name"]), NAMESPACE, options)

    async def _put(self, resource: Resource, thing: JsonObject) -> None:
        """Make a thing that the Job is given; one of an earlier build goes first."""
        try:
            await self._cluster.create(resource, thing, AS)
        except AlreadyExists:
            with suppress(NotFound):
                await self._cluster.delete(resource, str(thing["metadata"]["name"]), NAMESPACE)
            await self._cluster.create(resource, thing, AS)

    # ------------------------------------------------------------ follow

    async def _followed(self, order: Order, current: JsonObject, log: BuildLog) -> JobOutcome:
        """Wait for the end of a Job, taking in what its pods print; raises ApiError, BuildFailed."""
        pause, version = FIRST_LOOK, -1
        where = Scope(NAMESPACE, labels=job.pods_selector(order.name))
        while True:
            pods = (await self._cluster.list(PODS, where)).items
            await self._listen(pods, log)
            if (ended := job.outcome(current, pods)) is not None:
                return ended
            pause = FIRST_LOOK if log.version != version else min(pause * 1.5, LONGEST_LOOK)
            version = log.version
            await self._clock.sleep(pause)
            following = await self._job(order.name)
            if following is None or not job.belongs_to(following, order.uid):
                raise BuildFailed("the Job of the build was deleted by somebody else")
            current = following

    async def _listen(self, pods: Sequence[JsonObject], log: BuildLog) -> None:
        """Take what the newest pod prints, and why it does not begin."""
        pod = job.newest(pods)
        if pod is None:
            return
        printed = b"".join([await self._printed(pod, step) for step in job.started(pod)])
        waits = job.waits_for(pod)
        log.replace(printed + (f"the pod waits: {waits}\n".encode() if waits else b""))

    async def _printed(self, pod: Mapping[str, Any], container: str) -> bytes:
        name = str(metadata(pod)["name"])
        try:
            content = await self._logs.log(name, NAMESPACE, container, lines=MOST_LINES, most=2 * (HEAD + TAIL))
        except ApiError as error:
            return f"the log of {container} cannot be read: {error.message}\n".encode()
        # Each line begins with its time.
        return b"".join(line.partition(b" ")[2] for line in content.splitlines(keepends=True))


def _failure(ended: JobOutcome) -> BuildError:
    """Kubernetes tried what can be tried again, so nobody here does."""
    pushing = ended.step == PUSH
    return BuildFailed(f"{'not pushed: ' if pushing else ''}{ended.reason}", pushing=pushing)


def _given(order: Order) -> list[tuple[Resource, JsonObject]]:
    """What the pods of a build are given, each thing to one container; raises BuildFailed, OSError."""
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch)
        (context / containerfile.ROOT).mkdir()
        workshop.write_context(context, order)
        text, content = (context / CONTAINERFILE_KEY).read_text(), workshop.packed(context)
    if len(content) > MOST_CONTEXT:
        raise BuildFailed(
            f"what goes into the image is {len(content)} bytes, packed, and a Job takes {MOST_CONTEXT}: "
            "put what is long into the base image"
        )
    extensions = order.inputs.extensions
    pulled = {IMAGE: Way.to_read(order.pull, order.inputs.base).to_json()}
    if extensions:
        pulled[workshop.EXTENSIONS] = Way.to_read(order.pull, extensions).to_json()
    layers = containerfile.layer_names(order.inputs.layer, order.inputs.packages)
    pushed = {IMAGE: Way.to_write(order.push, order.target).to_json(), LAYERS: list(layers)}
    return [
        (MAPS, _thing("containerfile", "ConfigMap", order, {"data": {CONTAINERFILE_KEY: text}})),
        (MAPS, _thing("context", "ConfigMap", order, {"binaryData": {CONTEXT_KEY: _encoded(content)}})),
        *(
            (SECRETS, _thing(name, "Secret", order, {"data": {WAY_KEY: _encoded(json.encode(document))}}))
            for name, document in (("base", pulled), ("final", pushed))
        ),
    ]  # fmt: skip


def _thing(prefix: str, kind: str, order: Order, content: JsonObject) -> JsonObject:
    meta = metadata_of(named(prefix, order.name), order.name, order.uid)
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **content}


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
