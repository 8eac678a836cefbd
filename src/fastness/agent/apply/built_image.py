"""The image that was built for a pool, over the config that a machine was given.

A rendered config names the base that the build began with. Where the control plane names a built image for a node, that is what
the machine boots: it takes the place of the config's own, and an annotation in the record on disk says so. Without the word of
the control plane the config's own counts again, which is how a machine goes back.

Packages and the kernel of the config are in a built image, so the machine is asked for neither; nor for kernel arguments, where
its driver takes those that an image brings (bootc does, rpm-ostree leaves them to the machine).
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of

_BUILT_IN: Final = ("kernelType", "extensions", "baseOSExtensionsContainerImage")


def with_image(config: JsonObject, image: str, *, brings_arguments: bool = False) -> JsonObject:
    """A config that boots a built image; the config itself where there is none."""
    if not image:
        return config
    built_in = (*_BUILT_IN, "kernelArguments") if brings_arguments else _BUILT_IN
    meta, spec = config.get("metadata") or {}, config.get("spec") or {}
    notes = {**(meta.get("annotations") or {}), names.CURRENT_IMAGE: image}
    left = {name: value for name, value in spec.items() if name not in built_in}
    return {**config, "metadata": {**meta, "annotations": notes}, "spec": {**left, "osImageURL": image}}


def image_in(config: JsonObject) -> str:
    """The built image that is in a config; empty for one as it was rendered."""
    return annotations_of(config).get(names.CURRENT_IMAGE, "")
