"""One file out of a layer."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from fastness.formats.oci import OciError
from fastness.formats.oci_layer import MAX_FILE, file_in_layer


def layer(*entries: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = kind, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("prefix", ["", "./"])
def test_a_file_is_read_packed_or_not(pack: type[bytes], prefix: str) -> None:
    body = pack(layer((f"{prefix}a", b"1"), (f"{prefix}b/c", b"content")))
    assert file_in_layer(body, "b/c") == b"content"
    assert file_in_layer(body, "c") is None


def test_a_link_of_that_name_is_no_file() -> None:
    assert file_in_layer(layer(("a", b""), kind=tarfile.SYMTYPE), "a") is None


def test_a_layer_that_unpacks_to_more_than_is_looked_at_is_refused() -> None:
    bomb = gzip.compress(layer(("big", b"\0" * 4_000_000), ("a", b"1")))
    assert len(bomb) < 10_000
    with pytest.raises(OciError, match="more than is looked at"):
        file_in_layer(bomb, "a", most=1_000_000)
    assert file_in_layer(bomb, "a") == b"1"


def test_a_file_beyond_the_bound_is_refused() -> None:
    with pytest.raises(OciError, match="a has more than"):
        file_in_layer(layer(("a", b"\0" * (MAX_FILE + 1))), "a")


@pytest.mark.parametrize("content", [b"\x1f\x8bxx", b"x" * 512, gzip.compress(layer(("a", b"1")))[:-40]])
def test_what_is_no_layer_is_refused(content: bytes) -> None:
    with pytest.raises(OciError, match="not a layer"):
        file_in_layer(content, "b")


def test_a_layer_of_many_members_is_not_looked_through_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastness.formats.oci_layer.MAX_MEMBERS", 2)
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for number in range(4):
            archive.addfile(tarfile.TarInfo(f"f{number}"))
    with pytest.raises(OciError, match="more than 2 members"):
        file_in_layer(sink.getvalue(), "f3")
