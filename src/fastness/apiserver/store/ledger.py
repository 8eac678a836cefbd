"""The ledger: which rows a store holds, in one short value that only the holder of the vault key can make.

A tag on each row stops whoever edits a row. It does not stop whoever leaves one out, or puts an older one back: that row was
genuine once. So the store also keeps a sum over the tags of all its rows, adds and takes away as rows come and go, and writes a
**head** with each commit: the facts of the store, the newest revision, and how many rows there are, under a tag that covers the
sum. The head travels in the last row of a batch, so that a commit stays one statement; housekeeping writes it into `meta`.

    head = key id | last revision | count | sum of revisions | sum of their squares | sum of keys | tag | tag with the secret sum

* The secret sum is never written: only its tag is (MSet-Add-Hash, Clarke et al. 2003, with elements that stay secret).
* The open sums are there to name what is wrong: when one row is missing, the difference between what they say and what is there
  *is* that row's revision and key; when one was put back in another's place, revisions and squares tell both.
* A file that is cut at an older head is the state as it was then. That is a rollback of everything, which a witness has to tell;
  a backup and a store that was closed have one head alone, and cannot be cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final, NamedTuple

import msgspec

from fastness.apiserver.store.errors import SealBroken, StoreForged
from fastness.apiserver.store.records import Key
from fastness.crypto.aead import KEY_ID_BYTES
from fastness.crypto.store_mac import MODULUS, TAG_BYTES, Macs, StoreMac

# Wide enough for the sums over 2^64 rows with revisions of 64 bits; one that did not fit would raise in the middle of a commit.
_WIDTHS: Final = (8, 8, 16, 24)  # last, count, revisions, squares
_FIXED: Final = KEY_ID_BYTES + sum(_WIDTHS)


class LedgerRow(NamedTuple):
    """What the ledger needs of a row."""

    revision: int
    key: Key
    mac: bytes


class Ledger(msgspec.Struct, frozen=True, gc=False):
    """Sums over the rows of a store, and the newest revision that it ever wrote; `total` is secret."""

    mac: StoreMac
    last: int = 0
    count: int = 0
    total: int = 0
    revisions: int = 0
    squares: int = 0
    keys: int = 0

    def adding(self, entries: Iterable[LedgerRow]) -> Ledger:
        """The ledger after rows came."""
        return self._changed(entries, 1)

    def removing(self, entries: Iterable[LedgerRow]) -> Ledger:
        """The ledger after rows went."""
        return self._changed(entries, -1)

    def head(self, facts: bytes) -> bytes:
        """The head over these rows and the digest of the store's facts."""
        numbers = (self.last, self.count, self.revisions, self.squares)
        fixed = b"".join(number.to_bytes(width) for number, width in zip(numbers, _WIDTHS, strict=True))
        stated = self.mac.id + fixed + self.keys.to_bytes((self.keys.bit_length() + 7) // 8)
        tag = self.mac.head(facts + stated)
        return stated + tag + self._sealed(tag)

    def _sealed(self, tag: bytes) -> bytes:
        # Over the tag of the open part as well: the two halves of a head cannot be taken from two heads.
        return self.mac.head(tag + self.total.to_bytes(TAG_BYTES))

    def _changed(self, entries: Iterable[LedgerRow], sign: int) -> Ledger:
        last, count, total = self.last, self.count, self.total
        revisions, squares, keys = self.revisions, self.squares, self.keys
        element = self.mac.element
        for entry in entries:
            revision = entry.revision
            last = max(last, revision)
            count += sign
            total += sign * element(entry.mac)
            revisions += sign * revision
            squares += sign * revision * revision
            keys += sign * _number(entry.key)
        return Ledger(self.mac, last, count, total % MODULUS, revisions, squares, keys)


@dataclass(frozen=True, slots=True)
class Stated:
    """A head as it was read; nothing of it counts before `confirm`."""

    raw: bytes

    @property
    def key_id(self) -> bytes:
        """The id of the vault key behind it."""
        return self.raw[:KEY_ID_BYTES]

    @property
    def last(self) -> int:
        """The newest revision when it was written."""
        return self._numbers()[0]

    def confirm(self, rows: Sequence[LedgerRow], macs: Macs, facts: bytes) -> Ledger:
        """The ledger of these rows, if they and the facts are what the head is about; raises StoreForged, SealBroken."""
        if len(self.raw) < _FIXED + 2 * TAG_BYTES:
            raise StoreForged("the head of the store is cut short or missing")
        mac = macs.named(self.key_id)
        # A missing key is an operator's mistake more often than a forgery, so it has an error of its own that names the key.
        if mac is None:
            raise SealBroken(f"the store was authenticated with the vault key {self.key_id.hex()}, which was not given")
        content, tag, seal = self.raw[: -2 * TAG_BYTES], self.raw[-2 * TAG_BYTES : -TAG_BYTES], self.raw[-TAG_BYTES:]
        if not compare_digest(mac.head(facts + content), tag):
            raise StoreForged("the head or a fact of the store was changed")
        last, count, revisions, squares = self._numbers()
        stated = Ledger(mac, last, count, 0, revisions, squares, int.from_bytes(content[_FIXED:]))
        actual = msgspec.structs.replace(Ledger(mac).adding(rows), last=last)
        # A genuine row of a later time, put into an older file, has a good tag, and no head is about it.
        if rows and rows[-1].revision > last:
            raise StoreForged(f"{_named(rows[-1])} is newer than the head of the store")
        # The secret sum decides alone. The open sums below are for the message: they can be made to fit by whoever chooses rows.
        if not compare_digest(actual._sealed(tag), seal):
            raise StoreForged(difference(stated, actual, {row.revision: row.key for row in rows}))
        return actual

    def _numbers(self) -> tuple[int, int, int, int]:
        numbers, at = [], KEY_ID_BYTES
        for width in _WIDTHS:
            numbers.append(int.from_bytes(self.raw[at : at + width]))
            at += width
        last, count, revisions, squares = numbers
        return last, count, revisions, squares


def difference(stated: Ledger, actual: Ledger, rows: Mapping[int, Key]) -> str:
    """Which row is missing, was put in or was put back, as far as the sums can tell."""
    count = stated.count - actual.count
    revisions, squares = stated.revisions - actual.revisions, stated.squares - actual.squares
    if abs(count) == 1 and revisions * count > 0 and squares * count == revisions * revisions:
        name = _name((stated.keys - actual.keys) * count)
        return f"revision {abs(revisions)} of {name} {'is missing' if count == 1 else 'was put in'}"
    # newer - older = revisions and newer^2 - older^2 = squares, so newer + older is their quotient.
    if not count and revisions and not squares % revisions:
        newer, older = (squares // revisions + revisions) // 2, (squares // revisions - revisions) // 2
        if older in rows:
            return f"revision {older} of {'/'.join(rows[older])} was put in place of revision {newer}"
    several = (
        f"{count} rows are missing" if count > 0 else f"{-count} rows were put in" if count else "rows were exchanged"
    )
    return f"{several}: the rows are not those that the head of the store is about"


def _number(key: Key) -> int:
    return int.from_bytes("/".join(key).encode("utf-8", "surrogatepass"))


def _name(number: int) -> str:
    if number <= 0:
        return "an object"
    return number.to_bytes((number.bit_length() + 7) // 8).decode("utf-8", "replace")


def _named(entry: LedgerRow) -> str:
    return f"revision {entry.revision} of {'/'.join(entry.key)}"
