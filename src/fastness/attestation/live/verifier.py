"""The verifier of a cluster: evidence in, verdict out.

    key → type and endorsement → identity → membership → evidence → policy and values → challenge spent
        → Verdict and Machine written → Judgement

An attempt that asks for an unlock goes another way (`unlocking`), and gives no standing.

1. The attempt names a key, and the key its Machine. Evidence of another type than the machine enrolled for is refused before a
byte of it is read: a software key that enrolled for `snp` proves nothing until its report does, and must not get to sign quotes.
2. A guest key signed the attempt, as the key of the boot did where evidence tells nothing of boots; an attestation key signs the
quote. Nobody else is looked at further. 3. Only an approved machine is judged. One that waits for approval is asked to come back.
4. Evidence is judged under the roots of this cluster, then
by its policies and values (`attestation`). 5. Whoever's evidence is authentic and answers this challenge has spent it,
whatever the outcome, and leaves a verdict.

Evidence that is not authentic leaves nothing but a line of the record, and not even that each time: its sender may be anybody
(`record.live.unauthenticated`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.attestation.evidence.phases import Phase
from fastness.attestation.evidence.roots import Anchors, accepted_evidence, anchors_of
from fastness.attestation.live.appraisers import CollateralSource, Demands, NoCollateral, judge
from fastness.attestation.live.attempt import Attempt, Judgement
from fastness.attestation.live.caches import Books, Chips, Distrusts
from fastness.attestation.live.launches import Launches
from fastness.attestation.live.machines import find_machine, known_machine
from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.live.unlocking import Concluded, Unlocking
from fastness.attestation.live.writer import Outcome, Verdicts
from fastness.attestation.machine.chip import chip_of
from fastness.attestation.machine.machine import misbound, subject_of
from fastness.attestation.status.cluster import interval_of
from fastness.attestation.values.phases import without_phases
from fastness.attestation.verdict import breakglass
from fastness.attestation.verdict.breakglass import live_override
from fastness.attestation.verdict.conclude import Conclusion, Facts, amended, concluding, properties_of, stale
from fastness.attestation.verdict.dispute import PENDING_CODE, boot_dispute, boot_of, chip_dispute
from fastness.attestation.verdict.distrust import about_machine
from fastness.attestation.verdict.machine_standing import ROUNDS
from fastness.attestation.verdict.unlock import WITHOUT_PHASES, phase_of_evidence
from fastness.crypto.errors import BadKey
from fastness.crypto.silicon.verify import AttestationKey, attestation_key
from fastness.disks.reports import judged_reports
from fastness.formats.evidence.envelope import base64_field
from fastness.formats.initdata import parse_init_data
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import KeyKind, Subject, key_kind
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.observe import metrics
from fastness.protocol.disk_report import BadReport, DiskReport, reported_disks
from fastness.protocol.guest_key import BadIdentity, ClaimedIdentity, claimed_identity, proved_boot, proved_identity
from fastness.protocol.node_keys import REUSED, BadNames, NamedKeys, named_keys, names_replaced
from fastness.protocol.unlock import BadUnlock, claimed_unlock
from fastness.record.entry import Record, RecordEntry
from fastness.record.live.unauthenticated import UnauthenticatedRefusals
from fastness.runtime.clock import Clock


class Vendor(CollateralSource, Protocol):
    """Vendors' documents, and the roots of a simulated vendor where one is announced."""

    @property
    def anchors(self) -> Anchors | None:
        """Roots that count only where the cluster is simulated."""


class NobodySimulates(NoCollateral):
    """No simulated vendor, and no documents beside what evidence brings."""

    anchors: Anchors | None = None


