"""Every refusal has its own stable code and a hint; foreign errors find the right one."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator

import pytest

from fastness.apiserver.store import errors
from fastness.apiserver.store.errors import (
    DiskFull,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreInUse,
    StoreReadOnly,
    StoreUnavailable,
    translate,
)


def tree(root: type[StoreError]) -> Iterator[type[StoreError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_codes_are_unique_and_hints_are_sentences() -> None:
    kinds = list(tree(StoreError))
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert all(kind.hint.endswith(".") for kind in kinds)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert errors.__doc__ is not None
    for kind in tree(StoreError):
        assert kind.__name__ in errors.__doc__


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, DiskFull),
        (sqlite3.SQLITE_READONLY, StoreReadOnly),
        (sqlite3.SQLITE_READONLY_DBMOVED, StoreReadOnly),
        (sqlite3.SQLITE_CANTOPEN, StoreReadOnly),
        (sqlite3.SQLITE_NOTADB, NotAStore),
        (sqlite3.SQLITE_CORRUPT, StoreDamaged),
        (sqlite3.SQLITE_BUSY, StoreInUse),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable),
    ],
)
def test_errors_of_sqlite_are_translated(code: int, kind: type[StoreError]) -> None:
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    assert type(translate(error, "cannot write")) is kind
    assert str(translate(error, "cannot write")) == "cannot write: why"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EROFS, StoreReadOnly),
        (errno.EACCES, StoreReadOnly),
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EFBIG, DiskFull),
        (errno.EIO, StoreUnavailable),
    ],
)
def test_errors_of_the_system_are_translated(number: int, kind: type[StoreError]) -> None:
    assert type(translate(OSError(number, "why"), "cannot write")) is kind


def test_an_error_without_a_code_is_still_translated() -> None:
    assert type(translate(sqlite3.InterfaceError("why"), "cannot write")) is StoreUnavailable
