"""Image or disk: where every part of a pool's configuration lives, and why.

The rule, from the top; the first line that fits counts:

    files that another operator keeps                      disk   declared in a MachineConfig (`protocol/files_of_others`)
    certificates, credentials, the agent's own records     disk   they change without a reboot, or are secret
    what a confidential pool holds, unless it is public    disk   a registry and a builder would see it
    keys and passwords of people                           disk   below a home directory, which is /var
    /var, /home, /root, /run, /tmp, /boot, …               disk   an image brings these only to the first boot, or not at all
    kernel arguments, kernel type, extensions              image  a confidential pool refuses them in MachineConfigs
    what takes effect without a reboot                     disk   in the image, every change of it would be a reboot
    what does not belong to root, directories, hard links  disk   the agent writes them
    everything else, /etc and /usr                         image

Defaults of ours that have a place below /usr are in the image there, whatever a change of them needs (`defaults`).
Public is a MachineConfig with the annotation `fastness.dev/public: "true"`, which our own base configs carry. In a confidential
pool all who had a word about a file have to be public: what was overridden may still show in a mode or an owner.
Packages come from the extensions image that the config names, arguments are a file of the image (`kernel_arguments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from fastness.builds.defaults import UNITS, Default, defaults_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.ignition.resources import file_bytes
from fastness.machineconfig.render.blame import Blame, Origin, PartKind
from fastness.machineconfig.render.merge import Source, merged_document
from fastness.machineconfig.rollout.disruption import Act, Actions, Policies
from fastness.machineconfig.trust.files import (
    CLOUD_CA,
    IMAGE_PULL_SECRET,
    INTERNAL_PULL_SECRET,
    KUBECONFIGS,
    REGISTRIES,
)
from fastness.protocol.files_of_others import FilesOfOthers

Object = Mapping[str, Any]
PUBLIC: Final = names.PUBLIC
KEYS: Final = "/home/core/.ssh/authorized_keys.d/ignition"
_FOREIGN: Final = "another operator keeps it: not judged, not replaced, there again after a switch"
_OF_THE_DISK: Final = (
    ("/var", "/var belongs to the machine: an image brings it to the first boot only"),
    ("/home", "/home is /var/home: a file of an image is not there after the boot"),
    ("/root", "/root is /var/roothome: a file of an image is not there after the boot"),
    ("/opt", "/opt is below /var on image hosts"), ("/srv", "/srv is below /var on image hosts"),
    ("/mnt", "/mnt is below /var on image hosts"), ("/usr/local", "/usr/local is below /var on image hosts"),
    ("/run", "/run is memory"), ("/tmp", "/tmp is memory"),  # noqa: S108 - a place on a machine, nothing is written here
    ("/boot", "/boot belongs to the boot loader"),
    ("/proc", "/proc is the kernel's"), ("/sys", "/sys is the kernel's"), ("/dev", "/dev is the kernel's"),
)  # fmt: skip
_BESIDE: Final = (
    (names.KUBELET_CA, "changes with the authority of the cluster, without a reboot"),
    (CLOUD_CA, "changes with the ControllerConfig, without a reboot"),
    (REGISTRIES, "certificates of registries change without a reboot"),
    (INTERNAL_PULL_SECRET, "is a credential"), (IMAGE_PULL_SECRET, "is the credential for the pool's images"),
    *((path, "is a credential") for path in KUBECONFIGS),
    ("/var/lib/kubelet/config.json", "is the pull secret"),
    ("/etc/mco/proxy.env", "may hold a password for the proxy"),
    ("/etc/kubernetes/cloud.conf", "may hold a credential for the platform"),
    ("/etc/machine-config-daemon", "records of the agent about this machine"),
    ("/var/lib/fastness", "state of the agent on this machine"),
)  # fmt: skip


class Where(StrEnum):
    """Where a part of a configuration lives."""

    IMAGE = "image"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Placed:
    """One path, or one part that has no path: where it lives, why, and who brought it."""

    path: str
    where: Where
    why: str
    owner: str
    part: PartKind | None = None

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {"path": self.path, "where": str(self.where), "why": self.why, "owner": self.owner}


class Setting(NamedTuple):
    """What placing depends on beside the configs: confidential pools keep back what is not public, `ours` are base configs."""

    policies: Policies
    confidential: bool = False
    public: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()

    @property
    def defaults_from(self) -> frozenset[str]:
        """The base configs whose files are in the image as defaults."""
        return self.ours & self.public if self.confidential else self.ours


def public_configs(configs: Iterable[Object]) -> frozenset[str]:
    """The MachineConfigs that say that anybody may read them."""
    return frozenset(object_name(config).name for config in configs if annotations_of(config).get(PUBLIC) == "true")


def placed(sources: Sequence[Source], setting: Setting) -> tuple[Placed, ...]:
    """Every part of a pool's configuration, by path; what the control plane writes beside it last."""
    defaults = {each.path: each for each in defaults_of(sources, setting.defaults_from)}
    parts = [place for part in configured(sources, setting) for place in _with_default(part, defaults.get(part.path))]
    theirs = [Placed(path, Where.DISK, why, "control plane") for path, why in _BESIDE]
    foreign = [Placed(path, Where.DISK, _FOREIGN, owner) for path, owner in sorted(others_of(sources).owners.items())]
    return (*sorted(parts, key=lambda each: each.path), *foreign, *theirs)


