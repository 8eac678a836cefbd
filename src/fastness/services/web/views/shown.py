"""One request for a view, and what a view may ask: caches through the user's sight, the API as the user, the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.cluster.errors import ApiError
from fastness.cluster.port import Scope as Where
from fastness.model.kind import JsonObject, Resource
from fastness.services.web.admission import Acting
from fastness.services.web.fleet import Rows
from fastness.services.web.pages.layout import Frame
from fastness.services.web.record import Reader
from fastness.services.web.sight import CHECKPOINTS, Sight
from fastness.services.web.simulator import Simulator

NEWEST: Final = 25
MOST_ASKED: Final = 2000


@dataclass(frozen=True, slots=True)
class Shown:
    """One request for a view."""

    sight: Sight
    frame: Frame
    name: str
    query: Mapping[str, str]
    reader: Reader
    rows: Rows
    acting: Acting
    simulator: Simulator | None = None
    said: str = ""

    async def ask(self, resource: Resource, where: Where) -> list[JsonObject]:
        """Objects that pages keep no cache of, asked for as the user; none where the API does not give them."""
        try:
            async with self.acting() as cluster:
                return list((await cluster.list(resource, where, limit=MOST_ASKED)).items)
        except ApiError:
            return []


def newest_checkpoint(sight: Sight) -> JsonObject | None:
    """The longest signed record that the user may see."""
    return max(sight.those(CHECKPOINTS), key=lambda one: int(one["spec"]["size"]), default=None)
