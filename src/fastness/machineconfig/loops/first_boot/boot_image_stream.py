"""The boot images of the release, as the ConfigMap `coreos-bootimages` of the cluster has them.

Who upgrades a cluster changes the ConfigMap; whoever asks which boot image a machine set should have, or which Ignition reads a
pointer, looks here. A document that cannot be read is as good as none, and whoever reports says why (`problem`).
"""

from __future__ import annotations

from typing import Final

from fastness.formats.coreos_stream import Stream, parse_stream
from fastness.formats.errors import StreamError
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import metadata
from fastness.kube.controllers.controller import Keys, Source
from fastness.kube.informers import Informers
from fastness.kube.port import Scope

CONFIG_MAPS = CONFIG_MAP.resource
NAMESPACE: Final = names.OPERATOR_NAMESPACE
NAME: Final = names.BOOT_IMAGES
KEY: Final = "stream"
PLACE: Final = Scope(NAMESPACE, fields=f"metadata.name={NAME}")


def stream_source(keys: Keys) -> Source:
    """What a loop follows that asks about boot images."""
    return Source(CONFIG_MAPS, keys=keys, scope=PLACE)


class StreamView:
    """Reads the stream metadata once for each form of the ConfigMap."""

    def __init__(self, informers: Informers) -> None:
        self._informer = informers.of(CONFIG_MAPS, PLACE)
        self._version = ""
        self._stream: Stream | None = None
        self._problem = ""

    async def current(self) -> Stream | None:
        """The boot images of the release; None when there is no document, or none that can be read."""
        await self._informer.synced()
        obj = self._informer.get(NAMESPACE, NAME)
        version = str(metadata(obj or {}).get("resourceVersion") or "")
        if version == self._version:
            return self._stream
        self._version, self._stream, self._problem = version, None, ""
        text = ((obj or {}).get("data") or {}).get(KEY)
        if obj is not None:
            try:
                self._stream = parse_stream(str(text or "").encode())
            except StreamError as error:
                self._problem = f"the key {KEY} of ConfigMap {NAMESPACE}/{NAME} cannot be read: {error}. {error.hint}"
        return self._stream

    @property
    def problem(self) -> str:
        """Why the document that is there cannot be read; empty when it can, or when there is none."""
        return self._problem
