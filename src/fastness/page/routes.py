"""What the page serves where: views with their paths, where a login may lead, and the stylesheet and the script.

Everything else that the page serves is in the table of `app.py`, which is built over this one. Stylesheet and script have names
that change with their content: a browser may keep them for ever, and the content security policy lets it load nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from fastness.crypto.digests import sha256
from fastness.formats import url_path

MAX_NAME: Final = 253
NAME: Final = "<name>"
VIEW_PATHS: Final = {
    "fleet": "/", "machine": f"/machines/{NAME}", "pools": "/pools", "runtimes": "/runtimes", "trust": "/trust",
    "record": f"/record/{NAME}", "simulator": "/simulator",
    "builds": "/builds", "build": f"/builds/{NAME}",
}  # fmt: skip
_PATTERNS: Final = [path.strip("/").split("/") if path != "/" else [] for path in VIEW_PATHS.values()]


def after_login(path: str) -> str:
    """Where a login leads: a view of this page, or the fleet.

    Whoever sends a link chooses what stands in `then`: a path that a browser would read as another host, or that is no view, must
    not become a Location.
    """
    if not path.isascii() or not path.isprintable() or " " in path or "\\" in path or path.startswith("//"):
        return "/"
    segments = url_path.split(path.partition("?")[0])
    return path if segments is not None and any(_fits(pattern, segments) for pattern in _PATTERNS) else "/"


def _fits(pattern: list[str], segments: list[str]) -> bool:
    return len(pattern) == len(segments) and all(
        part in (segment, NAME) for part, segment in zip(pattern, segments, strict=True)
    )


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
