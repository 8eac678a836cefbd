"""The bounded cache."""

from __future__ import annotations

from fastness.runtime.cache import BoundedCache


def test_what_was_put_longest_ago_goes_first_and_is_returned() -> None:
    cache = BoundedCache[str, int](most=2)
    assert cache.put("a", 1) == []
    assert cache.put("b", 2) == []
    assert cache.get("a") == 1, "looking at it does not make it younger"
    assert cache.put("c", 3) == [("a", 1)]
    assert list(cache.items()) == [("b", 2), ("c", 3)]


def test_what_is_used_or_put_again_is_young() -> None:
    cache = BoundedCache[str, int](most=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.use("a") == 1
    assert cache.put("c", 3) == [("b", 2)]
    cache.put("a", 4)
    assert cache.put("d", 5) == [("c", 3)]
    assert cache.use("c") is None
    assert list(cache.values()) == [4, 5]


def test_a_cache_of_large_values_is_bounded_by_their_weight() -> None:
    cache = BoundedCache[str, bytes](most=10, heaviest=5, weigh=len)
    cache.put("a", b"xx")
    cache.put("b", b"xxx")
    assert cache.put("b", b"xx") == [], "what it replaces weighs nothing any more"
    assert cache.put("c", b"xx") == [("a", b"xx")]
    cache.pop("b")
    assert cache.put("d", b"xxx") == [], "what was taken out weighs nothing any more"
    assert cache.put("e", b"x" * 99) == [("c", b"xx"), ("d", b"xxx")], "one too heavy stays: it was just asked for"
    cache.clear()
    cache.put("f", b"xxx")
    assert cache.put("g", b"xx") == []
    assert len(cache) == 2


def test_popping_tells_what_there_was() -> None:
    cache = BoundedCache[str, int](most=2)
    cache.put("a", 0)
    assert "a" in cache
    assert cache.pop("a") == 0
    assert cache.pop("a") is None
    assert "a" not in cache
