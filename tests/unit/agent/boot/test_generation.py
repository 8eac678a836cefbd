"""The numbers on a volume: what it was opened under, through power cuts, and what cannot be read counts as none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.boot.generation import FILE, MOST, Generation, count_opening
from fastness.protocol.disk_report import MOST_OPENINGS


def test_a_new_volume_was_opened_under_nothing_and_each_recorded_opening_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "lib" / "fastness"
    assert count_opening(place, 1, 0) == Generation(1, 0)
    assert count_opening(place, 2, 1) == Generation(2, 1)
    assert count_opening(place, 5, 2) == Generation(5, 2)
    assert (place / FILE).read_bytes() == b"2\n5\n"


def test_openings_that_were_not_recorded_are_remembered_until_one_is(tmp_path: Path) -> None:
    for opening in (1, 2, 3):
        assert count_opening(tmp_path, opening, 0) == Generation(opening, 0, tuple(range(1, opening)))
    assert count_opening(tmp_path, 4, 2) == Generation(4, 2, (3,))


def test_a_volume_that_never_saw_the_recorded_opening_keeps_saying_what_it_saw(tmp_path: Path) -> None:
    count_opening(tmp_path, 1, 0)
    count_opening(tmp_path, 2, 1)
    assert [count_opening(tmp_path, opening, 7).after for opening in (8, 9, 10)] == [1, 1, 1]


@pytest.mark.parametrize(
    "content",
    [b"", b"7", b"-1\n", b"07\n", b"7\n\n", b"x\n", b"\xff\n", b"%d\n" % MOST, b"9" * 40 + b"\n", b"1\n" * 600, b"1\n" * 9000],
)  # fmt: skip
def test_numbers_that_cannot_be_read_count_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert count_opening(tmp_path, 8, 1) == Generation(8, 0)


def test_a_link_in_their_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"41\n")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    assert count_opening(tmp_path, 1, 0).after == 0
    assert (tmp_path / "elsewhere").read_bytes() == b"41\n"


def test_a_full_list_counts_as_none_so_that_no_opening_is_left_out(tmp_path: Path) -> None:
    for opening in range(2, MOST_OPENINGS + 2):
        assert count_opening(tmp_path, opening, 0).since == tuple(range(2, opening))
    assert len((tmp_path / FILE).read_bytes().split()) == MOST_OPENINGS + 1
    assert count_opening(tmp_path, MOST_OPENINGS + 2, 1) == Generation(MOST_OPENINGS + 2, 0)


def test_a_full_list_is_settled_by_a_proof(tmp_path: Path) -> None:
    for opening in range(2, MOST_OPENINGS + 2):
        count_opening(tmp_path, opening, 0)
    last = MOST_OPENINGS + 1
    assert count_opening(tmp_path, last + 1, last) == Generation(last + 1, last)


def test_a_power_cut_before_the_rename_leaves_the_numbers_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_opening(tmp_path, 1, 0)

    def cut(self: Path, target: Path) -> Path:
        raise OSError(5, "the power is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", cut)
        with pytest.raises(OSError, match="power"):
            count_opening(tmp_path, 2, 1)
    assert count_opening(tmp_path, 3, 1) == Generation(3, 1)


def test_a_volume_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "lib").write_bytes(b"a file where the directory should be")
    with pytest.raises(OSError, match="directory"):
        count_opening(tmp_path / "lib" / "fastness", 1, 0)
