"""Which ways into an image stand open.

What can be seen decides what is said. A unified kernel image shows its command line and its initial file system, a directory
shows the root and the lines that the next build will use; where both are given, the line inside of the image is the one that
counts. What was not looked at is said as well, so that silence never passes for a good answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fastness.images.check.kernel_line import Words, lacking, lines_of
from fastness.images.check.tree import GENERATOR_DIRECTORIES, Tree, present, settings_path, text, unmasked
from fastness.images.check.ways import WAYS, Opening, Way


@dataclass(frozen=True, slots=True)
class Image:
    """What of an image is there to look at: its root, its initial file system, the line inside of its kernel image."""

    root: Tree | None = None
    initrd: Tree | None = None
    line: Words | None = None

    def lines(self) -> Mapping[str, Words]:
        """The command lines that count."""
        if self.line is not None:
            return {"the image's command line": self.line}
        return lines_of(self.root) if self.root is not None else {}

    def trees(self) -> Mapping[str, Tree]:
        """The file trees, each with the word that tells its places from those of the other."""
        both = (("", self.root), ("initrd:", self.initrd))
        return {prefix: tree for prefix, tree in both if tree is not None}


def open_ways(image: Image) -> list[Opening]:
    """Every way that stands open, in the order of the table."""
    openings = (Opening(way, tuple(_places(way, image))) for way in WAYS)
    return [opening for opening in openings if opening.places]


def _places(way: Way, image: Image) -> Iterator[str]:
    for prefix, tree in image.trees().items():
        yield from (f"{prefix}{place}" for place in _of_tree(way, tree))
    lines, required = image.lines(), way.words if _heard(way, image) else ()
    if required and not lines:
        yield f"no kernel command line says {' '.join(required)}"
    for place, words in lines.items():
        absent = lacking(words, required)
        if absent:
            yield f"{place} lacks {' '.join(absent)}"
        if way.look_at_line is not None:
            yield from (f"{place}: {problem}" for problem in way.look_at_line(words))


def _heard(way: Way, image: Image) -> bool:
    """Whether somebody in the image listens; a root that was not looked at may have somebody."""
    return not way.listener or image.root is None or present(image.root, way.listener)


def _of_tree(way: Way, tree: Tree) -> Iterator[str]:
    for unit in way.units:
        if (path := unmasked(tree, unit)) is not None:
            yield path
    for generator in way.generators:
        if (path := unmasked(tree, generator, GENERATOR_DIRECTORIES)) is not None:
            yield path
    if way.listener and present(tree, way.listener):
        for path, content in way.files.items():
            if text(tree, settings_path(tree, path)) != content:
                yield f"{path} is missing or says something else"
    if way.look is not None:
        yield from way.look(tree)
