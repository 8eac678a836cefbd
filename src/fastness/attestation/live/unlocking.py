"""Unlock sessions at the verifier: a Machine is named, its evidence judged, and nothing about its standing changes.

    uid → Machine → type → key where one is needed → unlock key → evidence → chip, membership, boot, phase → policy and values
        → challenge spent → launch bound → Verdict kept → Judgement of `unlock:<uid>`

`attestation.verdict.unlock` decides. Whoever is refused for what it is (another chip, a launch that was used) leaves no
Verdict: a neighbour that knows a uid must not fill the history of the Machine it names. One that showed the Machine's own key
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.live.attempt import Attempt, Judgement
from fastness.attestation.live.caches import Chips, Distrusts
from fastness.attestation.live.launches import Launches
from fastness.attestation.live.machines import find_machine
from fastness.attestation.live.writer import Outcome, Verdicts
from fastness.attestation.machine.chip import chip_of
from fastness.attestation.machine.machine import subject_of
from fastness.attestation.verdict.conclude import Conclusion, amended
from fastness.attestation.verdict.dispute import boot_of
from fastness.attestation.verdict.distrust import about_machine
from fastness.attestation.verdict.unlock import OTHER_MACHINE, USED, WITHOUT_PHASES, needs_identity, unlock_refusal
from fastness.crypto.silicon.verify import AttestationKey
from fastness.kinds.objects import object_name, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.subject import KeyKind, key_kind
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.observe import metrics
from fastness.protocol.guest_key import MEMBER, claimed_identity, proved_identity
from fastness.protocol.unlock import ClaimedUnlock, proved_unlock, unlock_subject
from fastness.record.entry import Record, RecordEntry

BY_UID: Final = "uid"


def uid_index(machine: Mapping[str, Any]) -> Iterable[str]:
    """For an index of Machines: the uid."""
    return [str((machine.get("metadata") or {}).get("uid") or "")]


class Concluded(NamedTuple):
    """Evidence that was judged, and what policies and values make of it."""

    appraisal: Appraisal
    conclusion: Conclusion
    properties: Mapping[str, str]
    policy: str
    value_sets: tuple[tuple[str, str], ...]
    simulated: bool
    fresh: bool
    at: datetime


class Bench(Protocol):
    """What the verifier does for every session."""

    async def conclude(self, attempt: Attempt, key: AttestationKey | None, machine: Machine) -> Concluded:
        """Judge evidence in the name of a Machine; raises EvidenceError, InitDataError."""

    async def refuse(
        self, code: str, detail: str, who: str = "", *, enrolled: bool = False, retry: bool = False
    ) -> Judgement:
        """Refuse, within the budget of those who proved nothing."""

    def why_misbound(self, machine: Machine, tee: str) -> tuple[str, str] | None:
        """Why evidence of this type cannot be this machine's, or does not count for its pool."""


