"""The way out for a confidential pool: what a config asked for, as a layer of the image.

A confidential machine proves its command line, kernel and packages, so they belong into the image that is measured. The snippet
is a Containerfile that adds them; building it gives an image whose measurements are known before a machine boots it.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.formats import json
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.render import kargs
from fastness.machineconfig.render.validate import EXTENSIONS, examine, side_doors

Object = Mapping[str, Any]
_KERNELS: Final[Mapping[str, tuple[str, ...]]] = {
    "realtime": ("kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra"),
    "64k-pages": ("kernel-64k-core", "kernel-64k-modules", "kernel-64k-modules-core", "kernel-64k-modules-extra"),
}
_STOCK: Final = ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-modules-extra")


def layer(configs: Iterable[Object], base: str = "BASE_IMAGE") -> str:
    """A Containerfile with everything that the configs may not do at run time; empty when there is nothing."""
    lines: list[str] = []
    for config in configs:
        steps = _steps(config)
        if steps:
            lines += ["", f"# from MachineConfig {object_name(config).name}", *steps]
    return "\n".join([f"FROM {base}", *lines, "", "RUN bootc container lint"]) + "\n" if lines else ""


def _steps(config: Object) -> list[str]:
    examined = examine(config)
    spec, document = examined.spec, examined.document or {}
    inside = document.get("kernelArguments") or {}
    arguments = [*kargs.split_all(spec.get("kernelArguments")), *kargs.split_all(inside.get("shouldExist"))]
    steps: list[str] = []
    if spec.get("fips"):
        arguments.append("fips=1")
        steps.append("RUN update-crypto-policies --no-reload --set FIPS")
    if arguments:
        steps.append(_write(f"{names.KARGS_DIRECTORY}/50-{examined.name}.toml", f"kargs = {_toml(arguments)}\n"))
    if inside.get("shouldNotExist"):
        steps.append(f"# remove from the base image's kargs.d: {' '.join(inside['shouldNotExist'])}")
    kernel = _KERNELS.get(spec.get("kernelType") or "")
    if kernel:
        steps.append(f"RUN dnf -y remove {' '.join(_STOCK)} && dnf -y install {' '.join(kernel)} && dnf clean all")
    packages = [package for name in spec.get("extensions") or () for package in EXTENSIONS.get(name, ())]
    if packages:
        steps.append(f"RUN dnf -y install {' '.join(dict.fromkeys(packages))} && dnf clean all")
    return steps + _files(document)


def _files(document: Object) -> list[str]:
    """The files that were refused, copied as they are; the tuning file becomes arguments."""
    steps: list[str] = []
    files = (document.get("storage") or {}).get("files") or []
    for place, _ in side_doors(document):
        if not place.startswith("spec.config.storage.files["):
            continue
        entry = files[int(place.partition("[")[2].rstrip("]"))]
        text = (file_bytes(entry) or b"").decode(errors="replace")
        if posixpath.normpath(entry["path"]) == names.TUNING_FILE:
            added = [line.partition(" ")[2] for line in text.splitlines() if line.startswith("ADD ")]
            steps.append(_write(f"{names.KARGS_DIRECTORY}/50-tuning.toml", f"kargs = {_toml(added)}\n"))
        else:
            steps.append(_write(posixpath.normpath(entry["path"]), text))
    return steps


def _write(path: str, text: str) -> str:
    return f"RUN mkdir -p {posixpath.dirname(path)} && printf '%b' {shlex.quote(_escaped(text))} > {path}"


def _escaped(text: str) -> str:
    """One line for printf: an instruction of a Containerfile cannot span lines inside quotes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _toml(values: list[str]) -> str:
    return json.encode(values).decode().replace('","', '", "')
