"""The steps from one config to another, so that each can be undone.

Everything that an update changes is one of a few kinds of steps: a path gets a state, or the state of another path; a unit is
enabled or not; a deployment is staged. Rules:

- A path that already has its state needs no step, nor one whose state the image has below /usr, if that image stays.
- Before a path of ours first replaces something, that something is kept: a copy below `/orig`, or a stamp below `/noorig` that
  says "there was nothing". Whatever stood there is kept, also if no package owns it. Directories that had to be made have stamps
  too, and go with the last path below them.
- A path that the new config no longer has goes back to what was kept; without a record (first boot wrote it) to the copy in
  `/usr/etc`, or away. Certificates that others renew stay.
- A unit whose file changes is disabled before and enabled after, so that its links follow its `[Install]` section. A unit that
  goes away is disabled; one that falls back to the distribution's own gets its preset.
- What other operators keep is written where nothing stands, and never replaced or taken away.
- The record of the current config comes last: whoever finds it finds everything else done.

`apply` carries steps out, `journal` remembers how to undo them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from fastness.agent.apply import accounts
from fastness.agent.apply.desired import UNITS, Desired, Target, Unit
from fastness.agent.apply.matching import brought, matches
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import (
    ABSENT,
    DEFAULT_DIRECTORY_MODE,
    NOTHING,
    Absent,
    Deployment,
    File,
    Large,
    Link,
    Other,
    State,
    Stored,
)
from fastness.formats import json
from fastness.formats.image_reference import same_image
from fastness.kinds.machineconfiguration import names


class Tree(StrEnum):
    """Which tree of the host a path is in."""

    ROOT = "root"
    ORIGINALS = "originals"


class Word(StrEnum):
    """What becomes of a unit at boot."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    PRESET = "preset"


@dataclass(frozen=True, slots=True)
class Put:
    """A path gets a state; directories in `prune` go if they are empty then, innermost last.

    `replaces`: what stands there takes so many bytes of the disk, if it is more than a little.
    """

    path: str
    state: State | Stored
    tree: Tree = Tree.ROOT
    directory_mode: int = DEFAULT_DIRECTORY_MODE
    own_directories: bool = False
    prune: tuple[str, ...] = ()
    replaces: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """A path gets the state that another path has: a file, however large, or a link."""

    path: str
    source: str
    tree: Tree
    source_tree: Tree
    directory_mode: int = DEFAULT_DIRECTORY_MODE
    replaces: int = 0


@dataclass(frozen=True, slots=True)
class Enable:
    """A unit is enabled, disabled, or as its preset says."""

    unit: str
    word: Word


@dataclass(frozen=True, slots=True)
class Stage:
    """The next boot runs a deployment; None: what runs now. `old` is what was asked for before, and goes.

    With `boot_loader` that of its image comes as well, as far as that goes. An undo has no deployment but `back`, which ran when
    the step began: a machine that came up with another image since goes there again, with packages of `back_packages`.
    """

    deployment: Deployment | None
    old: Deployment = NOTHING
    extensions_image: str = ""
    boot_loader: bool = False
    back: Deployment | None = None
    back_packages: str = ""


Step = Put | Copy | Enable | Stage
_STAMP: Final = File(b"", 0o600)

_BUNDLES: Final = frozenset({
    names.KUBELET_CA,
    "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem",
    "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt",
})  # fmt: skip
_REGISTRY_CERTIFICATES: Final = "/etc/docker/certs.d/"


class Looks(Protocol):
    """The part of `Files` that planning needs."""

    def look(self, path: str) -> State:
        """What is at a path."""

    def inspect(self, path: str, up_to: int) -> State | Large:
        """What is at a path, with its content if that has at most so many bytes."""

    def missing_directories(self, path: str) -> list[str]:
        """The directories above a path that do not exist."""


class Asks(Protocol):
    """The part of `Units` that planning needs."""

    def is_enabled(self, unit: str) -> str:
        """The word of `systemctl is-enabled`."""


@dataclass(frozen=True, slots=True)
class Disk:
    """What planning looks at; with `image_stays` what a built image has below /usr is there when the steps are done."""

    root: Looks
    originals: Looks
    units: Asks
    image_stays: bool = False


def kept_path(path: str) -> str:
    """Where the original of a path is kept."""
    # The names that the machine-config daemon uses: a machine that changes hands keeps its originals.
    return f"/orig{path}.mcdorig"


def stamp_path(path: str) -> str:
    """Where it is noted that there was no original."""
    return f"/noorig{path}.mcdnoorig"


def directory_stamp(directory: str) -> str:
    """Where it is noted that we made a directory."""
    return f"/noorig{directory}.mcdmade"