class Unlocking:
    """Judges unlock sessions."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        bench: Bench,
        verdicts: Verdicts,
        launches: Launches,
        record: Record,
        *,
        distrusts: Distrusts,
        chips: Chips,
        claimed_key: Callable[[Attempt], AttestationKey],
    ) -> None:
        self._cluster = cluster
        self._machines: Informer = informers.of(MACHINE.resource, indexers={BY_UID: uid_index})
        self._bench = bench
        self._verdicts = verdicts
        self._launches = launches
        self._record = record
        self._distrusts = distrusts
        self._chips = chips
        self._claimed_key = claimed_key

    async def appraise(self, attempt: Attempt, claimed: ClaimedUnlock) -> Judgement:
        """Judge an attempt; raises BadUnlock, BadIdentity, EvidenceError, ReplayedChallenge, RecordError, ApiError."""
        machine = await self._named(attempt, claimed)
        if machine is None:
            return await self._bench.refuse("not-enrolled", "no machine is enrolled by this uid")
        unbound = self._bench.why_misbound(machine, attempt.tee)
        if unbound is not None:
            return await self._bench.refuse(*unbound)
        key = self._shown_key(attempt, machine)
        if key is not None and str(key.thumbprint) != machine.status.key_thumbprint:
            return await self._bench.refuse(OTHER_MACHINE.code, OTHER_MACHINE.detail)
        unlock_key = proved_unlock(claimed, attempt.nonce, attempt.tee_pubkey)
        concluded = await self._bench.conclude(attempt, key, machine)
        if not concluded.appraisal.authentic or not concluded.fresh:
            conclusion = concluded.conclusion
            return await self._bench.refuse(conclusion.reason, conclusion.detail)
        chip, boot = chip_of(concluded.appraisal), boot_of(concluded.appraisal.claims)
        refusal = unlock_refusal(machine, concluded.appraisal, chip, boot)
        if refusal is not None:
            return await self._bench.refuse(refusal.code, refusal.detail, retry=refusal.retry)
        # Of two answers to one challenge one counts, as in every session (pitfall 13).
        await self._verdicts.spend(attempt.nonce, attempt.challenge_expires)
        if attempt.tee in WITHOUT_PHASES:
            launch = boot.launch if boot is not None else ""
            if not launch or not await self._launches.bind(launch, machine.metadata.uid, unlock_key):
                return await self._bench.refuse(USED.code, USED.detail, machine.status.key_thumbprint, enrolled=True)
        return await self._settle(attempt, machine, self._amended(concluded, machine, chip), proved_key=key is not None)

    async def _named(self, attempt: Attempt, claimed: ClaimedUnlock) -> Machine | None:
        """The Machine that a session names; one that enrolled a moment ago is enrolled by its key."""
        cached = next(iter(self._machines.by_index(BY_UID, claimed.machine)), None)
        if cached is not None:
            machine = view(cached, Machine)
            return machine if not cached["metadata"].get("deletionTimestamp") else None
        if key_kind(attempt.tee) is KeyKind.GUEST and MEMBER not in attempt.additional:
            return None
        enrolled = await find_machine(self._cluster, key_kind(attempt.tee), str(self._claimed_key(attempt).thumbprint))
        return enrolled if enrolled is not None and enrolled.metadata.uid == claimed.machine else None

    def _shown_key(self, attempt: Attempt, machine: Machine) -> AttestationKey | None:
        """The machine's own key, where the session shows it or has to; raises BadIdentity, EvidenceError."""
        if key_kind(attempt.tee) is KeyKind.AK:
            return self._claimed_key(attempt)
        if MEMBER not in attempt.additional and not needs_identity(machine):
            return None
        # Also where it is not needed: a key that is proved_key and is not the Machine's is somebody else's session.
        return proved_identity(claimed_identity(attempt.additional), attempt.nonce, attempt.tee_pubkey)

    def _amended(self, concluded: Concluded, machine: Machine, chip: str) -> Concluded:
        """With what stands against the machine, and without any override: two approvers let a pool in, and open no disk."""
        now = concluded.at
        against = self._distrusts.against(about_machine(machine, concluded.properties, chip=chip), now)
        conclusion = amended(
            concluded.conclusion, concluded.appraisal, pool=machine.status.pool, chip=chip, distrusts=against,
            wait=self._chips.why_wait(machine, chip, now),
        )  # fmt: skip
        return concluded._replace(conclusion=conclusion)

    async def _settle(self, attempt: Attempt, machine: Machine, concluded: Concluded, *, proved_key: bool) -> Judgement:
        """Keep the Verdict and write the record; the Machine's standing, chip and boot stay as they are."""
        conclusion, subject = concluded.conclusion, replace(subject_of(machine), simulated=concluded.simulated)
        if not conclusion.accepted and not proved_key:
            return await self._bench.refuse(
                conclusion.reason, conclusion.detail, subject.thumbprint, enrolled=True, retry=conclusion.retry
            )
        outcome = Outcome(
            conclusion, concluded.policy, concluded.value_sets, simulated=concluded.simulated,
            properties=concluded.properties,
        )  # fmt: skip
        verdict = await self._verdicts.keep_unlock(subject, attempt, outcome, concluded.at)
        detail = {"code": conclusion.reason or "ok", "tee": attempt.tee, "session": "unlock"}
        await self._record.append(
            RecordEntry(
                "unlock-proved" if conclusion.accepted else "refusal", subject.thumbprint, f"machine/{subject.name}",
                object_name(verdict).name, evidence=verdict["spec"]["evidence"]["digest"], detail=detail,
            )
        )  # fmt: skip
        metrics.ATTESTATIONS.inc("unlocked" if conclusion.accepted else "refused")
        unlocked = replace(subject, thumbprint=unlock_subject(subject.machine))
        return Judgement(
            conclusion.accepted, conclusion.reason, conclusion.detail, unlocked, verdict, dict(conclusion.vector.claims),
            conclusion.claims, retry=conclusion.retry, properties=concluded.properties,
        )  # fmt: skip
