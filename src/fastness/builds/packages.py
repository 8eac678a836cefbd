"""Packages that a config asks for, put into the image by the base's own package manager.

    asked = packages_for(spec)          what is installed and what goes, by the names that the extensions image has them under
    script()                            what runs in the build, with these names as its arguments

A build has no network: packages come from the extensions image that the config names by digest, bound into the build as a
repository in a directory. Which manager does it is the base's affair (dnf, microdnf, rpm-ostree, apt-get); a base that has none
is refused with that reason. What managers leave behind (lists, caches, logs) is taken out: it says when, not what.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.machineconfig.render.merge import DEFAULT_KERNEL
from fastness.machineconfig.render.validate import EXTENSIONS, KERNELS, STOCK_KERNEL

Object = Mapping[str, Any]
SCRIPT: Final = "packages.sh"
STAGE: Final = "extensions"
MOUNT: Final = "/run/fastness-extensions"
TOLD: Final = "fastness-build: "
"""How a line of the build's output begins that says in our words why it ended."""
_FIELD: Final = "baseOSExtensionsContainerImage"


class Packages(NamedTuple):
    """What the package manager does, each list in the order of the config; `source` is the extensions image."""

    source: str = ""
    install: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.install)

    @property
    def problem(self) -> str:
        """Why nothing can be installed, with what to do; empty when it can, and when nothing is asked for."""
        if not self:
            return ""
        if not self.source:
            return (
                f"{', '.join(self.install)} come from the extensions image, and no MachineConfig names it in {_FIELD}"
            )
        try:
            digest = oci.reference(self.source).digest
        except FormatError as error:
            return f"{_FIELD}: {error}"
        return "" if digest else f"{_FIELD}: {self.source} is a tag, whose content may change: name it by digest"

    def command(self) -> str:
        """The instruction of a Containerfile that installs them."""
        words = shlex.join([*(f"-{name}" for name in self.remove), *self.install])
        mounts = f"--mount=type=bind,from={STAGE},target={MOUNT} --mount=type=bind,source={SCRIPT},target=/run/{SCRIPT}"
        return f"RUN {mounts} sh /run/{SCRIPT} {MOUNT} {words}"


NO_PACKAGES: Final = Packages()


def packages_for(spec: Object, source: str) -> Packages:
    """The packages behind extensions and kernel type of a rendered config, from an extensions image."""
    kernel = str(spec.get("kernelType") or DEFAULT_KERNEL)
    packages = [package for name in spec.get("extensions") or () for package in EXTENSIONS.get(str(name), ())]
    kernels = KERNELS.get(kernel, ())
    install = tuple(dict.fromkeys([*kernels, *packages]))
    return Packages(source, install, STOCK_KERNEL if kernels else ())


@cache
def script() -> str:
    """What runs in the build, in POSIX sh."""
    return (files(__package__) / SCRIPT).read_text()
