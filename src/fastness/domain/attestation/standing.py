"""How a machine's proof stands, and what that means for its node.

    proof = proof_of(machine, now, interval)          # good, or why not and since when
    demand = demanded(proof, now, rules)              # taint, cordon, drain
    patch = node_patch(node, demand, labels)          # one write, or None when the node is as it should be

A proof is good while the last appraisal affirmed the machine and is younger than two rounds of re-attestation. When it is not:

* The node is tainted at once, so that nothing new is scheduled; after a grace it is cordoned; where the cluster says so it is
  drained. Revoked and quarantined machines get no grace.
* Attested properties are labels of the node under their own prefix, only while the proof is good. Whatever else stands under the
  prefix is removed, whoever wrote it.
* Recovery takes back exactly what was done here: a node that somebody else cordoned stays cordoned, and so does one that an
  update is about to disturb.

`controllers.attestation.standing` carries it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

from fastness.domain.attestation.breakglass import REASON as BREAK_GLASS
from fastness.domain.attestation.breakglass import Override
from fastness.domain.attestation.clusterstatus import ROUNDS, proof_ends
from fastness.domain.attestation.membership import Membership, membership_of
from fastness.domain.attestation.properties import label_value
from fastness.domain.machineconfig.nodes import drain_verb
from fastness.model.kind import JsonObject
from fastness.model.machineconfiguration import names
from fastness.model.objects import Condition, annotations_of, holds, labels_of, metadata
from fastness.model.trusted_execution.machine import Machine

Object = Mapping[str, Any]
TAINT_KEY: Final = "fastness.dev/not-attested"
TAINT: Final[Mapping[str, str]] = {"key": TAINT_KEY, "effect": "NoSchedule"}
LABEL_PREFIX: Final = "attested.fastness.dev/"
NOTE: Final = "fastness.dev/attestation"
CORDONED: Final = "fastness.dev/cordoned-by"
BY_US: Final = "attestation"
PROOF_EXPIRED: Final = "ProofExpired"
NEVER: Final = "NeverAttested"


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a machine's proof is good. `since` is when it ceased to be, `until` when it will; `final` allows no grace."""

    good: bool
    reason: str
    message: str = ""
    since: datetime | None = None
    until: datetime | None = None
    final: bool = False

    @property
    def overdue(self) -> bool:
        """Whether it merely grew old."""
        return self.reason == PROOF_EXPIRED


class Step(IntEnum):
    """How far a node is taken out of service."""

    NOTHING = 0
    TAINT = 1
    CORDON = 2
    DRAIN = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """How long after the taint a node is cordoned, and drained if at all."""

    cordon_after: timedelta = timedelta(minutes=15)
    drain_after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """What a node must show; `next_at` is when more will be demanded."""

    step: Step
    reason: str
    labels: Mapping[str, str] = field(default_factory=dict)
    next_at: datetime | None = None


def proof_of(machine: Machine, now: datetime, interval: timedelta, override: Override | None = None) -> Proof:
    """How the proof of a machine stands; `override` is the one that counts now, if any."""
    membership, conditions = membership_of(machine), machine.status.conditions
    if membership is Membership.REVOKED:
        return Proof(False, "Revoked", "the machine is revoked", _since(conditions, "Revoked"), final=True)
    if membership is Membership.QUARANTINED:
        return Proof(False, "Quarantined", "the machine is in quarantine", _since(conditions, "Approved"), final=True)
    last = machine.status.last_attested
    if last is None:
        return Proof(False, NEVER, "the machine never passed an appraisal", _since(conditions, "Attested"))
    if membership is Membership.PENDING:
        return Proof(False, "Pending", "the machine waits for approval", _since(conditions, "Approved"))
    until = proof_ends(machine, interval) or now
    if not holds(conditions, "Attested") and not _only_old(conditions):
        found = _condition(conditions, "Attested")
        reason = found.reason if found else "Refused"
        return Proof(False, reason, found.message if found else "", _since(conditions, "Attested"))
    found = _condition(conditions, "Attested")
    if found is not None and found.reason == BREAK_GLASS:
        if override is None or override.pool != machine.status.pool:
            ended = "the override that the machine was accepted by has ended"
            return Proof(False, "OverrideEnded", ended, datetime.fromisoformat(last))
        until = min(until, override.expires)
    if now >= until:
        return Proof(False, PROOF_EXPIRED, f"the last proof is from {last}: the machine missed {ROUNDS} rounds", until)
    return Proof(True, BREAK_GLASS if found is not None and found.reason == BREAK_GLASS else "Affirmed", until=until)