def others_of(sources: Sequence[Source]) -> FilesOfOthers:
    """Which files on machines of a pool other operators keep, as MachineConfigs declare it."""
    merged = (merged_document(sources).get("storage") or {}).get("files") or ()
    return FilesOfOthers.of((str(entry.get("path")), file_bytes(entry) or b"") for entry in merged)


def configured(sources: Sequence[Source], setting: Setting) -> tuple[Placed, ...]:
    """The parts of a configuration where it names them: defaults of ours are not below /usr yet."""
    entries, others = _entries(sources), others_of(sources)
    parts = (_part(origin, entries, setting) for origin in Blame(sources).origins if origin.kind in _PLACED)
    return tuple(
        replace(part, where=Where.DISK, why=f"only its first content: {owner} keeps it")
        if (owner := others.owner_of(part.path)) else part
        for part in parts
    )  # fmt: skip


def _with_default(part: Placed, default: Default | None) -> Iterator[Placed]:
    """What there is of a part when our own word about it is below /usr: that alone, or beside the one that wins."""
    if default is None or default.winner:
        yield (
            part if default is None else replace(part, why=f"{part.why}; wins over {default.place} of {default.owner}")
        )
    if default is not None:
        other = (
            f"overridden: {default.path} of {default.winner} wins" if default.winner else f"{default.path} would win"
        )
        yield Placed(default.place, Where.IMAGE, f"a default of ours; {other}", default.owner, part.part)


_PLACED: Final = frozenset({
    PartKind.FILE, PartKind.DIRECTORY, PartKind.LINK, PartKind.UNIT, PartKind.DROPIN, PartKind.USER, PartKind.KEY,
    PartKind.ARGUMENT, PartKind.EXTENSION, PartKind.FIELD,
})  # fmt: skip


def _part(origin: Origin, entries: Mapping[tuple[PartKind, str], Object], setting: Setting) -> Placed:
    path = path_of(origin)
    where, why = _decided(origin, path, entries.get((origin.kind, origin.name)) or {}, setting)
    return Placed(path, where, why, origin.source, origin.kind)


def _decided(origin: Origin, path: str, entry: Object, setting: Setting) -> tuple[Where, str]:
    if origin.kind in (PartKind.FIELD, PartKind.ARGUMENT, PartKind.EXTENSION):
        return _of_the_system(origin, setting.confidential)
    if (beside := _below(path, _BESIDE)) is not None:
        return Where.DISK, beside
    if setting.confidential:
        held = sorted({touch.config for touch in origin.history} - setting.public)
        if held:
            return Where.DISK, f"confidential: {', '.join(held)} is not marked {PUBLIC}"
    if origin.kind in (PartKind.KEY, PartKind.USER):
        return Where.DISK, "keys and passwords of people are written by the agent"
    if (mutable := _below(path, _OF_THE_DISK)) is not None:
        return Where.DISK, mutable
    actions = _actions(origin, path, setting.policies)
    if all(action.type is not Act.REBOOT for action in actions):
        return Where.DISK, f"takes effect without a reboot ({', '.join(map(str, actions))})"
    return _by_shape(origin.kind, entry)


