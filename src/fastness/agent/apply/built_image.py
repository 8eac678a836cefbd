"""The image that was built for a pool, over the config that a machine was given.

A rendered config names the base that the build began with. Where the control plane names a built image for a node, that is what
the machine boots: it takes the place of the config's own, and an annotation in the record on disk says so. Without the word of
the control plane the config's own counts again, which is how a machine goes back.

Packages and the kernel of the config are in a built image, so the machine is asked for neither; nor for kernel arguments, where
its driver takes those that an image brings (bootc does, rpm-ostree leaves them to the machine).

On a machine that is deployed as an image /usr is the image's, and read-only. A file below it is refused there, unless an image
was built for the pool: then it comes with that image, and nobody writes it. /usr/local is the machine's, below /var.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.agent.apply.ports import OperatingSystem
from fastness.agent.apply.steps import Copy, Put, Step, Tree
from fastness.agent.errors import BadConfig
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


def require_usr(paths: Iterable[str], image: str, system: OperatingSystem) -> None:
    """Refuse files below /usr where that belongs to an image that nobody built for them; raises BadConfig."""
    if image or not system.owns_usr:
        return
    if mine := sorted(path for path in paths if _is_of_image(path)):
        raise BadConfig(
            f"{', '.join(mine[:5])}: /usr belongs to the image of this machine, and no image is built for its pool",
            "Describe the pool's image in a MachineOSConfig: the file goes into it; or write below /etc or /usr/local.",
        )


def without_usr(steps: Sequence[Step], system: OperatingSystem) -> list[Step]:
    """The steps that are left to the machine: what is below /usr comes and goes with its image."""
    if not system.brings_usr:
        return list(steps)
    return [
        step for step in steps
        if not (isinstance(step, Put | Copy) and step.tree is Tree.ROOT and _is_of_image(step.path))
    ]  # fmt: skip


def _is_of_image(path: str) -> bool:
    return path.startswith("/usr/") and not path.startswith("/usr/local/")
