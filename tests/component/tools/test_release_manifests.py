"""Archives of a release that hold manifests: whoever applies our definitions writes over nobody else's."""

from __future__ import annotations

import tarfile
from pathlib import Path

from fastness.kinds.crd.sets import OTHERS, own_names
from tools.release.dist import add_manifests


def files_in(path: Path) -> list[Path]:
    with tarfile.open(path) as archive:
        return [Path(name) for name in archive.getnames() if name.endswith(".yaml")]


def test_definitions_of_others_are_in_an_archive_of_their_own_by_set(tmp_path: Path) -> None:
    add_manifests(tmp_path)
    (own,), (others,) = tmp_path.glob("fastness-*-crds.tar.gz"), tmp_path.glob("fastness-*-crds-of-others.tar.gz")
    assert {path.stem for path in files_in(own)} == own_names()
    assert {path.parts[0] for path in files_in(own)} == {"crds"}
    assert {path.parts[1] for path in files_in(others)} == set(OTHERS)
    assert not {path.stem for path in files_in(others)} & own_names()
    assert [path.name for path in tmp_path.glob("fastness-*.tgz")], "the chart"
