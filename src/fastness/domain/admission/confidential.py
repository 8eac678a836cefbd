"""Rules about the ConfidentialCluster and the broker: nothing is weakened by accident.

Lowering protection is allowed, but has to be said twice: the change itself, and the annotation `fastness.dev/confirm-lower`
with the uid of the very object. `weakenings` lists what a change lowers; it is data, so that `plan` and the page can show it
before anybody confirms.

* Lower are: a lower mode, a weaker trust model of a pool (a pool that is not listed is confidential), another extra root, a type
  of evidence more (any of them is enough, so the weakest decides), for the cluster or a pool, TDX domains with SEPT_VE, a lower
  minimum TCB, trust on first use, another approver of overrides, and deletion.
* An override of attestation needs the signatures of two approvers (`domain.attestation.breakglass`).
* `simulated` belongs to the store, not to the object: neither an update nor deleting and creating again changes it.
* There is one ConfidentialCluster, `cluster`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.domain.admission.request import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    Operation,
    forbidden,
    invalid,
)
from fastness.domain.attestation import breakglass
from fastness.domain.attestation.anchors import DEFAULT_EVIDENCE
from fastness.domain.trustmodel import Mode, listed_pools, mode_of, trust_model
from fastness.model.objects import annotations_of, metadata

GROUP: Final = "fastness.dev"
TRUSTEE_GROUP: Final = "confidentialcontainers.org"
SINGLETON: Final = "cluster"
CONFIRM: Final = "fastness.dev/confirm-lower"
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ][0-9:.]+Z?)?\Z", re.ASCII)

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
    """Refuse a weaker cluster without its uid in the annotation; with it, allow and say what was lowered."""
    old = request.old or {}
    deletes = request.operation is Operation.DELETE
    lowered = ["the cluster loses its protection"] if deletes else list(weakenings(old, request.new))
    if not lowered:
        return None
    uid = metadata(old).get("uid")
    given = annotations_of(old if deletes else request.new).get(CONFIRM)
    if uid and given == uid:
        return Allowed(tuple(f"protection lowered: {item}" for item in lowered))
    cause = DeniedCause(f"metadata.annotations[{CONFIRM}]", "FieldValueRequired", f"Required value: {uid}")
    return forbidden(request, f"{'; '.join(lowered)}: confirm with the annotation {CONFIRM}={uid}", cause)


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


def weakenings(old: Object, new: Object) -> Iterator[str]:
    """What the change from `old` to `new` lowers, one phrase each."""
    if mode_of(new).strength < mode_of(old).strength:
        yield f"mode goes from {mode_of(old)} to {mode_of(new)}"
    for pool in sorted(listed_pools(old).keys() | listed_pools(new).keys()):
        before, after = trust_model(old, pool), trust_model(new, pool)
        if after.strength < before.strength:
            yield f"pool {pool} goes from {before} to {after}"
    for root in sorted(_roots(new) - _roots(old)):
        yield f"root {root[0]} is trusted for {root[1] or 'everything'}"
    yield from _more_evidence(old, new)
    if _at(new, "spec", "attestation", "tdx", "allowSeptVe") and not _at(
        old, "spec", "attestation", "tdx", "allowSeptVe"
    ):
        yield "trust domains count whose pages the host can make fault"
    yield from _lower_tcb(_at(old, "spec", "attestation", "minimumTcb"), _at(new, "spec", "attestation", "minimumTcb"))
    for name in sorted(_approvers(new) - _approvers(old)):
        yield f"{name[0]} may agree to overrides"
    if _at(new, "spec", "join", "trustOnFirstUse") and not _at(old, "spec", "join", "trustOnFirstUse"):
        yield "machines are trusted on first use"


def _lower_tcb(old: Any, new: Any, path: str = "minimumTcb") -> Iterator[str]:
    if isinstance(old, dict):
        for key, value in sorted(old.items()):
            yield from _lower_tcb(value, new.get(key) if isinstance(new, dict) else None, f"{path}.{key}")
    elif old is not None and not _at_least(new, old):
        yield f"{path} goes from {old} to {'nothing' if new is None else new}"


def _at_least(new: Any, old: Any) -> bool:
    """Whether a bound is as high as before; what cannot be compared counts as lower when it differs."""
    if new == old and isinstance(new, bool) == isinstance(old, bool):
        return True
    if isinstance(new, bool) or isinstance(old, bool):
        return new is True and old is False
    if isinstance(new, int | float) and isinstance(old, int | float):
        return new >= old
    if isinstance(new, str) and isinstance(old, str):
        if new.isdecimal() and old.isdecimal() and new.isascii() and old.isascii():
            return int(new) >= int(old)
        if _DATE.match(new) and _DATE.match(old):
            return new >= old
    return False


def _approvers(cluster: Object) -> set[tuple[str, str]]:
    listed = _at(cluster, "spec", "breakGlass", "approvers")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {(str(entry.get("name") or ""), str(entry.get("key") or "")) for entry in entries}


def _roots(cluster: Object) -> set[tuple[str, str]]:
    roots = _at(cluster, "spec", "attestation", "extraRoots")
    entries = [entry for entry in roots if isinstance(entry, dict)] if isinstance(roots, list) else []
    return {(str(entry.get("sha256") or ""), str(entry.get("for") or "")) for entry in entries}


def _more_evidence(old: Object, new: Object) -> Iterator[str]:
    """Types of evidence that count from now on, for the cluster and then for pools where that says more."""
    added = _evidence(new) - _evidence(old)
    for evidence in sorted(added):
        yield f"evidence {evidence} counts from now on"
    for pool in sorted(_pool_evidence(old).keys() | _pool_evidence(new).keys()):
        before, after = (_pool_evidence(one).get(pool, _evidence(one)) for one in (old, new))
        for evidence in sorted(after - before - added):
            yield f"evidence {evidence} counts from now on for pool {pool}"


def _evidence(cluster: Object) -> frozenset[str]:
    return _types(_at(cluster, "spec", "attestation", "evidence")) or frozenset(DEFAULT_EVIDENCE)


def _pool_evidence(cluster: Object) -> dict[str, frozenset[str]]:
    """The types of pools that have their own."""
    listed = _at(cluster, "spec", "pools")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {str(entry.get("name")): types for entry in entries if (types := _types(entry.get("evidence")))}


def _types(listed: Any) -> frozenset[str]:
    return frozenset(str(item) for item in listed) if isinstance(listed, list) else frozenset()


def _at(obj: Any, *path: str) -> Any:
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def _json(value: bool) -> str:
    return "true" if value else "false"