class _Rules:
    """A ConfidentialCluster, read once: which evidence counts, what is demanded of hardware, whose roots are believed."""

    def __init__(self, cluster: JsonObject | None) -> None:
        self.cluster = cluster
        self.first_use = view(cluster or {}, ConfidentialCluster).spec.join.trust_on_first_use
        self.demands = Demands.of(cluster)
        self.counts_for = interval_of(cluster) * ROUNDS
        self._anchors: dict[str, tuple[Anchors | None, list[Anchors]]] = {}
        pools = view(cluster or {}, ConfidentialCluster).spec.pools
        own = {pool.name: frozenset(accepted_evidence(cluster, pool.name)) for pool in pools}
        self._pools = own
        self._others = frozenset(accepted_evidence(cluster))
        self.evidence = self._others.union(*own.values())

    def evidence_of(self, pool: str) -> frozenset[str]:
        """The kinds of evidence that count for machines of a pool."""
        return self._pools.get(pool, self._others)

    def anchors(self, tee: str, simulated: Anchors | None) -> list[Anchors]:
        """The roots that may vouch for a kind of evidence."""
        remembered = self._anchors.get(tee)
        if remembered is None or remembered[0] is not simulated:
            remembered = self._anchors[tee] = simulated, anchors_of(self.cluster, tee, simulated)
        return remembered[1]


class TicketCounter(Protocol):
    """Counts the ticket of a guest at its first affirmed verdict; enrolment has one."""

    async def counted(self, machine: Machine, conclusion: Conclusion) -> Conclusion:
        """The same conclusion, or a refusal when the ticket has no use left; raises ApiError."""
        ...


