"""The book of reference values: what machines may measure, who says so, and since when no longer.

    book = ReferenceValues.of(sets, now, images)
    book.query("tpm_pcr4")                  # what a policy gets from query_reference_value
    book.owner("tpm_pcr4", "a311…")         # who approved the value, or who withdrew it and when
    book.candidates("tpm", seen)            # the images that a machine may have booted, nearest first
    book.narrowed(candidate)                # the book with the values of that image alone

Rules:

* A set counts or does not count as a whole, and only at the time that the book was made for: validity is looked at here and not
  when the set was written. `until` is the moment from which a new book is needed.
* A withdrawn set gives no value; it stays in the book to name the owner of a value that is no longer accepted.
* With `images`, a set that was computed from an image counts only while an ApprovedImage of that image exists and is not being
  deleted. Removing the last approval therefore removes the values in the same step, whatever controllers do later.
* With `pool`, a set that names pools counts for those alone.
* A name that is missing gives None, two sets that disagree about a single value give None: policies then refuse.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from fastness.attestation.values.measured import COMPARED, is_measured
from fastness.attestation.values.tuples import IMAGE, Candidate, ValueTuple, candidates, tuples_of
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.objects import is_being_deleted, object_name

Object = Mapping[str, Any]
EVENT_PREFIX: Final = "event_"
MAX_REMEMBERED: Final = 512
_VERSION_DIGITS: Final = 16


class Validity(StrEnum):
    """Whether a set counts, and if not, why; the spelling is that of the condition's reasons."""

    COUNTS = "Counting"
    NOT_YET = "NotYetValid"
    EXPIRED = "Expired"
    WITHDRAWN = "Withdrawn"
    UNAPPROVED = "NotApproved"
    DISTRUSTED = "Distrusted"
    OTHER_POOL = "OtherPool"
    UNREADABLE = "Unreadable"


@dataclass(frozen=True, slots=True)
class Owner:
    """Where a value comes from. `since` says when it ceased to count or will begin to, as RFC 3339; empty while it counts."""

    set: str
    standing: Validity
    source: str
    image: str = ""
    state: str = ""
    since: str = ""
    reason: str = ""
    note: str = ""

    @property
    def counts(self) -> bool:
        """Whether the value is accepted today."""
        return self.standing is Validity.COUNTS


