"""What the fleet and the simulator read: every machine as a row."""

from __future__ import annotations

from fastness.kube.errors import NotFound
from fastness.page.acts import NO_SIMULATOR
from fastness.page.fleet import Filter, Row, survey
from fastness.page.pages.fleet import fleet_page
from fastness.page.pages.simulator import Stage, simulator_page
from fastness.page.view_scope import MACHINES, NODES
from fastness.page.views.view_request import ViewRequest


async def fleet_view(request: ViewRequest) -> bytes:
    """All machines."""
    chosen = Filter.of(request.query)
    fleet = survey(_rows(request), chosen)
    deciding = {row.name for row in fleet.inbox if request.scope.may("patch", MACHINES, row.name)}
    return fleet_page(request.frame, fleet, chosen, deciding, request.scope.unproved_nodes())


async def simulator_view(request: ViewRequest) -> bytes:
    """The virtual machines, and what can be done to them."""
    rows = _rows(request)
    if request.simulator is None:
        raise NotFound(NO_SIMULATOR)
    return simulator_page(request.frame, Stage(
        request.simulator.machines(), request.simulator.kinds(), request.simulator.fleet_faults(),
        request.scope.may("patch", MACHINES), request.notice, {row.node: row.name for row in rows if row.node},
        {row.name: row.state for row in rows}, request.query.get("q", "").strip().lower()[:100],
    ))  # fmt: skip


def _rows(request: ViewRequest) -> list[Row]:
    now = request.frame.now
    return request.rows.of(request.scope.all(MACHINES), request.scope.those(NODES), request.scope.rules(now), now)
