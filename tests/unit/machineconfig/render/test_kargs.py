"""How kernel arguments are replaced."""

from __future__ import annotations

import pytest

from fastness.machineconfig.render.kargs import replacement, split

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