class ReferenceValues:
    """All reference values at one moment; never changes. Without `tuples` nothing says which values belong together."""

    def __init__(
        self,
        values: Mapping[str, Any],
        owners: Mapping[tuple[str, str], Owner],
        versions: tuple[tuple[str, str], ...],
        until: datetime | None,
        images: Mapping[tuple[str, str], frozenset[str]] | None = None,
        tuples: Mapping[str, Sequence[ValueTuple]] | None = None,
    ) -> None:
        self._values = values
        self._owners = owners
        self._images = images or {}
        self._tuples = tuples
        self._names: dict[str, tuple[str, ...]] = {}
        self._tried: dict[tuple[str, ...], tuple[Candidate, ...]] = {}
        self._narrowed: dict[tuple[ValueTuple, ...], ReferenceValues] = {}
        self.versions = versions
        self.until = until

    @classmethod
    def of(
        cls,
        sets: Iterable[Object],
        now: datetime,
        images: Iterable[Object] | None = None,
        distrusted: Collection[str] = (),
        pool: str | None = None,
    ) -> ReferenceValues:
        """The book of these ReferenceValueSets at that time; total. Sets of distrusted images give no value.

        `pool` is whose machines are judged; without it sets of every pool count.
        """
        approved = None if images is None else approved_images(images)
        entries: dict[str, list[tuple[Any, bool]]] = {}
        owners: dict[tuple[str, str], Owner] = {}
        versions: list[tuple[str, str]] = []
        changes: list[datetime] = []
        of_images: dict[tuple[str, str], frozenset[str]] = {}
        tuples: dict[str, list[ValueTuple]] = {tee: [] for tee in COMPARED}
        # In order of names: the version of a book, and which owner a verdict names, must not depend on the order of a cache.
        for obj in sorted(sets, key=object_name):
            spec = _mapping(obj.get("spec"))
            standing = standing_of(spec, now, approved, distrusted)
            if standing is Validity.COUNTS and not counts_for(spec, pool):
                standing = Validity.OTHER_POOL
            _belong(of_images, spec)
            # Also of sets that do not count: one that begins tomorrow makes tomorrow's book another one.
            changes += [moment for moment in _bounds(spec).values() if moment is not None and moment > now]
            _own(owners, object_name(obj).name, spec, standing)
            if standing is Validity.COUNTS:
                versions.append((object_name(obj).name, set_version(spec)))
                listed = [(value, typed(value)) for value in _entries(spec)]
                for value, meant in listed:
                    entries.setdefault(str(value["name"]), []).append((meant, value.get("single") is True))
                for tee, members in tuples.items():
                    members += tuples_of(tee, object_name(obj).name, spec, listed)
        return cls(
            {name: _joined(members) for name, members in entries.items()},
            owners,
            tuple(versions),
            min(changes, default=None),
            of_images,
            tuples,
        )

    def tuples(self, tee: str) -> Sequence[ValueTuple]:
        """What counts for a kind of evidence, image by image."""
        return (self._tuples or {}).get(tee, ())

    def candidates(self, tee: str, measured: Mapping[str, str]) -> tuple[Candidate, ...]:
        """The images that a machine may have booted, nearest first; remembered, because many machines boot one image."""
        # Only what some image has a value for: registers that a machine chooses itself must not fill the cache with entries of
        # its own.
        key = (tee, *(measured.get(name, "") for name in self._named(tee)))
        remembered = self._tried.get(key)
        if remembered is None:
            # Emptied as a whole: strangers can bring any number of made-up registers, and the next good machine fills in what
            # counts.
            if len(self._tried) >= MAX_REMEMBERED:
                self._tried.clear()
            remembered = self._tried[key] = candidates(measured, self.tuples(tee))
        return remembered

    def _named(self, tee: str) -> tuple[str, ...]:
        """The names that some image has a value for."""
        if tee not in self._names:
            self._names[tee] = tuple(sorted({name for entry in self.tuples(tee) for name in entry.texts}))
        return self._names[tee]

    def books(self, tee: str, measured: Mapping[str, str]) -> Iterable[ReferenceValues]:
        """The books to ask a policy with, one for each image that a machine may have booted, nearest first."""
        if self._tuples is None:
            return (self,)
        tried = self.candidates(tee, measured)
        # Without a candidate the policy still gets a book, with nothing in it to compare with: it refuses, and says so in its own
        # words.
        return (self.narrowed(candidate) for candidate in tried) if tried else (self._without(tee, {}),)

    def narrowed(self, candidate: Candidate) -> ReferenceValues:
        """The book with the values of one image in place of those of all."""
        key = (candidate.base, *candidate.completing)
        remembered = self._narrowed.get(key)
        if remembered is None:
            if len(self._narrowed) >= MAX_REMEMBERED:
                self._narrowed.clear()
            values = {name: _joined(candidate.entries(name)) for name in candidate.names}
            remembered = self._narrowed[key] = self._without(candidate.base.tee, values)
        return remembered

    def _without(self, tee: str, instead: Mapping[str, Any]) -> ReferenceValues:
        # All measured names go, also those that the image says nothing of: a value of another image would fill the gap.
        others = {name: value for name, value in self._values.items() if not is_measured(tee, name)}
        return ReferenceValues({**others, **instead}, self._owners, self.versions, self.until, self._images)

    def query(self, name: str) -> Any | None:
        """What `query_reference_value` gives: the accepted values, one single value, or None."""
        return self._values.get(name)

    def owner(self, name: str, value: str) -> Owner | None:
        """Who stands behind a value, or stood behind it; one that counts goes before one that does not."""
        return self._owners.get((name, value))

    def images(self, name: str, value: str) -> frozenset[str]:
        """The images that have this value, whether or not they count today."""
        return self._images.get((name, value), frozenset())

    @cached_property
    def images_by_name(self) -> Mapping[str, frozenset[str]]:
        """The images that have any value of a name."""
        by_name: dict[str, frozenset[str]] = {}
        for (name, _), images in self._images.items():
            by_name[name] = by_name.get(name, frozenset()) | images
        return by_name

    @property
    def names(self) -> tuple[str, ...]:
        """The names that have a value."""
        return tuple(sorted(name for name, value in self._values.items() if value is not None))

    @property
    def empty(self) -> bool:
        """Whether nothing at all is accepted, because no value was published."""
        return not self.names

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The values as policies see them; events explain and never decide, so they are left out."""
        return {name: self._values[name] for name in self.names if not name.startswith(EVENT_PREFIX)}

    @cached_property
    def listed(self) -> Mapping[str, frozenset[Hashable]]:
        """The values of names that have a list, in a form that is quick to look up."""
        return {
            name: frozenset(map(comparable, values))
            for name, values in self.document.items()
            if isinstance(values, list)
        }

    @cached_property
    def digest(self) -> str:
        """The same for two books that answer every query of a policy alike."""
        return sha256(json.canonical(dict(self.document))).hex


EMPTY: Final = ReferenceValues({}, {}, (), None)


def approved_images(images: Iterable[Object]) -> frozenset[str]:
    """The images, by digest, that somebody approves now."""
    return frozenset(
        str(_mapping(image.get("spec")).get("image", "")) for image in images if not is_being_deleted(image)
    )


def standing_of(
    spec: Object, now: datetime, approved: frozenset[str] | None = None, distrusted: Collection[str] = ()
) -> Validity:
    """Whether a set counts at a time; a set whose dates cannot be read does not."""
    # Before the dates: what a person took back does not come to life again when its validity begins (pitfall 21).
    if spec.get("withdrawn") is not None:
        return Validity.WITHDRAWN
    # Ahead of approval and dates: a Distrust is written in a hurry, and must hold although the approval still stands.
    if spec.get("source") == IMAGE and spec.get("image") in distrusted:
        return Validity.DISTRUSTED
    if approved is not None and spec.get("source") == IMAGE and spec.get("image") not in approved:
        return Validity.UNAPPROVED
    try:
        bounds = _bounds(spec, strict=True)
    except ValueError:
        return Validity.UNREADABLE
    if (begin := bounds["notBefore"]) is not None and now < begin:
        return Validity.NOT_YET
    # Here and not when the set was written: a set that nobody touches must end all the same (pitfall 21).
    if (end := bounds["notAfter"]) is not None and now >= end:
        return Validity.EXPIRED
    return Validity.COUNTS


def counts_for(spec: Object, pool: str | None) -> bool:
    """Whether a set counts for machines of a pool; one that names no pool counts for all."""
    pools = spec.get("pools")
    return pool is None or not isinstance(pools, list) or not pools or pool in pools


def unclear_names(values: Object) -> tuple[str, ...]:
    """The names in a ReferenceValueSet whose values nobody is compared with, because they are a heap and no tuple."""
    spec = _mapping(values.get("spec"))
    listed = [(value, typed(value)) for value in _entries(spec)]
    parts = [part for tee in COMPARED for part in tuples_of(tee, object_name(values).name, spec, listed)]
    return tuple(sorted({name for part in parts for name in part.unclear}))


def next_change(spec: Object, now: datetime) -> datetime | None:
    """When the standing of a set changes by itself."""
    return min((moment for moment in _bounds(spec).values() if moment is not None and moment > now), default=None)


def set_version(spec: Object) -> str:
    """The version of a set that verdicts name: it follows from the values and their validity, not from their state."""
    # Without `state`: a set that goes from Current to Retiring accepts the same machines, and verdicts would seem to rest on
    # another.
    content = {key: spec.get(key) for key in ("source", "image", "validity", "withdrawn", "pools")}
    content["values"] = [{key: value[key] for key in value if key != "state"} for value in _entries(spec)]
    return sha256(json.canonical(content)).hex[:_VERSION_DIGITS]


def set_state(spec: Object) -> str:
    """The state of a set: that of the value which is furthest from Current."""
    if spec.get("withdrawn") is not None:
        return "Withdrawn"
    states = {str(value.get("state", "Current")) for value in _entries(spec)}
    return next((state for state in ("Transition", "Retiring") if state in states), "Current")


def typed(value: Object) -> Any:
    """A value as policies compare it. One that is not of its type stays text, which no number or flag equals."""
    text = str(value["value"])
    if value.get("type") == "Number":
        try:
            return int(text)
        except ValueError:
            return text
    if value.get("type") == "Boolean":
        return {"true": True, "false": False}.get(text, text)
    return text


def comparable(value: Any) -> Hashable:
    """A key that two scalars share exactly if Rego calls them equal: 1 is 1.0, and true is not 1."""
    # In Python True is 1. In Rego it is not: a flag must not equal a version number.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return type(value), value if isinstance(value, Hashable) else repr(value)
    return float, value


def _joined(entries: Sequence[tuple[Any, bool]]) -> Any | None:
    """Values of one name from all sets. Single and listed values do not mix, and single ones must agree."""
    distinct = [value for value, _ in sorted(entries, key=lambda entry: (str(type(entry[0])), str(entry[0])))]
    unique = [value for number, value in enumerate(distinct) if number == 0 or not _same(distinct[number - 1], value)]
    if not any(single for _, single in entries):
        return unique
    # Two sets that disagree about one value give none: choosing would let whoever adds a set decide.
    return unique[0] if len(unique) == 1 and all(single for _, single in entries) else None


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def _own(owners: dict[tuple[str, str], Owner], name: str, spec: Object, standing: Validity) -> None:
    since, reason = _since(spec, standing)
    for value in _entries(spec):
        key = (str(value["name"]), str(value["value"]))
        owner = owners.get(key)
        # Of two sets with the same value the one that counts is named: otherwise an accepted machine would be explained by a
        # withdrawn set.
        if owner is not None and (owner.counts or standing is not Validity.COUNTS):
            continue
        owners[key] = Owner(
            name, standing, str(spec.get("source", "")), str(spec.get("image", "")), str(value.get("state", "Current")),
            since, reason, str(value.get("note", "")),
        )  # fmt: skip


def _belong(images: dict[tuple[str, str], frozenset[str]], spec: Object) -> None:
    image = spec.get("image")
    if spec.get("source") == IMAGE and isinstance(image, str):
        for value in _entries(spec):
            key = (str(value["name"]), str(value["value"]))
            images[key] = images.get(key, frozenset()) | {image}


def _since(spec: Object, standing: Validity) -> tuple[str, str]:
    if standing is Validity.WITHDRAWN:
        withdrawn = _mapping(spec.get("withdrawn"))
        return str(withdrawn.get("at", "")), str(withdrawn.get("reason", ""))
    validity = _mapping(spec.get("validity"))
    if standing is Validity.EXPIRED:
        return str(validity.get("notAfter", "")), "the validity of the set has ended"
    if standing is Validity.NOT_YET:
        return str(validity.get("notBefore", "")), "the validity of the set has not begun"
    if standing is Validity.UNAPPROVED:
        return "", "no ApprovedImage stands for the image"
    if standing is Validity.DISTRUSTED:
        return "", "a Distrust names the image"
    if standing is Validity.OTHER_POOL:
        return "", "it counts in other pools only"
    return "", ""


def _bounds(spec: Object, *, strict: bool = False) -> dict[str, datetime | None]:
    validity = _mapping(spec.get("validity"))
    return {name: _moment(validity.get(name), strict=strict) for name in ("notBefore", "notAfter")}


def _moment(text: object, *, strict: bool) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
        if moment.tzinfo is None:
            # Which hour it means would depend on where the verifier runs, and two replicas would disagree about a machine.
            raise ValueError("a time without a zone")
    except ValueError:
        if strict:
            raise
        return None
    return moment


def _entries(spec: Object) -> list[Object]:
    # Read without trust in the schema: an object may be older than it, and one bad entry must not stop the judging of everybody.
    listed = spec.get("values")
    return [
        value
        for value in (listed if isinstance(listed, list) else [])
        if isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("value"), str)
    ]


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}