class ClusterVerifier:
    """Judges attempts with what the cluster knows."""

    def __init__(
        self,
        cluster: Cluster,
        informers: Informers,
        record: Record,
        clock: Clock,
        workers: PolicyWorkers,
        admissions: TicketCounter,
        vendor: Vendor | None = None,
    ) -> None:
        self.distrusts = Distrusts(informers)
        self.books = Books(informers, self.distrusts)
        self._cluster = cluster
        self._machines: Informer = informers.of(MACHINE.resource)
        self._chips = Chips(informers, self.distrusts, record)
        self.admissions = admissions
        verdicts = informers.of(VERDICT.resource)
        self._verdicts = Verdicts(cluster, verdicts)
        self._launches = Launches(cluster, informers, clock)
        self._followed = (self._machines, verdicts)
        self._record = record
        self._unauthenticated = UnauthenticatedRefusals(record, clock)
        self._clock = clock
        self._workers = workers
        self._vendor: Vendor = vendor or NobodySimulates()
        self._rules = _Rules(None)
        self._unlocking = Unlocking(
            cluster, informers, self, self._verdicts, self._launches, record, distrusts=self.distrusts, chips=self._chips,
            claimed_key=lambda attempt: _key_of(_claimed_key(attempt)),
        )  # fmt: skip

    async def synced(self) -> None:
        """Wait until everything that is compared with is at hand."""
        await self.books.synced()
        await self.distrusts.synced()
        await self._launches.synced()
        for informer in self._followed:
            await informer.synced()

    async def appraise(self, attempt: Attempt) -> Judgement:
        """Judge an attempt; raises EvidenceError, InitDataError, ReplayedChallenge, RecordError, ApiError."""
        # First of all, and without looking anything up: refusing a stranger must stay cheap.
        if attempt.tee not in self._current_rules.evidence:
            return await self.refuse("evidence-not-accepted", f"this cluster does not accept evidence of {attempt.tee}")
        try:
            unlock = claimed_unlock(attempt.additional)
            # Before anything of an ordinary session: what asks for disks gives no standing, whatever else it brings.
            if unlock is not None:
                return await self._unlocking.appraise(attempt, unlock)
            claimed, named = _claimed_key(attempt), named_keys(attempt.additional)
            reports = reported_disks(attempt.additional)
        except (BadIdentity, BadNames, BadReport, BadUnlock) as error:
            return await self.refuse(error.code, error.detail)
        # Only claimed so far: it finds the Machine to compare with, and decides nothing.
        thumbprint = str(_key_of(claimed).thumbprint)
        machine = await self._machine(attempt.tee, thumbprint)
        if machine is None:
            return await self.refuse("not-enrolled", "no machine enrolled with this key", thumbprint)
        # Before a byte of the evidence is parsed: a software key that enrolled for one kind of evidence must not bring another
        # (pitfall 27).
        unbound = misbound(machine, attempt.tee, first_use=self._current_rules.first_use)
        if unbound is not None:
            return await self.refuse(unbound.code, unbound.detail, thumbprint, enrolled=True)
        try:
            key = _proved_key(claimed, attempt)
            boot_key = proved_boot(attempt.tee, attempt.additional, attempt.nonce, attempt.tee_pubkey)
        except BadIdentity as error:
            return await self.refuse(error.code, error.detail, thumbprint, enrolled=True)
        membership = membership_of(machine)
        # After the key was proved: how a machine stands is not told to whoever merely names its key.
        if membership is not Membership.APPROVED:
            return await self._not_a_member(machine, membership)
        return await self._judge(attempt, key, machine, named, reports, boot_key)

    async def _machine(self, tee: str, thumbprint: str) -> Machine | None:
        """The Machine of a key. One that is enrolled as the other kind of key is found too, to be refused by its name."""
        kind = key_kind(tee)
        # The cache may be a moment behind an enrolment: a machine that has just enrolled must not hear that nobody knows it.
        machine = known_machine(self._machines, kind, thumbprint) or await find_machine(self._cluster, kind, thumbprint)
        others = (known_machine(self._machines, other, thumbprint) for other in KeyKind if other is not kind)
        return machine or next(others, None)

    async def _judge(
        self,
        attempt: Attempt,
        key: AttestationKey,
        machine: Machine,
        named: NamedKeys,
        reports: Sequence[DiskReport],
        boot_key: str,
    ) -> Judgement:
        pool = machine.status.pool
        if attempt.tee not in self._current_rules.evidence_of(pool):
            text = f"evidence of {attempt.tee} does not count for pool {pool}"
            return await self.refuse("evidence-not-accepted", text, str(key.thumbprint), enrolled=True)
        concluded = await self.conclude(attempt, key, machine)
        now, appraisal, properties = concluded.at, concluded.appraisal, concluded.properties
        override = live_override(self.books.cluster, now, self.books.approvers)
        chip, boot = chip_of(appraisal), boot_of(appraisal.claims, boot_key)
        # Worked out from authentic evidence alone: it is used below only after `authentic` and `_fresh` were asked for.
        dispute = chip_dispute(machine, chip) or boot_dispute(machine, boot)
        wait = self._chips.why_wait(machine, chip, now) if dispute is None else None
        against = self.distrusts.against(about_machine(machine, properties, chip=chip), now)
        disks = judged_reports(machine, reports, in_initrd=phase_of_evidence(appraisal) == Phase.INITRD)
        conclusion = amended(
            concluded.conclusion, appraisal, pool=pool, chip=chip, override=override, distrusts=against, wait=wait,
            dispute=dispute, disks=disks,
        )  # fmt: skip
        thumbprint = str(key.thumbprint)
        # Whoever replays a quote that it recorded, or makes one up, leaves no verdict and takes no challenge from the machine
        # (pitfall 14).
        if not appraisal.authentic or not concluded.fresh:
            retry = stale(appraisal)
            return await self.refuse(conclusion.reason, conclusion.detail, thumbprint, enrolled=True, retry=retry)
        if conclusion.reason != PENDING_CODE:
            wait = None
        outcome = Outcome(
            conclusion, concluded.policy, concluded.value_sets, simulated=concluded.simulated, properties=properties,
            counts_for=self._current_rules.counts_for, chip=chip, boot=boot, wait=wait, dispute=dispute,
            override=override if conclusion.reason == breakglass.CODE else None, named=named, disks=disks,
        )  # fmt: skip
        return await self._settle(attempt, machine, outcome, now)

    async def conclude(self, attempt: Attempt, key: AttestationKey | None, machine: Machine) -> Concluded:
        """Judge evidence in the name of a Machine, by policies and values; raises EvidenceError, InitDataError."""
        now, books, pool = self._clock.now(), self.books, machine.status.pool
        init_data = parse_init_data(attempt.init_data[1]) if attempt.init_data else None
        anchors = self._current_rules.anchors(attempt.tee, self._vendor.anchors)
        # One time for all that follows: a certificate that ends between two checks must not be good for one of them.
        judged = await judge(attempt, key, anchors, self._vendor, self._current_rules.demands, now)
        facts = Facts({"nonce": attempt.nonce, "tee-pubkey": dict(attempt.tee_pubkey)}, init_data)
        values, policies = books.values(now, pool), books.policies
        appraisal = without_phases(judged.appraisal, values)
        # In another process, bounded in time and memory: the text is a user's, and a loop in it must not hold up the door.
        conclusion = await self._workers.decide(concluding(appraisal, facts, policies, values))
        # The endorsement comes from the Machine: what enrolment proved, and never what the evidence says of its own key.
        properties = properties_of(attempt.tee, appraisal.claims, values, machine.status.endorsed_by)
        # A quote carries no chain: that its TPM is simulated was found out when it enrolled, and stays with the Machine.
        simulated = judged.anchors.simulated or (attempt.tee == "tpm" and machine.status.simulated)
        return Concluded(
            appraisal, conclusion, properties, policies.version(attempt.tee), values.versions, simulated,
            _fresh(appraisal), now,
        )  # fmt: skip

    def why_misbound(self, machine: Machine, tee: str) -> tuple[str, str] | None:
        """Why evidence of this type cannot be this machine's, or does not count for its pool."""
        unbound = misbound(machine, tee, first_use=self._current_rules.first_use)
        if unbound is not None:
            return unbound.code, unbound.detail
        if tee not in self._current_rules.evidence_of(machine.status.pool):
            return "evidence-not-accepted", f"evidence of {tee} does not count for pool {machine.status.pool}"
        return None

    async def _settle(self, attempt: Attempt, machine: Machine, outcome: Outcome, now: datetime) -> Judgement:
        """Authentic and fresh: spend the challenge, keep the verdict, mark the machine."""
        subject = _subject(machine, outcome.simulated)
        # Before anything counts: of two answers to one challenge, at whichever doors, the API server lets one create this object
        # (pitfall 13).
        await self._verdicts.spend(attempt.nonce, attempt.challenge_expires)
        await self._mark_launch(attempt, machine, outcome)
        # After the challenge is spent: an answer that is shown twice must not use up a second use of the ticket.
        outcome.conclusion = conclusion = await self.admissions.counted(machine, outcome.conclusion)
        raw = self._machines.get(machine.metadata.namespace, machine.metadata.name) or await self._raw(machine)
        override = outcome.override
        # Verdict before Machine: a Machine never names a verdict that is not there.
        verdict = await self._verdicts.keep(raw, subject, attempt, outcome, now)
        if conclusion.accepted:
            await self._chips.approved_change(machine, outcome.chip)
        await self._verdicts.mark(raw, verdict, outcome, now)
        # The record comes before the answer: a token that the caller gets is one that somebody can look up.
        name = object_name(verdict).name
        detail = {"code": conclusion.reason or "ok", "tee": attempt.tee}
        detail |= {"override": override.line} if override is not None else {}
        detail |= {**outcome.named.described(), **outcome.disks.described()} if conclusion.accepted else {}
        # An entry `attested` says that the machine proved what it booted: an override is no proof and has a word of its own.
        what = "overridden" if override is not None else "attested" if conclusion.accepted else "refusal"
        if outcome.dispute is not None:
            what, against = "disputed", {"shows": outcome.dispute.shows, "against": outcome.dispute.against}
            detail |= {"over": outcome.dispute.over, **against}
        entry = RecordEntry(
            what, subject.thumbprint, verdict=name,
            evidence=verdict["spec"]["evidence"]["digest"], detail=detail,
        )  # fmt: skip
        await self._record.append(entry)
        reused = conclusion.accepted and names_replaced(machine, outcome.named)
        if reused:
            named = {"named": "in a session", **outcome.named.described()}
            await self._record.append(RecordEntry("key-reused", subject.thumbprint, verdict=name, detail=named))
        metrics.ATTESTATIONS.inc("overridden" if override else "affirmed" if conclusion.accepted else "refused")
        return Judgement(
            conclusion.accepted, conclusion.reason, conclusion.detail, subject, verdict, dict(conclusion.vector.claims),
            conclusion.claims, override.expires if override else None, conclusion.retry, outcome.properties,
            REUSED if reused else "",
        )  # fmt: skip

    async def _mark_launch(self, attempt: Attempt, machine: Machine, outcome: Outcome) -> None:
        """The first session of an SNP launch was this one: from now on the launch opens no disk."""
        boot, mark = outcome.boot, machine.status.boot
        if attempt.tee in WITHOUT_PHASES and boot is not None and (mark is None or mark.launch != boot.launch):
            await self._launches.seen(boot.launch, machine.metadata.uid)

    @property
    def _current_rules(self) -> _Rules:
        """What the cluster asks of evidence, read again when its object changes."""
        # By identity: the cache replaces the object at each change, and comparing its content for every attempt would cost more.
        if self._rules.cluster is not self.books.cluster:
            self._rules = _Rules(self.books.cluster)
            self._vendor.look_after(self._rules.demands.staleness)
        return self._rules

    async def _raw(self, machine: Machine) -> JsonObject:
        return await self._cluster.get(MACHINE.resource, machine.metadata.name, machine.metadata.namespace)

    async def _not_a_member(self, machine: Machine, membership: Membership) -> Judgement:
        thumbprint = machine.status.key_thumbprint
        if membership is Membership.PENDING:
            text = "the machine waits for approval"
            return await self.refuse("approval-pending", text, thumbprint, enrolled=True, retry=True)
        code = "revoked" if membership is Membership.REVOKED else "quarantined"
        return await self.refuse(code, "this machine is no longer trusted", thumbprint, enrolled=True)

    async def refuse(
        self, code: str, detail: str, who: str = "", *, enrolled: bool = False, retry: bool = False
    ) -> Judgement:
        """Nothing was proved: by whom it came is a claim, also where the key belongs to a machine."""
        # Within a budget: whoever proved nothing could otherwise fill the record as fast as it sends (pitfall 30).
        await self._unauthenticated.refused(code, who, enrolled=enrolled)
        metrics.ATTESTATIONS.inc("refused")
        return Judgement(False, code, detail, retry=retry)


