"""Rules about the ConfidentialCluster and the broker: nothing is weakened by accident.

Lowering protection is allowed, but has to be said twice: the change itself, and the annotation `fastness.dev/confirm-lower` with
the digest of that change (`confirming`), which the refusal prints. Who does it goes on the record before it happens (`acts`).

* An override of attestation needs the signatures of two approvers (`attestation.verdict.breakglass`).
* `simulated` belongs to the store, not to the object: neither an update nor deleting and creating again changes it.
* There is one ConfidentialCluster, `cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.attestation.admission.acts import is_control_plane
from fastness.attestation.admission.lowering import weakenings
from fastness.attestation.verdict import approvers, breakglass
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.objects import annotations_of
from fastness.kube.admission import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    Operation,
    forbidden,
    invalid,
)
from fastness.kube.confirmation import confirmed
from fastness.kube.places import HOME

GROUP: Final = "fastness.dev"
TRUSTEE_GROUP: Final = "confidentialcontainers.org"
SINGLETON: Final = "cluster"
GUARD_STATE: Final = "guard-state"

Object = Mapping[str, Any]


def is_singleton(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a ConfidentialCluster of another name."""
    if request.name == SINGLETON:
        return None
    return invalid(request, "metadata.name", f"{request.name!r}: the only ConfidentialCluster is named {SINGLETON!r}")


def simulated_fits_the_store(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse an object that says something else about simulation than the store it lives in."""
    claimed = bool(_at(request.new, "spec", "simulated"))
    # The store remembers it: deleting the object and creating it anew must not make a simulated cluster a real one.
    bound = lookups.simulated()
    if bound is not None and claimed != bound:
        why = f"{_json(claimed)}: this store belongs to a {'simulated' if bound else 'real'} cluster for good"
        return invalid(request, "spec.simulated", why)
    if request.old is not None and claimed != bool(_at(request.old, "spec", "simulated")):
        return invalid(request, "spec.simulated", f"{_json(claimed)}: the field is immutable")
    return None


def lowering_is_confirmed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse a weaker cluster without the digest of this change in the annotation; with it, allow and say what was lowered."""
    return confirmed(request, lowered_by(request))


def lowered_by(request: AdmissionRequest) -> tuple[str, ...]:
    """What a write to the ConfidentialCluster lowers, one phrase each."""
    if request.operation is Operation.DELETE:
        return ("the cluster loses its protection",)
    return tuple(weakening.words for weakening in weakenings(request.old or {}, request.new))


def override_is_agreed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse an override that two approvers have not signed; verifiers look again, and at the time."""
    given = annotations_of(request.new).get(breakglass.ANNOTATION)
    if given is None or given == annotations_of(request.old or {}).get(breakglass.ANNOTATION):
        return None
    try:
        override = breakglass.agreed_override(request.new, _present_approvers(request, lookups))
    except breakglass.BadOverride as error:
        cause = DeniedCause(f"metadata.annotations[{breakglass.ANNOTATION}]", "FieldValueInvalid", str(error))
        return forbidden(request, f"{error} ({error.code})", cause)
    return Allowed((f"attestation is overridden: {override.line}",)) if override is not None else None


def _present_approvers(request: AdmissionRequest, lookups: AdmissionLookups) -> Mapping[str, str]:
    """Those who count by now; while nobody does, those that were listed before this write: one write must not appoint two keys of
    one person and use them.
    """
    counting = approvers.read_appointments(lookups.appointments()).counting
    # Of the old object: a write that appoints approvers must not be signed by those whom it appoints.
    return counting or breakglass.listed_approvers(request.old)


def approvers_agree_to_their_change(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse other approvers unless two of the present ones signed that, there were none, or it is said that keys are lost."""
    proposed, present = breakglass.listed_approvers(request.new), _present_approvers(request, lookups)
    if proposed in (breakglass.listed_approvers(request.old), present):
        return None
    if not present:
        return Allowed((f"approvers begin to count after breakGlass.delay: {', '.join(sorted(proposed))}",))
    if approvers.is_signed(request.new, present):
        return None
    if annotations_of(request.new).get(approvers.LOST):
        return Allowed(("nobody signed this change of approvers: it counts after a day, and everybody is told",))
    cause = DeniedCause(
        f"metadata.annotations[{approvers.CHANGE}]", "FieldValueRequired", "Required value: two signatures"
    )
    why = "two of the present approvers must sign a change of approvers (fastness break-glass change); if their keys are lost, "
    return forbidden(request, f"{why}say why with the annotation {approvers.LOST}, and it counts after a day", cause)


def memory_is_the_control_planes(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse people who would write what the control plane remembers: who counts as an approver, how strict the cluster was."""
    if request.namespace != approvers.NAMESPACE or request.name not in (approvers.CONFIG_MAP, GUARD_STATE):
        return None
    return None if is_control_plane(request.user) else forbidden(request, "this is the memory of the control plane")


def broker_is_not_permissive(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a permissive broker in a cluster that enforces attestation."""
    if _at(request.new, "spec", "profileType") != "Permissive":
        return None
    if mode_of(lookups.confidential_cluster()) is not Mode.ENFORCE:
        return None
    why = "profileType Permissive hands out secrets without a policy, and this cluster enforces attestation"
    return forbidden(request, why, DeniedCause("spec.profileType", "FieldValueForbidden", "Forbidden: use Restricted"))


def _at(obj: Any, *path: str) -> Any:
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def _json(value: bool) -> str:
    return "true" if value else "false"


def home_goes_confirmed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse the deletion of our own namespace without the confirmation of a lowering: all that is trusted goes with it."""
    return confirmed(request, ("machines, approvals, keys and the record go",)) if request.name == HOME else None
