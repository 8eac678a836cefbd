"""Where the log of a build is kept: in a ConfigMap of its own, while it runs and afterwards, as long as the build is there."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fastness.builds.build_objects import LOG, NAMESPACE, log_name, metadata_of
from fastness.builds.log import BuildLog
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import metadata, object_name
from fastness.kube.errors import AlreadyExists, ApiError, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe.logs import logger

MAPS: Final = CONFIG_MAP.resource
_log = logger("builds")


class KeptLog:
    """The log of one build in the cluster, written when it says something new."""

    def __init__(self, cluster: Cluster, build: JsonObject, log: BuildLog, options: WriteOptions) -> None:
        self._cluster = cluster
        self._name = object_name(build).name
        self._uid = str(metadata(build).get("uid") or "")
        self._log = log
        self._options = options
        self._written = -1

    async def write(self) -> None:
        """Keep what is new. A log that cannot be kept stops no build: it is said in ours."""
        version = self._log.version
        if version == self._written:
            return
        place, content = log_name(self._name), {LOG: self._log.text}
        try:
            try:
                await self._cluster.patch(MAPS, place, {"data": content}, PatchType.MERGE, NAMESPACE, self._options)
            except NotFound:
                meta = metadata_of(place, self._name, self._uid)
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": content}
                with suppress(AlreadyExists):
                    await self._cluster.create(MAPS, made, self._options)
        except ApiError as error:
            _log.warning("build.log_not_kept", build=self._name, error=str(error))
        self._written = version


async def drop_log(cluster: Cluster, build: str) -> None:
    """The log goes with its build."""
    with suppress(NotFound):
        await cluster.delete(MAPS, log_name(build), NAMESPACE)
