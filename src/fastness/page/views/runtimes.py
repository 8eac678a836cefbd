"""What the page of runtimes reads: the KataConfig, nodes with what they say of themselves, pools, and runtime classes.

Nodes and classes are decided by the functions that the controller asks. Feature gates stand in a ConfigMap, which pages do
not read: whether confidential classes are asked for is seen from what was made and told; without a KataConfig they count as
asked for.
"""

from __future__ import annotations

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, metadata
from fastness.page.pages.runtimes import RuntimeStory, runtimes_page
from fastness.page.view_scope import CLASSES, CLUSTERS, KATA_CONFIGS, MACHINES, NODES, POOLS
from fastness.page.views.view_request import Shown
from fastness.workloads.kata.classes import plan_classes
from fastness.workloads.kata.eligibility import choose, is_converged, requirements_of
from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.kata.status import CONFIDENTIAL_READY


async def runtimes_view(shown: Shown) -> bytes:
    """The installation, every worker, every class."""
    sight = shown.sight
    config = min(sight.all(KATA_CONFIGS), key=lambda one: str(metadata(one).get("creationTimestamp")), default=None)
    classes = [one for one in sight.those(CLASSES) if names.CLASS_FINALIZER in (metadata(one).get("finalizers") or ())]
    nodes, pools = sight.those(NODES), sight.those(POOLS)
    try:
        asked = requirements_of(config or {}, converged=is_converged(pools, nodes))
    except Refused as error:
        return runtimes_page(shown.frame, RuntimeStory(config, (), classes, problem=error.message))
    choices = choose(asked, nodes, pools, next(iter(sight.those(CLUSTERS)), None), sight.those(MACHINES))
    wanted = plan_classes(FeatureGates(confidential=_confidential(config, classes)), asked, nodes)
    made = {one["metadata"]["name"] for one in classes}
    left_out = {name: why for name, why in wanted.left_out.items() if name not in made}
    return runtimes_page(shown.frame, RuntimeStory(config, choices, classes, left_out, wanted.problem))


def _confidential(config: JsonObject | None, classes: list[JsonObject]) -> bool:
    """Whether confidential classes are asked for, as far as a page can tell."""
    if config is None or condition(config, CONFIDENTIAL_READY) is not None:
        return True
    return any(str(one["metadata"]["name"]).startswith("kata-cc") for one in classes)
