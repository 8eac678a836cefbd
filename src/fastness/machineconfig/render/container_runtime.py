"""ContainerRuntimeConfig: settings of the container runtime, turned into drop-ins.

Every setting is a drop-in of its own in CRI-O's configuration directory, named after the field, so that a later config can
override one of them. What concerns storage is in the one file that the storage library reads: the base's file is read, changed
and written again, so that nothing that stands there is lost.

All of it is CRI-O's and its libraries'. In a pool that runs containerd each setting is refused, with the way to the same thing
there: a setting that is accepted and does nothing is the worst of the three.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.formats import toml
from fastness.formats.errors import QuantityError
from fastness.formats.quantity import parse_quantity
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.kubelet_config import LOG_LEVELS
from fastness.machineconfig.render.base.rows import config_file
from fastness.machineconfig.render.base.runtime import STORAGE_CONF
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.settings.choices import CONTAINERD, CRIO
from fastness.machineconfig.render.settings.cluster import STORAGE_GATE
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
DIRECTORY: Final = "/etc/crio/crio.conf.d"
STORAGE_FILE: Final = "/etc/containers/storage.conf"
MIN_LOG_SIZE: Final = 8192
MIN_PIDS: Final = 20
RUNTIMES: Final = ("crun", "runc")
BY_REFERENCE: Final = ":ref"
LAYERS: Final = "additionalLayerStores"
IMAGES: Final = "additionalImageStores"
ARTIFACTS: Final = "additionalArtifactStores"
STORES: Final = (LAYERS, IMAGES, ARTIFACTS)
# What the storage library reads as a size: digits, a fraction, a unit. An exponent or a thousandth would keep it from starting.
_STORAGE_SIZE: Final = re.compile(r"[0-9]+(\.[0-9]+)?([kKMGTP]i?)?\Z", re.ASCII)
_PATH: Final = re.compile(r"(?!.*//)/[A-Za-z0-9/._-]+\Z", re.ASCII)
_WITH_CONTAINERD: Final[Mapping[str, str]] = {
    "logLevel": "write [debug] level into /etc/containerd/config.toml with a MachineConfig",
    "pidsLimit": "set podPidsLimit in a KubeletConfig",
    "logSizeMax": "set containerLogMaxSize in a KubeletConfig",
    "overlaySize": "limit ephemeral-storage of pods",
    "defaultRuntime": "name a RuntimeClass in the pod",
    LAYERS: "configure a snapshotter plug-in with a MachineConfig",
    IMAGES: "import the images when the machine's image is built",
    ARTIFACTS: "pull artifacts from a registry",
}


def containerruntime_spec(
    settings: Object, runtime: str = CRIO, *, stores: bool = False, storage_conf: str = STORAGE_CONF
) -> JsonObject:
    """The spec of the MachineConfig that a ContainerRuntimeConfig generates for a pool with this runtime; raises BadSettings.

    `stores` says whether the gate for additional stores is on.
    """
    requested = (settings.get("spec") or {}).get("containerRuntimeConfig") or {}
    wrong = list(_unknown_to(runtime, requested) if runtime == CONTAINERD else _wrong(requested, stores))
    if wrong:
        raise BadSettings("; ".join(wrong), "correct these fields of the ContainerRuntimeConfig")
    files = [config_file(f"{DIRECTORY}/01-ctrcfg-{name}", _dropin(line)) for name, line in _lines(requested)]
    storage = _storage(requested, storage_conf)
    if storage:
        files.append(config_file(STORAGE_FILE, storage))
    document: JsonObject = {"ignition": {"version": CURRENT}}
    if files:
        document["storage"] = {"files": files}
    return {"config": document}


def _dropin(line: str) -> str:
    return "[crio]\n  [crio.runtime]\n" + (f"    {line}\n" if line else "")


def _lines(runtime: Object) -> Iterator[tuple[str, str]]:
    if runtime.get("logLevel"):
        yield "logLevel", f'log_level = "{runtime["logLevel"]}"'
    pids = runtime.get("pidsLimit")
    if pids is not None:
        # Zero is CRI-O's own default, of which the drop-in says nothing.
        yield "pidsLimit", f"pids_limit = {pids}" if pids else ""
    size = _size(runtime.get("logSizeMax"))
    if size:
        yield "logSizeMax", f"log_size_max = {size}"
    if runtime.get("defaultRuntime"):
        yield "defaultRuntime", f'default_runtime = "{runtime["defaultRuntime"]}"'
    artifacts = _paths(runtime, ARTIFACTS)
    if artifacts:
        quoted = ", ".join(f'"{path}"' for path in artifacts)
        yield ARTIFACTS, f"additional_artifact_stores = [{quoted}]"


def _storage(runtime: Object, storage_conf: str) -> str:
    """The storage library's file with what this asks for; empty when it asks for nothing there."""
    options: JsonObject = {}
    if _size(runtime.get("overlaySize")):
        options["size"] = str(runtime["overlaySize"])
    layers, images = _paths(runtime, LAYERS), _paths(runtime, IMAGES)
    if layers:
        options["additionallayerstores"] = [
            path if path.endswith(BY_REFERENCE) else path + BY_REFERENCE for path in layers
        ]
    if images:
        options["additionalimagestores"] = images
    if not options:
        return ""
    document = toml.parse(storage_conf)
    storage = document.setdefault("storage", {})
    storage["options"] = {**storage.get("options", {}), **options}
    return toml.encode(document)


