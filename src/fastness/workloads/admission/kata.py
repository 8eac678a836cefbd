"""Rules about KataConfig: there is one, it does not touch machines that are themselves confidential, and its operator is needed.

* A node of a ConfidentialCluster pool *is* the confidential machine: what it boots is measured, and a runtime that is added
  later would not be. Where every pool that a KataConfig could use is of that kind, it is refused at once; where some are not,
  the controller takes those and says which nodes it left out.
* The manual removes pods, then the KataConfig, then the operator. In another order nothing breaks at once, and that is the trap:
  without its operator nothing acts on a KataConfig any more, not even on its deletion. So that is allowed, with a warning.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kata import GROUP, names
from fastness.kinds.machineconfiguration.names import MASTER
from fastness.kinds.objects import is_being_deleted, object_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Allowed, Denied, DeniedCause, forbidden

RESOURCE: Final = "kataconfigs"
OPERATORS: Final = "operators.coreos.com"
DUPLICATE: Final = "A KataConfig instance already exists, refusing to create a duplicate"
__all__ = ["DUPLICATE", "GROUP", "OPERATORS", "RESOURCE", "is_alone", "operator_is_needed", "some_pool_may_have_it"]


def is_alone(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a second KataConfig, whatever its name."""
    # One or more: an operator that looks for exactly one lets a third in beside two that a race let in.
    return forbidden(request, DUPLICATE) if any(True for _ in lookups.kata_configs()) else None


def some_pool_may_have_it(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a KataConfig in a cluster where no pool may have the runtime."""
    cluster = lookups.confidential_cluster()
    models = {pool: trust_model(cluster, pool) for pool in (names.POOL, MASTER)}
    if any(model is not TrustModel.CONFIDENTIAL_CLUSTER for model in models.values()):
        return None
    why = (
        f"pool {names.POOL} has the trust model {TrustModel.CONFIDENTIAL_CLUSTER}: its nodes are confidential machines, measured "
        "as they are, and host no pod VMs. List the pool in ConfidentialCluster spec.pools with "
        f"trustModel {TrustModel.CONTAINERS_HOST} if its nodes are hosts"
    )
    return forbidden(request, why, DeniedCause("spec", "FieldValueForbidden", f"Forbidden: {names.POOL}"))


def operator_is_needed(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Warn who deletes the operator of sandboxed containers while a KataConfig is there."""
    if not _is_part(request):
        return None
    left = sorted(object_name(config).name for config in lookups.kata_configs() if not is_being_deleted(config))
    if not left:
        return None
    still = f"KataConfig {', '.join(left)} still exists: delete it first"
    return Allowed((f"{still}, or nothing acts on it, and it cannot be removed, until the operator is back",))


def _is_part(request: AdmissionRequest) -> bool:
    if request.resource == "namespaces":
        return request.name == names.NAMESPACE
    return request.namespace == names.NAMESPACE and request.name.startswith(names.OPERATOR)