def plan_steps(
    old: Desired, new: Desired, config: Any, disk: Disk, *, restage: bool = False, mend: bool = False
) -> list[Step]:
    """The steps from the old config to the new one, `config` being the object to remember; raises BadConfig.

    With `restage` the system is deployed even if both configs ask for the same: what runs may be another. With `mend` units are
    enabled as the new config says even if both say the same: somebody may have changed that.
    """
    others = new.others
    written = [
        step for path, target in new.paths.items()
        for step in _write(path, target, old, disk, foreign=bool(others.owner_of(path)))
    ]  # fmt: skip
    made = dict.fromkeys(
        directory
        for step in written
        if step.tree is Tree.ROOT
        for directory in disk.root.missing_directories(step.path)
    )
    # In the reverse of the order of writing, so that a directory is empty when its turn comes.
    given = old.others
    stale = [
        path for path in reversed(list(old.paths))
        if path not in new.paths and not others.owner_of(path) and not given.owner_of(path)
    ]  # fmt: skip
    unneeded = _unneeded(stale, new, disk)
    removed = [step for path in stale for step in _remove(path, old.paths[path], unneeded, disk)]
    return [
        # Disabled while the old unit file is there: its [Install] section names the links that have to go.
        *_units_before(old, new, disk, written),
        *(Put(directory_stamp(directory), _STAMP, Tree.ORIGINALS, 0o700) for directory in made),
        *written,
        *removed,
        *(_forget(directory_stamp(directory)) for directory in unneeded),
        *_units_after(old, new, disk, written),
        *(_strayed_units(old, new, disk) if mend else ()),
        *_password(old, new, disk),
        # After the files: a machine that loses power before this line boots what it had, with a journal that takes the files
        # back.
        *_stage(old, new, restage=restage),
        # 0600: a rendered config holds every file of the machine, private ones among them.
        Put(names.CURRENT_CONFIG_FILE, File(json.encode(config), 0o600, 0, 0)),
    ]


def _stage(old: Desired, new: Desired, *, restage: bool) -> Iterator[Stage]:
    """Another system. The same image under another name needs no boot, and neither does the same system."""
    before, after = old.deployment, new.deployment
    same = after._replace(image="") == before._replace(image="") and same_image(before.image, after.image)
    if restage or not same:
        another = not same_image(before.image, after.image)
        loader = another and new.updates_boot_loader
        yield Stage(after, before, new.extensions_image, loader, back_packages=old.extensions_image)


def repair_steps(current: Desired, config: Any, disk: Disk) -> list[Step]:
    """The steps that make the disk what the current config says again."""
    return plan_steps(current, current, config, disk, mend=True)


def _strayed_units(old: Desired, new: Desired, disk: Disk) -> Iterator[Enable]:
    """Units that are enabled or not, other than the config says."""
    for name, unit in new.units.items():
        strayed = unit.enabled is not None and (disk.units.is_enabled(name) == Word.ENABLED) != unit.enabled
        if strayed and not unit.masked and _exists(name, unit, old, disk):
            yield Enable(name, Word.ENABLED if unit.enabled else Word.DISABLED)


def _write(path: str, target: Target, old: Desired, disk: Disk, *, foreign: bool) -> Iterator[Put | Copy]:
    # What is longer than what should be there is not read: it differs, and a user may have made it of any size.
    present = disk.root.inspect(path, len(target.state.content) if isinstance(target.state, File) else 0)
    if matches(present, target.state) or (disk.image_stays and brought(path, target.state, present, disk.root)):
        return
    if foreign and not isinstance(present, Absent):
        return  # somebody else keeps it: the config brought the first content at most
    if isinstance(present, Other):
        # Found while planning: nothing was touched, and no pod was moved away for an update that cannot happen.
        raise BadConfig(f"{path} is {present.what}, and the config wants a file there")
    # Only where we replace somebody else's: the file of our own last config is no original.
    if path not in old.paths or isinstance(old.paths[path].state, Absent):
        yield from _keep(path, present, disk)
    yield Put(
        path, target.state, directory_mode=target.directory_mode, own_directories=target.own_directories,
        replaces=_weight(present),
    )  # fmt: skip


def _keep(path: str, present: State | Large, disk: Disk) -> Iterator[Put | Copy]:
    """Remember what stands at a path, once."""
    # Once: what stands at the path after the first time is ours, and must not pass for the original.
    if not isinstance(disk.originals.inspect(kept_path(path), 0), Absent):
        return
    if isinstance(present, Absent):
        yield Put(stamp_path(path), _STAMP, Tree.ORIGINALS, 0o700)
    else:
        yield Copy(kept_path(path), path, Tree.ORIGINALS, Tree.ROOT, 0o700, _weight(present))


def _weight(state: State | Large) -> int:
    return state.allocated if isinstance(state, Large) else 0


def _unneeded(stale: list[str], new: Desired, disk: Disk) -> list[str]:
    """The directories that we made and that hold no path of ours any more, outermost first."""
    there = [path for path, target in new.paths.items() if not isinstance(target.state, Absent)]
    needed = {ancestor for path in there for ancestor in _ancestors(path)}
    candidates = sorted({ancestor for path in stale for ancestor in _ancestors(path)} - needed)
    return [directory for directory in candidates if isinstance(disk.originals.look(directory_stamp(directory)), File)]


def _ancestors(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(2, len(parts))]


