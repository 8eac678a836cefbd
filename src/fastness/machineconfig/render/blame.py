"""Where every part of a rendered config came from, and what it overrode.

Blame is read off the sources, in merge order: each part that a source mentions gets an entry in the part's history, with the
fields that it sets. For one field the last who set it is the origin, and those before were overridden. It is computed when
somebody asks, so that rendering does not pay for it.

Parts are named as people name them: the path of a file, link or directory, the name of a unit, `unit/drop-in`, `user`, an SSH
key, a kernel argument, `kernelType`, `fips`, `osImageURL`, an extension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render import kargs
from fastness.machineconfig.render.merge import Source

Object = Mapping[str, Any]


class PartKind(StrEnum):
    """What kind of thing is blamed."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    UNIT = "unit"
    DROPIN = "dropin"
    USER = "user"
    KEY = "sshkey"
    GROUP = "group"
    DISK = "disk"
    RAID = "raid"
    LUKS = "luks"
    FILESYSTEM = "filesystem"
    ARGUMENT = "kernelArgument"
    EXTENSION = "extension"
    FIELD = "field"
    IGNITION = "ignition"


@dataclass(frozen=True, slots=True)
class Touch:
    """One config that says something about a part, and which fields it sets."""

    config: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """A part, and everyone who said something about it, in merge order."""

    kind: PartKind
    name: str
    history: tuple[Touch, ...]

    @property
    def source(self) -> str:
        """The config that had the last word."""
        return self.history[-1].config

    @property
    def overridden(self) -> tuple[str, ...]:
        """The configs that were overridden at least in one field, in merge order."""
        later: set[str] = set()
        sources: list[str] = []
        for touch in reversed(self.history):
            if later & set(touch.fields):
                sources.append(touch.config)
            later |= set(touch.fields)
        return tuple(reversed(sources))

    @property
    def fields(self) -> dict[str, str]:
        """For every field the config that it came from."""
        return {name: touch.config for touch in self.history for name in touch.fields}

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {
            "kind": str(self.kind),
            "name": self.name,
            "source": self.source,
            "overrode": list(self.overridden),
            "fields": self.fields,
            "history": [{"config": touch.config, "fields": list(touch.fields)} for touch in self.history],
        }


# Kind, section, list, what names an entry. Files, directories and links share their names: one replaces another.
_LISTS: Final = (
    (PartKind.FILE, "storage", "files", "path"),
    (PartKind.DIRECTORY, "storage", "directories", "path"),
    (PartKind.LINK, "storage", "links", "path"),
    (PartKind.UNIT, "systemd", "units", "name"),
    (PartKind.USER, "passwd", "users", "name"),
    (PartKind.GROUP, "passwd", "groups", "name"),
    (PartKind.DISK, "storage", "disks", "device"),
    (PartKind.RAID, "storage", "raid", "name"),
    (PartKind.LUKS, "storage", "luks", "name"),
    (PartKind.FILESYSTEM, "storage", "filesystems", "device"),
)
_NODES: Final = frozenset({PartKind.FILE, PartKind.DIRECTORY, PartKind.LINK})
_SPEC_FIELDS: Final = ("osImageURL", "baseOSExtensionsContainerImage", "kernelType", "fips")


class Blame:
    """The origins of all parts of one rendered config."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    @cached_property
    def origins(self) -> tuple[Origin, ...]:
        """Everything, by kind and name."""
        by_part: dict[tuple[str, str], tuple[PartKind, list[Touch]]] = {}
        for source in self._sources:
            for kind, name, fields in _mentions(source):
                space = "node" if kind in _NODES else str(kind)
                earlier = by_part.get((space, name))
                touches = earlier[1] if earlier else []
                touches.append(Touch(source.name, fields))
                by_part[space, name] = (kind, touches)
        origins = [Origin(kind, name, tuple(touches)) for (_, name), (kind, touches) in by_part.items()]
        return tuple(sorted(origins, key=lambda origin: (list(PartKind).index(origin.kind), origin.name)))

    def of(self, name: str) -> tuple[Origin, ...]:
        """The origins of the parts of that name; a path also finds what lies below it if nothing has it as its name."""
        exact = tuple(origin for origin in self.origins if origin.name == name)
        below = name.rstrip("/") + "/"
        return exact or tuple(origin for origin in self.origins if origin.name.startswith(below))

    def source(self, kind: PartKind, name: str) -> str:
        """The config that had the last word about a part, empty when nobody said anything."""
        return next((origin.source for origin in self.origins if origin.kind is kind and origin.name == name), "")


def _mentions(source: Source) -> Iterator[tuple[PartKind, str, tuple[str, ...]]]:
    spec, document = source.spec, source.document or {}
    for kind, section, name, key in _LISTS:
        for entry in (document.get(section) or {}).get(name) or ():
            yield kind, str(entry.get(key)), tuple(sorted(_fields(entry, key)))
            if kind is PartKind.UNIT:
                for dropin in entry.get("dropins") or ():
                    yield PartKind.DROPIN, f"{entry.get(key)}/{dropin.get('name')}", ("contents",)
            if kind is PartKind.USER:
                for ssh_key in entry.get("sshAuthorizedKeys") or ():
                    yield PartKind.KEY, ssh_key, ("value",)
    inside = document.get("kernelArguments") or {}
    for name in ("shouldExist", "shouldNotExist"):
        for argument in inside.get(name) or ():
            yield PartKind.IGNITION, argument, (name,)
    for argument in kargs.split_all(spec.get("kernelArguments")):
        yield PartKind.ARGUMENT, argument, ("value",)
    for extension in spec.get("extensions") or ():
        yield PartKind.EXTENSION, extension, ("value",)
    yield from _spec_mentions(source)


def _spec_mentions(source: Source) -> Iterator[tuple[PartKind, str, tuple[str, ...]]]:
    for name in _SPEC_FIELDS:
        value = source.spec.get(name)
        image_of_ours = source.generated and name in ("osImageURL", "baseOSExtensionsContainerImage")
        if value and value != "default" and not image_of_ours:
            yield PartKind.FIELD, name, ("value",)


def _fields(entry: Object, key: str) -> Iterator[str]:
    """The fields that an entry sets, nested ones with a dot; lists of parts of their own are left out."""
    for name, value in entry.items():
        if name in (key, "dropins", "sshAuthorizedKeys") or value is None:
            continue
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner, item in value.items() if item is not None)
        else:
            yield name
