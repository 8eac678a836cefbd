"""Rules about the ConfidentialCluster and the broker: nothing is weakened by accident.

Lowering protection is allowed, but has to be said twice: the change itself, and the annotation `fastness.dev/confirm-lower` with
the digest of that change (`confirming`), which the refusal prints. Who confirms is kept beside it, `fastness.dev/confirmed-by`,
for the record: the embedded API writes the name itself, a webhook, which cannot write, demands that of the caller. The
controllers put the lowering on the record and take both annotations off.

* An override of attestation needs the signatures of two approvers (`domain.attestation.breakglass`).
* `simulated` belongs to the store, not to the object: neither an update nor deleting and creating again changes it.
* There is one ConfidentialCluster, `cluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.domain.admission.confirming import confirmed
from fastness.domain.admission.lowering import weakenings
from fastness.domain.admission.request import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    Operation,
    Patched,
    forbidden,
    invalid,
)
from fastness.domain.attestation import breakglass
from fastness.domain.trustmodel import Mode, mode_of
from fastness.model.fastness_dev.cluster import CONFIRM_LOWER, CONFIRMED_BY
from fastness.model.objects import annotations_of

GROUP: Final = "fastness.dev"
TRUSTEE_GROUP: Final = "confidentialcontainers.org"
SINGLETON: Final = "cluster"

Object = Mapping[str, Any]


def is_singleton(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a ConfidentialCluster of another name."""
    if request.name == SINGLETON:
        return None
    return invalid(request, "metadata.name", f"{request.name!r}: the only ConfidentialCluster is named {SINGLETON!r}")


def simulated_fits_the_store(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse an object that says something else about simulation than the store it lives in."""
    claimed = bool(_at(request.new, "spec", "simulated"))
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


def confirmation_names_its_person(request: AdmissionRequest, lookups: AdmissionLookups) -> Patched | None:
    """Write down who confirms: whoever writes a confirmation, or lowers by one that is there. Nobody else's name stays."""
    was, given = annotations_of(request.old or {}), annotations_of(request.new)
    name = given.get(CONFIRMED_BY)
    if CONFIRM_LOWER not in given:
        return None if name is None else _annotated(request, None)
    acts = given[CONFIRM_LOWER] != was.get(CONFIRM_LOWER) or any(weakenings(request.old or {}, request.new))
    wanted = request.user.name if acts else was.get(CONFIRMED_BY)
    return None if name == wanted else _annotated(request, wanted)


def confirmation_is_signed_by_its_person(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """The same where nothing can be written down in passing: the name must be there, and that of the caller."""
    was, given = annotations_of(request.old or {}), annotations_of(request.new)
    if given.get(CONFIRM_LOWER) is None:
        return None
    same = all(given.get(name) == was.get(name) for name in (CONFIRM_LOWER, CONFIRMED_BY))
    if given.get(CONFIRMED_BY) == request.user.name or (same and not any(weakenings(request.old or {}, request.new))):
        return None
    field = f"metadata.annotations[{CONFIRMED_BY}]"
    cause = DeniedCause(field, "FieldValueRequired", f"Required value: {request.user.name}")
    told = f"a confirmation names who confirms: add the annotation {CONFIRMED_BY}={request.user.name}"
    return forbidden(request, told, cause)


def _annotated(request: AdmissionRequest, name: str | None) -> Patched:
    path = f"/metadata/annotations/{CONFIRMED_BY.replace('/', '~1')}"
    return Patched(({"op": "remove", "path": path} if name is None else {"op": "add", "path": path, "value": name},))


def override_is_agreed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse an override that two approvers have not signed; verifiers look again, and at the time."""
    given = annotations_of(request.new).get(breakglass.ANNOTATION)
    if given is None or given == annotations_of(request.old or {}).get(breakglass.ANNOTATION):
        return None
    try:
        found = breakglass.agreed_override(request.new)
    except breakglass.BadOverride as error:
        cause = DeniedCause(f"metadata.annotations[{breakglass.ANNOTATION}]", "FieldValueInvalid", str(error))
        return forbidden(request, f"{error} ({error.code})", cause)
    return Allowed((f"attestation is overridden: {found.line}",)) if found is not None else None


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
