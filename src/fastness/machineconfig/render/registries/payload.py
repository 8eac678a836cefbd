"""Blocked registries and the images that the cluster itself is made of.

Whoever blocks the repository of the release image cuts nodes off from every update. Such a scope is therefore left out, and said,
unless a mirror for digests has the images and is not blocked itself. Then the scope is blocked, and signatures and pulls go on
under the repository's name: what policy.json rejects is judged before mirrors are asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastness.machineconfig.render.errors import BadRegistries, Culprit
from fastness.machineconfig.render.registries.conf import by_scope, entry_for, places, registries_conf
from fastness.machineconfig.render.registries.mirrors import MirroredSource
from fastness.machineconfig.render.registries.objects import PullBy, RegistryLists
from fastness.machineconfig.render.registries.scopes import inside, nested, repository

_REPOSITORY: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+", re.ASCII)
_VERSION: Final = Culprit("ClusterVersion", "", "version")


@dataclass(frozen=True, slots=True)
class Blocked:
    """Scopes that are blocked in registries.conf and rejected in policy.json; what is accepted all the same; what is left out."""

    registries: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def payload_repository(release_image: str) -> str:
    """The repository of the release image, empty where there is none; raises BadRegistries for one that is no image."""
    name = repository(release_image)
    if name and not _REPOSITORY.fullmatch(name):
        raise BadRegistries(
            f'status.desired.image "{release_image}" is not an image', "restore it from the release", _VERSION
        )
    return name


def blocked_scopes(lists: RegistryLists, mirrored: Sequence[MirroredSource], payload: str) -> Blocked:
    """What blocking comes to, with the repository of the release image; that one is empty where there is none."""
    matching = {scope for scope in lists.blocked if payload and nested(payload, scope)}
    if not matching:
        return Blocked(lists.blocked, lists.blocked)
    if not _has_open_mirror(lists, mirrored, payload):
        others = tuple(scope for scope in lists.blocked if scope not in matching)
        return Blocked(others, others, (), tuple(scope for scope in lists.blocked if scope in matching))
    rejected = tuple(scope for scope in lists.blocked if scope != payload)
    return Blocked(lists.blocked, rejected, (payload,))


def _has_open_mirror(lists: RegistryLists, mirrored: Sequence[MirroredSource], payload: str) -> bool:
    """Whether the release images, which are named by digest, are to be had from somewhere that is not blocked."""
    digests = [source for source in mirrored if source.by is PullBy.DIGEST]
    entries = registries_conf("", digests, lists.insecure, lists.blocked).get("registry") or ()
    entry = entry_for(by_scope(entries), payload)
    blocked = frozenset(lists.blocked)
    return entry is not None and any(not inside(place, blocked) for place in places(entry, payload, PullBy.DIGEST))
