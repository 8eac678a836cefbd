"""What a build left is read as what a stranger left."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from fastness.builds.errors import BuildFailed
from fastness.builds.live.layout import CONFIG, LAYER, MANIFEST, Made, blob_path, collect, write_base
from fastness.formats import json, oci
from fastness.kinds.kind import JsonObject


def stored(layout: Path, content: bytes, kind: str) -> JsonObject:
    path = blob_path(layout, oci.digest_of(content))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"mediaType": kind, "digest": oci.digest_of(content), "size": len(content)}


def image(layout: Path, *layers: bytes, level: int = 9) -> Path:
    """An image of layers, as a builder leaves it."""
    described = [stored(layout, gzip.compress(layer, level, mtime=0), f"{LAYER}+gzip") for layer in layers]
    config = {"rootfs": {"type": "layers", "diff_ids": [oci.digest_of(layer) for layer in layers]}, "config": {}}
    whole = {"schemaVersion": 2, "config": stored(layout, json.canonical(config), CONFIG), "layers": described}
    entry = stored(layout, json.canonical(whole), MANIFEST)
    (layout / "index.json").write_bytes(json.canonical({"schemaVersion": 2, "manifests": [entry]}))
    return layout


def collected(out: Path, base: Path) -> Made:
    """What the control plane takes of a build whose base it remembers."""
    return collect(out, base, oci.manifest_digest(json.decode((base / "index.json").read_bytes())))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A base image of one layer."""
    return image(tmp_path / "base", b"base" * 100, level=1)


def test_the_layers_of_the_base_go_out_as_they_came_in(tmp_path: Path, base: Path) -> None:
    made = collected(image(tmp_path / "out", b"base" * 100, b"mine"), base)
    kept, mine = made.parts[1:]
    assert kept.path.is_relative_to(base)
    assert mine.path.is_relative_to(tmp_path / "out")
    assert oci.digest_of(made.manifest) == made.digest


def test_a_build_that_changed_its_base_failed(tmp_path: Path, base: Path) -> None:
    for layers in ((b"other", b"mine"), (b"mine",), ()):
        with pytest.raises(BuildFailed):
            collected(image(tmp_path / f"out{len(layers)}", *layers), base)


def test_a_build_that_wrote_another_base_into_its_directory_failed(tmp_path: Path, base: Path) -> None:
    remembered = oci.manifest_digest(json.decode((base / "index.json").read_bytes()))
    image(base, b"hostile")
    out = image(tmp_path / "out", b"hostile", b"mine")
    with pytest.raises(BuildFailed, match="layers of the base image changed"):
        collect(out, base, remembered)
    blob_path(base, remembered).write_bytes(blob_path(base, remembered).read_bytes() + b" ")
    with pytest.raises(BuildFailed, match="is not what its name says"):
        collect(out, base, remembered)


def test_links_missing_parts_and_other_bytes_are_no_image(tmp_path: Path, base: Path) -> None:
    (tmp_path / "secret").write_bytes(b"mine")
    linked = image(tmp_path / "linked", b"base" * 100, b"mine")
    path = blob_path(linked, oci.digest_of(gzip.compress(b"mine", 9, mtime=0)))
    path.unlink()
    with pytest.raises(BuildFailed, match="not an image"):
        collected(linked, base)
    path.symlink_to(tmp_path / "secret")
    with pytest.raises(BuildFailed, match="which is not a file"):
        collected(linked, base)
    path.unlink()
    path.write_bytes(b"other")
    with pytest.raises(BuildFailed, match="is not what its name says"):
        collected(linked, base)
    whole = tmp_path / "whole"
    whole.symlink_to(base)
    with pytest.raises(BuildFailed, match="a link in the place of its image"):
        collected(whole, base)
    with pytest.raises(BuildFailed, match="not an image"):
        collected(tmp_path / "nothing", base)


def test_a_base_without_history_and_with_older_names_of_types_can_be_built_on(tmp_path: Path) -> None:
    layout = tmp_path / "base"
    layer = stored(layout, b"layer", "application/vnd.docker.image.rootfs.diff.tar.gzip")
    config = json.canonical({"rootfs": {"type": "layers", "diff_ids": ["sha256:x"]}})
    write_base(layout, json.canonical({"layers": [layer], "config": {}}), config)
    index = json.decode((layout / "index.json").read_bytes())
    manifest = json.decode(blob_path(layout, index["manifests"][0]["digest"]).read_bytes())
    assert manifest["layers"] == [{**layer, "mediaType": f"{LAYER}+gzip"}]
    assert len(json.decode(blob_path(layout, manifest["config"]["digest"]).read_bytes())["history"]) == 1
