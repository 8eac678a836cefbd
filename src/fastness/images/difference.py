"""What is different between two images: their files, their packages, and what machines measure that boot them.

    first, second = facts_of(layers, ...), facts_of(...)
    difference(first, second).to_json()

* A file is another when its kind, its content, its mode or where it leads is. Times and owners are not compared.
* Packages are those that dpkg lists. An image with another package manager is said to have none that can be read, and its files
  tell what changed all the same.
* Measurements are computed as for an approval (`whole_image`), state by state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from fastness.formats.dpkg_status import installed_packages
from fastness.formats.errors import FormatError
from fastness.formats.oci_tree import Layer, merged
from fastness.formats.tar_stream import Member, MemberKind, clean_path
from fastness.images.boot_files import boot_files, is_asked_for, kind_of
from fastness.images.errors import OsImageError
from fastness.images.whole_image import expect

DPKG: Final = ("var/lib/dpkg/status", "usr/lib/sysimage/dpkg/status")
RPM: Final = ("usr/lib/sysimage/rpm/rpmdb.sqlite", "var/lib/rpm/rpmdb.sqlite", "usr/share/rpm/rpmdb.sqlite")
BOOTED: Final = "booted"
Change = tuple[str, str, str]


def is_read(path: str) -> bool:
    """Whether the content of a file is needed, and not only its hash."""
    return path in DPKG or bool(kind_of(path))


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is compared of a path."""

    kind: str
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""

    def differing(self, other: FileFacts) -> list[str]:
        """What of it is another."""
        if self.kind != other.kind:
            return [f"{self.kind} became {other.kind}"]
        names = {"content": "digest", "mode": "mode", "target": "target"}
        return [word for word, name in names.items() if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What is compared of an image; `states` are registers in hex by the state of a machine, `notes` say what is not known."""

    image: str
    files: Mapping[str, FileFacts] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Two images side by side; each list is in order."""

    first: ImageFacts
    second: ImageFacts
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[tuple[str, tuple[str, ...]], ...]
    packages: tuple[Change, ...]
    measurements: tuple[tuple[str, int, str, str], ...]

    @property
    def same(self) -> bool:
        """Whether nothing that is compared is another."""
        return not (self.added or self.removed or self.changed or self.packages or self.measurements)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "a": {"image": self.first.image, "notes": list(self.first.notes)},
            "b": {"image": self.second.image, "notes": list(self.second.notes)},
            "same": self.same,
            "files": {
                "added": list(self.added), "removed": list(self.removed),
                "changed": [{"path": path, "what": list(what)} for path, what in self.changed],
            },
            "packages": [{"name": name, "a": before, "b": after} for name, before, after in self.packages],
            "measurements": [
                {"state": state, "value": f"tpm_pcr{pcr}", "a": before, "b": after}
                for state, pcr, before, after in self.measurements
            ],
        }  # fmt: skip


def facts_of(image: str, layers: Sequence[Layer]) -> ImageFacts:
    """What is compared of an image with these layers, the lowest first; raises FormatError for a hard link that leads out."""
    tree = merged(layers)
    files = {f"/{path}": _facts(member, layers[number]) for path, (number, member) in tree.items()}
    members = {path: member for path, (_, member) in tree.items()}
    packages: dict[str, str] = {}
    notes: list[str] = []
    for path in DPKG:
        packages |= installed_packages((members[path].content or b"") if path in members else b"")
    if not packages:
        why = "packages of rpm are not read" if any(path in members for path in RPM) else "no list of packages"
        notes.append(f"{why}: files alone tell what was installed")
    states, problem = _states(members)
    return ImageFacts(image, files, packages, states, (*notes, *([problem] if problem else ())))


def difference(first: ImageFacts, second: ImageFacts) -> Difference:
    """What is different between two images."""
    before, after = first.files, second.files
    changed = [(path, tuple(before[path].differing(after[path]))) for path in sorted(before.keys() & after.keys())]
    names = sorted(first.packages.keys() | second.packages.keys())
    packages = [(name, first.packages.get(name, ""), second.packages.get(name, "")) for name in names]
    return Difference(
        first, second, tuple(sorted(after.keys() - before.keys())), tuple(sorted(before.keys() - after.keys())),
        tuple((path, what) for path, what in changed if what),
        tuple(each for each in packages if each[1] != each[2]), _measurements(first, second),
    )  # fmt: skip


def _measurements(first: ImageFacts, second: ImageFacts) -> tuple[tuple[str, int, str, str], ...]:
    names = sorted(first.states.keys() | second.states.keys(), key=lambda name: (name != BOOTED, name))
    pairs = [(name, first.states.get(name, {}), second.states.get(name, {})) for name in names]
    return tuple(
        (name, pcr, before.get(pcr, ""), after.get(pcr, ""))
        for name, before, after in pairs
        for pcr in sorted(before.keys() | after.keys())
        if before.get(pcr) != after.get(pcr)
    )


def _facts(member: Member, layer: Layer) -> FileFacts:
    if member.kind is MemberKind.HARD_LINK:
        named = layer.members.get(clean_path(member.target.encode("utf-8", "surrogateescape")))
        # Another name of a file in the same layer: what counts is the content.
        if named is not None and named.kind is MemberKind.FILE:
            member = named
    digest = member.digest or (sha256(member.content).hexdigest() if member.content is not None else "")
    return FileFacts(member.kind.value, member.mode, member.size, digest, member.target)


def _states(members: Mapping[str, Member]) -> tuple[dict[str, dict[int, str]], str]:
    """What machines measure, by state, and what is not known of it."""
    try:
        expected = expect(boot_files({path: each for path, each in members.items() if is_asked_for(path)}), ())
    except (OsImageError, FormatError) as error:
        return {}, f"measurements: {error.message}"
    if expected.manifest is None:
        return {}, f"measurements: {expected.missing.get('tpm', '')}"
    states = {BOOTED: expected.manifest, **expected.manifest.get("variants", {})}
    return {name: {row["id"]: row["value"] for row in each["pcrs"]} for name, each in states.items()}, ""