_FIELDS: Final = {
    "osImageURL": (Where.IMAGE, "the image that the build begins with"),
    "baseOSExtensionsContainerImage": (Where.IMAGE, "where packages of the image come from"),
    "kernelType": (Where.IMAGE, "installed in the build, from the extensions image"),
}


def _of_the_system(origin: Origin, confidential: bool) -> tuple[Where, str]:
    """What changes what a machine boots."""
    if confidential and origin.name not in ("osImageURL", "baseOSExtensionsContainerImage"):
        return (
            Where.DISK,
            "refused in a confidential pool: a layer of the MachineOSConfig brings it (validate --suggest)",
        )
    match origin.kind:
        case PartKind.ARGUMENT:
            return Where.IMAGE, f"a file below {names.KARGS_DIRECTORY}: comes and goes with the image"
        case PartKind.EXTENSION:
            return Where.IMAGE, "installed in the build, from the extensions image"
        case _:
            return _FIELDS.get(origin.name, (Where.DISK, "decided when a machine is installed"))


def _by_shape(kind: PartKind, entry: Object) -> tuple[Where, str]:
    if kind is PartKind.DIRECTORY or entry.get("hard"):
        return Where.DISK, "written by the agent"
    foreign = any((entry.get(name) or {}).get("id") or (entry.get(name) or {}).get("name", "root") != "root"
                  for name in ("user", "group"))  # fmt: skip
    if foreign:
        return Where.DISK, "belongs to an account of the machine"
    if kind is PartKind.UNIT and not entry.get("contents") and not entry.get("mask"):
        return Where.DISK, "a unit of the base: enabling it is the agent's"
    return Where.IMAGE, "changes with a reboot only"


def _actions(origin: Origin, path: str, policies: Policies) -> Actions:
    if origin.kind in (PartKind.UNIT, PartKind.DROPIN):
        return policies.for_unit(origin.name.partition("/")[0])
    return policies.for_file(path)


def path_of(origin: Origin) -> str:
    """The path of a part on a machine; what has none is named by its kind."""
    match origin.kind:
        case PartKind.UNIT:
            return f"{UNITS}/{origin.name}"
        case PartKind.DROPIN:
            unit, _, dropin = origin.name.partition("/")
            return f"{UNITS}/{unit}.d/{dropin}"
        case PartKind.KEY | PartKind.USER:
            return KEYS if origin.kind is PartKind.KEY else f"user {origin.name}"
        case PartKind.ARGUMENT | PartKind.EXTENSION | PartKind.FIELD:
            return f"{origin.kind} {origin.name}"
        case _:
            return origin.name


def _below(path: str, places: Iterable[tuple[str, str]]) -> str | None:
    return next((why for place, why in places if path == place or path.startswith(f"{place}/")), None)


def _entries(sources: Sequence[Source]) -> dict[tuple[PartKind, str], Object]:
    """The last word about each file, link, directory and unit; merging keeps fields that only an earlier one sets."""
    last: dict[tuple[PartKind, str], dict[str, Any]] = {}
    for source in sources:
        for key, entry in _mentioned(source.document or {}):
            last[key] = {**last.get(key, {}), **{name: value for name, value in entry.items() if value is not None}}
    return dict(last)


def _mentioned(document: Object) -> Iterator[tuple[tuple[PartKind, str], Object]]:
    storage, units = document.get("storage") or {}, (document.get("systemd") or {}).get("units") or ()
    for kind, name in ((PartKind.FILE, "files"), (PartKind.DIRECTORY, "directories"), (PartKind.LINK, "links")):
        for entry in storage.get(name) or ():
            yield (kind, str(entry.get("path"))), entry
    for entry in units:
        yield (PartKind.UNIT, str(entry.get("name"))), entry
