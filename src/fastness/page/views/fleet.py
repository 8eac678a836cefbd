"""What the fleet and the simulator read: every machine as a row."""

from __future__ import annotations

from fastness.kube.errors import NotFound
from fastness.page.acts import NO_SIMULATOR
from fastness.page.fleet import Filter, Row, survey
from fastness.page.pages.fleet import fleet_page
from fastness.page.pages.simulator import Stage, simulator_page
from fastness.page.view_scope import MACHINES, NODES
from fastness.page.views.view_request import Shown


async def fleet_view(shown: Shown) -> bytes:
    """All machines."""
    wanted = Filter.of(shown.query)
    fleet = survey(_rows(shown), wanted)
    deciding = {row.name for row in fleet.inbox if shown.sight.may("patch", MACHINES, row.name)}
    return fleet_page(shown.frame, fleet, wanted, deciding, shown.sight.unproved_nodes())


async def simulator_view(shown: Shown) -> bytes:
    """The virtual machines, and what can be done to them."""
    rows = _rows(shown)
    if shown.simulator is None:
        raise NotFound(NO_SIMULATOR)
    return simulator_page(shown.frame, Stage(
        shown.simulator.machines(), shown.simulator.kinds(), shown.simulator.fleet_faults(),
        shown.sight.may("patch", MACHINES), shown.said, {row.node: row.name for row in rows if row.node},
        {row.name: row.state for row in rows}, shown.query.get("q", "").strip().lower()[:100],
    ))  # fmt: skip


def _rows(shown: Shown) -> list[Row]:
    now = shown.frame.now
    return shown.rows.of(shown.sight.all(MACHINES), shown.sight.those(NODES), shown.sight.rules(now), now)
