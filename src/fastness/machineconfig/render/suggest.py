"""The way out for a confidential pool: what a config asked for, as a layer of the image.

    layer(configs)                   the Containerfile: what a MachineOSConfig says in `containerFile`
    os_config(configs, place)        the whole MachineOSConfig, which can be applied

A confidential machine proves its command line, kernel and packages, so they belong into the image that is measured. The layer
builds here, without a network: arguments are a file, packages come from the extensions image that a MachineConfig names. It runs
no program but the shell's own and, for packages, the base's package manager.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import labels_of, object_name
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.render import kargs
from fastness.machineconfig.render.validate import EXTENSIONS, KERNELS, STOCK_KERNEL, examine, side_doors

Object = Mapping[str, Any]
FIRST: Final = "FROM configs AS final"
_REPOSITORY: Final = "/run/extensions/usr/share/rpm-ostree/extensions"
_DNF: Final = (
    "RUN --mount=type=bind,from=extensions,target=/run/extensions dnf -y --disablerepo='*' "
    f"--repofrompath=extensions,file://{_REPOSITORY} --nogpgcheck --setopt=cachedir=/tmp/dnf"
)


class PushPlace(NamedTuple):
    """Where the image of a suggested MachineOSConfig is pushed to, and for which pool it is; empty: told by the configs."""

    pool: str = ""
    spec: str = ""
    secret: str = ""


def layer(configs: Iterable[Object]) -> str:
    """A Containerfile with everything that the configs may not do at run time; empty when there is nothing."""
    lines: list[str] = []
    for config in configs:
        steps = _steps(config)
        if steps:
            lines += [f"# from MachineConfig {object_name(config).name}", *steps]
    return "\n".join([FIRST, *lines]) + "\n" if lines else ""


def os_config(configs: Sequence[Object], place: PushPlace = PushPlace()) -> JsonObject | None:  # noqa: B008 - a value
    """A MachineOSConfig with that layer, complete; None when there is nothing to bake."""
    text = layer(configs)
    if not text:
        return None
    pool = place.pool or next((role for each in configs if (role := labels_of(each).get(names.ROLE_LABEL))), "worker")
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineOSConfig", "metadata": {"name": pool},
        "spec": {
            "machineConfigPool": {"name": pool}, "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": place.secret or "push"},
            "renderedImagePushSpec": place.spec or f"registry.example.com/os/{pool}:latest",
            "containerFile": [{"containerfileArch": "NoArch", "content": text}],
        },
    }  # fmt: skip


def _steps(config: Object) -> list[str]:
    examined = examine(config)
    spec, document = examined.spec, examined.document or {}
    inside = document.get("kernelArguments") or {}
    arguments = [*kargs.split_all(spec.get("kernelArguments")), *kargs.split_all(inside.get("shouldExist"))]
    steps: list[str] = []
    if spec.get("fips"):
        arguments.append("fips=1")
        steps.append("RUN ! command -v update-crypto-policies || update-crypto-policies --no-reload --set FIPS")
    if arguments:
        steps.append(_write(f"{names.KARGS_DIRECTORY}/50-{examined.name}.toml", f"kargs = {_toml(arguments)}\n"))
    steps += [_taken_out(argument) for argument in kargs.split_all(inside.get("shouldNotExist"))]
    kernel = KERNELS.get(spec.get("kernelType") or "")
    if kernel:
        steps.append(f"{_DNF} swap --allowerasing {STOCK_KERNEL[1]} {' '.join(kernel)}")
    packages = [package for name in spec.get("extensions") or () for package in EXTENSIONS.get(name, ())]
    if packages:
        steps.append(f"{_DNF} install {' '.join(dict.fromkeys(packages))}")
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


def _taken_out(argument: str) -> str:
    """An argument of the base out of the files that bring it; TOML keeps a list with a comma too many."""
    word = re.sub(r"([\\/.*\[\]^$&])", r"\\\1", _toml([argument])[1:-1])
    edit = shlex.quote(f"s/{word}[[:space:]]*,//g; s/,[[:space:]]*{word}//g; s/{word}//g")
    return f'RUN for f in {names.KARGS_DIRECTORY}/*.toml; do [ ! -f "$f" ] || sed -i {edit} "$f"; done'


def _write(path: str, text: str) -> str:
    return f"RUN mkdir -p {posixpath.dirname(path)} && printf '%b' {shlex.quote(_escaped(text))} > {path}"


def _escaped(text: str) -> str:
    """One line for printf: an instruction of a Containerfile cannot span lines inside quotes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _toml(values: list[str]) -> str:
    return json.encode(values).decode().replace('","', '", "')