def demanded(proof: Proof, now: datetime, rules: Rules, labels: Mapping[str, str]) -> Demand:
    """What the node of a machine must show; `labels` only while the proof is good."""
    if proof.good:
        return Demand(Step.NOTHING, proof.reason, labels, proof.until)
    since = proof.since or now
    cordon = since if proof.final else since + rules.cordon_after
    drain = None if rules.drain_after is None else since if proof.final else since + rules.drain_after
    if drain is not None and now >= drain:
        return Demand(Step.DRAIN, proof.reason)
    step = Step.CORDON if now >= cordon else Step.TAINT
    later = [moment for moment in (cordon, drain) if moment is not None and moment > now]
    return Demand(step, proof.reason, next_at=min(later, default=None))


def node_labels(properties: Mapping[str, str], *, simulated: bool) -> dict[str, str]:
    """The labels that attested properties become; what does not fit a label is left out."""
    found = {f"{LABEL_PREFIX}{name}": label_value(value) for name, value in properties.items()}
    found[f"{LABEL_PREFIX}simulated"] = "true" if simulated else "false"
    return {name: value for name, value in found.items() if value}


def node_patch(node: Object, demand: Demand) -> JsonObject | None:
    """The merge patch that makes a node show what is demanded; None when it does. Bound to the version that was looked at."""
    meta: JsonObject = {}
    if labels := _label_changes(node, demand.labels):
        meta["labels"] = labels
    notes = _note_changes(node, demand)
    spec = {**_taint_change(node, demand), **_cordon_change(node, demand, notes)}
    if notes:
        meta["annotations"] = notes
    if not meta and not spec:
        return None
    meta["resourceVersion"] = metadata(node).get("resourceVersion")
    return {"metadata": meta, **({"spec": spec} if spec else {})}


def _label_changes(node: Object, wanted: Mapping[str, str]) -> dict[str, str | None]:
    there = {name: value for name, value in labels_of(node).items() if name.startswith(LABEL_PREFIX)}
    changes: dict[str, str | None] = {name: None for name in there if name not in wanted}
    return changes | {name: value for name, value in wanted.items() if there.get(name) != value}


def _note_changes(node: Object, demand: Demand) -> dict[str, str | None]:
    return {} if annotations_of(node).get(NOTE) == demand.reason else {NOTE: demand.reason}


def _taint_change(node: Object, demand: Demand) -> JsonObject:
    taints = list((node.get("spec") or {}).get("taints") or ())
    ours = [taint for taint in taints if taint.get("key") == TAINT_KEY]
    if (demand.step >= Step.TAINT) == bool(ours):
        return {}
    others = [taint for taint in taints if taint.get("key") != TAINT_KEY]
    return {"taints": [*others, dict(TAINT)] if demand.step >= Step.TAINT else others or None}


def _cordon_change(node: Object, demand: Demand, notes: dict[str, str | None]) -> JsonObject:
    cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    ours = annotations_of(node).get(CORDONED) == BY_US
    if demand.step >= Step.CORDON:
        if cordoned:
            return {}
        notes[CORDONED] = BY_US
        return {"unschedulable": True}
    if not ours:
        return {}
    notes[CORDONED] = None
    updating = drain_verb(annotations_of(node).get(names.DESIRED_DRAIN, "")) == names.DRAIN
    return {"unschedulable": None} if cordoned and not updating else {}


def _only_old(conditions: tuple[Condition, ...]) -> bool:
    """Whether Attested was taken away for age alone, so that the next good look at the time may give it back."""
    found = _condition(conditions, "Attested")
    return found is not None and found.reason == PROOF_EXPIRED


def _condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    return next((one for one in conditions if one.type == kind), None)


def _since(conditions: tuple[Condition, ...], kind: str) -> datetime | None:
    found = _condition(conditions, kind)
    text = found.last_transition_time if found else None
    return datetime.fromisoformat(text) if text else None
