"""What the pages of builds read: MachineOSConfigs, builds, nodes with what they boot, values, and the log of one build."""

from __future__ import annotations

from fastness.builds.build_objects import LOG, NAMESPACE, log_name
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import object_name
from fastness.kube.errors import ApiError, NotFound
from fastness.page.pages.builds import build_page, builds_page
from fastness.page.view_scope import NODES, OS_BUILDS, OS_CONFIGS, POOLS, VALUE_SETS, refused_by
from fastness.page.views.view_request import ViewRequest


async def builds_view(request: ViewRequest) -> bytes:
    """All pools that have an image of their own, their builds, and who boots what."""
    scope = request.scope
    return builds_page(
        request.frame, scope.all(OS_CONFIGS), scope.those(OS_BUILDS), scope.those(POOLS), scope.those(NODES),
        scope.those(VALUE_SETS),
    )  # fmt: skip


async def build_view(request: ViewRequest) -> bytes:
    """One build with its log, which the API gives to the user who looks, or does not."""
    build = request.scope.get(OS_BUILDS, request.name)
    if build is None:
        raise NotFound(f"there is no build {request.name!r}; those that nobody needs are pruned")
    log, refusal = "", ""
    try:
        async with request.acting() as cluster:
            stored = await cluster.get(CONFIG_MAP.resource, log_name(object_name(build).name), NAMESPACE)
        log = str((stored.get("data") or {}).get(LOG) or "")
    except NotFound:
        refusal = "No log is kept: nothing was run for this build, or it was not begun."
    except ApiError as error:
        refusal = refused_by(error)
    return build_page(request.frame, build, log, refusal)
