"""What a verifier compares with, kept ready: Distrusts, reference values, policies, the cluster's demands, chips.

Each is decoded once and again when one of its objects changes; reference values also when the validity of a set begins or
ends. So an attestation reads ready-made tables and costs no request, and a withdrawn approval or a new Distrust counts from the
moment the cache hears of it; no controller has to run in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fastness.attestation.machine.chip import INDEX, kept_against, on_chip, standing_against, why_wait
from fastness.attestation.policy.policy import PolicySet
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.approvers import read_appointments
from fastness.attestation.verdict.dispute import Wait
from fastness.attestation.verdict.distrust import About, Distrusted, against, read_distrust
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Scope
from fastness.record.entry import Record, RecordEntry


class Distrusts:
    """What is no longer trusted."""

    def __init__(self, informers: Informers) -> None:
        self._objects: Informer = informers.of(DISTRUST.resource)
        self._read: tuple[Distrusted, ...] | None = None
        self._objects.subscribe(self._changed)

    def _changed(self, _old: JsonObject | None, _new: JsonObject | None) -> None:
        self._read = None

    async def synced(self) -> None:
        """Wait until all of them are known."""
        await self._objects.synced()

    @property
    def all(self) -> tuple[Distrusted, ...]:
        """All that are not being deleted, expired ones too."""
        if self._read is None:
            self._read = tuple(distrust for obj in self._objects.list() if (distrust := read_distrust(obj)) is not None)
        return self._read

    def against(self, about: About, now: datetime) -> list[Distrusted]:
        """Those that hit a machine now."""
        return against(self.all, about, now) if self.all else []

    def images(self, now: datetime) -> frozenset[str]:
        """The images that are distrusted now."""
        return frozenset(str(entry.target) for entry in self.all if entry.kind == "image" and entry.live(now))


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
        self._values: dict[str | None, ReferenceValues] = {}
        self._policies = PolicySet(())

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

    def values(self, now: datetime, pool: str) -> ReferenceValues:
        """The reference values that count now for the machines of a pool."""
        distrusted = self._distrusts.images(now)
        # A set that ends while nothing changes must stop counting all the same.
        over = any(book.until is not None and now >= book.until for book in self._values.values())
        if self._stale_values.changed or over or distrusted != self._distrusted:
            self._stale_values.changed, self._distrusted = False, distrusted
            self._values = {}
            self._own = frozenset(
                name for values in self._values_of.list() for name in values["spec"].get("pools") or ()
            )
        # Pools that no set names share one book; there are many pools and hardly any sets for single ones.
        key = pool if pool in self._own else None
        if key not in self._values:
            self._values[key] = ReferenceValues.of(
                self._values_of.list(), now, self._images.list(), distrusted, key or ""
            )
        return self._values[key]

    @property
    def policies(self) -> PolicySet:
        """The policies that are active."""
        if self._stale_policies.changed:
            self._stale_policies.changed = False
            self._policies = PolicySet.of(self._policies_of.list())
        return self._policies


class Chips:
    """Knows which Machines are on which chip; the decisions are in `attestation.machine.chip`.

    Evidence of another chip than the pinned one is a dispute (`attestation.verdict.dispute`) and does not come here.
    """

    def __init__(self, informers: Informers, distrusts: Distrusts, record: Record) -> None:
        self._machines: Informer = informers.of(MACHINE.resource, indexers={INDEX: on_chip})
        self._distrusts = distrusts
        self._record = record

    def why_wait(self, machine: Machine, chip: str, now: datetime) -> Wait | None:
        """Why a machine whose evidence comes from this chip waits for a person; None when it need not."""
        if not chip or chip == machine.status.chip:
            return None
        peers = [view(peer, Machine) for peer in self._machines.by_index(INDEX, chip)]
        live = [entry for entry in self._distrusts.all if entry.live(now)]
        return why_wait(machine, chip, standing_against(peers, live) or kept_against(chip, live))

    async def approved_change(self, machine: Machine, chip: str) -> None:
        """Put it on the record that a machine changes its chip, by whose approval; raises RecordError.

        It is there before the new chip is written on the Machine: a change that nobody can look up must not count.
        """
        if not chip or machine.status.chip in ("", chip):
            return
        detail = {"from": machine.status.chip, "to": chip, "reason": machine.spec.chip_reason[:256]}
        name = machine.metadata.name
        await self._record.append(
            RecordEntry("chip-changed", machine.status.key_thumbprint, f"machine/{name}", detail=detail)
        )
