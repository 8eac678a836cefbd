"""An image of one file, for tests of what is done with images."""

from __future__ import annotations

from pathlib import Path

from tools.release import layout
from tools.release.layer import Component, Layer, pack
from tools.release.layout import Built

COMPONENTS = (
    Component("deb", "libstdc++6", "12.2.0-14+deb12u1", "aa" * 32, ("GPL-3+",)),
    Component("pypi", "orjson", "3.10", "bb" * 32, ("MPL-2.0 AND (Apache-2.0 OR MIT)",)),
    Component("pypi", "click", "8.1", "cc" * 32, ()),
)


def small_image(place: Path, text: str = "hello") -> Built:
    """An image of one file."""
    (place / "tree").mkdir(parents=True)
    (place / "tree/file").write_text(text)
    digests = pack(place / "tree", place / "layer")
    size = (place / "layer").stat().st_size
    part = Layer(place / "layer", digests["digest"], size, digests["diff_id"], COMPONENTS)
    layout.begin(place / "layout")
    config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [part.diff_id]}}
    digest = layout.add_image(place / "layout", config, [part], "1", {"org.opencontainers.image.version": "1"})
    return Built("fastness", place / "layout", "1", digest, size, (part,))
