"""Defaults of ours: what base configs bring, below /usr in an image, where a MachineConfig in /etc wins over it.

    for default in defaults_of(sources, ours): default.place, default.winner

- A default is a file, unit or drop-in of a base config whose path has a place below /usr (`protocol/usr_places`). Kubelet,
  runtime and the like read /etc alone: their files stay there.
- Whoever says something else about it later has the last word: the file is in /etc then, and both are in the image. A drop-in
  that is taken away leaves no default behind, for nothing in /etc would hide it.
- A default is a copy of what the base says when an image is built, and **no reason to build one**: a base that changes where no
  reboot is needed is written to /etc by the agent, and moves to /usr with the next image. What needs a reboot counts as before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.formats import data_url
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.machineconfig.render.base.table import is_base_name
from fastness.machineconfig.render.merge import Source
from fastness.protocol.usr_places import below_usr

Object = Mapping[str, Any]
UNITS: Final = "/etc/systemd/system"
_MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Default:
    """What a base config has at a path, where that lies in an image, and which later config wins over it, if one does."""

    path: str
    place: str
    content: bytes
    mode: int
    owner: str
    winner: str = ""

    def to_json(self) -> JsonObject:
        """As `blame -o json` prints it."""
        return {
            "default": self.place,
            "owner": self.owner,
            "counts": self.path if self.winner else self.place,
            "why": self.explanation,
        }

    @property
    def explanation(self) -> str:
        """Which file counts and why, for people."""
        if not self.winner:
            return f"{self.place} of {self.owner}; what a MachineConfig has at {self.path} would win over it"
        return f"{self.path} of {self.winner} wins over {self.place} of {self.owner}: /etc is read in the place of /usr"


def base_configs(configs: Iterable[Object]) -> frozenset[str]:
    """The MachineConfigs that every machine of a role starts from, and that we made."""
    return frozenset(
        name for config in configs
        if names.GENERATED_BY in annotations_of(config) and is_base_name(name := object_name(config).name)
    )  # fmt: skip


def defaults_of(sources: Sequence[Source], ours: Collection[str]) -> tuple[Default, ...]:
    """The defaults of a pool, by path."""
    defaults: dict[str, Default] = {}
    for source in sources:
        for path, content, mode in _words(source.document or {}):
            if source.name in ours:
                if content is not None and (place := below_usr(path)):
                    defaults[path] = Default(path, place, content, mode, source.name)
            elif path in defaults and content is None:
                del defaults[path]
            elif path in defaults:
                defaults[path] = replace(defaults[path], winner=source.name)
    return tuple(defaults[path] for path in sorted(defaults))


def _words(document: Object) -> Iterator[tuple[str, bytes | None, int]]:
    """Each path that a config says something about: content and mode; no content for a drop-in that goes."""
    storage = document.get("storage") or {}
    for entry in storage.get("files") or ():
        mode = _MODE if entry.get("mode") is None else int(entry["mode"])
        yield str(entry.get("path")), _content(entry), mode
    for kind in ("links", "directories"):
        yield from ((str(entry.get("path")), b"", _MODE) for entry in storage.get(kind) or ())
    for unit in (document.get("systemd") or {}).get("units") or ():
        yield from _unit_words(unit)


def _unit_words(unit: Object) -> Iterator[tuple[str, bytes | None, int]]:
    path = f"{UNITS}/{unit.get('name')}"
    if unit.get("contents") or unit.get("mask") is True:
        yield path, str(unit.get("contents") or "").encode(), _MODE
    for dropin in unit.get("dropins") or ():
        text = dropin.get("contents")
        yield f"{path}.d/{dropin.get('name')}", str(text).encode() if text else None, _MODE


def _content(entry: Object) -> bytes:
    return data_url.contents({key: value for key, value in (entry.get("contents") or {}).items() if value is not None})