def _size(value: Any) -> int:
    return int(parse_quantity(str(value))) if value not in (None, "") else 0


def _paths(runtime: Object, name: str) -> list[str]:
    return [str(entry["path"]) for entry in runtime.get(name) or ()]


def _unknown_to(runtime: str, requested: Object) -> Iterator[str]:
    for name, way in _WITH_CONTAINERD.items():
        if requested.get(name) not in (None, "", [], {}):
            yield f"{name} is a setting of CRI-O, and the machines of this pool run {runtime}: {way}"


def _wrong(runtime: Object, stores: bool) -> Iterator[str]:
    level = runtime.get("logLevel")
    if level and level not in LOG_LEVELS:
        yield f'invalid LogLevel "{level}", must be one of {", ".join(LOG_LEVELS)}'
    pids = runtime.get("pidsLimit")
    if pids is not None and (type(pids) is not int or (pids != 0 and pids < MIN_PIDS)):
        yield f"invalid PidsLimit {pids}"
    if runtime.get("defaultRuntime") and runtime["defaultRuntime"] not in RUNTIMES:
        yield f'invalid DefaultRuntime "{runtime["defaultRuntime"]}", must be one of {", ".join(RUNTIMES)}'
    yield from _wrong_sizes(runtime)
    for name in STORES:
        yield from _wrong_stores(name, runtime.get(name), stores)
    if runtime.get("containerGomaxprocsBehavior") not in (None, "", "Disabled"):
        yield f"containerGomaxprocsBehavior {runtime['containerGomaxprocsBehavior']} is not supported"


def _wrong_sizes(runtime: Object) -> Iterator[str]:
    sizes: dict[str, int] = {}
    for name in ("logSizeMax", "overlaySize"):
        try:
            sizes[name] = _size(runtime.get(name))
        except QuantityError as error:
            yield f"{name}: {error.message}"
    if 0 < sizes.get("logSizeMax", 0) <= MIN_LOG_SIZE:
        yield f'invalid LogSizeMax "{runtime["logSizeMax"]}", cannot be less than 8kB'
    overlay = sizes.get("overlaySize", 0)
    if overlay < 0:
        yield f'invalid OverlaySize "{runtime["overlaySize"]}", cannot be less than 0'
    if overlay > 0 and not _STORAGE_SIZE.match(str(runtime["overlaySize"])):
        yield f'invalid OverlaySize "{runtime["overlaySize"]}", write it as in 8G or 500Mi'


def _wrong_stores(name: str, entries: Any, allowed: bool) -> Iterator[str]:
    if not entries:
        return
    if not allowed:
        yield f"{name} needs the feature gate {STORAGE_GATE}: enable it in the FeatureGate cluster"
    paths = [entry.get("path") if isinstance(entry, Mapping) else None for entry in entries]
    for path in paths:
        if not isinstance(path, str) or not _PATH.match(path.removesuffix(BY_REFERENCE) if name == LAYERS else path):
            yield f"{name}: {path!r} is not an absolute path of letters, digits, '/', '.', '_' and '-'"
    if len(set(map(str, paths))) != len(paths):
        yield f"{name} must not contain duplicate paths"
