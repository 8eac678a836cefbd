"""Everything that an image is made of, in one value with one digest.

    made_of = inputs(config, rendered, sources, setting)     raises StillRendering
    made_of.digest                                           equal inputs, equal image: nothing is built twice
    build_name(config, pool, rendered)                       the name of the MachineOSBuild

The name of a build follows from the MachineOSConfig and from the whole rendered config: a change of either is another build, and
taking it back leads to the old one. The digest follows from what goes into the image alone: a build whose digest exists already
takes that image, which is what every change of class disk does. Defaults of ours count in it only where a change of them needs a
reboot, and under the path that their config names: where they lie, and the rest of them, is no reason for another image.

Contents are taken from the MachineConfigs, and only when these make the rendered config: else the words about what is public
would be newer than the contents that they are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.builds import kernel_arguments
from fastness.builds.containerfile import uses_stage
from fastness.builds.defaults import UNITS, Default, defaults_of
from fastness.builds.kernel_arguments import Arguments, arguments_for
from fastness.builds.packages import NO_PACKAGES, STAGE, Packages, packages_for
from fastness.builds.placement import Placed, Setting, Where, configured, placed
from fastness.builds.sealing import is_sealed
from fastness.crypto.digests import sha256
from fastness.formats import data_url, json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.render.blame import PartKind
from fastness.machineconfig.render.merge import Source, merged_document
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
NAME_HEX: Final = 32
# Part of the digest: an image that another version would make differently is not the same image.
METHOD: Final = 1
NO_BASE: Final = "no base image is known: name one in osImageURL of a MachineConfig, a stream, or the ControllerConfig"
NULL: Final = "/dev/null"
_ALWAYS: Final = frozenset({"method", "base", "layer", "files"})
_NO_EXTENSIONS: Final = (
    f"the Containerfile takes packages from the stage {STAGE}, and no MachineConfig names an image for it in "
    "baseOSExtensionsContainerImage"
)
_MODE: Final = 0o644


class StillRendering(Exception):
    """The rendered config is not what the MachineConfigs make: it is about to be rendered anew."""


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A regular file of an image, or with `link` a symbolic link."""

    path: str
    content: bytes = b""
    mode: int = _MODE
    link: str = ""


@dataclass(frozen=True, slots=True)
class BuildInputs:
    """What an image is made of."""

    base: str
    layer: str = ""
    files: tuple[ImageFile, ...] = ()
    placed: tuple[Placed, ...] = field(default=(), compare=False)
    packages: Packages = NO_PACKAGES
    removed_arguments: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    sealed: bool = False
    defaults: tuple[Default, ...] = field(default=(), compare=False)

    @property
    def digest(self) -> str:
        """One word for all of it."""
        files = [[each.path, str(sha256(each.content)), each.mode, each.link] for each in self.files]
        made_of = {
            "method": METHOD, "base": self.base, "layer": self.layer, "files": files, "packages": list(self.packages.install),
            "extensions": self.extensions, "withoutArguments": list(self.removed_arguments), "enabled": list(self.enabled),
            "sealed": self.sealed,
        }  # fmt: skip
        # What is not there is not named: an image that needs nothing of a later version keeps its name.
        return str(sha256(json.canonical({key: value for key, value in made_of.items() if value or key in _ALWAYS})))

    @property
    def laid(self) -> tuple[ImageFile, ...]:
        """The files where they lie in the image: our own word about a path below /usr, everybody else's where they said."""
        moved = {each.path for each in self.defaults if not each.winner}
        files = [each for each in self.files if each.path not in moved]
        taken = {each.path for each in files}
        own = [ImageFile(each.place, each.content, each.mode) for each in self.defaults if each.place not in taken]
        return tuple(sorted((*files, *own), key=lambda each: each.path))

    @property
    def document(self) -> JsonObject:
        """Files and units as an Ignition document, which the agent's own writer brings into the image."""
        files = [
            {"path": each.path, "mode": each.mode, "overwrite": True, "contents": {"source": data_url.encode(each.content)}}
            for each in self.laid if not each.link
        ]  # fmt: skip
        links = [{"path": each.path, "target": each.link, "overwrite": True} for each in self.laid if each.link]
        units = [{"name": name, "enabled": True} for name in self.enabled]
        return {
            "ignition": {"version": CURRENT}, "storage": {"files": files, "links": links}, "systemd": {"units": units},
        }  # fmt: skip

    @property
    def extensions(self) -> str:
        """The extensions image that the build needs; empty where nothing is taken from it."""
        return self.packages.source if self.packages or self.takes_from_extensions else ""

    @property
    def takes_from_extensions(self) -> bool:
        """Whether what people wrote takes something from the extensions image."""
        return uses_stage(self.layer, STAGE)

    @property
    def problem(self) -> tuple[str, str]:
        """Why an image cannot be made of this, as a reason and a sentence; both empty when it can."""
        if not self.base:
            return "NoBaseImage", NO_BASE
        if problem := self.packages.problem:
            return "ExtensionsImageInvalid", problem
        if self.takes_from_extensions and not self.packages.source:
            return "ExtensionsImageInvalid", _NO_EXTENSIONS
        return "", ""


