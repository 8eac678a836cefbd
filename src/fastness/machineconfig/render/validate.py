"""Whether one MachineConfig can be rendered: every rule, all problems at once.

In order: the shape of the spec, the kernel type, the Ignition document (version, schema, meaning, modes), the extensions, and
what the trust model of the pool refuses. A wholly empty Ignition object is accepted.

In a confidential pool the command line, the kernel and the packages are part of what is measured, so a config that would change
them at run time is refused: `kernelArguments`, `kernelType`, `fips`, `extensions`, and the side doors to the same thing: kernel
arguments in the Ignition document, the tuning file, files and links where the boot loader and what writes its entries look.
Neutral values (`default`, empty, false) are not refused; disks that only look encrypted are (`disks`). Nothing is exempt: who
generated a config proves nothing, and a generator that would have to set one of these refuses its own source instead.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import labels_of, object_name
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.render import kargs
from fastness.machineconfig.render.disks import CIPHERS, LEAST_BITS, pinned_disks, weak_disks
from fastness.machineconfig.render.errors import Problem, Severity
from fastness.machineconfig.render.merge import current_document
from fastness.protocol.files_of_others import is_declaration, read_declaration

Object = Mapping[str, Any]

KERNEL_TYPES: Final = ("", "default", "realtime", "64k-pages")
MAX_MODE: Final = 0o777
EXTENSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "two-node-ha": ("pacemaker", "pcs", "fence-agents-all"),
    "ipsec": ("NetworkManager-libreswan", "libreswan", "openvswitch3.5-ipsec"),
    "usbguard": ("usbguard",),
    "kerberos": ("krb5-workstation", "libkadm5"),
    "kernel-devel": ("kernel-devel", "kernel-headers"),
    "sandboxed-containers": ("kata-containers",),
    "sysstat": ("sysstat",),
}
KERNELS: Final[Mapping[str, tuple[str, ...]]] = {
    "realtime": ("kernel-rt-core", "kernel-rt-modules", "kernel-rt-modules-extra"),
    "64k-pages": ("kernel-64k-core", "kernel-64k-modules", "kernel-64k-modules-core", "kernel-64k-modules-extra"),
}
STOCK_KERNEL: Final = ("kernel", "kernel-core", "kernel-modules", "kernel-modules-core", "kernel-modules-extra")
_SHAPES: Final[Mapping[str, tuple[type, str]]] = {
    "osImageURL": (str, "a string"),
    "baseOSExtensionsContainerImage": (str, "a string"),
    "config": (dict, "an Ignition object"),
    "kernelArguments": (list, "a list of strings"),
    "extensions": (list, "a list of strings"),
    "fips": (bool, "true or false"),
    "kernelType": (str, "a string"),
}
OTHERS_EXAMPLE: Final = 'as {"owner": "sriov-network-operator", "paths": ["/etc/sriov-operator"]}'
# systemd.unit(5): the characters of unit names, at most 255 of them.
_UNIT_NAME: Final = re.compile(r"[A-Za-z0-9:_.\\@-]{1,255}", re.ASCII)
_MEASURED: Final = "is part of what the machine proves when it boots"
_BAKE: Final = (
    "bake it into the image: `fastness validate --confidential --suggest FILE` writes the MachineOSConfig that does"
)
_KERNEL_ARGUMENTS: Final = (names.TUNING_FILE, names.KARGS_DIRECTORY)
# Where boot loaders read, and what the tools that write their entries are configured by. A machine that boots by another entry
# than the measured one fails its proof at the next boot, or boots what nobody approved where that is not measured.
_BOOT: Final = (
    "/boot", "/efi", "/sysroot/boot", "/etc/default/grub", "/etc/default/grub.d", "/etc/grub.d", "/etc/grub2.cfg",
    "/etc/grub2-efi.cfg", "/etc/kernel", "/usr/lib/kernel", "/usr/lib/bootupd", names.BOOT_LOADER_FILE,
)  # fmt: skip
_SIDE_DOORS: Final = (
    *((door, "changes the kernel arguments") for door in _KERNEL_ARGUMENTS),
    *((door, "changes what the machine boots") for door in _BOOT),
)


@dataclass(frozen=True, slots=True)
class Examined:
    """One config, read once: its problems, and its document in the current Ignition version."""

    name: str
    spec: Object
    document: JsonObject | None
    problems: tuple[Problem, ...]


def problems(config: Object, trust: TrustModel = TrustModel.NONE) -> list[Problem]:
    """Everything that is wrong with a config in a pool of this trust model, warnings included."""
    return list(examine(config, trust).problems)


def examine(config: Object, trust: TrustModel = TrustModel.NONE) -> Examined:
    """Read and judge a config."""
    name = object_name(config).name
    spec = config.get("spec")
    if not isinstance(spec, Mapping):
        wrong = Problem(name, "spec", "shape", "is missing or not an object", "write the config under spec")
        return Examined(name, {}, None, (wrong,))
    problems = list(_labels(name, config))
    wrong_shape = list(_shape(name, spec))
    problems += wrong_shape
    # What has the wrong type is told once and left out: every later rule would fail on it again, with a worse message.
    unusable = {problem.field.removeprefix("spec.") for problem in wrong_shape if problem.fatal}
    usable = {key: value for key, value in spec.items() if key not in unusable}
    problems += _kernel_type(name, usable)
    document: JsonObject | None = None
    if usable.get("config") is not None:
        document, of_document = current_document(name, usable["config"])
        problems += of_document
        problems += _modes(name, usable["config"])
        problems += _written_by_others(name, usable["config"])
        problems += declared_files(name, document or {})
        problems += _unit_names(name, usable["config"])
    problems += _extensions(name, usable)
    problems += _trust(name, usable, document, trust)
    return Examined(name, usable, document, tuple(problems))


def _labels(name: str, config: Object) -> Iterator[Problem]:
    if not labels_of(config):
        way_out = f"add the label {names.ROLE_LABEL}: worker, or the name of another pool"
        yield Problem(name, "metadata.labels", "no-role", "the config has no labels, so no pool selects it", way_out)


def _shape(name: str, spec: Object) -> Iterator[Problem]:
    for key, value in spec.items():
        expected = _SHAPES.get(key)
        if expected is None:
            near = difflib.get_close_matches(key, _SHAPES, n=1)
            way_out = f"did you mean {near[0]}?" if near else "remove it"
            yield Problem(name, f"spec.{key}", "unknown-field", "is not a field", way_out, Severity.WARNING)
        elif value is not None and not _has_shape(value, expected[0]):
            yield Problem(name, f"spec.{key}", "shape", f"must be {expected[1]}", "correct the type")


def _has_shape(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, kind)


def _kernel_type(name: str, spec: Object) -> Iterator[Problem]:
    value = spec.get("kernelType") or ""
    if value not in KERNEL_TYPES:
        way_out = f"use one of {', '.join(KERNEL_TYPES[1:])}"
        yield Problem(name, "spec.kernelType", "kernel-type", f"{value!r} is not a kernel type", way_out)


def _modes(name: str, document: Object) -> Iterator[Problem]:
    storage = document.get("storage")
    files = storage.get("files") if isinstance(storage, Mapping) else None
    for index, entry in enumerate(files if isinstance(files, list) else ()):
        mode = entry.get("mode") if isinstance(entry, Mapping) else None
        # 644 written without its octal mark is 0o1204: the usual mistake, which would set the sticky bit.
        if type(mode) is int and mode > MAX_MODE:
            yield Problem(
                name,
                f"spec.config.storage.files[{index}].mode",
                "file-mode",
                f"{entry.get('path')}: mode {mode:#o} has bits above 0777",
                "leave out setuid, setgid and sticky; is the number decimal by mistake?",
            )


def _written_by_others(name: str, document: Object) -> Iterator[Problem]:
    """Paths that the agent writes from other objects: it and the config would take turns, and each call the other drift."""
    storage = document.get("storage")
    for group in ("files", "directories", "links"):
        entries = storage.get(group) if isinstance(storage, Mapping) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, Mapping) and entry.get("path") == names.PINNED_IMAGES_FILE:
                place = f"spec.config.storage.{group}[{index}].path"
                why = f"{names.PINNED_IMAGES_FILE} is written by the agent, from PinnedImageSets"
                way_out = "make a PinnedImageSet and name it in the pool, or use another name in that directory"
                yield Problem(name, place, "pinned-images", why, way_out)


def declared_files(name: str, document: Object) -> Iterator[Problem]:
    """Declarations of files that other operators keep, which no agent could read."""
    for index, entry in enumerate((document.get("storage") or {}).get("files") or ()):
        if not is_declaration(str(entry.get("path"))):
            continue
        try:
            read_declaration(file_bytes(entry) or b"")
        except ValueError as error:
            place = f"spec.config.storage.files[{index}].contents"
            yield Problem(name, place, "files-of-others", str(error), OTHERS_EXAMPLE)


def _unit_names(name: str, document: Object) -> Iterator[Problem]:
    """Names that would leave the directory of units; Ignition looks at the suffix only, and no agent would write them."""
    systemd = document.get("systemd")
    units = systemd.get("units") if isinstance(systemd, Mapping) else None
    for index, entry in enumerate(units if isinstance(units, list) else ()):
        unit = entry if isinstance(entry, Mapping) else {}
        place = f"spec.config.systemd.units[{index}]"
        if isinstance(unit.get("name"), str) and not _UNIT_NAME.fullmatch(unit["name"]):
            why = f"{unit['name']!r} is not the name of a unit"
            yield Problem(
                name, f"{place}.name", "unit-name", why, "use letters, digits and :-_.\\\\@ with a type, as a.service"
            )
        dropins = unit.get("dropins")
        for number, dropin in enumerate(dropins if isinstance(dropins, list) else ()):
            called = dropin.get("name") if isinstance(dropin, Mapping) else None
            # It becomes a file name below <unit>.d: "../../cron.d/x" would be a path of the author's choice.
            if isinstance(called, str) and ("/" in called or "\0" in called):
                why = f"{called!r} has a slash or a NUL" if "\0" in called else f"{called!r} has a slash"
                yield Problem(name, f"{place}.dropins[{number}].name", "dropin-name", why, "give the name of a file")


def _extensions(name: str, spec: Object) -> Iterator[Problem]:
    unknown = [value for value in spec.get("extensions") or () if value not in EXTENSIONS]
    if unknown:
        way_out = f"use {', '.join(EXTENSIONS)}"
        yield Problem(name, "spec.extensions", "extension", f"{', '.join(unknown)} is not supported", way_out)


def _trust(name: str, spec: Object, document: JsonObject | None, trust: TrustModel) -> list[Problem]:
    if trust is TrustModel.NONE:
        return []
    problems = list(_disks(name, document or {})) if trust is TrustModel.CONFIDENTIAL_CLUSTER else []
    touched = [*host_fields(spec), *side_doors(document or {})]
    if not touched:
        return problems
    # A host of pod VMs proves nothing, so nothing that it boots is refused; whoever reads the pool should know that.
    if trust is TrustModel.CONTAINERS_HOST:
        return [
            Problem(name, place, "host-not-attested", f"{what}; the host of pod VMs is not attested, nobody vouches for it",
                    "", Severity.WARNING)
            # Its own base brings this word, and it only keeps a loader from growing old.
            for place, what in touched if not what.startswith(f"{names.BOOT_LOADER_FILE} ")
        ]  # fmt: skip
    return [
        *problems,
        *(
            Problem(
                name, place, "confidential", f"{what}, which is refused in a confidential pool: it {_MEASURED}", _BAKE
            )
            for place, what in touched
        ),
    ]


def _disks(name: str, document: JsonObject) -> Iterator[Problem]:
    for place, what in weak_disks(document):
        why = f"{what}: the host of a confidential machine could read this disk"
        yield Problem(
            name, place, "weak-disk", why, f"leave it out, or name one of {'; '.join(CIPHERS)} with {LEAST_BITS} bits"
        )
    for place, what in pinned_disks(document):
        why = f"{what}: the host of a confidential machine has its virtual TPM and its network, and opens it without a proof"
        hint = "set disk.volume of the pool in the ConfidentialCluster instead"
        yield Problem(name, place, "disk-opened-by-host", why, hint)


def host_fields(spec: Object) -> Iterator[tuple[str, str]]:
    """The four fields that change what a machine boots, where they are not neutral: the place, and what it sets."""
    arguments = kargs.split_all(spec.get("kernelArguments"))
    if arguments:
        yield "spec.kernelArguments", f"sets the kernel arguments {' '.join(arguments)}"
    if (spec.get("kernelType") or "default") != "default":
        yield "spec.kernelType", f"asks for the kernel {spec['kernelType']}"
    if spec.get("fips"):
        yield "spec.fips", "switches FIPS mode on"
    if spec.get("extensions"):
        yield "spec.extensions", f"adds the extensions {', '.join(spec['extensions'])}"


def side_doors(document: Object) -> Iterator[tuple[str, str]]:
    """Other ways to the same thing inside an Ignition document of the current version."""
    arguments = document.get("kernelArguments") or {}
    for key in ("shouldExist", "shouldNotExist"):
        if arguments.get(key):
            place = f"spec.config.kernelArguments.{key}"
            yield place, f"changes the kernel arguments {' '.join(arguments[key])}"
    storage = document.get("storage") or {}
    for kind in ("files", "directories", "links"):
        for index, entry in enumerate(storage.get(kind) or ()):
            path = str(entry.get("path") or "")
            places = [_clean(path)]
            if kind == "links":
                # A path through a link is refused by Ignition itself; a link that ends at the door gives it another name.
                places.append(_clean(posixpath.join(posixpath.dirname(path), str(entry.get("target") or "."))))
            opened = [what for door, what in _SIDE_DOORS if any(_inside(place, door) for place in places)]
            if opened:
                yield f"spec.config.storage.{kind}[{index}]", f"{path} {opened[0]}"


def _inside(place: str, door: str) -> bool:
    return place == door or place.startswith(f"{door}/")


def _clean(path: str) -> str:
    """Without detours; /lib is a link to /usr/lib on every system that we know."""
    plain = path.startswith("/") and "//" not in path and "/." not in path
    clean = path if plain else posixpath.normpath("/" + path.lstrip("/"))
    return f"/usr{clean}" if clean == "/lib" or clean.startswith("/lib/") else clean
