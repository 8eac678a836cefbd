"""The OSImageStream `cluster`: made before any render, filled from images that the cluster names.

    sources ──▶ labels of each image, from its registry ──▶ offers ──▶ default ──▶ spec (once), status, annotations

How it stands is said on the MachineConfiguration `cluster`, condition `OSImageStreamsAvailable`, because an OSImageStream has no
conditions and cannot exist without a stream. A cluster that names no image has none, and that is nothing to complain about: pools
take the image of the ControllerConfig, or none.

* What cannot be read stops rendering only until it was read once: pools would take one image and then another. Later the offers
  stay as they are, and it is tried again.
* `spec.defaultStream` is for people. The status follows it, and pools with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from fastness import __version__
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.machineconfiguration.pinned_images import OS_IMAGE_STREAM
from fastness.kinds.objects import ObjectName, annotations_of, condition, metadata, with_condition
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, Conflict
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.live.registry import RegistryImages
from fastness.machineconfig.loops.rendering.defaults import SETTINGS
from fastness.machineconfig.loops.rendering.registry_access import AccessView
from fastness.machineconfig.loops.rendering.registry_view import RegistryView, registry_sources
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render.errors import BadRegistries, BadStreams
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.streams import sources as where
from fastness.machineconfig.streams.access import RegistryAccess
from fastness.machineconfig.streams.offers import Default, LabelledImage, default_stream, offers
from fastness.machineconfig.streams.readiness import DEFERRED, NO_SOURCE, OFFERED, UNREADABLE
from fastness.machineconfig.streams.sources import StreamSources
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock

STREAMS, CONTROLLERS = OS_IMAGE_STREAM.resource, CONTROLLER_CONFIG.resource
VERSION = f"fastness-{__version__}"
NAME = "cluster"
ALL = ObjectName("", NAME)
SECONDS = 300.0
_AS = WriteOptions(manager="machine-config-streams")
_STATUS = WriteOptions(manager="machine-config-streams", subresource="status")
_MAP_SCOPE = Scope(where.NAMESPACE, fields=f"metadata.name={where.CONFIG_MAP}")
_log = logger("streams")


def _nothing_named(present: JsonObject | None) -> str:
    """That there is no stream, and that a person's choice of one waits for it."""
    chosen = ((present or {}).get("spec") or {}).get("defaultStream")
    words = "no image of an operating system is named; pools take none by stream"
    if not chosen:
        return words
    return f"{words}: defaultStream {chosen} has no effect before ConfigMap {where.NAMESPACE}/{where.CONFIG_MAP} names its images"


