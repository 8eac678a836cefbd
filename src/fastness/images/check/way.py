"""One way by which a host speaks to its guest, and what it looks like when it stands open.

Most ways are units or generators that somebody listens with, and words that the kernel command line must have; those are data.
The others are looked for by a function of their own. What closes a way is the same data: whoever prepares an image writes it,
whoever checks one looks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fastness.images.check.tree import Tree

TreeLook = Callable[[Tree], list[str]]
LineLook = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Way:
    """A way in.

    `host` is what the host can do, `reason` what that gives it, `remedy` what a person does where preparing cannot do it.
    `units` and `generators` are masked; `words` stand on the kernel command line and `files` in the image. Where `listener` is
    set, both matter only in an image that has that file: nobody else reads them. `look` and `look_at_line` see what data cannot
    say.
    """

    id: str
    host: str
    reason: str
    remedy: str
    units: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    listener: str = ""
    look: TreeLook | None = None
    look_at_line: LineLook | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """A way that an image leaves open, and every place that shows it."""

    way: Way
    places: tuple[str, ...]
