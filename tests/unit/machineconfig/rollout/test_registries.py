"""Which changes of registries.conf are safe."""

from __future__ import annotations

import pytest

from fastness.machineconfig.rollout.registries import is_safe

BASE = 'unqualified-search-registries = ["a", "b"]\n[[registry]]\nprefix = "p"\nlocation = "l"\n'
MIRROR = '[[registry.mirror]]\nlocation = "m"\n'
DIGEST = 'pull-from-mirror = "digest-only"\n'
TAG = 'pull-from-mirror = "tag-only"\n'

SAFE = [
    (BASE, BASE),
    (BASE, BASE.replace('"b"]', '"b", "c"]')),
    (BASE, BASE + MIRROR + DIGEST),
    (BASE + MIRROR, BASE + MIRROR + DIGEST),
    (BASE, BASE + '[[registry]]\nlocation = "n"\n' + MIRROR + DIGEST),
    (BASE, BASE + '[[registry]]\nlocation = "n"\nmirror-by-digest-only = true\n'),
    (BASE, BASE + '[[registry]]\nlocation = "n"\n'),
    (BASE, BASE + '[[registry]]\nprefix = ""\nlocation = "n"\n'),
    (BASE, BASE + '[[registry]]\nlocation = "n"\nmirror-by-digest-only = true\n' + MIRROR),
    (BASE + MIRROR + TAG, BASE + MIRROR + DIGEST + MIRROR + TAG),
    (BASE + MIRROR + DIGEST + MIRROR + TAG, BASE + MIRROR + DIGEST + MIRROR + TAG),
    ("", ""),
]
UNSAFE = [
    (BASE, BASE.replace('["a", "b"]', '["b", "a"]')),
    (BASE, BASE.replace('["a", "b"]', '["a"]')),
    (BASE, BASE.replace('["a", "b"]', '["c", "a", "b"]')),
    (BASE, ""),
    (BASE, BASE.replace('"l"', '"other"')),
    (BASE, BASE + "blocked = true\n"),
    (BASE, BASE + "insecure = true\n"),
    (BASE, BASE + MIRROR),
    (BASE + MIRROR + DIGEST, BASE),
    (BASE + MIRROR + DIGEST, BASE + MIRROR),
    (BASE, BASE + '[[registry]]\nlocation = "n"\nblocked = true\n'),
    (BASE, BASE + '[[registry]]\nlocation = "n"\ninsecure = true\n'),
    (BASE, BASE + '[[registry]]\nprefix = "q"\nlocation = "n"\n'),
    (BASE, BASE + '[[registry]]\nlocation = "n"\n' + MIRROR),
    (BASE, BASE + MIRROR + TAG),
    (BASE + MIRROR + DIGEST, BASE + MIRROR + DIGEST + MIRROR + TAG),
    (BASE + MIRROR + DIGEST + MIRROR + TAG, BASE + MIRROR + DIGEST),
    (BASE + MIRROR + DIGEST + MIRROR + TAG, BASE + MIRROR + TAG),
    (BASE, BASE + '[[registry]]\nlocation = "n"\n' + MIRROR + DIGEST + MIRROR + TAG),
    (BASE, "not = [toml"),
    ("not = [toml", BASE),
]


@pytest.mark.parametrize(("old", "new"), SAFE)
def test_changes_that_only_add_ways_to_fetch_by_digest_are_safe(old: str, new: str) -> None:
    assert is_safe(old.encode(), new.encode())


@pytest.mark.parametrize(("old", "new"), UNSAFE)
def test_all_other_changes_are_not(old: str, new: str) -> None:
    assert not is_safe(old.encode(), new.encode())


def test_bytes_that_are_no_text_are_not_safe() -> None:
    assert not is_safe(b"\xff\xfe", BASE.encode())
