"""The views of the page with their paths, and where a login may lead.

Everything else that the page serves is in the table of `app.py`, which is built over this one.
"""

from __future__ import annotations

from typing import Final

from fastness.formats import url_path

MAX_NAME: Final = 253
NAME: Final = "<name>"
VIEW_PATHS: Final = {
    "fleet": "/", "machine": f"/machines/{NAME}", "pools": "/pools", "runtimes": "/runtimes", "trust": "/trust",
    "record": f"/record/{NAME}", "simulator": "/simulator",
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
