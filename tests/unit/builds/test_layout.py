"""What a build left is read as what a stranger left."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from fastness.builds.errors import BuildFailed
from fastness.builds.live.layout import CONFIG, LAYER, MANIFEST, Made, blob_path, collect, write_base
from fastness.formats import json, oci
from fastness.formats.errors import FormatError
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
    base_part, mine = made.parts[1:]
    assert base_part.path.is_relative_to(base)
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
    with pytest.raises(BuildFailed, match="which is no part of one"):
        collected(linked, base)
    path.unlink()
    path.write_bytes(b"other")
    with pytest.raises(BuildFailed, match="is not what its name says"):
        collected(linked, base)
    whole = tmp_path / "whole"
    whole.symlink_to(base)
    with pytest.raises(BuildFailed, match="something else in the place of the directory whole"):
        collected(whole, base)
    with pytest.raises(BuildFailed, match="not an image"):
        collected(tmp_path / "nothing", base)


def rewritten(out: Path, change: Callable[[JsonObject], object]) -> Path:
    """What a build left, with a manifest that somebody wrote by hand."""
    index = json.decode((out / "index.json").read_bytes())
    manifest = json.decode(blob_path(out, index["manifests"][0]["digest"]).read_bytes())
    change(manifest)
    entry = stored(out, json.canonical(manifest), MANIFEST)
    (out / "index.json").write_bytes(json.canonical({"schemaVersion": 2, "manifests": [entry]}))
    return out


@pytest.mark.parametrize("name", ["../../../../../../dev/watchdog", "sha256:../../../secret", "sha256:\0", "", 7, None])
def test_a_name_that_is_no_digest_is_not_opened(
    tmp_path: Path, base: Path, name: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def open_noted(path: Path, mode: str) -> IO[Any]:
        opened.append(path)
        return before(path, mode)

    out = rewritten(image(tmp_path / "out", b"base" * 100, b"mine"), lambda made: made["config"].update(digest=name))
    before = Path.open
    monkeypatch.setattr(Path, "open", open_noted)
    with pytest.raises(BuildFailed, match="not an image"):
        collected(out, base)
    assert {path.resolve().parent for path in opened} <= {out, base, out / "blobs/sha256", base / "blobs/sha256"}


@pytest.mark.parametrize(
    "layer", [["a list"], "text", None, {"digest": "sha256:x", "size": 1}, {"annotations": "text"}]
)
def test_a_layer_that_is_none_is_no_image(tmp_path: Path, base: Path, layer: object) -> None:
    out = rewritten(image(tmp_path / "out", b"base" * 100, b"mine"), lambda made: made["layers"].__setitem__(1, layer))
    with pytest.raises(BuildFailed):
        collect(out, base, oci.manifest_digest(json.decode((base / "index.json").read_bytes())), ("mine",))


def test_directories_fifos_and_more_files_than_parts_are_no_layout(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = image(tmp_path / "out", b"base" * 100, b"mine")
    deep = out / "blobs/sha256/deep"
    ways: tuple[tuple[Callable[[], None], Callable[[], None]], ...] = (
        (deep.mkdir, deep.rmdir), (partial(os.mkfifo, deep), deep.unlink),
    )  # fmt: skip
    for make, take_away in ways:
        make()
        with pytest.raises(BuildFailed, match="'deep' in the place of its image"):
            collected(out, base)
        take_away()
    monkeypatch.setattr("fastness.builds.live.layout.MOST_ENTRIES", 3)
    with pytest.raises(BuildFailed, match="which is no part of one"):
        collected(out, base)


def test_the_base_is_read_as_what_a_stranger_left_too(tmp_path: Path, base: Path) -> None:
    out = image(tmp_path / "out", b"base" * 100, b"mine")
    (base / "blobs/sha256/link").symlink_to(tmp_path)
    with pytest.raises(BuildFailed, match="'link' in the place of its image"):
        collected(out, base)


def test_an_index_that_does_not_end_is_not_read_to_its_end(tmp_path: Path, base: Path) -> None:
    out = image(tmp_path / "out", b"base" * 100, b"mine")
    os.truncate(out / "index.json", 2**40)
    with pytest.raises(BuildFailed, match=r"index\.json of the image is too large"):
        collected(out, base)


def test_an_image_has_a_bound_on_its_layers(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastness.builds.live.layout.MOST_LAYERS", 3)
    with pytest.raises(BuildFailed, match="more than 3 layers"):
        collected(image(tmp_path / "out", b"base" * 100, b"1", b"2", b"3"), base)


def test_a_part_that_is_longer_than_may_be_pushed_is_not_even_read(tmp_path: Path, base: Path) -> None:
    """A file of zeros takes no room on a disk, and all the time of whoever looks through it."""

    def grow(made: JsonObject) -> None:
        made["layers"][1]["size"] = 2**40
        os.truncate(blob_path(out, made["layers"][1]["digest"]), 2**40)

    out = image(tmp_path / "out", b"base" * 100, b"mine")
    with pytest.raises(BuildFailed, match="the image has more than"):
        collected(rewritten(out, grow), base)


def test_a_part_that_is_named_often_is_read_once(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    before = oci.digest_of_file

    def digest_noted(path: Path) -> str:
        looked.append(path)
        return before(path)

    monkeypatch.setattr(oci, "digest_of_file", digest_noted)
    made = collected(image(tmp_path / "out", b"base" * 100, *[b"mine"] * 50), base)
    assert (len(made.parts), len(looked)) == (52, 3)


@pytest.mark.parametrize("change", [
    {"mediaType": "application/vnd.oci.image.index.v1+json"}, {"manifests": []}, {"mediaType": ["a"]},
])  # fmt: skip
def test_an_image_that_says_it_is_something_else_as_well_is_none(
    tmp_path: Path, base: Path, change: JsonObject
) -> None:
    out = image(tmp_path / "out", b"base" * 100, b"mine")
    with pytest.raises(BuildFailed):
        collected(rewritten(out, lambda made: made.update(change)), base)


@pytest.mark.parametrize("config", [b"[]", b'"text"', b"null"])
def test_a_base_whose_configuration_is_none_is_refused(tmp_path: Path, config: bytes) -> None:
    layer = stored(tmp_path, b"layer", LAYER)
    with pytest.raises(FormatError):
        write_base(tmp_path, json.canonical({"layers": [layer], "config": {}}), config)


def test_a_base_with_a_layer_of_no_kind_is_refused(tmp_path: Path) -> None:
    layer = {**stored(tmp_path, b"layer", LAYER), "mediaType": ["gzip"]}
    with pytest.raises(FormatError, match="the kind of a layer is no text"):
        write_base(tmp_path, json.canonical({"layers": [layer], "config": {}}), b"{}")


def test_a_base_without_history_and_with_older_names_of_types_can_be_built_on(tmp_path: Path) -> None:
    layout = tmp_path / "base"
    layer = stored(layout, b"layer", "application/vnd.docker.image.rootfs.diff.tar.gzip")
    config = json.canonical({"rootfs": {"type": "layers", "diff_ids": ["sha256:x"]}})
    write_base(layout, json.canonical({"layers": [layer], "config": {}}), config)
    index = json.decode((layout / "index.json").read_bytes())
    manifest = json.decode(blob_path(layout, index["manifests"][0]["digest"]).read_bytes())
    assert manifest["layers"] == [{**layer, "mediaType": f"{LAYER}+gzip"}]
    assert len(json.decode(blob_path(layout, manifest["config"]["digest"]).read_bytes())["history"]) == 1
