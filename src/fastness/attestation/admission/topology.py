"""Which control planes confidential pools can stand on: not one that somebody else hosts, and not a single node.

    External           the control plane runs in another cluster: whoever runs that one reads every Secret here
    SingleReplica      the machine that would be attested is the one that attests: nobody is left to refuse it
    MicroShift         the same, and no operator of machine configuration is there at all

`Infrastructure` `cluster` says which it is, where there is one; MicroShift has none, and says so by the ConfigMap
`kube-public/microshift-version`. A pool of hosts for confidential containers may be a single node:
what is attested there are guests. A pool that is confidential already is not looked at again: refusing every later change would
help nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.machineconfiguration import names
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, invalid

REASONS: Final[Mapping[str, str]] = {
    "External": "the control plane is hosted in another cluster, whose operators read every Secret of this one",
    "SingleReplica": "the control plane is a single node, and a machine cannot attest itself",
}


def unsupported(
    infrastructure: Mapping[str, Any] | None, microshift: Mapping[str, Any] | None
) -> tuple[str, str] | None:
    """What keeps confidential pools from a cluster, and why; None where nothing does."""
    if microshift is not None:
        return "on MicroShift", "it is one machine that is control plane and node, and a machine cannot attest itself"
    status: Mapping[str, Any] = (infrastructure or {}).get("status") or {}
    topology = str(status.get("controlPlaneTopology") or "")
    return (f"on a cluster of topology {topology}", REASONS[topology]) if topology in REASONS else None


def confidential_pools(confidential: Mapping[str, Any] | None, pools: Iterable[Mapping[str, Any]]) -> list[str]:
    """The pools that a ConfidentialCluster makes confidential, by name; the built-in ones whether they are there or not."""
    known = dict.fromkeys([names.MASTER, names.WORKER, *(str(pool["metadata"]["name"]) for pool in pools)])
    return [pool for pool in known if trust_model(confidential, pool) is TrustModel.CONFIDENTIAL_CLUSTER]


def topology_is_supported(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse pools that become confidential where the control plane cannot be one that judges them."""
    found = unsupported(lookups.infrastructure(), lookups.microshift())
    if found is None:
        return None
    before = confidential_pools(request.old, lookups.pools())
    gained = [pool for pool in confidential_pools(request.new, lookups.pools()) if pool not in before]
    if not gained:
        return None
    where, reason = found
    why = (
        f"pool {' and '.join(gained)} cannot be {TrustModel.CONFIDENTIAL_CLUSTER} {where}: {reason}; "
        f"list them as {TrustModel.CONTAINERS_HOST} or {TrustModel.NONE}"
    )
    return invalid(request, "spec.pools", why)