def _claimed_key(attempt: Attempt) -> AttestationKey | ClaimedIdentity:
    """The key that the attempt says it is from; raises BadIdentity, EvidenceError."""
    if key_kind(attempt.tee) is KeyKind.GUEST:
        return claimed_identity(attempt.additional)
    public = base64_field(attempt.evidence, "ak_public") if attempt.evidence.get("ak_public") else b""
    if not public:
        raise BadIdentity(
            "identity-missing", "the evidence must carry ak_public, the key that the machine enrolled with"
        )
    try:
        return attestation_key(public)
    except BadKey as error:
        raise BadIdentity(error.code, error.message) from error


def _key_of(claimed: AttestationKey | ClaimedIdentity) -> AttestationKey:
    return claimed.key if isinstance(claimed, ClaimedIdentity) else claimed


def _proved_key(claimed: AttestationKey | ClaimedIdentity, attempt: Attempt) -> AttestationKey:
    """The key of a machine that is known; a guest key must have signed the attempt, an AK signs the quote. Raises BadIdentity."""
    if isinstance(claimed, ClaimedIdentity):
        return proved_identity(claimed, attempt.nonce, attempt.tee_pubkey)
    return claimed


def _fresh(appraisal: Appraisal) -> bool:
    """Whether the evidence answers this challenge."""
    # A passed check, not the absence of a failed one: a verifier that skipped the question would call everything fresh.
    return any(check.name == "nonce" and check.result is Result.PASS for check in appraisal.checks)


def _subject(machine: Machine, simulated: bool) -> Subject:
    return replace(subject_of(machine), simulated=simulated)