def _remove(path: str, target: Target, unneeded: list[str], disk: Disk) -> Iterator[Put | Copy]:
    """Bring back what was there before us."""
    # Others keep these current apart from any config; the machine-config daemon never deletes them either.
    if path in _BUNDLES or path.startswith(_REGISTRY_CERTIFICATES):
        return
    stamp = disk.originals.look(stamp_path(path))
    original = disk.originals.inspect(kept_path(path), 0)
    present = _weight(disk.root.inspect(path, 0))
    if isinstance(stamp, File):
        above = set(_ancestors(path))
        made = tuple(directory for directory in unneeded if directory in above)
        yield Put(path, ABSENT, Tree.ROOT, target.directory_mode, target.own_directories, made, present)
        yield _forget(stamp_path(path))
    elif isinstance(original, File | Large | Link):
        yield Copy(path, kept_path(path), Tree.ROOT, Tree.ORIGINALS, replaces=present)
        yield _forget(kept_path(path), _weight(original))
    elif not isinstance(target.state, Absent):
        yield _ship(path, present, disk)


def _forget(path: str, weight: int = 0) -> Put:
    parts = path.split("/")
    above = tuple("/".join(parts[:n]) for n in range(3, len(parts)))
    return Put(path, ABSENT, Tree.ORIGINALS, prune=above, replaces=weight)


def _ship(path: str, weight: int, disk: Disk) -> Put | Copy:
    """Back to what the image has for a path of /etc, or to nothing."""
    # ostree keeps the image's own /etc below /usr/etc, so what a package shipped can be had back.
    shipped = f"/usr{path}"
    if path.startswith("/etc/") and isinstance(disk.root.inspect(shipped, 0), File | Large | Link):
        return Copy(path, shipped, Tree.ROOT, Tree.ROOT, replaces=weight)
    return Put(path, ABSENT, replaces=weight)


def _changed_units(old: Desired, new: Desired, written: list[Put | Copy]) -> list[str]:
    """The units of the new config that differ from the old one, or whose files will be written."""
    paths = {step.path for step in written if step.tree is Tree.ROOT}
    return [
        name for name, unit in new.units.items()
        if old.units.get(name) != unit or old.unit_paths(name) != new.unit_paths(name)
        or not paths.isdisjoint(new.unit_paths(name))
    ]  # fmt: skip


def _units_before(old: Desired, new: Desired, disk: Disk, written: list[Put | Copy]) -> Iterator[Enable]:
    rewritten = {step.path for step in written} | (old.paths.keys() - new.paths.keys())
    for name in _changed_units(old, new, written):
        if f"{UNITS}/{name}" in rewritten and disk.units.is_enabled(name) == Word.ENABLED:
            yield Enable(name, Word.DISABLED)
    for name in old.units:
        if name not in new.units and disk.units.is_enabled(name) == Word.ENABLED:
            yield Enable(name, Word.DISABLED)


def _units_after(old: Desired, new: Desired, disk: Disk, written: list[Put | Copy]) -> Iterator[Enable]:
    for name in _changed_units(old, new, written):
        unit = new.units[name]
        if not unit.masked and _exists(name, unit, old, disk):
            yield Enable(name, {True: Word.ENABLED, False: Word.DISABLED, None: Word.PRESET}[unit.enabled])
    for name, unit in old.units.items():
        if name not in new.units and _outlives(name, unit, disk):
            yield Enable(name, Word.PRESET)


def _exists(name: str, unit: Unit, old: Desired, disk: Disk) -> bool:
    """Whether there will be a unit file when the steps are done."""
    if unit.written:
        return True
    before = old.units.get(name)
    if before is not None and (before.written or before.masked):
        return _outlives(name, before, disk)
    return disk.units.is_enabled(name) != "not-found"


def _outlives(name: str, unit: Unit, disk: Disk) -> bool:
    """Whether a unit of the distribution is there when ours is gone."""
    path = f"{UNITS}/{name}"
    if not unit.written and not unit.masked:
        return disk.units.is_enabled(name) != "not-found"
    if isinstance(disk.originals.inspect(kept_path(path), 0), File | Large):
        return True
    places = (f"/usr{path}", f"/usr/lib/systemd/system/{name}", f"/usr/local/lib/systemd/system/{name}")
    return any(isinstance(disk.root.inspect(place, 0), File | Large) for place in places)


def _password(old: Desired, new: Desired, disk: Disk) -> Iterator[Put]:
    """The hash of `core`; a user that lost its hash is locked."""
    if new.password is None and old.password is None:
        return
    shadow = disk.root.look(accounts.SHADOW)
    if not isinstance(shadow, File):
        raise BadConfig(f"the config sets a password, and this machine has no {accounts.SHADOW}")
    # Locked and not left: a password that a config took back must not go on opening the console.
    new_hash = new.password if new.password is not None else accounts.LOCKED
    if accounts.password_hash(shadow, names.CORE_USER) != new_hash:
        yield Put(accounts.SHADOW, accounts.with_password_hash(shadow, names.CORE_USER, new_hash))
