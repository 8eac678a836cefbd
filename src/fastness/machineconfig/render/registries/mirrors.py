"""Lists of mirrors: whether each can be understood, and the one order that several lists for a source make together.

* A list says in which order its mirrors are asked, the source last. All lists of a source, digests and tags apart, become a graph
  of who comes before whom, and the graph one order (`in_order`). It depends on what the lists say, not on who wrote which.
* Where lists contradict each other the order is still the same every time: a circle is cut at the first name.
* A list without any other place than the source says nothing.
* A source is contacted after its mirrors or it is not; two answers to that are a mistake that nobody can settle here.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fastness.kinds.openshift.images import LOCATION, SOURCE
from fastness.machineconfig.render.errors import BadRegistries, Culprit
from fastness.machineconfig.render.registries.objects import MirrorList, PullBy

_SOURCE: Final = re.compile(SOURCE, re.ASCII)
_LOCATION: Final = re.compile(LOCATION, re.ASCII)
_FORM: Final = "host[:port][/path], with a path in lower case"


@dataclass(frozen=True, slots=True)
class MirroredSource:
    """A source with all its mirrors of one sort, in order; `culprit` is the first object that names it."""

    by: PullBy
    source: str
    mirrors: tuple[str, ...]
    never_contact_source: bool
    culprit: Culprit


def check(lists: Iterable[MirrorList]) -> None:
    """Raise BadRegistries for the first list that cannot be understood or contradicts another."""
    policies: dict[str, tuple[bool, Culprit]] = {}
    for entry in lists:
        if not _SOURCE.fullmatch(entry.source):
            raise BadRegistries(
                f'invalid format for source "{entry.source}"', f"write *.domain or {_FORM}", entry.culprit
            )
        never, first = policies.setdefault(entry.source, (entry.never_contact_source, entry.culprit))
        if never != entry.never_contact_source:
            raise BadRegistries(
                f'conflicting mirrorSourcePolicy is set for the same source "{entry.source}" in imagedigestmirrorsets, '
                "imagetagmirrorsets, or imagecontentsourcepolicies",
                f"give it the same mirrorSourcePolicy as {first} does",
                entry.culprit,
            )
        _check_mirrors(entry)


def _check_mirrors(entry: MirrorList) -> None:
    for mirror in entry.mirrors:
        if not _LOCATION.fullmatch(mirror):
            raise BadRegistries(f'invalid format for mirror "{mirror}"', f"write {_FORM}", entry.culprit)
    if entry.never_contact_source and entry.source in entry.mirrors:
        raise BadRegistries(
            f'cannot set mirrorSourcePolicy: NeverContactSource if the source "{entry.source}" is one of the mirrors',
            "take the source out of the mirrors, or allow contacting it",
            entry.culprit,
        )


def merged(lists: Iterable[MirrorList]) -> list[MirroredSource]:
    """One entry for each source, those for digests first, sources by name."""
    together: dict[tuple[PullBy, str], list[MirrorList]] = defaultdict(list)
    for entry in lists:
        if any(mirror != entry.source for mirror in entry.mirrors):
            together[entry.by, entry.source].append(entry)
    return [
        MirroredSource(
            by,
            source,
            _mirrors_of(source, [entry.mirrors for entry in together[by, source]]),
            any(entry.never_contact_source for entry in together[by, source]),
            together[by, source][0].culprit,
        )
        for by, source in sorted(together, key=lambda key: (key[0] is not PullBy.DIGEST, key[1]))
    ]


def _mirrors_of(source: str, lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    order = in_order([mirrors if source in mirrors else (*mirrors, source) for mirrors in lists])
    # The runtime asks the source last by itself.
    return tuple(order[:-1] if order[-1] == source else order)


def in_order(lists: Iterable[Sequence[str]]) -> list[str]:
    """All names of some lists, each before those that come after it in any list, as far as the lists agree."""
    followers: dict[str, set[str]] = defaultdict(set)
    for names in lists:
        for name in names:
            followers[name]  # every name is in the graph, also where its list has no other
        for before, after in pairwise(names):
            if before != after:
                followers[before].add(after)
    waits_for = dict.fromkeys(followers, 0)
    for after in (name for names in followers.values() for name in names):
        waits_for[after] += 1
    by_name = sorted(followers)
    free = deque(name for name in by_name if not waits_for[name])
    left, order = iter(by_name), dict[str, None]()
    while len(order) < len(by_name):
        # Nothing is free: there is a circle, and the first of all names that are left goes on, whoever waits for whom.
        name = free.popleft() if free else next(name for name in left if name not in order)
        order[name] = None
        for after in sorted(followers[name]):
            waits_for[after] -= 1
            if not waits_for[after] and after not in order:
                free.append(after)
    return list(order)
