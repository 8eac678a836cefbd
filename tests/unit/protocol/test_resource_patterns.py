"""Patterns of resource paths: what a star stands for, and that no pattern takes long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.policy.query import ActivePolicy
from fastness.kinds.trusted_execution.subject import Subject
from fastness.protocol.kbs_path import ResourcePath, covers
from tests.granting import path_denial
from tests.growth import in_proportion

TWELVE_SECONDS = "*a*a*a*a*a*b/t/g"
LONGEST = 128  # characters of a segment


def naive(pattern: str, path: Sequence[str]) -> bool:
    """What a pattern means, tried in every way."""
    segments = pattern.split("/")
    return len(segments) == len(path) and all(map(_naive, segments, path))


def _naive(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_naive(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return text[:1] == pattern[0] and _naive(pattern[1:], text[1:])


segments = st.text("ab.", max_size=9)
globs = st.text("ab.*", max_size=9)


@given(st.lists(globs, min_size=1, max_size=4), st.lists(segments, min_size=1, max_size=4))
def test_it_says_what_trying_everything_says(pattern: list[str], path: list[str]) -> None:
    assert covers("/".join(pattern), path) is naive("/".join(pattern), path)


@given(segments, st.data())
def test_a_pattern_made_from_a_text_by_putting_stars_in_covers_it(text: str, data: st.DataObject) -> None:
    pieces = [data.draw(st.sampled_from([char, "*", f"*{char}", f"{char}*"])) for char in text]
    assert covers("".join(pieces), (text,))


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("default/db/*", "default/db/x", True),
        ("default/db/*", "default/dbx/x", False),
        ("default/*", "default/db/x", False),
        ("default/*/*", "default/db/x", True),
        ("d*t/db/x", "default/db/x", True),
        ("d*t/db/x", "d/t/x", False),
        ("d.fault/db/x", "default/db/x", False),
        ("default/db/x*", "default/db/x", True),
        ("aba*aba/b/c", "aba/b/c", False),
        ("d*b*t/db/x", "default/db/x", False),
        ("*b*a*/db/x", "ab/db/x", False),
        ("", "default/db/x", False),
    ],
)
def test_a_star_stays_within_its_segment(pattern: str, path: str, expected: bool) -> None:
    assert covers(pattern, path.split("/")) is expected


@pytest.mark.parametrize("pattern", [TWELVE_SECONDS, "*" * 120 + "b/t/g", "*a" * 63 + "b/t/g", "*aa" * 42 + "*b/t/g"])
def test_no_pattern_takes_long_in_a_binding_or_in_a_policy(pattern: str) -> None:
    binding = {"spec": {"resource": pattern, "subjects": {"pools": ["worker"]}}}
    caller = Subject("m", "machine-m", "t", "worker")

    def asked(size: int) -> None:
        path = ("a" * size, "t", "g")
        assert path_denial(ResourcePath(*path), caller, [binding]) == "not-bound"
        assert not ActivePolicy("p", pattern, "", "v").matches(path)

    assert in_proportion(asked, LONGEST)
