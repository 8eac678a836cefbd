"""What cfsctl prints, read; and which words on a command line bind a root."""

from __future__ import annotations

import json

import pytest

from fastness.formats.composefs import MAX_IMAGES, Stored, pulled_manifest, root_on, stored_images, tag_of
from fastness.formats.errors import OsStatusError

HEX = "ab" * 32
IMAGE = f"registry.example:5000/os@sha256:{HEX}"
ROOT = "c" * 128


def listed(*rows: object) -> bytes:
    return json.dumps({"images": list(rows)}).encode()


def row(name: str, digest: str = f"sha256:{HEX}") -> dict[str, object]:
    return {"name": name, "manifest_digest": digest, "is_container": True, "created": None}


def test_the_name_of_an_image_leads_back_to_it() -> None:
    assert tag_of(f"registry.example:5000/os:9@sha256:{HEX}") == f"registry.example:5000/os:sha256-{HEX}"
    assert stored_images(listed(row(tag_of(IMAGE)))) == (Stored(tag_of(IMAGE), IMAGE),)


def test_an_image_of_another_name_is_known_by_its_digest() -> None:
    (found,) = stored_images(listed(row("docker://anything:latest")))
    assert found.image.endswith(f"@sha256:{HEX}")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b'{"images": 1}', listed(1), listed({"name": "x"}), listed(row("x", "sha512:00")),
        listed(row(None)), listed(*[row("x")] * (MAX_IMAGES + 1)),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_no_list_of_images_is_refused(data: bytes) -> None:
    with pytest.raises(OsStatusError):
        stored_images(data)


@pytest.mark.parametrize("image", ["os", "registry.example/os:9", f"registry.example/os@sha512:{'0' * 128}"])
def test_only_an_image_by_digest_has_a_name(image: str) -> None:
    with pytest.raises(OsStatusError):
        tag_of(image)


def test_the_manifest_that_a_pull_brought() -> None:
    assert pulled_manifest(f"manifest sha256:{HEX}\nconfig   sha256:{'0' * 64}\n") == f"sha256:{HEX}"
    assert pulled_manifest("manifest none\n") == ""


@pytest.mark.parametrize(
    ("line", "root"),
    [
        (f"quiet composefs.digest=v1-sha512-12:{ROOT} x", ROOT),
        (f"composefs.digest=?v1-sha512-12:{ROOT}", ""),
        (f"composefs.digest=v1-sha512-12:{ROOT[1:]}", ""),
        (f"composefs.digest=v1-sha512-12:{ROOT} composefs.digest=v1-sha512-12:{ROOT}", ""),
        (f"xcomposefs.digest=v1-sha512-12:{ROOT}", ""),
        (f"composefs={ROOT}", ""),
        ("", ""),
    ],
)
def test_only_one_word_without_a_way_out_binds_a_root(line: str, root: str) -> None:
    assert root_on(line) == root
