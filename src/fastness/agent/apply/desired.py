"""A rendered config as what a machine should be: states of paths, units, keys, password, deployment.

The config is a MachineConfig whose Ignition is of the current version, as rendering makes it. What comes out is a value that can
be compared with the disk (`validate`) and with another one (`steps`). Rules:

- A file without a mode has 0644, without an owner belongs to root. Content is in the config (data URL, gzip, hash); what would
  have to be fetched, and `append`, are refused.
- A masked unit is a link to /dev/null whatever its contents; `mask: false` without contents takes such a link away. A drop-in
  without contents takes an existing one away.
- Keys of all entries for the user `core` are one file below its home.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.agent.apply.accounts import Accounts
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import (
    ABSENT,
    DEFAULT_DIRECTORY_MODE,
    DEFAULT_MODE,
    NOTHING,
    Absent,
    Deployment,
    File,
    Link,
)
from fastness.formats import data_url
from fastness.formats.errors import DataUrlError
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.machineconfig.render import kargs
from fastness.protocol.files_of_others import FilesOfOthers

Object = Mapping[str, Any]
UNITS: Final = "/etc/systemd/system"
NULL: Final = "/dev/null"
# No setuid, setgid or sticky bit by a config; rendering refuses them as well, for every version of Ignition.
MAX_MODE: Final = 0o777
DEFAULT_KERNEL: Final = "default"


@dataclass(frozen=True, slots=True)
class Target:
    """The state that a path should have, and how directories above it are made."""

    state: File | Link | Absent
    directory_mode: int = DEFAULT_DIRECTORY_MODE
    own_directories: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """What should be of a unit besides its files."""

    enabled: bool | None = None
    masked: bool = False
    written: bool = False


@dataclass(frozen=True, slots=True)
class Desired:
    """What a machine should be; paths in the order of writing."""

    name: str = ""
    paths: Mapping[str, Target] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    password: str | None = None
    deployment: Deployment = NOTHING
    extensions_image: str = ""

    @property
    def updates_boot_loader(self) -> bool:
        """Whether the boot loader of another image comes with it."""
        target = self.paths.get(names.BOOT_LOADER_FILE)
        state = target.state if target is not None else ABSENT
        return isinstance(state, File) and state.content == names.UPDATE_BOOT_LOADER.encode()

    @property
    def others(self) -> FilesOfOthers:
        """Which files on the machine other operators keep."""
        states = ((path, target.state) for path, target in self.paths.items())
        return FilesOfOthers.of((path, state.content) for path, state in states if isinstance(state, File))

    def unit_paths(self, unit: str) -> dict[str, Target]:
        """The paths that make up a unit."""
        base = f"{UNITS}/{unit}"
        return {path: state for path, state in self.paths.items() if path == base or path.startswith(f"{base}.d/")}


def desired(config: Object, accounts: Accounts, base_image: str = "") -> Desired:
    """What a MachineConfig asks of a machine with these accounts; raises BadConfig.

    One that names no image asks for the base image: without this, a machine whose override was taken back would stay in it.
    """
    spec = config.get("spec") or {}
    document = spec.get("config") or {}
    units = {str(unit["name"]): unit for unit in _list(document, "systemd", "units")}
    users = [user for user in _list(document, "passwd", "users") if user.get("name") == names.CORE_USER]
    paths = dict(_files(document, accounts))
    paths.update(_links(document))
    for name, unit in units.items():
        paths.update(_unit_paths(name, unit))
    paths.update(_keys(users, accounts))
    hashes = [user["passwordHash"] for user in users if user.get("passwordHash")]
    kernel = str(spec.get("kernelType") or "")
    return Desired(
        name=object_name(config).name,
        paths=paths,
        units={name: _unit(unit) for name, unit in units.items()},
        password=str(hashes[-1]) if hashes else None,
        deployment=Deployment(
            str(spec.get("osImageURL") or base_image), tuple(kargs.split_all(spec.get("kernelArguments"))),
            "" if kernel == DEFAULT_KERNEL else kernel, tuple(dict.fromkeys(spec.get("extensions") or ())),
        ),
        extensions_image=str(spec.get("baseOSExtensionsContainerImage") or ""),
    )  # fmt: skip


def _list(document: Object, section: str, name: str) -> list[dict[str, Any]]:
    return (document.get(section) or {}).get(name) or []


def _files(document: Object, accounts: Accounts) -> Iterator[tuple[str, Target]]:
    for entry in _list(document, "storage", "files"):
        path = str(entry.get("path"))
        if entry.get("append"):
            raise BadConfig(f"file {path}: append is not supported", "Give the whole content in `contents`.")
        mode = DEFAULT_MODE if entry.get("mode") is None else int(entry["mode"])
        if not 0 <= mode <= MAX_MODE:
            raise BadConfig(f"file {path}: mode {mode:#o} is above 0777")
        uid, gid = _number(entry.get("user"), accounts.uid), _number(entry.get("group"), accounts.gid)
        yield path, Target(File(_content(path, entry), mode, uid, gid))


def _content(path: str, entry: Object) -> bytes:
    resource = {key: value for key, value in (entry.get("contents") or {}).items() if value is not None}
    try:
        return data_url.contents(resource)
    except DataUrlError as error:
        raise BadConfig(f"file {path}: {error.message}", error.hint) from error


def _number(owner: Object | None, lookup: Any) -> int:
    if not owner:
        return 0
    if owner.get("id") is not None:
        return int(owner["id"])
    number: int = lookup(str(owner["name"])) if owner.get("name") else 0
    return number


def _links(document: Object) -> Iterator[tuple[str, Target]]:
    for entry in _list(document, "storage", "links"):
        if not entry.get("hard"):
            yield str(entry["path"]), Target(Link(str(entry.get("target") or "")))


def _unit(unit: Object) -> Unit:
    masked = unit.get("mask") is True
    return Unit(unit.get("enabled"), masked, bool(unit.get("contents")) and not masked)


def _unit_paths(name: str, unit: Object) -> Iterator[tuple[str, Target]]:
    base = f"{UNITS}/{name}"
    # The name becomes a path below /etc/systemd/system; with a slash it would be any path.
    if "/" in name:
        raise BadConfig(f"unit {name!r}: the name has a slash")
    if unit.get("mask") is True:
        yield base, Target(Link(NULL))
    elif unit.get("contents"):
        yield base, Target(File(str(unit["contents"]).encode(), DEFAULT_MODE, 0, 0))
    elif unit.get("mask") is False:
        yield base, Target(ABSENT)
    for dropin in unit.get("dropins") or ():
        if "/" in str(dropin["name"]):
            raise BadConfig(f"unit {name}: the name of drop-in {dropin['name']!r} has a slash")
        text = dropin.get("contents")
        state = File(str(text).encode(), DEFAULT_MODE, 0, 0) if text else ABSENT
        yield f"{base}.d/{dropin['name']}", Target(state)


def _keys(users: list[dict[str, Any]], accounts: Accounts) -> Iterator[tuple[str, Target]]:
    keys = [str(key) for user in users for key in user.get("sshAuthorizedKeys") or ()]
    if keys:
        owner = accounts.users.get(names.CORE_USER)
        uid, gid = (owner.uid, owner.gid) if owner else (None, None)
        # The whole file, not one more line: a key that a config took back must not stay because nobody removed it.
        content = "".join(f"{key}\n" for key in keys).encode()
        path = f"{accounts.home(names.CORE_USER)}/.ssh/authorized_keys.d/ignition"
        yield path, Target(File(content, 0o600, uid, gid), 0o700, own_directories=True)
