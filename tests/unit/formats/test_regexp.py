"""Regular expressions: linear in the text, bounded in the pattern, refused with the place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import RegexpError
from fastness.formats.regexp import MAX_PATTERN, compile_regexp


def spans(pattern: str, text: str, at: int = 0) -> tuple[int, ...] | None:
    return compile_regexp(pattern).search(text, at, lambda count: None)


def test_a_match_tells_where_it_and_its_groups_are() -> None:
    assert spans(r"v([0-9]+)\.(x)?", "a v5.14") == (2, 5, 3, 4, -1, -1)
    assert spans("b", "abab", 2) == (3, 4)
    assert spans("^a", "ba", 1) is None
    assert spans("z", "abc") is None
    assert compile_regexp("(?P<major>a)(b)").groups == ("", "major", "")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*b", "(a|a)*b", "(a|aa)+$", "(.*)(.*)(.*)b", "((a?){8}){8}b"])
def test_no_pattern_goes_back(pattern: str) -> None:
    regexp = compile_regexp(pattern)
    steps = 0

    def spend(count: int) -> None:
        nonlocal steps
        steps += count

    assert regexp.search("a" * 200 + "c", 0, spend) is None or pattern == "(a|aa)+$"
    assert steps <= 202 * (len(regexp.program) + 1)


def test_the_caller_may_end_it() -> None:
    def enough(count: int) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        compile_regexp("a*b").search("a" * 1000, 0, enough)


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("a" * (MAX_PATTERN + 1), "pattern-too-long"),
        ("(" * 60 + ")" * 60, "too-deep"),
        ("((a{100}){100}){100}", "pattern-too-large"),
        ("a{1001}", "bad-pattern"),
        ("(", "bad-pattern"),
        ("a)", "bad-pattern"),
        ("*", "bad-pattern"),
        ("a**", "bad-pattern"),
        ("[b-a]", "bad-pattern"),
        ("[a", "bad-pattern"),
        (r"\pL", "bad-pattern"),
        (r"\1", "bad-pattern"),
        ("(?=a)", "bad-pattern"),
        ("(?<=a)b", "bad-pattern"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, code: str) -> None:
    with pytest.raises(RegexpError) as caught:
        compile_regexp(pattern)
    assert caught.value.code == code
    assert caught.value.hint


@given(st.text(alphabet="ab(|)*+?[]^$.\\dwQE{}1,", max_size=20), st.text(alphabet="ab1\n", max_size=12))
def test_any_pattern_on_any_text_gives_an_answer_or_one_kind_of_error(pattern: str, text: str) -> None:
    try:
        place = spans(pattern, text)
    except RegexpError:
        return
    assert place is None or 0 <= place[0] <= place[1] <= len(text)
