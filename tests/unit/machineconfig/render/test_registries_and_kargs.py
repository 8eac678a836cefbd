"""Safe changes of registries.conf, and how kernel arguments are replaced."""

from __future__ import annotations

import pytest

from fastness.machineconfig.render.kargs import replacement, split
from fastness.machineconfig.render.registries import is_safe

BASE = 'unqualified-search-registries = ["a", "b"]\n[[registry]]\nprefix = "p"\nlocation = "l"\n'
MIRROR = '[[registry.mirror]]\nlocation = "m"\n'
DIGEST = 'pull-from-mirror = "digest-only"\n'

SAFE = [
    (BASE, BASE),
    (BASE, BASE.replace('"b"]', '"b", "c"]')),
    (BASE, BASE + MIRROR + DIGEST),
    (BASE + MIRROR, BASE + MIRROR + DIGEST),
    (BASE, BASE + '[[registry]]\nlocation = "n"\n' + MIRROR + DIGEST),
    (BASE, BASE + '[[registry]]\nlocation = "n"\nmirror-by-digest-only = true\n'),
    (BASE, BASE + '[[registry]]\nlocation = "n"\nmirror-by-digest-only = true\n' + MIRROR),
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
    (BASE, BASE + '[[registry]]\nlocation = "n"\n'),
    (BASE, BASE + '[[registry]]\nlocation = "n"\n' + MIRROR),
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


VECTORS = [
    ([], ["hello=world"], ["--append=hello=world"]),
    (
        ["foo", "bar=1 hello=world", "baz"],
        ["foo", "bar=1", "hello=world"],
        [
            "--delete-if-present=foo", "--delete-if-present=bar=1", "--delete-if-present=hello=world",
            "--delete-if-present=baz", "--append=foo", "--append=bar=1", "--append=hello=world",
        ],
    ),
    (
        [' baz=test bar="hello world"'],
        [' baz=test bar="hello world"', "foo"],
        [
            "--delete-if-present=baz=test", '--delete-if-present=bar="hello world"',
            "--append=baz=test", '--append=bar="hello world"', "--append=foo",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "options"), VECTORS)
def test_arguments_are_replaced_as_a_whole(old: list[str], new: list[str], options: list[str]) -> None:
    """Appendix A.1 of the behaviour."""
    assert replacement(old, new) == options


def test_the_same_arguments_need_no_command() -> None:
    assert replacement(["a b"], ["a", "b"]) == []
    assert replacement(None, []) == []


def test_an_open_quote_runs_to_the_end() -> None:
    assert split('a="b c') == ['a="b c']
    assert split("  \t ") == []
