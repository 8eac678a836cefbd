"""What a pool's machines are to the cluster: confidential VMs, untrusted hosts of pod VMs, or ordinary nodes.

`ConfidentialCluster.spec.pools[]` says which model a pool has; a pool that is not listed is a confidential one as long as the
mode is Audit or Enforce. Everything that treats pools differently (validation, rendering, delivery) asks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

Object = Mapping[str, Any]


class TrustModel(StrEnum):
    """The three models, weakest last."""

    CONFIDENTIAL_CLUSTER = "ConfidentialCluster"
    CONTAINERS_HOST = "ContainersHost"
    NONE = "None"

    @property
    def strength(self) -> int:
        """How much is asked of a machine: a higher number is stricter."""
        return {"ConfidentialCluster": 2, "ContainersHost": 1, "None": 0}[self.value]


class Mode(StrEnum):
    """How strictly the cluster asks for attestation."""

    DISABLED = "Disabled"
    AUDIT = "Audit"
    ENFORCE = "Enforce"

    @property
    def strength(self) -> int:
        """A higher number is stricter."""
        return {"Disabled": 0, "Audit": 1, "Enforce": 2}[self.value]


def mode_of(cluster: Object | None) -> Mode:
    """The mode of a ConfidentialCluster; Disabled when there is none."""
    value = _spec(cluster).get("mode")
    return Mode(value) if value in set(Mode) else Mode.DISABLED


def listed_pools(cluster: Object | None) -> dict[str, TrustModel]:
    """The pools that the ConfidentialCluster names, with their models."""
    entries = _spec(cluster).get("pools")
    return {
        str(entry.get("name")): TrustModel(entry["trustModel"])
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and entry.get("trustModel") in set(TrustModel)
    }


def trust_model(cluster: Object | None, pool: str) -> TrustModel:
    """The model of a pool."""
    listed = listed_pools(cluster).get(pool)
    if listed is not None:
        return listed
    return TrustModel.NONE if mode_of(cluster) is Mode.DISABLED else TrustModel.CONFIDENTIAL_CLUSTER


def enforces(cluster: Object | None, pool: str) -> bool:
    """Whether machines of a pool get nothing, and their nodes are not used, without a proof: on the first day and later."""
    return mode_of(cluster) is Mode.ENFORCE and trust_model(cluster, pool) is TrustModel.CONFIDENTIAL_CLUSTER


def evicts(cluster: Object | None, pool: str) -> bool:
    """Whether pods must leave the nodes of an enforcing pool that have no proof."""
    entries = _spec(cluster).get("pools")
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return enforces(cluster, pool) and any(entry.get("name") == pool and entry.get("evict") is True for entry in listed)


def clevis_pools(cluster: Object | None) -> frozenset[str]:
    """The confidential pools whose machines have their root opened by the Clevis pin; no other volume can be."""
    entries = _spec(cluster).get("pools")
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    disks = {str(entry.get("name")): entry.get("disk") for entry in listed}
    return frozenset(
        pool
        for pool, disk in disks.items()
        if isinstance(disk, dict)
        and (disk.get("pin"), disk.get("volume")) == ("Clevis", "root")
        and trust_model(cluster, pool) is TrustModel.CONFIDENTIAL_CLUSTER
    )


def legacy_stubs(cluster: Object | None) -> dict[str, frozenset[str]]:
    """The names under which the gate serves stubs without a ticket, and the pools of each that are of model None."""
    join = _spec(cluster).get("join")
    entries = join.get("legacyStubs") if isinstance(join, dict) else None
    return {
        str(entry.get("serverName")): frozenset(
            # A pool that became stricter since is served to nobody there, whatever the list still says.
            pool
            for pool in entry.get("pools") or ()
            if trust_model(cluster, pool) is TrustModel.NONE
        )
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and entry.get("serverName")
    }


def _spec(cluster: Object | None) -> Object:
    spec = (cluster or {}).get("spec")
    return spec if isinstance(spec, dict) else {}
