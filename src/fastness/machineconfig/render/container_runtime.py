"""ContainerRuntimeConfig: settings of the container runtime, turned into drop-ins.

Every setting is a drop-in of its own in the runtime's configuration directory, named after the field, so that a later config can
override one of them. What concerns storage is in the one file that the storage library reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.formats.errors import QuantityError
from fastness.formats.quantity import parse_quantity
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.kubelet_config import LOG_LEVELS
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.kubelet import config_file
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
DIRECTORY: Final = "/etc/crio/crio.conf.d"
STORAGE_FILE: Final = "/etc/containers/storage.conf"
MIN_LOG_SIZE: Final = 8192
RUNTIMES: Final = ("crun", "runc")
_UNSUPPORTED: Final = ("additionalArtifactStores", "containerGomaxprocsBehavior")


def containerruntime_spec(settings: Object) -> JsonObject:
    """The spec of the MachineConfig that a ContainerRuntimeConfig generates; raises BadSettings."""
    runtime = (settings.get("spec") or {}).get("containerRuntimeConfig") or {}
    wrong = list(_wrong(runtime))
    if wrong:
        raise BadSettings("; ".join(wrong), "correct these fields of the ContainerRuntimeConfig")
    files = [config_file(f"{DIRECTORY}/01-ctrcfg-{name}", _dropin(line)) for name, line in _lines(runtime)]
    storage = _storage(runtime)
    if storage:
        files.append(config_file(STORAGE_FILE, storage))
    document: JsonObject = {"ignition": {"version": CURRENT}}
    if files:
        document["storage"] = {"files": files}
    return {"config": document}


def _dropin(line: str) -> str:
    return f"[crio]\n  [crio.runtime]\n    {line}\n"


def _lines(runtime: Object) -> Iterator[tuple[str, str]]:
    if runtime.get("logLevel"):
        yield "logLevel", f'log_level = "{runtime["logLevel"]}"'
    if runtime.get("pidsLimit"):
        yield "pidsLimit", f"pids_limit = {runtime['pidsLimit']}"
    size = runtime.get("logSizeMax")
    if size not in (None, "", 0, "0"):
        yield "logSizeMax", f"log_size_max = {int(parse_quantity(str(size)))}"
    if runtime.get("defaultRuntime"):
        yield "defaultRuntime", f'default_runtime = "{runtime["defaultRuntime"]}"'


def _storage(runtime: Object) -> str:
    size = runtime.get("overlaySize")
    images, layers = (_paths(runtime, name) for name in ("additionalImageStores", "additionalLayerStores"))
    if size in (None, "", 0, "0") and not images and not layers:
        return ""
    lines = ["[storage]", 'driver = "overlay"', 'runroot = "/run/containers/storage"']
    lines += ['graphroot = "/var/lib/containers/storage"', "[storage.options]"]
    if images:
        lines.append(f"additionalimagestores = [{', '.join(images)}]")
    if layers:
        lines.append(f"additionallayerstores = [{', '.join(layers)}]")
    if size not in (None, "", 0, "0"):
        lines += ["[storage.options.overlay]", f'size = "{int(parse_quantity(str(size)))}"']
    return "\n".join(lines) + "\n"


def _paths(runtime: Object, name: str) -> list[str]:
    return [f'"{entry["path"]}"' for entry in runtime.get(name) or ()]


def _wrong(runtime: Object) -> Iterator[str]:
    prefix = "spec.containerRuntimeConfig"
    level = runtime.get("logLevel")
    if level and level not in LOG_LEVELS:
        yield f"{prefix}.logLevel must be one of {', '.join(filter(None, LOG_LEVELS))}"
    pids = runtime.get("pidsLimit")
    if pids is not None and (not isinstance(pids, int) or isinstance(pids, bool) or (0 < pids < 20) or pids < -1):
        yield f"{prefix}.pidsLimit must be at least 20, 0 for the default or -1 for none"
    if runtime.get("defaultRuntime") and runtime["defaultRuntime"] not in RUNTIMES:
        yield f"{prefix}.defaultRuntime must be one of {', '.join(RUNTIMES)}"
    for name, least in (("logSizeMax", MIN_LOG_SIZE), ("overlaySize", 0)):
        yield from _wrong_size(f"{prefix}.{name}", runtime.get(name), least)
    for name in ("additionalImageStores", "additionalLayerStores"):
        for entry in runtime.get(name) or ():
            path = entry.get("path") if isinstance(entry, Mapping) else None
            if not isinstance(path, str) or not path.startswith("/") or '"' in path or "\n" in path:
                yield f"{prefix}.{name}: {path!r} is not an absolute path"
    for name in _UNSUPPORTED:
        if runtime.get(name):
            yield f"{prefix}.{name} is not supported"


def _wrong_size(field: str, value: Any, least: int) -> Iterator[str]:
    if value in (None, "", 0, "0"):
        return
    try:
        size = int(parse_quantity(str(value)))
    except QuantityError as error:
        yield f"{field}: {error.message}"
        return
    if 0 <= size < least:
        yield f"{field} must be at least {least} bytes, or negative for no limit"
    if size < 0 and least == 0:
        yield f"{field} must not be negative"
