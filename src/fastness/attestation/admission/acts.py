"""Acts of people that belong on the record: what a write is, who does it, and why.

    for act in acts_of(request): ...        # each is written down, durably, before the write happens

Where a write passes (the embedded API, the webhook on Kubernetes) is the one place that knows the person: an object shows how it
is now, a watch shows that it changed, and an annotation says whatever its writer likes. So nothing is stamped on objects; the
edge writes the entry itself. The record may therefore hold an act that then did not happen (a conflict, a full disk), and never
the other way round.

* A lowering is written down whoever does it. Everyday acts (approving, adding values, activating, widening, releasing, taking
  back) are those of people: what the control plane does in their wake is recorded by its parts.
* The reason is the field of the kind where it has one, else the annotation `fastness.dev/reason` of that write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.attestation.admission.lowering import weakenings
from fastness.attestation.admission.policies import policy_weakenings
from fastness.attestation.values.from_images import MEASUREMENTS
from fastness.attestation.verdict import breakglass
from fastness.crypto.digests import sha256
from fastness.kinds.fastness_dev.cluster import REASON
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, metadata
from fastness.kinds.trusted_execution.disks import RECOVER
from fastness.kinds.trusted_execution.machine import REKEY
from fastness.kube.access.user import User
from fastness.kube.admission import AdmissionRequest, Operation
from fastness.kube.confirmation import confirmation_of
from fastness.kube.places import HOME, Places

Object = Mapping[str, Any]
Whats = Callable[[AdmissionRequest], Iterator[str]]

CONTROL_PLANE: Final = "system:fastness"
ACCOUNTS: Final = "system:serviceaccount:fastness-system:"
LOWER: Final = "act-lower-protection"
DELETION: Final = "deleted"
MOVE: Final = "move-machine"
APPROVE_CHIP: Final = "approve-chip"
SETTLE: Final = "settle-machine"
VOUCH: Final = "vouch-for-status"
ACCEPT_DISK: Final = "accept-disk"
REKEY_DISK: Final = "rekey-disk"
RECOVER_DISK: Final = "recover-disk"
# A Machine has a reason for each thing that was decided about it; of a chip the record keeps which one it was.
_OWN_REASONS: Final = {MOVE: "poolReason", APPROVE_CHIP: "chipReason", SETTLE: "settledReason", VOUCH: "vouchedReason"}
PIECE, MOST_PIECES = 256, 4


@dataclass(frozen=True, slots=True)
class Act:
    """One entry for the record: what, by whom, on which object; `detail` never holds a secret."""

    what: str
    who: str
    resource: str
    detail: Mapping[str, str] = field(default_factory=dict)


_AUTHORS: Final = tuple(
    f"act-{what}"
    for what in (
        "describe-image",
        "change-description",
        "remove-description",
        "publish-config",
        "change-published-config",
    )
)


def is_authorship(act: Act) -> bool:
    """Whether an act only says who wrote something: it decides nothing, so a write does not fail for want of its entry."""
    return act.what in _AUTHORS


def is_control_plane(user: User) -> bool:
    """Whether a user is a part of the control plane and no person."""
    # By the name that the API server authenticated: what stands on an object is whatever its writer likes.
    return user.name == CONTROL_PLANE or user.name.startswith(ACCOUNTS)


def acts_of(request: AdmissionRequest, places: Places) -> tuple[Act, ...]:
    """What a write is, for the record; nothing for a trial run and for parts of an object that nobody decides by.

    Nor for an object where its kind does not count: whoever owns a namespace could fill the record with it.
    """
    if (
        request.dry_run
        or request.subresource
        or not places.counts_at(request.group, request.resource, request.namespace)
    ):
        return ()
    where = f"{request.resource}/{request.namespace}/{request.name}" if request.namespace else _cluster_wide(request)
    lowering = _LOWERINGS.get((request.group, request.resource))
    detail = dict(lowering(request)) if lowering is not None else {}
    acts = [Act(LOWER, request.user.name, where, {**detail, **_reason(request)})] if detail else []
    whats = _EVERYDAY.get((request.group, request.resource))
    # A lowering is one entry: the everyday act of the same write would tell the same change a second time.
    if whats is not None and not acts and not is_control_plane(request.user):
        acts += [Act(f"act-{what}", request.user.name, where, _reason(request, what)) for what in whats(request)]
    return tuple(acts)


def _cluster_wide(request: AdmissionRequest) -> str:
    return f"{request.resource}/{request.name}"


def _reason(request: AdmissionRequest, what: str = "") -> dict[str, str]:
    present = request.old or {} if request.operation is Operation.DELETE else request.new
    spec = _spec(present)
    if what == ACCEPT_DISK:
        before = _spec(request.old or {}).get("disks") or []
        fresh = [entry for entry in spec.get("disks") or () if entry not in before]
        return {str(entry.get("volume")): str(entry.get("reason") or "accepted") for entry in fresh[:MOST_PIECES]}
    if what == REKEY_DISK:
        return {"volume": annotations_of(present).get(REKEY, "")}
    if what == RECOVER_DISK:
        # Which statement: what it says, and who signed it, is in the entries of whoever reads it.
        return {"statement": str(sha256(annotations_of(present).get(RECOVER, "").encode()))}
    if what in _OWN_REASONS:
        chip = {"chip": str(spec["chip"])} if what == APPROVE_CHIP and spec.get("chip") else {}
        why = str(spec.get(_OWN_REASONS[what]) or "")
        return {**chip, **({"reason": why} if why else {})}
    text = annotations_of(present).get(REASON) or spec.get("approvalReason") or spec.get("reason") or ""
    return {"reason": str(text)} if text else {}


def _cluster_lowering(request: AdmissionRequest) -> dict[str, str]:
    """What is lowered, by field and in words, and what it was: the confirmation names the very change."""
    old = request.old or {}
    if request.operation is Operation.CREATE:
        return {}
    deleted = request.operation is Operation.DELETE
    lowered = () if deleted else weakenings(old, request.new)
    if not deleted and not lowered:
        return {}
    meta = metadata(old)
    words = "the cluster loses its protection" if deleted else "; ".join(lowering.words for lowering in lowered)
    fields = DELETION if deleted else ",".join(dict.fromkeys(lowering.field for lowering in lowered))
    change = {"uid": str(meta.get("uid") or ""), "generation": str(meta.get("generation") or 0)}
    return {**pieces("lowered", words), **pieces("fields", fields), **change, "confirmation": confirmation_of(request)}


def _policy_lowering(request: AdmissionRequest) -> dict[str, str]:
    """That a text judges in place of the built-in policy, or that such a text changes."""
    if request.operation is Operation.DELETE:
        return {}
    words = "; ".join(policy_weakenings(request.old or {}, request.new))
    return {**pieces("lowered", words), "confirmation": confirmation_of(request)} if words else {}


def _home_lowering(request: AdmissionRequest) -> dict[str, str]:
    """Deleting our own namespace: machines, approvals and keys go with it."""
    if request.operation is not Operation.DELETE or request.name != HOME:
        return {}
    return {"lowered": f"namespace {HOME} goes", "fields": DELETION, "confirmation": confirmation_of(request)}


def pieces(name: str, text: str) -> dict[str, str]:
    """A text in pieces that the record does not cut, the first under its name, the others numbered."""
    parts = [text[start : start + PIECE] for start in range(0, min(len(text), MOST_PIECES * PIECE), PIECE)]
    return {f"{name}-{number}" if number > 1 else name: part for number, part in enumerate(parts, 1)}


def joined(detail: Mapping[str, str], name: str) -> str:
    """The text that was put into pieces."""
    names = [name, *(f"{name}-{number}" for number in range(2, MOST_PIECES + 1))]
    return "".join(str(detail.get(part) or "") for part in names)


def _written(came: str, changed: str, went: str) -> Whats:
    """An act for each way to write an object; an update counts when it changes the content."""

    def whats(request: AdmissionRequest) -> Iterator[str]:
        if request.operation is Operation.CREATE:
            yield came
        elif request.operation is Operation.DELETE:
            yield went
        elif _content(request.old or {}) != _content(request.new):
            yield changed

    return whats


def _content(obj: Object) -> object:
    # The values of an image are an annotation, because the kind is another project's.
    return _spec(obj), annotations_of(obj).get(MEASUREMENTS)


def _policy(request: AdmissionRequest) -> Iterator[str]:
    was, becomes = (_spec(side).get("active") is True for side in (request.old or {}, request.new))
    if becomes and (not was or _spec(request.old or {}) != _spec(request.new)):
        yield "activate-policy"
    elif was and not becomes:
        yield "deactivate-policy"


def _machine(request: AdmissionRequest) -> Iterator[str]:
    old, new = _spec(request.old or {}), _spec(request.new)
    if request.operation is Operation.DELETE:
        yield "delete-machine"
    elif old.get("approval") != new.get("approval"):
        approval = new.get("approval")
        released = approval == "Approved" and old.get("approval") == "Quarantined"
        verb = {"Quarantined": "quarantine", "Approved": "approve"}.get(str(approval), "suspend")
        yield f"{'release' if released else verb}-machine"
    elif old.get("chip") != new.get("chip"):
        yield APPROVE_CHIP
    if request.operation is not Operation.DELETE:
        changed = ((MOVE, "pool"), (SETTLE, "settled"), (ACCEPT_DISK, "disks"))
        yield from (act for act, name in changed if old.get(name) != new.get(name))
        wishes = ((REKEY_DISK, REKEY), (RECOVER_DISK, RECOVER))
        was, becomes = annotations_of(request.old or {}), annotations_of(request.new)
        yield from (act for act, name in wishes if becomes.get(name) and becomes.get(name) != was.get(name))
    if new.get("vouched") and old.get("vouched") != new.get("vouched"):
        yield VOUCH


def _published(request: AdmissionRequest) -> Iterator[str]:
    """MachineConfigs that say that they are public: what they hold goes into images, which anybody reads."""
    was, becomes = (annotations_of(side).get(names.PUBLIC) == "true" for side in (request.old or {}, request.new))
    if becomes and not was:
        yield "publish-config"
    elif becomes and _spec(request.old or {}) != _spec(request.new):
        yield "change-published-config"


def _cluster(request: AdmissionRequest) -> Iterator[str]:
    """What is done to the ConfidentialCluster without lowering it: making it, raising it, overriding."""
    if request.operation is Operation.CREATE:
        yield "make-cluster"
    elif _spec(request.old or {}) != _spec(request.new):
        yield "change-protection"
    was, becomes = (annotations_of(side).get(breakglass.ANNOTATION) for side in (request.old or {}, request.new))
    if was != becomes:
        yield "end-override" if becomes is None else "override"


def _spec(obj: Object) -> Object:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


_OURS: Final = "fastness.dev"
_MACHINES: Final = "trusted-execution-clusters.io"
_CONFIGS: Final = "machineconfiguration.openshift.io"
_LOWERINGS: Final[Mapping[tuple[str, str], Callable[[AdmissionRequest], dict[str, str]]]] = {
    ("", "namespaces"): _home_lowering,
    (_OURS, "confidentialclusters"): _cluster_lowering,
    (_OURS, "appraisalpolicies"): _policy_lowering,
}
_EVERYDAY: Final[Mapping[tuple[str, str], Whats]] = {
    (_OURS, "confidentialclusters"): _cluster,
    (_OURS, "referencevaluesets"): _written("add-values", "change-values", "remove-values"),
    (_OURS, "appraisalpolicies"): _policy,
    (_OURS, "resourcebindings"): _written("bind-resource", "change-binding", "unbind-resource"),
    (_OURS, "distrusts"): _written("distrust", "change-distrust", "take-distrust-back"),
    (_MACHINES, "approvedimages"): _written("approve-image", "change-image", "withdraw-image"),
    (_MACHINES, "machines"): _machine,
    (_CONFIGS, "machineosconfigs"): _written("describe-image", "change-description", "remove-description"),
    (_CONFIGS, "machineconfigs"): _published,
}
RECORDED: Final = tuple(_EVERYDAY)
