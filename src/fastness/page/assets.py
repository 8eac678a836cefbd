"""The stylesheet and the script, under names that change with their content.

A browser may keep them for ever, and the content security policy lets it load nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from fastness.crypto.digests import sha256

_TYPES: Final = {"page.css": b"text/css; charset=utf-8", "page.js": b"text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    path: str
    content: bytes
    content_type: bytes


class Assets:
    """All files, read once."""

    def __init__(self) -> None:
        made = {name: _read(name) for name in _TYPES}
        self._by_name = {asset.path.rpartition("/")[2]: asset for asset in made.values()}
        self.stylesheet, self.script = made["page.css"].path, made["page.js"].path

    def get(self, name: str) -> Asset | None:
        """The file of a name, or None."""
        return self._by_name.get(name)


def _read(name: str) -> Asset:
    content = files("fastness.page").joinpath("assets", name).read_bytes()
    stem, _, ending = name.rpartition(".")
    return Asset(f"/assets/{stem}.{sha256(content).hex[:16]}.{ending}", content, _TYPES[name])
