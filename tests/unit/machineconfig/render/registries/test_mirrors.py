"""Lists of mirrors: refusals with their messages, and how lists of one source become one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries import mirrors, objects
from tests.unit.machineconfig.render.registries.build import icsp, idms, itms, settings

NEVER, ALLOW = "NeverContactSource", "AllowContactingSource"


def merged(*sets: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    return [(entry.by.value, entry.source, list(entry.mirrors)) for entry in settings(None, *sets).mirrored]


def refusal(*sets: dict[str, Any]) -> BadRegistries:
    with pytest.raises(BadRegistries) as refused:
        settings(None, *sets)
    return refused.value


# Lists for the source `s`, and the order that follows.
MERGES = [
    ([["a", "b", "c"]], ["a", "b", "c"]),
    ([["b", "a"]], ["b", "a"]),
    ([["a", "b", "c"], ["c", "d", "e"]], ["a", "b", "c", "d", "e"]),
    ([["b", "c"], ["a", "b"]], ["a", "b", "c"]),
    ([["b"], ["a"]], ["a", "b"]),
    ([["z"], ["a", "z"]], ["a", "z"]),
    ([["c", "a"], ["d", "b"]], ["c", "d", "a", "b"]),
    ([["a", "c"], ["b", "c"], ["b", "d"]], ["a", "b", "c", "d"]),
    # Lists that contradict each other: the circle is cut at the first name, always the same.
    ([["a", "b"], ["b", "a"]], ["a", "b"]),
    ([["c", "b"], ["b", "c"]], ["b", "c"]),
    ([["a", "b"], ["b", "c"], ["c", "a"]], ["a", "b", "c"]),
    ([["x", "b", "c"], ["c", "b"]], ["x", "b", "c"]),
    # The first of all names that are left, also of those behind the circle.
    ([["b", "c"], ["c", "b"], ["c", "a"]], ["a", "b", "c"]),
    # The source is asked last by itself; where a list puts it earlier it stays there.
    ([["a", "s"]], ["a"]),
    ([["s", "a"]], ["s", "a"]),
    ([["a", "s", "b"]], ["a", "s", "b"]),
    ([["a", "s"], ["b"]], ["a", "b"]),
    # Lists that name no other place say nothing.
    ([["s"], ["a"]], ["a"]),
    ([[], ["a"]], ["a"]),
    ([["a", "a", "b"]], ["a", "b"]),
]


@pytest.mark.parametrize(("lists", "order"), MERGES)
def test_lists_of_a_source_become_one(lists: list[list[str]], order: list[str]) -> None:
    sets = [idms(f"set-{number}", {"s": names}) for number, names in enumerate(lists)]
    assert merged(*sets) == [("digest-only", "s", order)]
    assert merged(*reversed(sets)) == [("digest-only", "s", order)]


def test_a_source_without_any_other_place_has_no_entry() -> None:
    assert merged(idms("a", {"s": ["s"], "t": []})) == []


def test_older_sets_count_like_those_for_digests_and_tags_stay_apart() -> None:
    assert merged(
        idms("a", {"s": ["a"], "r": ["x"]}), icsp("b", {"s": ["b"]}), itms("c", {"s": ["t"], "q": ["t"]})
    ) == [
        ("digest-only", "r", ["x"]),
        ("digest-only", "s", ["a", "b"]),
        ("tag-only", "q", ["t"]),
        ("tag-only", "s", ["t"]),
    ]


def test_a_set_that_is_being_deleted_counts_no_more() -> None:
    gone = idms("a", {"s": ["a"]})
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert merged(gone) == []


BAD_SOURCES = [
    "",
    "quay.io/NS",
    "quay.io/",
    "*.a/b",
    "*",
    "a b",
    "http://quay.io",
    "quay.io/ns:tag",
    "-a.io",
    "quay.io\n",
]


@pytest.mark.parametrize("source", BAD_SOURCES)
@pytest.mark.parametrize("make", [idms, itms, icsp])
def test_a_source_has_a_form(make: Any, source: str) -> None:
    error = refusal(make("broken", {source: ["a"]}))
    assert error.message == f'invalid format for source "{source}"'
    assert error.culprit.name == "broken"
    assert error.culprit.kind == make("", {})["kind"]


@pytest.mark.parametrize("mirror", ["", "*.a", "a/B", "a b", "a@sha256:00", "https://a", "a\n"])
@pytest.mark.parametrize("make", [idms, itms, icsp])
def test_a_mirror_has_a_form(make: Any, mirror: str) -> None:
    assert refusal(make("broken", {"s": ["a", mirror]})).message == f'invalid format for mirror "{mirror}"'


GOOD = ["quay.io", "quay.io:5000", "localhost", "a-b.c/d_e/f__g/h--i/j.k", "QUAY.io/ns"]


@pytest.mark.parametrize("name", GOOD)
def test_forms_that_are_good(name: str) -> None:
    assert merged(idms("a", {name: ["m"]})) == [("digest-only", name, ["m"])]
    assert merged(idms("a", {"s": [name]})) == [("digest-only", "s", [name])]


def test_a_wildcard_can_be_a_source() -> None:
    assert merged(idms("a", {"*.example.com": ["m"]})) == [("digest-only", "*.example.com", ["m"])]


@pytest.mark.parametrize(
    "sets",
    [
        (idms("a", {"s": ["a"]}, NEVER), idms("b", {"s": ["b"]}, ALLOW)),
        (idms("a", {"s": ["a"]}, NEVER), idms("b", {"s": ["b"]})),
        (idms("a", {"s": ["a"]}, NEVER), itms("b", {"s": ["b"]}, ALLOW)),
        (idms("a", {"s": ["a"]}, NEVER), icsp("b", {"s": ["b"]})),
    ],
)
def test_two_policies_for_a_source_are_refused(sets: tuple[dict[str, Any], ...]) -> None:
    error = refusal(*sets)
    assert error.message == (
        'conflicting mirrorSourcePolicy is set for the same source "s" in imagedigestmirrorsets, imagetagmirrorsets, '
        "or imagecontentsourcepolicies"
    )
    assert "ImageDigestMirrorSet a" in error.hint
    assert error.culprit.name == "b"


def test_no_policy_means_that_the_source_may_be_contacted() -> None:
    assert merged(idms("a", {"s": ["a"]}), idms("b", {"s": ["b"]}, ALLOW)) == [("digest-only", "s", ["a", "b"])]


def test_a_source_that_is_never_contacted_is_none_of_its_mirrors() -> None:
    assert refusal(idms("a", {"s": ["a", "s"]}, NEVER)).message == (
        'cannot set mirrorSourcePolicy: NeverContactSource if the source "s" is one of the mirrors'
    )


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "MAX_LOCATIONS", 3)
    settings(None, idms("a", {"s": ["a", "b"]}))
    error = refusal(idms("a", {"s": ["a", "b"]}), idms("b", {"t": ["c"]}))
    assert "more than 3" in error.message
    assert error.culprit.name == "b"


lists_of_names = st.lists(st.lists(st.sampled_from("abcdef"), max_size=5, unique=True), max_size=5)


@given(lists_of_names, st.randoms())
def test_the_order_holds_every_name_once_and_does_not_depend_on_who_came_first(
    lists: list[list[str]], chance: Any
) -> None:
    order = mirrors.in_order(lists)
    assert sorted(order) == sorted({name for names in lists for name in names})
    shuffled = list(lists)
    chance.shuffle(shuffled)
    assert mirrors.in_order(shuffled) == order


@given(lists_of_names)
def test_lists_that_agree_are_kept_to(lists: list[list[str]]) -> None:
    agreeing = [sorted(names) for names in lists]
    order = mirrors.in_order(agreeing)
    for names in agreeing:
        assert [name for name in order if name in names] == names
    assert mirrors.in_order([order]) == order
