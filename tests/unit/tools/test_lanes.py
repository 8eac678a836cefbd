"""How test files are put into lanes: by what they took before, with those together that share a server."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tools.lanes import UNRECORDED, Bundle, balance, bundles, estimate, keys_of, server_of

ROOT = Path(__file__).resolve().parents[3]
SESSION = '@pytest.fixture(scope="session")\ndef live() -> Live: ...\n'


def single(**seconds: float) -> list[Bundle]:
    return [Bundle((file,), length) for file, length in seconds.items()]


def test_the_longest_comes_first_and_goes_where_least_is_to_do() -> None:
    lanes = balance(single(a=3, b=5, c=4, d=4), 2)
    assert [(lane.files, lane.seconds) for lane in lanes] == [(("a", "b"), 8), (("c", "d"), 8)]


def test_a_lane_without_files_is_not_started() -> None:
    assert [lane.name for lane in balance(single(a=1), 3)] == ["lane 1"]


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=8), st.integers(1, 3))
def test_no_file_is_lost_and_no_lane_is_a_third_longer_than_the_best_division(lengths: list[float], count: int) -> None:
    parts = [Bundle((str(number),), length) for number, length in enumerate(lengths)]
    lanes = balance(parts, count)
    assert sorted(file for lane in lanes for file in lane.files) == sorted(part.files[0] for part in parts)
    best = min(
        max(sum(length for length, mine in zip(lengths, chosen, strict=True) if mine == lane) for lane in range(count))
        for chosen in itertools.product(range(count), repeat=len(lengths))
    )
    assert max(lane.seconds for lane in lanes) <= best * 4 / 3 + 0.001


def test_lanes_are_the_same_in_every_run() -> None:
    parts = single(a=1, b=1, c=1, d=1)
    assert balance(parts, 2) == balance(reversed(parts), 2)


def test_a_new_file_counts_as_much_as_its_neighbours() -> None:
    durations = {"tests/unit/a/test_1.py": 2.0, "tests/unit/a/test_2.py": 4.0, "tests/e2e/test_3.py": 60.0}
    assert estimate("tests/unit/a/test_1.py", durations) == 2.0
    assert estimate("tests/unit/a/test_new.py", durations) == 3.0
    assert estimate("tests/unit/b/test_new.py", durations) == 3.0
    assert estimate("tests/fuzz/test_new.py", durations) == 22.0
    assert estimate("tests/fuzz/test_new.py", {}) == UNRECORDED


def test_files_that_share_a_server_go_together() -> None:
    keys = {"a": "server", "b": "b", "c": "server"}
    assert bundles(keys, {"a": 1, "b": 9, "c": 2}, 2) == [Bundle(("a", "c"), 3, "server"), Bundle(("b",), 9)]


def test_files_that_share_a_server_are_the_last_of_their_lane() -> None:
    parts = [Bundle(("a", "d"), 3, "server"), Bundle(("b",), 9, "another"), Bundle(("c",), 1), Bundle(("e",), 1)]
    assert [lane.files for lane in balance(parts, 1)] == [("c", "e", "b", "a", "d")]


def test_a_bundle_longer_than_a_lane_should_be_is_cut() -> None:
    files = dict.fromkeys("abcd", "server")
    assert [bundle.seconds for bundle in bundles(files, dict.fromkeys("abcd", 5), 2)] == [10, 10]


def test_a_server_is_recognised_in_the_file_and_in_the_conftest_beside_it() -> None:
    assert server_of("tests/a/test_1.py", "def test_it(real_kube: RealKube): ...", "") == "real_kube"
    assert server_of("tests/a/test_1.py", "", "def world(real_kube): ...") == "real_kube"
    assert server_of("tests/a/test_1.py", "def test_it(live): ...", SESSION) == "tests/a"
    assert server_of("tests/a/test_1.py", "def test_it(bare_kube, real_kubernetes): ...", "") == "tests/a/test_1.py"


def test_every_test_file_of_the_tree_is_in_a_lane() -> None:
    files = {path.as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    lanes = balance(bundles(keys_of(ROOT / "tests"), {}, 5), 5)
    assert sorted(file for lane in lanes for file in lane.files) == sorted(files)
