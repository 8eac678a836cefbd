"""What became of the cluster's own settings, as their conditions and events tell it.

`Accepted` says whether an object is followed; one that is not blocks the pools that it concerns. `KernelArgumentsApplied` says
whether the pools of the control plane and the workers boot with what the cgroup mode asks for; it never blocks anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition, metadata, object_name, with_condition
from fastness.kinds.openshift.node_settings import CLUSTER
from fastness.machineconfig.render.cluster_configs import (
    FEATURE_GATE,
    NODE_CONFIG,
    confidential_receivers,
    gates_refusal,
    refusal_of_nodes,
)
from fastness.machineconfig.render.generated import Owners
from fastness.machineconfig.render.outcome import ACCEPTED
from fastness.machineconfig.render.settings.cluster import CGROUP_ARGUMENTS, gates_for, is_prohibited
from fastness.machineconfig.render.settings.gates import RELEASE

Object = Mapping[str, Any]
ARGUMENTS_APPLIED: Final = "KernelArgumentsApplied"
MAX_NAMES: Final = 20


def refusal(kind: str, owners: Owners) -> str:
    """Why an object of the cluster is not followed; empty when it is."""
    return refusal_of_nodes(owners.settings)[0] if kind == NODE_CONFIG else gates_refusal(owners.settings)


def conditions(kind: str, obj: Object, owners: Owners, now: datetime) -> list[JsonObject]:
    """The conditions of nodes.config or of the FeatureGate."""
    generation = metadata(obj).get("generation")
    present = (obj.get("status") or {}).get("conditions") or []
    problem = refusal(kind, owners)
    remark = "" if kind == NODE_CONFIG else _left_out(owners)
    accepted = with_condition(
        present, kind=ACCEPTED, status="False" if problem else "True", reason="Refused" if problem else "Generated",
        message=problem or remark, now=now, generation=generation,
    )  # fmt: skip
    if kind == FEATURE_GATE or problem:
        return accepted
    without = _without_arguments(owners)
    return with_condition(
        accepted, kind=ARGUMENTS_APPLIED, status="False" if without else "True",
        reason="ConfidentialPools" if without else "Generated", message=without, now=now, generation=generation,
    )  # fmt: skip


def _left_out(owners: Owners) -> str:
    """The gates that some pool's kubelets are not told."""
    dropped = sorted({name for pool in owners.pools for name in gates_for(owners.settings, owners.pool(pool))[1]})
    if not dropped:
        return ""
    more = f" and {len(dropped) - MAX_NAMES} more" if len(dropped) > MAX_NAMES else ""
    return (
        f"kubelets of Kubernetes {RELEASE} do not start with these gates as they are set, they were left out: "
        f"{', '.join(dropped[:MAX_NAMES])}{more}"
    )


def _without_arguments(owners: Owners) -> str:
    """Which pools do not get kernel arguments, and what to do about it."""
    pools = owners.pools.values()
    confidential = sorted({
        name for role in names.BUILT_IN_POOLS for name in confidential_receivers(role, pools, owners.confidential)
    })  # fmt: skip
    if not confidential:
        return ""
    return (
        f"machines of {', '.join(confidential)} are confidential, and their kernel arguments are part of what they prove: "
        f"an image that does not boot with control groups v2 by itself has to bring {' '.join(CGROUP_ARGUMENTS)}"
    )


def was_looked_at(obj: Object) -> bool:
    """Whether the object was looked at in its present form."""
    accepted = condition(obj, ACCEPTED)
    return accepted is not None and accepted.get("observedGeneration") == metadata(obj).get("generation")


def prohibition(kind: str, obj: Object, owners: Owners) -> str:
    """Why what somebody did to one of these objects is forbidden rather than wrong; empty when it is not."""
    name = object_name(obj).name
    if name != CLUSTER:
        return f'metadata.name: "{name}" has no effect, the object must be called "{CLUSTER}"'
    if kind != NODE_CONFIG:
        return ""
    step = is_prohibited(owners.settings.latency, str((obj.get("spec") or {}).get("workerLatencyProfile") or "Default"))
    return refusal_of_nodes(owners.settings)[0] if step else ""
