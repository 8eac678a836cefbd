"""Whether the nodes of a pool come back to their stock image when its MachineOSConfig goes.

A node without a built image boots what its config names, and whatever was in the image comes by the config again: files are
written, arguments set. Two things of a config cannot come that way, and a node would stay in the built image, degraded:

    a file below /usr               on every node that boots an image
    another kernel, extensions      on a node that bootc or composefs deploys: only rpm-ostree layers packages
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name

Object = Mapping[str, Any]
MOST: Final = 5
_LAYERS_PACKAGES: Final = "rpm-ostree"


def stranded(rendered: Object, nodes: Iterable[Object]) -> str:
    """What would keep nodes from coming back and what to do first; empty where all would come back."""
    layered = [node for node in nodes if annotations_of(node).get(names.CURRENT_IMAGE)]
    fixed = [node for node in layered if _driver(node) not in ("", _LAYERS_PACKAGES)]
    below_usr, packages = _below_usr(rendered), _packages(rendered)
    problems = []
    if layered and below_usr:
        problems.append(f"{', '.join(below_usr[:MOST])} can be there in an image alone ({_named(layered)})")
    if fixed and packages:
        problems.append(f"{', '.join(packages)} would have to be layered, which only rpm-ostree does ({_named(fixed)})")
    if not problems:
        return ""
    return f"{'; '.join(problems)}; take this out of the MachineConfigs of the pool first, and delete it when nodes have followed"


def _below_usr(rendered: Object) -> list[str]:
    storage = (((rendered.get("spec") or {}).get("config") or {}).get("storage")) or {}
    paths = [
        str(entry.get("path")) for field in ("files", "links", "directories") for entry in storage.get(field) or ()
    ]
    return sorted(path for path in paths if path.startswith("/usr/") and not path.startswith("/usr/local/"))


def _packages(rendered: Object) -> list[str]:
    spec = rendered.get("spec") or {}
    kernel = str(spec.get("kernelType") or "default")
    extensions = [f"extension {name}" for name in spec.get("extensions") or ()]
    return ([f"kernelType {kernel}"] if kernel != "default" else []) + extensions


def _driver(node: Object) -> str:
    return annotations_of(node).get(names.OS_DRIVER, "").partition(":")[0]


def _named(nodes: list[Object]) -> str:
    listed = sorted(object_name(node).name for node in nodes)
    return f"{', '.join(listed[:MOST])}{' …' if len(listed) > MOST else ''}"
