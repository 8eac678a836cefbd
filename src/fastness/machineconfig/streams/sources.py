"""Where streams come from: a ConfigMap and the release image, and when they are looked at again.

    ConfigMap openshift-machine-config-operator/machine-config-osimageurl
        data.baseOSContainerImage, data.baseOSExtensionsContainerImage     one stream, on any Kubernetes by whoever runs it
        data.releaseVersion                                                the release that they belong to, where there is one
    release image (ClusterVersion `version`, status.desired.image)
        release-manifests/image-references                                 every stream of the release

Later wins where both have a stream of the same name. An image by digest never changes, so one that was read is not read again:
only other names, or another version of ours, give another look. While the cluster is on its way to another release nothing is
looked at: half of what is said is of the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.references import is_digested
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.render.registries.objects import release_image

Object = Mapping[str, Any]
NAMESPACE: Final = "openshift-machine-config-operator"
CONFIG_MAP: Final = "machine-config-osimageurl"
OS_IMAGE: Final = "baseOSContainerImage"
EXTENSIONS_IMAGE: Final = "baseOSExtensionsContainerImage"
RELEASE_VERSION: Final = "releaseVersion"
REFERENCES: Final = "release-manifests/image-references"
MAX_IMAGES: Final = 32
_REFERENCE_LIMITS: Final = json.JsonLimits(max_bytes=8 * 1024 * 1024)
# A release has some two hundred images. Those of the operating system are named after it, as in `rhel-coreos-10-extensions`.
_NAMED_AFTER: Final = "coreos"


@dataclass(frozen=True, slots=True)
class StreamSources:
    """What there is to read: two images of the ConfigMap, and the release image; each empty where nobody names it."""

    os_image: str = ""
    extensions_image: str = ""
    release: str = ""
    deferred: str = ""
    """Why nothing is looked at now; empty where nothing speaks against it."""

    def __bool__(self) -> bool:
        return bool(self.os_image or self.extensions_image or self.release)

    @classmethod
    def of(cls, config_map: Object | None, cluster_version: Object | None) -> StreamSources:
        """From the objects of the cluster."""
        data = (config_map or {}).get("data") or {}
        image, extensions = (str(data.get(key) or "").strip() for key in (OS_IMAGE, EXTENSIONS_IMAGE))
        release = release_image(cluster_version)
        return cls(image, extensions, release, _deferred(str(data.get(RELEASE_VERSION) or ""), cluster_version))

    def pair(self) -> tuple[str, ...]:
        """The images of the ConfigMap; raises BadStreams where one is missing, or not by digest."""
        if not self.os_image and not self.extensions_image:
            return ()
        for key, image in ((OS_IMAGE, self.os_image), (EXTENSIONS_IMAGE, self.extensions_image)):
            place = f"data.{key} of ConfigMap {NAMESPACE}/{CONFIG_MAP}"
            if not image:
                raise BadStreams(f"{place} is missing", "A stream needs both images.")
            if not is_digested(image):
                raise BadStreams(f"{place} is {image[:447]!r}, which is no image by digest")
        return self.os_image, self.extensions_image


def _deferred(release_version: str, cluster_version: Object | None) -> str:
    status = (cluster_version or {}).get("status") or {}
    target = str((status.get("desired") or {}).get("version") or "")
    completed = (entry for entry in status.get("history") or () if entry.get("state") == "Completed")
    running = str(next((entry.get("version") or "" for entry in completed), ""))
    if target and running and target != running:
        return f"the cluster is on its way from {running} to {target}"
    if target and release_version and target != release_version:
        return f"ConfigMap {NAMESPACE}/{CONFIG_MAP} is of {release_version}, the cluster is to be {target}"
    return ""


def installed_as(cluster_version: Object | None) -> str:
    """The version that the cluster was installed with, empty where nobody says: history begins with the newest."""
    history = ((cluster_version or {}).get("status") or {}).get("history") or ()
    return str(history[-1].get("version") or "") if history else ""


def images_of_release(references: bytes) -> tuple[str, ...]:
    """The images of operating systems in a release, by name of their tag; raises BadStreams."""
    try:
        document = json.decode(references, _REFERENCE_LIMITS)
        tags = document["spec"]["tags"]
        named = {str(tag["name"]): str((tag.get("from") or {}).get("name") or "") for tag in tags}
    except (JsonError, KeyError, TypeError, AttributeError) as error:
        raise BadStreams(f"{REFERENCES} of the release image is not a list of images") from error
    images = tuple(image for tag, image in sorted(named.items()) if _NAMED_AFTER in tag)
    for image in images:
        if not is_digested(image):
            raise BadStreams(f"{REFERENCES} of the release image names {image[:447]!r}, which is no image by digest")
    if len(images) > MAX_IMAGES:
        raise BadStreams(f"{REFERENCES} names {len(images)} images of operating systems, {MAX_IMAGES} is the most")
    return images


def fingerprint(sources: StreamSources, offers: Sequence[Object]) -> str:
    """What an OSImageStream was made of, and what was made of it: other sources or edited offers give another one."""
    read = [sources.os_image, sources.extensions_image, sources.release]
    return hashlib.sha256(json.canonical({"sources": read, "offers": list(offers)})).hexdigest()


def is_current(streams: Object | None, sources: StreamSources, version: str) -> bool:
    """Whether the offers of an OSImageStream are those of these sources, made by this version of ours."""
    offers = ((streams or {}).get("status") or {}).get("availableStreams") or ()
    notes = annotations_of(streams or {})
    return (
        bool(offers)
        and notes.get(names.STREAM_SOURCES) == fingerprint(sources, offers)
        and notes.get(names.CONTROLLER_VERSION) == version
    )


def notes_of(sources: StreamSources, offers: Sequence[Object], version: str) -> JsonObject:
    """The annotations that say so."""
    return {names.STREAM_SOURCES: fingerprint(sources, offers), names.CONTROLLER_VERSION: version}
