"""One request for a view, and what a view may ask: caches through the user's scope, the API as the user, the record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.errors import ApiError
from fastness.kube.port import Scope as Where
from fastness.page.admission import Acting
from fastness.page.fleet import Rows
from fastness.page.pages.layout import Frame
from fastness.page.record import Reader
from fastness.page.simulator import Simulator
from fastness.page.view_scope import CHECKPOINTS, ViewScope

NEWEST: Final = 25
MOST_ASKED: Final = 2000


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """One request for a view."""

    scope: ViewScope
    frame: Frame
    name: str
    query: Mapping[str, str]
    reader: Reader
    rows: Rows
    acting: Acting
    simulator: Simulator | None = None
    notice: str = ""

    async def ask(self, resource: Resource, where: Where) -> list[JsonObject]:
        """Objects that pages keep no cache of, asked for as the user; none where the API does not give them."""
        try:
            async with self.acting() as cluster:
                return list((await cluster.list(resource, where, limit=MOST_ASKED)).items)
        except ApiError:
            return []


def newest_checkpoint(scope: ViewScope) -> JsonObject | None:
    """The longest signed record that the user may see."""
    return max(scope.those(CHECKPOINTS), key=lambda checkpoint: int(checkpoint["spec"]["size"]), default=None)