def _everything(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


class Streams:
    """Keeps the OSImageStream."""

    name = "machine-config-streams"
    writes: Sequence[Resource] = (STREAMS, SETTINGS)
    always = (ALL,)

    def __init__(
        self, cluster: Cluster, informers: Informers, clock: Clock, images: RegistryImages, timing: Timing = FIELD
    ) -> None:
        self._access = AccessView(informers, _everything)
        self.sources: Sequence[Source] = (
            *(Source(kind, keys=_everything) for kind in (STREAMS, SETTINGS, CONTROLLERS)),
            Source(CONFIG_MAP.resource, keys=_everything, scope=_MAP_SCOPE),
            *self._access.sources,
            *registry_sources(_everything, timing.render_delay),
        )
        self._cluster = cluster
        self._clock = clock
        self._images = images
        self._again = timing.streams_retry
        self._view = RegistryView(informers)
        self._streams, self._settings = informers.of(STREAMS), informers.of(SETTINGS)
        self._config_maps = informers.of(CONFIG_MAP.resource, _MAP_SCOPE)

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the OSImageStream in step with what the cluster names."""
        objects = await self._view.objects(self._cluster)
        named = StreamSources.of(self._config_maps.get(where.NAMESPACE, where.CONFIG_MAP), objects.cluster_version)
        present = self._streams.get("", NAME)
        try:
            if not named:
                await self._tell(False, NO_SOURCE, _nothing_named(present))
                return Done()
            if where.is_current(present, named, VERSION) or (named.deferred and _offers(present)):
                available = _offers(present)
            elif named.deferred:
                await self._tell(False, DEFERRED, named.deferred)
                return Done()
            else:
                async with asyncio.timeout(SECONDS):
                    available = await self._read(named, objects)
            default = _default(available, present, objects.cluster_version)
            await self._write(present, named, available, default)
        except TimeoutError:
            return await self._failed(BadStreams(f"images were not read within {SECONDS:.0f} seconds"))
        except (BadStreams, BadRegistries) as error:
            return await self._failed(error)
        words = [f"on offer: {', '.join(str(offer['name']) for offer in available)}; by default {default.name}"]
        await self._tell(True, OFFERED, "; ".join([*words, *filter(None, (default.remark, named.deferred))]))
        return Done()

    async def _read(self, named: StreamSources, objects: RegistryObjects) -> list[JsonObject]:
        """What the images of all sources say; raises BadStreams, BadRegistries."""
        access = self._access.access(objects)
        groups = [await self._labelled(named.pair(), access)]
        if named.release:
            references = await self._images.file(named.release, where.REFERENCES, access)
            groups.append(await self._labelled(where.images_of_release(references), access))
        return offers(groups)

    async def _labelled(self, images: Sequence[str], access: RegistryAccess) -> list[LabelledImage]:
        return [LabelledImage(image, await self._images.labels(image, access)) for image in images]

    async def _write(
        self, present: JsonObject | None, named: StreamSources, available: list[JsonObject], default: Default
    ) -> None:
        """Have the object with these offers; one that somebody made keeps what it says."""
        if present is None:
            body = {
                "apiVersion": names.API_VERSION, "kind": OS_IMAGE_STREAM.kind, "metadata": {"name": NAME},
                "spec": {"defaultStream": default.name},
            }  # fmt: skip
            with suppress(AlreadyExists):
                await self._cluster.create(STREAMS, body, _AS)
        status = {"availableStreams": available, "defaultStream": default.name}
        before = (present or {}).get("status") or {}
        if any(before.get(field) != value for field, value in status.items()):
            await self._cluster.patch(STREAMS, NAME, {"status": status}, PatchType.MERGE, "", _STATUS)
        # Last: with the notes in place nothing is read again, so they must not stand beside offers of another time.
        notes = where.notes_of(named, available, VERSION)
        if not named.deferred and not notes.items() <= annotations_of(present or {}).items():
            await self._cluster.patch(STREAMS, NAME, {"metadata": {"annotations": notes}}, PatchType.MERGE, "", _AS)

    async def _failed(self, error: BadStreams | BadRegistries) -> Done:
        text = str(error) if isinstance(error, BadRegistries) else f"{error.message} ({error.hint})"
        if await self._tell(False, UNREADABLE, text):
            _log.warning("streams.unreadable", error=text)
        return Done(again_after=self._again)

    async def _tell(self, available: bool, reason: str, message: str) -> bool:
        """Say how it stands; whether that is new."""
        settings = self._settings.get("", NAME)
        if settings is None:
            return False  # another loop makes it, and this one is called then
        before = condition(settings, names.STREAMS_AVAILABLE) or {}
        state = "True" if available else "False"
        if (before.get("status"), before.get("reason"), before.get("message")) == (state, reason, message):
            return False
        conditions = with_condition(
            list((settings.get("status") or {}).get("conditions") or ()), kind=names.STREAMS_AVAILABLE, status=state,
            reason=reason, message=message, now=self._clock.now(),
        )  # fmt: skip
        version = {"resourceVersion": metadata(settings).get("resourceVersion")}
        patch = {"metadata": version, "status": {"conditions": conditions}}
        with suppress(Conflict):  # whoever was faster brings us back
            await self._cluster.patch(SETTINGS, NAME, patch, PatchType.MERGE, "", _STATUS)
            return True
        return False


def _offers(streams: Object | None) -> list[JsonObject]:
    return list(((streams or {}).get("status") or {}).get("availableStreams") or ())


def _default(available: Sequence[Object], present: Object | None, cluster_version: Object | None) -> Default:
    asked = str(((present or {}).get("spec") or {}).get("defaultStream") or "")
    before = str(((present or {}).get("status") or {}).get("defaultStream") or "")
    installed = where.installed_as(cluster_version)
    return default_stream((str(offer["name"]) for offer in available), asked, before, installed)
