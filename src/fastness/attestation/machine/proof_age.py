"""How a machine's proof stands, and what that means for its node.

    proof = proof_of(machine, now, interval)          # good, or why not and since when
    demand = demanded(proof, now, rules)              # taint, cordon, drain
    patch = node_patch(node, demand, labels)          # one write, or None when the node is as it should be

A proof is good while the machine stands as Proved or Overridden (`machine_standing`, which every surface asks). When it is not:

* The node is tainted at once, so that nothing new is scheduled; after a grace it is cordoned; where the cluster says so it is
  drained. Revoked and quarantined machines get no grace.
* Attested properties are labels of the node under their own prefix, only while the machine stands as Proved: an override gives it
  a place and affirms nothing. Whatever else stands under the prefix is removed, whoever wrote it.
* Recovery takes back exactly what was done here: a node that somebody else cordoned stays cordoned, and so does one that an
  update is about to disturb.

`attestation.loops.proof_age` carries it out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final

from fastness.attestation.machine.machine import proved_as_enrolled
from fastness.attestation.verdict.breakglass import REASON as BREAK_GLASS
from fastness.attestation.verdict.breakglass import Override
from fastness.attestation.verdict.machine_standing import PROOF_EXPIRED, State, machine_standing
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata
from fastness.kinds.trusted_execution.machine import NOTE, Machine

_SHORT_DIGEST: Final = 40
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z", re.ASCII)
Object = Mapping[str, Any]
TAINT_KEY: Final = "fastness.dev/not-attested"
STAY_AWAY, LEAVE = "NoSchedule", "NoExecute"
NO_MACHINE: Final = "NoMachine"
MACHINE_GONE: Final = "MachineGone"
LABEL_PREFIX: Final = "attested.fastness.dev/"
CORDONED: Final = "fastness.dev/cordoned-by"
BY_US: Final = "attestation"


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
    """What a node must show; `next_at` is when more will be demanded. With `evict` pods leave a tainted node, too."""

    step: Step
    reason: str
    labels: Mapping[str, str] = field(default_factory=dict)
    next_at: datetime | None = None
    evict: bool = False

    @property
    def effects(self) -> tuple[str, ...]:
        """The effects of the taint that the node must carry."""
        if self.step < Step.TAINT:
            return ()
        return (STAY_AWAY, LEAVE) if self.evict else (STAY_AWAY,)


def proof_of(machine: Machine, now: datetime, interval: timedelta, override: Override | None = None) -> Proof:
    """How the proof of a machine stands; `override` is the one that counts now, if any."""
    standing = machine_standing(machine, now, interval, override)
    good = standing.state in (State.PROVED, State.OVERRIDDEN)
    final = standing.state is State.REVOKED
    return Proof(good, standing.reason, standing.message, standing.since, standing.until if good else None, final)


def demanded(proof: Proof, now: datetime, rules: Rules, labels: Mapping[str, str]) -> Demand:
    """What the node of a machine must show; `labels` only while it proved them."""
    if proof.good:
        return Demand(Step.NOTHING, proof.reason, {} if proof.reason == BREAK_GLASS else labels, proof.until)
    since = proof.since or now
    # No grace for what people or a Distrust ended; a proof that grew old may be a restart of the agent.
    cordon = since if proof.final else since + rules.cordon_after
    drain = None if rules.drain_after is None else since if proof.final else since + rules.drain_after
    if drain is not None and now >= drain:
        return Demand(Step.DRAIN, proof.reason)
    step = Step.CORDON if now >= cordon else Step.TAINT
    later = [moment for moment in (cordon, drain) if moment is not None and moment > now]
    return Demand(step, proof.reason, next_at=min(later, default=None))


def unclaimed(node: Object, *, enforced: bool, evict: bool = False) -> Demand | None:
    """What a node must show that belongs to no Machine; None for one that nobody asks anything of, and never did.

    One whose Machine is gone lost the one who vouched for it: it is cordoned. One that never had a Machine keeps what it runs,
    and gets nothing new until it has one.
    """
    note = annotations_of(node).get(NOTE)
    if not enforced:
        # A kubelet whose configuration is older than the mode registers its node with the taint, and nobody else takes it away.
        tainted = any(taint.get("key") == TAINT_KEY for taint in (node.get("spec") or {}).get("taints") or ())
        return Demand(Step.NOTHING, "NotEnforced") if note is not None or tainted else None
    if note in (None, NO_MACHINE, "NotEnforced"):
        return Demand(Step.TAINT, NO_MACHINE, evict=evict)
    return Demand(Step.CORDON, MACHINE_GONE, evict=evict)


def node_labels(machine: Machine) -> dict[str, str]:
    """The labels that attested properties become; what does not fit a label is left out.

    There are none where the properties are of another evidence type or endorsement than the machine enrolled with.
    """
    if not proved_as_enrolled(machine):
        return {}
    labels = {f"{LABEL_PREFIX}{name}": label_value(value) for name, value in machine.status.properties.items()}
    labels[f"{LABEL_PREFIX}simulated"] = "true" if machine.status.simulated else "false"
    return {name: value for name, value in labels.items() if value}


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
    # Taints are a list and the patch replaces it whole: without the version, one that somebody added in between would be lost.
    meta["resourceVersion"] = metadata(node).get("resourceVersion")
    return {"metadata": meta, **({"spec": spec} if spec else {})}


def _label_changes(node: Object, labels: Mapping[str, str]) -> dict[str, str | None]:
    there = {name: value for name, value in labels_of(node).items() if name.startswith(LABEL_PREFIX)}
    # Whoever wrote them: a kubelet may label its own node, and workloads are placed by these labels.
    changes: dict[str, str | None] = {name: None for name in there if name not in labels}
    return changes | {name: value for name, value in labels.items() if there.get(name) != value}


def _note_changes(node: Object, demand: Demand) -> dict[str, str | None]:
    return {} if annotations_of(node).get(NOTE) == demand.reason else {NOTE: demand.reason}


def _taint_change(node: Object, demand: Demand) -> JsonObject:
    taints = list((node.get("spec") or {}).get("taints") or ())
    ours = [taint.get("effect") for taint in taints if taint.get("key") == TAINT_KEY]
    if set(ours) == set(demand.effects):
        return {}
    others = [taint for taint in taints if taint.get("key") != TAINT_KEY]
    desired = [*others, *({"key": TAINT_KEY, "effect": effect} for effect in demand.effects)]
    return {"taints": desired or None}


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
    updating = names.drain_verb(annotations_of(node).get(names.DESIRED_DRAIN, "")) == names.DRAIN
    return {"unschedulable": None} if cordoned and not updating else {}


def label_value(value: str) -> str:
    """A property as the value of a label; empty when it cannot be one. Digests of images are cut to 40 digits."""
    digest = value.rpartition("@sha256:")[2]
    text = digest[:_SHORT_DIGEST] if "@sha256:" in value else value.replace(":", "-")
    return text if _LABEL.match(text) and "," not in value else ""
