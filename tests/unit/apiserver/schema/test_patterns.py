"""Patterns mean what RE2 means, whichever engine answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.schema.cel.engine import regex_matcher
from fastness.apiserver.schema.patterns import is_plain, matcher, problem


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("b", "abc", True), ("^b", "abc", False), ("^a$", "a\n", False), (r"^\d$", "٣", False), (r"^\w$", "é", False),
        ("(?i)ABC", "xabc", True), (r"\pL", "é", True), ("[[:alpha:]]", "1", False), (r"\Aab\z", "ab", True), (".",
        "\n", False),
        (r"^\s$", "\u00a0", False), (r"\Qa.b\E", "a.b", True), ("(?P<x>a)b", "ab", True), (r"^[\w.-]+$", "a.b-c", True),
        ("^(a|b){2,3}$", "aba", True), ("^[^/]+$", "a/b", False), ("it's \"so\"", "it's \"so\"", True), ("[a-z]{2}é",
        "abé", True),
        ("(?s)^.$", "\n", True), ("[[a]", "[", True), ("^[a&&b]$", "&", True),
    ],
)  # fmt: skip
def test_what_a_pattern_finds(pattern: str, text: str, matches: bool) -> None:
    assert matcher(pattern)(text) is matches


@pytest.mark.parametrize("pattern", ["(a", "(?=a)", r"(a)\1", "x**", "[z-a]", "a{2000}", "*a", ")", r"\8"])
def test_what_is_no_pattern_is_told_and_found_nowhere(pattern: str) -> None:
    assert problem(pattern)
    assert matcher(pattern)("a") is False


@pytest.mark.parametrize(
    "pattern", ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "^sha256:[0-9a-f]{64}$", r"^v?\d+\.\d+$", "^(Always|Never)$"]
)
def test_everyday_patterns_take_the_fast_engine(pattern: str) -> None:
    assert is_plain(pattern)


@given(st.text("ab.[]()|*+?{}1,^$\\d-w", max_size=8), st.text("ab1-.\n", max_size=5))
def test_both_engines_agree_on_plain_patterns(pattern: str, text: str) -> None:
    if is_plain(pattern):
        assert matcher(pattern)(text) == regex_matcher(pattern)(text)