def inputs(config: Object, rendered: Object, sources: Sequence[Source], setting: Setting) -> BuildInputs:
    """What goes into the image of a MachineOSConfig for a rendered config; raises StillRendering."""
    document, spec = merged_document(sources), rendered.get("spec") or {}
    if json.canonical(document) != json.canonical(spec.get("config") or {}):
        raise StillRendering
    chosen = {each.path: each for each in configured(sources, setting) if each.where is Where.IMAGE}
    # A confidential pool refuses both in MachineConfigs: what is asked for there stays out of the image, too.
    arguments = Arguments() if setting.confidential else arguments_for(spec)
    packages = packages_for({} if setting.confidential else spec, str(spec.get("baseOSExtensionsContainerImage") or ""))
    files = [*_files(document, chosen), *_arguments_file(arguments)]
    return BuildInputs(
        str(spec.get("osImageURL") or ""), layer_of(config), tuple(sorted(files, key=lambda each: each.path)),
        placed(sources, setting), packages, arguments.removed, tuple(sorted(_enabled(document, chosen))), is_sealed(config),
        defaults_of(sources, setting.defaults_from),
    )  # fmt: skip


def _arguments_file(arguments: Arguments) -> list[ImageFile]:
    if not arguments.added:
        return []
    return [ImageFile(kernel_arguments.PLACE, kernel_arguments.arguments_file(arguments.added))]


def _enabled(document: Object, chosen: Mapping[str, Placed]) -> Iterator[str]:
    """The units that start at boot, of those whose file is in the image; the agent sees to the others."""
    for unit in (document.get("systemd") or {}).get("units") or ():
        if (
            unit.get("enabled")
            and unit.get("contents")
            and not unit.get("mask")
            and f"{UNITS}/{unit['name']}" in chosen
        ):
            yield str(unit["name"])


def layer_of(config: Object) -> str:
    """What people add: the text for all architectures."""
    texts = (config.get("spec") or {}).get("containerFile") or ()
    return next((str(each.get("content") or "") for each in texts if _is_for_all(each)), "")


def _is_for_all(entry: Object) -> bool:
    return str(entry.get("containerfileArch", "NoArch")) == "NoArch"


def build_name(config: Object, pool: Object, rendered: Object) -> str:
    """The name of the build of a MachineOSConfig for the config that a pool has."""
    spec = rendered.get("spec") or {}
    made_of = {
        "configuration": (pool.get("spec") or {}).get("configuration") or {}, "config": config.get("spec") or {},
        "base": spec.get("osImageURL") or "", "extensions": spec.get("baseOSExtensionsContainerImage") or "",
        "release": annotations_of(rendered).get(names.RELEASE_IMAGE_VERSION, ""), "method": METHOD,
        **({"sealed": True} if is_sealed(config) else {}),
    }  # fmt: skip
    return f"{object_name(config).name}-{sha256(json.canonical(made_of)).hex[:NAME_HEX]}"


def _files(document: Object, chosen: Mapping[str, Placed]) -> list[ImageFile]:
    storage = document.get("storage") or {}
    files = [
        ImageFile(str(entry["path"]), _content(entry), _MODE if entry.get("mode") is None else int(entry["mode"]))
        for entry in storage.get("files") or () if _is(chosen, str(entry.get("path")), PartKind.FILE)
    ]  # fmt: skip
    files += [
        ImageFile(str(entry["path"]), link=str(entry.get("target") or ""))
        for entry in storage.get("links") or () if _is(chosen, str(entry.get("path")), PartKind.LINK)
    ]  # fmt: skip
    for unit in (document.get("systemd") or {}).get("units") or ():
        files += _unit_files(unit, chosen)
    return files


def _unit_files(unit: Object, chosen: Mapping[str, Placed]) -> list[ImageFile]:
    path = f"{UNITS}/{unit.get('name')}"
    files: list[ImageFile] = []
    if path in chosen and unit.get("mask") is True:
        files.append(ImageFile(path, link=NULL))
    elif path in chosen and unit.get("contents"):
        files.append(ImageFile(path, str(unit["contents"]).encode()))
    for dropin in unit.get("dropins") or ():
        place = f"{path}.d/{dropin.get('name')}"
        if place in chosen and dropin.get("contents"):
            files.append(ImageFile(place, str(dropin["contents"]).encode()))
    return files


def _is(chosen: Mapping[str, Placed], path: str, kind: PartKind) -> bool:
    return path in chosen and chosen[path].part is kind


def _content(entry: Object) -> bytes:
    resource = {key: value for key, value in (entry.get("contents") or {}).items() if value is not None}
    return data_url.contents(resource)
