"""The shape of a strategy: a row of data with four small functions.

`defaults` fills in what the client left open, on every write and before ownership is recorded, so that the client owns it;
`on_create` and `on_update` put the server's own values in place, which nobody owns.

Functions get an object whose top level is theirs to assign to (`obj["status"] = …`); nested values are shared and must be
replaced, never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fastness.formats import names
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Cause


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a strategy may know of the request."""

    username: str
    groups: tuple[str, ...]
    uid: str
    now: datetime


def keep(_obj: JsonObject, _old: Mapping[str, object]) -> None:
    """On update: nothing to do."""


def as_sent(_obj: JsonObject, _about: Preparation) -> None:
    """On create: nothing to fill in."""


def as_written(_obj: JsonObject) -> None:
    """No defaults beyond the schema's."""


def no_more_rules(_obj: Mapping[str, object], _old: Mapping[str, object] | None) -> list[Cause]:
    """The schema says it all."""
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """What the server does to objects of a kind."""

    name_rule: names.Validator = names.dns1123_subdomain
    generation: bool = False
    unconditional: bool = True
    defaults: Callable[[JsonObject], None] = as_written
    on_create: Callable[[JsonObject, Preparation], None] = as_sent
    on_update: Callable[[JsonObject, Mapping[str, object]], None] = keep
    check: Callable[[Mapping[str, object], Mapping[str, object] | None], list[Cause]] = no_more_rules
    checks_parts: bool = False  # `check` also judges what comes through a subresource
    returns_deleted: bool = False
    graceful: bool = False  # the last state of an object shows that its deletion was asked for
    status_keeps_metadata: bool = True
    bare_finalizers: bool = False
