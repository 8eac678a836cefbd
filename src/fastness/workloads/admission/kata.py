"""Rules about KataConfig: there is one, and it does not touch machines that are themselves confidential.

A node of a ConfidentialCluster pool *is* the confidential machine: what it boots is measured, and a runtime that is added later
would not be. Where every pool that a KataConfig could use is of that kind, it is refused at once; where some are not, the
controller takes those and says which nodes it left out.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kata import GROUP, names
from fastness.kinds.machineconfiguration.names import MASTER
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, DeniedCause, forbidden

RESOURCE: Final = "kataconfigs"
DUPLICATE: Final = "A KataConfig instance already exists, refusing to create a duplicate"
__all__ = ["GROUP", "RESOURCE", "is_alone", "some_pool_may_have_it"]


def is_alone(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a second KataConfig, whatever its name."""
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
