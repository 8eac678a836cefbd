"""From a request to a view: what each one reads, as the user.

    builds.py        MachineOSConfigs, builds, nodes with what they boot, and the log of one build
    fleet.py         What the fleet and the simulator read: every machine as a row
    machine.py       What the page of one machine reads: its objects, its verdicts, events, the record of its key
    pools.py         Pools and their machines, the plan of changes under way, and the policies they follow
    runtimes.py      The KataConfig, nodes with what they say of themselves, pools, and runtime classes
    trust.py         What the page of trust reads: images, values, policies, distrusts with whom they hit, and the record
    view_request.py  One request for a view, and what a view may ask

Views that are about a kind ask for it and say in the API's words when the user may not see it; what only adds to a view (a
node, a verdict, the record) is left out instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from fastness.page.views.builds import build_view, builds_view
from fastness.page.views.fleet import fleet_view, simulator_view
from fastness.page.views.machine import machine_view
from fastness.page.views.pools import pools_view
from fastness.page.views.runtimes import runtimes_view
from fastness.page.views.trust import record_view, trust_view
from fastness.page.views.view_request import ViewRequest

VIEWS: Final[Mapping[str, Callable[[ViewRequest], Awaitable[bytes]]]] = {
    "fleet": fleet_view, "machine": machine_view, "pools": pools_view, "trust": trust_view, "record": record_view,
    "simulator": simulator_view, "runtimes": runtimes_view, "builds": builds_view, "build": build_view,
}  # fmt: skip
