"""Hostile bytes against every parser of the Kubernetes API, and proof that the fuzzer can fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import FormatError, JsonError
from tests.fuzz.driver import Target, run
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_mutated_input_gives_a_value_or_a_format_error(target: Target) -> None:
    outcome = run(target)
    assert outcome.accepted > 0, "every mutation was refused: the corpus teaches nothing"
    assert len(outcome.refused) > 0, "no mutation was refused: the parser checks nothing"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
def test_arbitrary_input_gives_a_value_or_a_format_error(target: Target, data: bytes) -> None:
    try:
        target.parse(data)
    except FormatError:
        return


def test_the_driver_reports_a_foreign_exception() -> None:
    target = Target("leaky", lambda data: data.decode("ascii"), (b"abc",), (b"\xff",))
    with pytest.raises(AssertionError, match="UnicodeDecodeError escaped"):
        run(target, iterations=500)


def test_the_driver_reports_work_out_of_proportion() -> None:
    def step(_: int) -> None:
        pass

    def quadratic(data: bytes) -> None:
        for _ in data:
            for _ in data:
                step(1)

    with pytest.raises(AssertionError, match="calls for"):
        run(Target("slow", quadratic, (b"a" * 200,), (b"b",)), iterations=500)


def test_the_driver_reports_an_error_without_a_hint() -> None:
    def parse(data: bytes) -> None:
        if data != b"a":
            raise JsonError("code", "message")

    with pytest.raises(AssertionError, match="lacks a code"):
        run(Target("curt", parse, (b"a",), (b"b",)), iterations=50)


def test_a_run_repeats_with_its_seed() -> None:
    target = TARGETS[0]
    assert run(target, seed=5, iterations=200) == run(target, seed=5, iterations=200)
    assert run(target, seed=5, iterations=200) != run(target, seed=6, iterations=200)
