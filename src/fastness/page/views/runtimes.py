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
from fastness.page.views.view_request import ViewRequest
from fastness.workloads.kata.classes import plan_classes
from fastness.workloads.kata.eligibility import choose, is_converged, requirements_of
from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.kata.status import CONFIDENTIAL_READY


async def runtimes_view(request: ViewRequest) -> bytes:
    """The installation, every worker, every class."""
    scope = request.scope
    config = min(scope.all(KATA_CONFIGS), key=lambda obj: str(metadata(obj).get("creationTimestamp")), default=None)
    classes = [obj for obj in scope.those(CLASSES) if names.CLASS_FINALIZER in (metadata(obj).get("finalizers") or ())]
    nodes, pools = scope.those(NODES), scope.those(POOLS)
    try:
        requirements = requirements_of(config or {}, converged=is_converged(pools, nodes))
    except Refused as error:
        return runtimes_page(request.frame, RuntimeStory(config, (), classes, problem=error.message))
    choices = choose(requirements, nodes, pools, next(iter(scope.those(CLUSTERS)), None), scope.those(MACHINES))
    planned = plan_classes(FeatureGates(confidential=_confidential(config, classes)), requirements, nodes)
    made = {obj["metadata"]["name"] for obj in classes}
    left_out = {name: why for name, why in planned.left_out.items() if name not in made}
    return runtimes_page(request.frame, RuntimeStory(config, choices, classes, left_out, planned.problem))


def _confidential(config: JsonObject | None, classes: list[JsonObject]) -> bool:
    """Whether confidential classes are asked for, as far as a page can tell."""
    if config is None or condition(config, CONFIDENTIAL_READY) is not None:
        return True
    return any(str(runtime_class["metadata"]["name"]).startswith("kata-cc") for runtime_class in classes)
