"""What a running machine cannot follow: changes that only a new machine could have.

Disks, filesystems, arrays, directories, groups and FIPS are made when a machine is installed. Two rendered configs that differ
there cannot be reconciled, and the pool keeps the old one. In order:

* groups: any difference; users: only `core`, and of it only keys and password;
* kernel arguments inside the Ignition document: any difference;
* disks, filesystems, raid: any difference, unless the cluster's overrides allow it (new machines get it, old ones keep theirs);
* directories: any difference; links: any difference while links remain;
* files: none with `append`, none at the path of the force file; FIPS: any difference.

LUKS volumes, units and the content of files are never a reason. The render controller refuses to render, the agent refuses to
apply; both ask here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.ignition.shape import plain

Object = Mapping[str, Any]
OVERRIDES: Final = {"disks": "Disks", "filesystems": "FileSystems", "raid": "Raid"}
_CORE_FIELDS: Final = frozenset({"name", "passwordHash", "sshAuthorizedKeys"})


@dataclass(frozen=True, slots=True)
class Irreconcilable:
    """One difference that a running machine cannot follow; `overridden` ones are told but do not block."""

    field: str
    reason: str
    way_out: str = "replace the machines instead, or take the change back"
    overridden: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.reason} ({self.way_out})"


def irreconcilable(old: Object, new: Object, overrides: frozenset[str] = frozenset()) -> list[Irreconcilable]:
    """All that stands between two rendered specs, in order; see `blocking` for what counts."""
    before, after = old.get("config") or {}, new.get("config") or {}
    differences = [*_passwd(before, after), *_kernel_arguments(before, after), *_storage(before, after, overrides)]
    if bool(old.get("fips")) != bool(new.get("fips")):
        differences.append(Irreconcilable("fips", "FIPS mode is decided when a machine is installed"))
    return differences


def blocking(differences: Sequence[Irreconcilable]) -> list[Irreconcilable]:
    """Those that no override allows."""
    return [difference for difference in differences if not difference.overridden]


def overrides_of(configuration: Object | None) -> frozenset[str]:
    """The overrides of the MachineConfiguration: of Disks, FileSystems, Raid."""
    spec = (configuration or {}).get("spec") or {}
    return frozenset((spec.get("irreconcilableValidationOverrides") or {}).get("storage") or ())


def guilty(
    differences: Sequence[Irreconcilable], old: Object, sources: Sequence[tuple[str, Object]]
) -> tuple[str, ...]:
    """The source configs (name and spec) that bring what cannot be reconciled; empty when something was taken away."""
    named = [name for name, spec in sources if any(_brings(difference.field, spec, old) for difference in differences)]
    return tuple(dict.fromkeys(named))


def _brings(field: str, spec: Object, old: Object) -> bool:
    """Whether a source has something in that field that the old config does not have."""
    if field == "fips":
        return bool(spec.get("fips")) and not old.get("fips")
    section, _, name = field.partition(".")
    mine, theirs = ((part.get("config") or {}).get(section) or {} for part in (spec, old))
    if not name:
        return bool(plain(mine)) and plain(mine) != plain(theirs)
    return any(entry not in (plain(theirs.get(name) or [])) for entry in plain(mine.get(name) or []))


def _section(document: Object, section: str, name: str) -> list[Any]:
    entries = plain((document.get(section) or {}).get(name) or [])
    return entries if isinstance(entries, list) else []


def _passwd(old: Object, new: Object) -> Iterator[Irreconcilable]:
    if _section(old, "passwd", "groups") != _section(new, "passwd", "groups"):
        yield Irreconcilable("passwd.groups", "groups cannot be changed on a running machine")
    users = _section(new, "passwd", "users")
    if not users or users == _section(old, "passwd", "users"):
        return
    strangers = [str(user.get("name")) for user in users if user.get("name") != names.CORE_USER]
    if strangers:
        yield Irreconcilable(
            "passwd.users", f"user {', '.join(strangers)} cannot be made: only {names.CORE_USER} is managed"
        )
        return
    last = users[-1]
    more = sorted(last.keys() - _CORE_FIELDS)
    if more:
        why = f"{', '.join(more)} of user {names.CORE_USER} cannot be changed: only keys and password can"
        yield Irreconcilable("passwd.users", why)
    elif not last.get("passwordHash") and not last.get("sshAuthorizedKeys"):
        yield Irreconcilable("passwd.users", f"user {names.CORE_USER} has neither a password nor a key")


def _kernel_arguments(old: Object, new: Object) -> Iterator[Irreconcilable]:
    if plain(old.get("kernelArguments") or {}) != plain(new.get("kernelArguments") or {}):
        yield Irreconcilable(
            "kernelArguments",
            "kernel arguments inside the Ignition document are only read at the first boot",
            "use spec.kernelArguments of the MachineConfig",
        )


def _storage(old: Object, new: Object, overrides: frozenset[str]) -> Iterator[Irreconcilable]:
    def differs(name: str) -> bool:
        return _section(old, "storage", name) != _section(new, "storage", name)

    for name, override in OVERRIDES.items():
        if differs(name):
            yield Irreconcilable(
                f"storage.{name}",
                f"{name} are made when a machine is installed",
                f"replace the machines, or allow it for new ones with the override {override}",
                overridden=override in overrides,
            )
    if differs("directories"):
        yield Irreconcilable("storage.directories", "directories are made when a machine is installed")
    # Taking all of them away is let pass, as the machine-config operator does.
    if differs("links") and _section(new, "storage", "links"):
        yield Irreconcilable("storage.links", "links are made when a machine is installed")
    for entry in _section(new, "storage", "files"):
        if entry.get("append"):
            yield Irreconcilable(
                "storage.files", f"{entry.get('path')}: append cannot be applied twice", "write the whole file"
            )
        # A managed force file would skip validation on every machine of the pool, at every update.
        if entry.get("path") == names.FORCE_FILE:
            yield Irreconcilable(
                "storage.files", f"{names.FORCE_FILE} forces an update and must not be managed", "remove the file"
            )
