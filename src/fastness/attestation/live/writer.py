"""Keeping what was found: the Verdict, the evidence it rests on, the Machine's status, the spent challenge.

A verdict is written when it differs from the machine's last one, or after a day; in between a good machine costs one write,
its Machine's `lastAttested`. Evidence is kept with a verdict, by digest, once. Nothing here is written for somebody whose
evidence is not authentic: a stranger must not be able to fill the store or to darken another's name.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.evidence.checks import Check
from fastness.attestation.live.attempt import Attempt
from fastness.attestation.machine.chip import chip_status
from fastness.attestation.status.cluster import DEFAULT_INTERVAL
from fastness.attestation.verdict.breakglass import Override
from fastness.attestation.verdict.conclude import Conclusion
from fastness.attestation.verdict.dispute import Boot, Dispute, Wait, boot_dispute, boot_status, dispute_status
from fastness.attestation.verdict.machine_standing import ROUNDS, identity_place, standing_change
from fastness.crypto.digests import sha256
from fastness.disks.reports import NOTHING, JudgedReports, disks_change, judged_reports
from fastness.formats import json
from fastness.keys.errors import ReplayedChallenge
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.evidence import EVIDENCE_BLOB, MOST_BYTES, SPENT_CHALLENGE
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339, view, with_condition
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.subject import Endorsement, Subject
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.node_keys import NamedKeys, keys_change

# A machine proves itself every quarter of an hour: without this, every proof would be a new Verdict with its evidence.
REWRITTEN_AFTER: Final = timedelta(hours=24)
MOST_CHECKS: Final = 512
MOST_TEXT: Final = 1024
_TRIES: Final = 8
CONTENT_LABEL: Final = "fastness.dev/content"
MACHINE_LABEL: Final = "fastness.dev/machine"
_AS: Final = WriteOptions(manager="verifier")
_STATUS: Final = WriteOptions(manager="verifier", subresource="status")
# What differs between two appraisals of the same state.
_FRESH: Final = frozenset({"nonce", "clock"})


class Verdicts:
    """Writes verdicts and what belongs to them."""

    def __init__(self, cluster: Cluster, verdicts: Informer) -> None:
        self._cluster = cluster
        self._verdicts = verdicts

    async def spend(self, nonce: str, expires: datetime) -> None:
        """Make a challenge good for nothing any more; raises ReplayedChallenge when it was answered before."""
        # The name is the nonce, so the API server itself sees to it that of two doors one succeeds; no lock is needed.
        name = f"nonce-{sha256(nonce.encode()).hex}"
        body = {
            "apiVersion": SPENT_CHALLENGE.api_version, "kind": SPENT_CHALLENGE.kind, "metadata": {"name": name},
            "spec": {"expires": rfc3339(expires)},
        }  # fmt: skip
        try:
            await self._cluster.create(SPENT_CHALLENGE.resource, body, _AS)
        except AlreadyExists as error:
            raise ReplayedChallenge("this challenge was answered before", "Ask for a new challenge.") from error

    async def keep(
        self, machine: JsonObject, subject: Subject, attempt: Attempt, outcome: Outcome, now: datetime
    ) -> JsonObject:
        """The Verdict about this attempt: the machine's last one where nothing changed, else a new one with its evidence.

        Of disputed evidence one is kept for each outcome: its sender holds a copied key and may come as often as it likes.
        """
        content = _content(attempt.tee, outcome)
        last = self._verdicts.get("", str((machine.get("status") or {}).get("lastVerdict") or "-"))
        if outcome.dispute is None and last is not None and _still(last, content, now):
            return last
        # Canonical, so that the same evidence has one digest, in whichever order its members were sent.
        evidence = json.canonical(attempt.evidence)
        told_apart = [content] if outcome.dispute is not None else [content, str(sha256(evidence))]
        # The name follows from the content: a door that dies after writing, and is asked again, finds what it wrote.
        name = f"{subject.name}-{sha256(json.canonical(told_apart)).hex[:12]}"
        if outcome.dispute is not None and (before := self._verdicts.get("", name)) is not None:
            return before
        return await self._written(name, content, subject, attempt, outcome, now)

    async def _written(
        self, name: str, content: str, subject: Subject, attempt: Attempt, outcome: Outcome, now: datetime
    ) -> JsonObject:
        """A new Verdict with its evidence, or the one that another door wrote a moment ago; raises ApiError."""
        conclusion, tee = outcome.conclusion, attempt.tee
        digest = await self._blob(tee, json.canonical(attempt.evidence))
        spec: JsonObject = {
            "subject": {
                "machine": subject.machine,
                "keyThumbprint": subject.thumbprint,
                "endorsement": subject.endorsement,
            },
            "evidence": {"type": tee, "digest": digest},
            "policyVersion": outcome.policy,
            "valueSets": [{"name": name, "version": version} for name, version in outcome.value_sets],
            "result": conclusion.result,
            "simulated": outcome.simulated,
            "checks": [_check(check) for check in conclusion.checks[:MOST_CHECKS]],
            "trustVector": dict(conclusion.vector.claims),
            "expires": rfc3339(now + REWRITTEN_AFTER * 2),
            **({"reason": conclusion.reason} if conclusion.reason else {}),
        }
        labels = {CONTENT_LABEL: content, MACHINE_LABEL: subject.name}
        body = {
            "apiVersion": VERDICT.api_version, "kind": VERDICT.kind, "metadata": {"name": name, "labels": labels}, "spec": spec,
        }  # fmt: skip
        try:
            return await self._cluster.create(VERDICT.resource, body, _AS)
        except AlreadyExists:
            return await self._cluster.get(VERDICT.resource, name)

    async def keep_unlock(self, subject: Subject, attempt: Attempt, outcome: Outcome, now: datetime) -> JsonObject:
        """The Verdict about an unlock session. Of the same outcome one a day is kept, and the Machine does not name it."""
        # Without the evidence in its name: a thousand machines that boot at once write one each, and one that boots again none.
        content = sha256(f"unlock {_content(attempt.tee, outcome)}".encode()).hex[:32]
        day = now.strftime("%Y%m%d")
        name = f"{subject.name}-{sha256(f'{content} {day}'.encode()).hex[:12]}"
        before = self._verdicts.get("", name)
        return before or await self._written(name, content, subject, attempt, outcome, now)

    async def mark(self, machine: JsonObject, verdict: JsonObject, outcome: Outcome, now: datetime) -> None:
        """Write on the Machine how it stands; raises Conflict. Only an affirmed machine is Attested and moves `lastAttested`."""
        name = str(machine["metadata"]["name"])
        for _ in range(_TRIES):
            typed = view(machine, Machine)
            if outcome.conclusion.accepted:
                outcome.disks = _judged_again(typed, outcome.disks)
            if outcome.dispute is None and boot_dispute(typed, outcome.boot) is not None:
                # A later boot was judged meanwhile: whoever comes again is judged with that in mind.
                raise Conflict(f"machine {name} booted anew")
            # Tied to the version that was read: a quarantine that was written in between must not be overwritten with a good
            # standing.
            version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
            standing = _standing(machine, verdict, outcome, now)
            if not standing:
                return
            patch = {"metadata": version, "status": standing}
            try:
                await self._cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, _STATUS)
                return
            except NotFound:
                return
            except Conflict:
                # Others write conditions of their own; ours is put into the list as it is now.
                machine = await self._cluster.get(MACHINE.resource, name, NAMESPACE)
        raise Conflict(f"machine {name} changes too fast")

    async def _blob(self, tee: str, evidence: bytes) -> str:
        digest = sha256(evidence)
        packed = gzip.compress(evidence, 6, mtime=0)  # without a time: the same evidence makes the same object
        # What is too large for an object is judged all the same; the verdict then has its digest alone.
        if len(packed) <= MOST_BYTES:
            spec = {"digest": str(digest), "type": tee, "encoding": "gzip", "data": base64.b64encode(packed).decode()}
            body = {
                "apiVersion": EVIDENCE_BLOB.api_version, "kind": EVIDENCE_BLOB.kind, "spec": spec,
                "metadata": {"name": f"sha256-{digest.hex}"},
            }  # fmt: skip
            with suppress(AlreadyExists):
                await self._cluster.create(EVIDENCE_BLOB.resource, body, _AS)
        return str(digest)


class Outcome:
    """What an attempt led to, as far as a Verdict tells it."""

    __slots__ = (
        "boot", "chip", "conclusion", "counts_for", "disks", "dispute", "named", "override", "policy", "properties", "simulated",
        "value_sets", "wait",
    )  # fmt: skip

    def __init__(
        self,
        conclusion: Conclusion,
        policy: str,
        value_sets: tuple[tuple[str, str], ...],
        *,
        simulated: bool,
        properties: Mapping[str, str] | None = None,
        counts_for: timedelta = DEFAULT_INTERVAL * ROUNDS,
        chip: str = "",
        boot: Boot | None = None,
        wait: Wait | None = None,
        dispute: Dispute | None = None,
        override: Override | None = None,
        named: NamedKeys | None = None,
        disks: JudgedReports = NOTHING,
    ) -> None:
        self.conclusion = conclusion
        self.policy = policy
        self.value_sets = value_sets
        self.simulated = simulated
        self.properties = dict(properties or {})
        self.counts_for = counts_for
        self.chip = chip
        self.boot = boot
        self.wait = wait
        self.dispute = dispute
        self.override = override
        self.named = named or NamedKeys()
        self.disks = disks


def _judged_again(machine: Machine, disks: JudgedReports) -> JudgedReports:
    """The reports of an accepted session, by the Machine as it is written to; raises Conflict where that speaks against it.

    The session was judged by a cache, which may be behind: an old copy of a disk must not pass by the number of the boot before.
    """
    fresh = judged_reports(machine, disks.claims, in_initrd=disks.in_initrd)
    if fresh.doubts:
        raise Conflict(f"the disks of machine {machine.metadata.name} changed")
    return fresh


def _content(tee: str, outcome: Outcome) -> str:
    """What makes two verdicts the same: everything but the freshness of the evidence."""
    conclusion = outcome.conclusion
    parts: list[Any] = [
        tee,
        conclusion.result,
        conclusion.reason,
        outcome.policy,
        list(outcome.value_sets),
        dict(conclusion.vector.claims),
        outcome.simulated,
        outcome.properties,
        [
            [check.name, str(check.result), check.code, "" if check.name in _FRESH else check.seen]
            for check in conclusion.checks
        ],
    ]
    return sha256(json.canonical(parts)).hex[:32]


def _standing(machine: JsonObject, verdict: JsonObject, outcome: Outcome, now: datetime) -> JsonObject:
    """What the status of a Machine becomes; empty when it says all that already."""
    conclusion, before = outcome.conclusion, machine.get("status") or {}
    if outcome.dispute is not None:
        return dispute_status(before, outcome.dispute, str(verdict["metadata"]["name"]), now)
    # Only an accepted session names keys: a machine that booted something else gets no certificate for a key of its own making
    # (decision 43).
    keys = keys_change(before, outcome.named, now) if conclusion.accepted else {}
    with_keys = {**before, "conditions": keys.pop("conditions", None) or before.get("conditions") or []}
    chip = chip_status(with_keys, outcome.chip, outcome.wait, now, accepted=conclusion.accepted)
    affirmed = conclusion.accepted and outcome.override is None
    conditions = with_condition(
        chip.pop("conditions", None) or with_keys["conditions"],
        kind="Attested",
        status="True" if affirmed else "False",
        reason=_camel(conclusion.reason) if conclusion.reason or not conclusion.accepted else "Affirmed",
        message=_message(conclusion, str(before.get("endorsedBy") or "")),
        now=now,
    )
    place = identity_place(
        str(verdict["spec"]["evidence"]["type"]), opened=outcome.disks.opened and conclusion.accepted
    )
    identity = {"identity": place} if before.get("identity") != place else {}
    status: JsonObject = {
        **chip,
        **keys,
        **identity,
        **disks_change(before, outcome.disks, now, accepted=conclusion.accepted),
        **boot_status(before, outcome.boot),
        **_times(before, outcome, now),
    }
    same = before.get("conditions") == conditions and before.get("properties", {}) == outcome.properties
    if not same or (before.get("lastVerdict"), before.get("simulated")) != (
        verdict["metadata"]["name"],
        outcome.simulated,
    ):
        status |= {
            "conditions": conditions, "lastVerdict": verdict["metadata"]["name"], "simulated": outcome.simulated,
            "properties": _replacing(before.get("properties") or {}, outcome.properties),
        }  # fmt: skip
    return {**status, **standing_change(machine, status, now, outcome.counts_for / ROUNDS, outcome.override)}


def _times(before: Mapping[str, Any], outcome: Outcome, now: datetime) -> JsonObject:
    """Until when this counts: as a proof, by an override, or not at all."""
    until = rfc3339(now + outcome.counts_for)
    if outcome.override is not None:
        return {"overriddenUntil": until}
    ended: JsonObject = {"overriddenUntil": None} if before.get("overriddenUntil") else {}
    return {**ended, "lastAttested": rfc3339(now), "attestedUntil": until} if outcome.conclusion.accepted else ended


def _message(conclusion: Conclusion, endorsement: str) -> str:
    if not conclusion.accepted:
        return conclusion.detail
    first_use = (
        "; nobody vouches for the TPM, it was trusted on first use" if endorsement == Endorsement.FIRST_USE else ""
    )
    if conclusion.reason:
        return f"accepted by an override: {conclusion.checks[-1].seen}{first_use}"
    return f"every mandatory claim is affirmed{first_use}"


def _replacing(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """As a merge patch: what is no longer proved goes."""
    # A merge patch leaves what it does not name (RFC 7396 §2): a property of an earlier proof would stay, and open what it opened
    # then.
    return {**dict.fromkeys(old), **new}


def _still(last: JsonObject, content: str, now: datetime) -> bool:
    written = datetime.fromisoformat(last["metadata"]["creationTimestamp"])
    return bool(
        (last["metadata"].get("labels") or {}).get(CONTENT_LABEL) == content and now - written < REWRITTEN_AFTER
    )


def _check(check: Check) -> JsonObject:
    texts = {"seen": check.seen, "expected": check.expected, "source": check.source, "hint": check.hint}
    return {
        "name": check.name[:128], "result": str(check.result), "code": check.code,
        # Bounded, because part of it is the sender's: evidence may have thousands of events with long texts.
        **{name: text[:MOST_TEXT] for name, text in texts.items() if text},
    }  # fmt: skip


def _camel(code: str) -> str:
    return "".join(part.capitalize() for part in code.split("-")) or "Refused"
