"""What the verbs that take an image say about the ways into it: `measure`, `image approve`, `machine image`.

Warnings go to standard error and change nothing, because some ways are a decision; `--strict` makes them a refusal.
It also refuses what could not be looked at: an answer about half of an image is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from fastness.agent.host.errors import DriverError
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.image.root import RootTree
from fastness.agent.host.image.unzstd import unzstd
from fastness.cli.errors import CliError, Exit
from fastness.cli.output import tell
from fastness.images.check.boot_image import look_at
from fastness.images.check.check import open_ways
from fastness.images.check.ways import Opening

F = TypeVar("F", bound=Callable[..., Any])
_DIRECTORY: Final = click.Path(exists=True, file_okay=False, path_type=Path)
_HINT: Final = "See `fastness machine image`, or leave --strict out."
_NAMED: Final = 3
_LOOK: Final = "Make what is named readable here (--root DIRECTORY gives the root of the image), or leave --strict out."


def ways_options(function: F) -> F:
    """The options `--root` and `--strict`."""
    function = click.option(
        "--strict",
        is_flag=True,
        help="Refuse an image that its host can take over, or that could not be looked at whole.",
    )(function)
    return click.option("--root", type=_DIRECTORY, help="The root directory of the image, to look at that, too.")(
        function
    )


def look(uki: bytes | None, root: Path | None) -> dict[str, Any]:
    """The ways that stand open (`open`) and what was not looked at (`unseen`), as JSON; raises CliError, ImageError."""
    tree = RootTree(RootedFiles(root)) if root is not None else None
    try:
        looked = look_at(uki, tree, unzstd)
        openings = open_ways(looked.image)
    except DriverError as error:
        raise CliError(f"{root}: {error.message}", error.hint, Exit.USAGE) from error
    unread = [f"{reason}: it was not looked at" for reason in tree.unread] if tree is not None else []
    return {"open": [document(opening) for opening in openings], "unseen": [*looked.unseen, *unread]}


def listed(manifest: Any) -> dict[str, Any] | None:
    """What `measure -o json` said about the ways; None where the manifest is of somebody else; raises CliError."""
    if not isinstance(manifest, dict) or "open" not in manifest:
        return None
    ways, unseen = manifest["open"], manifest.get("unseen", [])
    good = isinstance(ways, list) and isinstance(unseen, list) and all(_is_way(way) for way in ways)
    if not good:
        raise CliError("the manifest does not list open ways as `fastness measure -o json` does", code=Exit.USAGE)
    return {"open": ways, "unseen": unseen}


def _is_way(value: Any) -> bool:
    named = isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("way", "host", "reason", "remedy")
    )
    return named and isinstance(value.get("places"), list)


def document(opening: Opening) -> dict[str, Any]:
    """A way that stands open, for JSON."""
    way = opening.way
    return {"way": way.id, "host": way.host, "places": list(opening.places), "reason": way.reason, "remedy": way.remedy}


def warn(ways: Mapping[str, Any]) -> None:
    """Say each way that stands open, why that matters, what closes it and where it is; and what nobody looked at."""
    for way in ways.get("open", ()):
        places = "".join(f"\n    {place}" for place in way["places"])
        tell(f"fastness: open: {way['way']}: {way['host']}: {way['reason']}\n  {way['remedy']}{places}")
    for note in ways.get("unseen", ()):
        tell(f"fastness: not checked: {note}")


def refuse_open(ways: Mapping[str, Any]) -> None:
    """Raise CliError for an image that leaves a way open, or of which something could not be looked at."""
    if ways["open"]:
        names = ", ".join(way["way"] for way in ways["open"])
        raise CliError(f"its host can take this image over: {names}", _HINT, Exit.NO)
    if unseen := ways["unseen"]:
        rest = f"; and {len(unseen) - _NAMED} more" if len(unseen) > _NAMED else ""
        places = "; ".join(unseen[:_NAMED])
        raise CliError(f"nobody can say whether its host can take this image over: {places}{rest}", _LOOK, Exit.NO)
