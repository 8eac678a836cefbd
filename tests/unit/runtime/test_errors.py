"""The base of our errors."""

from __future__ import annotations

from fastness.runtime.errors import CodedError, FastnessError


class Burnt(FastnessError):
    """A toast."""

    code = "burnt"
    hint = "Turn it down."


class Odd(CodedError):
    """Any of many."""


def test_a_class_gives_code_and_hint_and_an_error_may_know_a_better_hint() -> None:
    plain, better = Burnt("too dark"), Burnt("too dark", "Take it out.")
    assert (plain.code, plain.hint, plain.message, str(plain)) == ("burnt", "Turn it down.", "too dark", "too dark")
    assert better.hint == "Take it out."
    assert Burnt("again").hint == Burnt.hint, "the hint of one error must not become that of its class"


def test_a_coded_error_has_a_code_of_its_own_and_no_hint_unless_one_is_given() -> None:
    error = Odd("odd-size", "too wide")
    assert (error.code, error.message, error.hint) == ("odd-size", "too wide", "")
    assert not hasattr(Odd, "code"), "its class stands for many codes, so the page of errors lists none"
