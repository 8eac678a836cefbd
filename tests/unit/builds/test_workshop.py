"""The directory of a build holds whatever a config names, however deep, and nothing that leads out of it."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from fastness.builds.errors import BuildFailed
from fastness.builds.inputs import BuildInputs, ImageFile
from fastness.builds.live import workshop
from fastness.builds.live.builder import Order
from fastness.builds.live.removal import remove_tree
from fastness.machineconfig.streams.access import RegistryAccess

DEEP = "/etc/" + "d/" * 1100 + "file"


def laid_out(work: Path, *files: ImageFile) -> Path:
    """The context of a build of these files."""
    workshop.begin(work)
    made_of = BuildInputs("base", "", files)
    workshop.write_context(work / "context", Order("n", made_of, "target", RegistryAccess(), RegistryAccess()))
    return work / "context"


def test_a_path_of_more_levels_than_python_has_calls_is_no_accident(tmp_path: Path) -> None:
    work = tmp_path / "work"
    context = laid_out(work, ImageFile(DEEP, b"x"))
    assert f"{context}/root{DEEP}" in set(workshop.below(work))
    assert workshop.packed(context)
    if os.geteuid() == 0:
        workshop.give(work)
    remove_tree(work)
    assert not work.exists()


def test_links_are_named_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "file").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "away")
    assert list(workshop.below(root)) == [str(root / "link")]


def test_a_context_comes_out_of_its_archive_as_it_went_in(tmp_path: Path) -> None:
    files = ImageFile("/etc/a", b"1", 0o600), ImageFile("/etc/b", link="/etc"), ImageFile("/usr/c", b"2")
    context = laid_out(tmp_path / "work", *files)
    (tmp_path / "other").mkdir()
    workshop.unpack(workshop.packed(context), tmp_path / "other")
    assert workshop.packed(tmp_path / "other") == workshop.packed(context)


def archive(*entries: tuple[str, str | bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as made:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                made.addfile(entry)
            else:
                entry.size = len(content)
                made.addfile(entry, io.BytesIO(content))
    return gzip.compress(sink.getvalue())


@pytest.mark.parametrize(
    "content",
    [
        archive(("../out", b"x")),
        archive(("/tmp/out", b"x")),
        archive(("link", ".."), ("link/out", b"x")),
        archive(("a", "."), ("a/b", ".."), ("a/b/out", b"x")),
        archive(("out", "../out"), ("out", b"x")),
    ],
)
def test_an_archive_that_leads_out_of_its_directory_is_refused(tmp_path: Path, content: bytes) -> None:
    context = tmp_path / "context"
    context.mkdir()
    with pytest.raises((BuildFailed, FileExistsError)):
        workshop.unpack(content, context)
    assert [each.name for each in tmp_path.iterdir()] == ["context"]
