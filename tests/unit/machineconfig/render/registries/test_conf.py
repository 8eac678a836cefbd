"""registries.conf: entries for mirrors, insecure and blocked scopes, and what goes on to narrower entries."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.formats import toml
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries import objects
from fastness.machineconfig.render.registries.conf import entry_for, places, registries_conf
from fastness.machineconfig.render.registries.objects import PullBy
from tests.unit.machineconfig.render.registries.build import (
    entries,
    icsp,
    idms,
    image,
    itms,
    mirror,
    settings,
    written,
)

NEVER = "NeverContactSource"
CONF = "/etc/containers/registries.conf"
SEARCH = "/etc/containers/registries.conf.d/01-image-searchRegistries.conf"


def test_nothing_is_written_where_nothing_is_said() -> None:
    assert written() == {}
    assert written(image(search=["a.io"])).keys() == {SEARCH}


@pytest.mark.parametrize(
    "given", [(image(insecure=["a.io"]),), (image(blocked=["a.io"]),), (None, idms("a", {"s": ["m"]})),
              (None, itms("a", {"s": ["m"]})), (None, icsp("a", {"s": ["m"]})), (None, idms("a", {"s": []}))],
)  # fmt: skip
def test_the_file_is_written_for_insecure_and_blocked_registries_and_for_any_mirror_set(given: Any) -> None:
    assert CONF in written(*given)


def test_the_file_starts_from_the_template() -> None:
    text = written(None, idms("a", {"s": ["m"]}))[CONF]
    assert toml.parse(text)["unqualified-search-registries"] == ["registry.access.redhat.com", "docker.io"]


def test_entries_of_a_template_stay_and_are_added_to() -> None:
    template = 'short-name-mode = "enforcing"\n[[registry]]\nlocation = "b.io"\nmirror-by-digest-only = true\n'
    document = registries_conf(template, settings(None, idms("a", {"b.io": ["m"]})).mirrored, ["a.io"], [])
    assert document["short-name-mode"] == "enforcing"
    assert document["registry"] == [
        {"location": "b.io", "mirror-by-digest-only": True, "mirror": [mirror("m")]},
        {"location": "a.io", "insecure": True},
    ]


def test_search_registries_replace_the_list_in_a_file_of_their_own() -> None:
    assert toml.parse(written(image(search=["b.io", "a.io:5000"]))[SEARCH]) == {
        "unqualified-search-registries": ["b.io", "a.io:5000"]
    }


def test_digests_come_before_tags_in_an_entry() -> None:
    assert entries(None, itms("a", {"s": ["t"]}), idms("b", {"s": ["d", "e"]})) == {
        "s": {"location": "s", "mirror": [mirror("d"), mirror("e"), mirror("t", "tag-only")]}
    }


def test_a_wildcard_is_a_prefix_without_a_location() -> None:
    assert entries(image(blocked=["*.a.io"], insecure=["*.b.io"]), idms("a", {"*.c.io": ["m"]})) == {
        "*.c.io": {"prefix": "*.c.io", "mirror": [mirror("m")]},
        "*.a.io": {"prefix": "*.a.io", "blocked": True},
        "*.b.io": {"prefix": "*.b.io", "insecure": True},
    }


def test_a_source_that_is_never_contacted_is_blocked() -> None:
    assert entries(None, idms("a", {"s": ["m"]}, NEVER), itms("b", {"t": ["m"]}, NEVER)) == {
        "s": {"location": "s", "blocked": True, "mirror": [mirror("m")]},
        "t": {"location": "t", "blocked": True, "mirror": [mirror("m", "tag-only")]},
    }


def test_insecure_goes_on_to_entries_and_mirrors_inside() -> None:
    conf = entries(
        image(insecure=["a.io", "*.i.io"]), idms("x", {"a.io/ns": ["m.io/ns", "r.i.io/ns"], "b.io": ["a.io/b"]})
    )
    assert conf["a.io/ns"] == {
        "location": "a.io/ns", "insecure": True, "mirror": [mirror("m.io/ns"), mirror("r.i.io/ns", insecure=True)],
    }  # fmt: skip
    assert conf["b.io"] == {"location": "b.io", "mirror": [mirror("a.io/b", insecure=True)]}
    assert conf["a.io"] == {"location": "a.io", "insecure": True}


def test_blocked_goes_on_to_entries_inside_and_not_to_mirrors() -> None:
    conf = entries(
        image(blocked=["a.io", "*.b.io"]), idms("x", {"a.io/ns": ["m"], "r.b.io": ["a.io"], "c.io": ["a.io/c"]})
    )
    assert conf["a.io/ns"]["blocked"]
    assert conf["r.b.io"]["blocked"]
    assert conf["c.io"] == {"location": "c.io", "mirror": [mirror("a.io/c")]}


def test_a_blocked_scope_inside_an_insecure_one_is_both() -> None:
    assert entries(image(insecure=["*.i.io"], blocked=["*.b.i.io"]))["*.b.i.io"] == {
        "prefix": "*.b.i.io", "insecure": True, "blocked": True,
    }  # fmt: skip


def test_an_entry_without_mirrors_gets_those_of_the_source_around_it() -> None:
    conf = entries(image(insecure=["a.io/ns/app"]), idms("x", {"a.io": ["m", "n/p"], "a.io/ns": ["o/ns"]}))
    assert conf["a.io/ns/app"] == {"location": "a.io/ns/app", "insecure": True, "mirror": [mirror("o/ns/app")]}


def test_such_mirrors_stay_insecure_and_become_so_where_a_narrower_scope_is() -> None:
    conf = entries(image(insecure=["a.io/ns", "m.io", "n.io/ns"]), idms("x", {"a.io": ["m.io", "n.io"]}))
    assert conf["a.io"]["mirror"] == [mirror("m.io", insecure=True), mirror("n.io")]
    assert conf["a.io/ns"]["mirror"] == [mirror("m.io/ns", insecure=True), mirror("n.io/ns", insecure=True)]


def test_an_entry_with_mirrors_of_its_own_gets_no_others() -> None:
    assert entries(None, idms("x", {"a.io": ["m"]}), itms("y", {"a.io/ns": ["t"]}))["a.io/ns"]["mirror"] == [
        mirror("t", "tag-only")
    ]


def test_mirrors_of_a_wildcard_do_not_go_on() -> None:
    assert "mirror" not in entries(image(insecure=["a.x.io"]), idms("x", {"*.x.io": ["m"]}))["a.x.io"]


@pytest.mark.parametrize("source", ["a.io", "*.io"])
def test_an_insecure_entry_does_not_open_a_source_that_is_never_contacted(source: str) -> None:
    assert entries(image(insecure=["a.io/ns"]), idms("x", {source: ["m"]}, NEVER))["a.io/ns"]["blocked"]


@pytest.mark.parametrize("name", ["insecure", "blocked", "allowed", "search"])
@pytest.mark.parametrize("scope", ["", "*", "a.*", "*.a/b", "http://a.io", "a.io/", "a b"])
def test_an_entry_that_is_no_scope_is_refused(name: str, scope: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        settings(image(**{name: ["good.io", scope]}))
    assert refused.value.message == f'invalid entry for {name} registries "{scope}"'
    assert str(refused.value).startswith("Image cluster: ")


def test_a_wildcard_is_no_place_to_search() -> None:
    with pytest.raises(BadRegistries, match="search registries"):
        settings(image(search=["*.a.io"]))


def test_lists_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "MAX_SCOPES", 2)
    settings(image(insecure=["a", "b"]))
    with pytest.raises(BadRegistries, match="insecure registries has 3 entries, 2 is the most"):
        settings(image(insecure=["a", "b", "c"]))


def test_the_narrowest_entry_counts() -> None:
    conf = entries(image(blocked=["*.io"]), idms("x", {"a.io": ["m"], "a.io/ns": ["n/x"]}))
    entry = entry_for(conf, "a.io/ns/app")
    assert entry is not None
    assert places(entry, "a.io/ns/app") == ["n/x/app"]
    wide = entry_for(conf, "b.io/app")
    assert wide is not None
    assert wide["prefix"] == "*.io"
    assert entry_for(conf, "b.org") is None


def test_places_are_asked_by_digest_or_by_tag() -> None:
    entry = entries(None, idms("x", {"a.io": ["d"]}), itms("y", {"a.io": ["t"]}))["a.io"]
    assert places(entry, "a.io/x", PullBy.DIGEST) == ["d/x"]
    assert places(entry, "a.io/x", PullBy.TAG) == ["t/x"]
    assert places({"location": "a", "mirror": [{"location": "b"}]}, "a", PullBy.TAG) == ["b"]
