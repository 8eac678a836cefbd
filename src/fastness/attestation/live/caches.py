"""What a verifier compares with, kept ready: reference values, policies, the cluster's demands.

Each is decoded once and again when one of its objects changes; reference values also when the validity of a set begins or
ends. So an attestation reads ready-made tables, and a withdrawn approval counts from the moment the cache hears of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fastness.attestation.live.distrusts import Distrusts
from fastness.attestation.policy.policy_set import PolicyBook
from fastness.attestation.values.values import ValueBook
from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.approvers import read_appointments
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Scope


class _Stale:
    """Whether something changed since it was last looked at."""

    def __init__(self, *informers: Informer) -> None:
        self.changed = True
        self._ends = [informer.subscribe(self._note) for informer in informers]

    def _note(self, *_: JsonObject | None) -> None:
        self.changed = True

    def close(self) -> None:
        for end in self._ends:
            end()


class Books:
    """The tables of a verifier."""

    def __init__(self, informers: Informers, distrusts: Distrusts | None = None) -> None:
        self._distrusts = distrusts or Distrusts(informers)
        self._values_of = informers.of(REFERENCE_VALUE_SET.resource)
        self._images = informers.of(APPROVED_IMAGE.resource)
        self._policies_of = informers.of(APPRAISAL_POLICY.resource)
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._maps = informers.of(CONFIG_MAP.resource, Scope(NAMESPACE))
        self._stale_values = _Stale(self._values_of, self._images)
        self._distrusted: frozenset[str] = frozenset()
        self._own: frozenset[str] = frozenset()
        self._stale_policies = _Stale(self._policies_of)
        self._values: dict[str | None, ValueBook] = {}
        self._policies = PolicyBook(())

    async def synced(self) -> None:
        """Wait until all caches have held the state once."""
        await self._distrusts.synced()
        for informer in (self._values_of, self._images, self._policies_of, self._clusters, self._maps):
            await informer.synced()

    def close(self) -> None:
        """Listen to nothing any more."""
        self._stale_values.close()
        self._stale_policies.close()

    @property
    def cluster(self) -> JsonObject | None:
        """The ConfidentialCluster, if there is one."""
        return self._clusters.get("", NAME)

    @property
    def approvers(self) -> Mapping[str, str]:
        """The keys of those who may agree to an override and count by now."""
        return read_appointments(self._maps.get(NAMESPACE, APPOINTMENTS)).counting

    def values(self, now: datetime, pool: str) -> ValueBook:
        """The reference values that count now for the machines of a pool."""
        distrusted = self._distrusts.images(now)
        over = any(book.until is not None and now >= book.until for book in self._values.values())
        if self._stale_values.changed or over or distrusted != self._distrusted:
            self._stale_values.changed, self._distrusted = False, distrusted
            self._values = {}
            self._own = frozenset(name for one in self._values_of.list() for name in one["spec"].get("pools") or ())
        # Pools that no set names share one book; there are many pools and hardly any sets for single ones.
        key = pool if pool in self._own else None
        if key not in self._values:
            self._values[key] = ValueBook.of(self._values_of.list(), now, self._images.list(), distrusted, key or "")
        return self._values[key]

    @property
    def policies(self) -> PolicyBook:
        """The policies that are active."""
        if self._stale_policies.changed:
            self._stale_policies.changed = False
            self._policies = PolicyBook.of(self._policies_of.list())
        return self._policies
