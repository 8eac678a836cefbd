"""Rules about AppraisalPolicies: a text that judges in place of the built-in policy lowers protection, and is confirmed as such.

    list(policy_weakenings(old, new))     # one phrase each; empty: the built-in policy judges as before

Beside the built-in policy a text can only take away, so writing one is an everyday act. In its place a text decides alone who is
affirmed: becoming such a text, and every later change of what it says or judges, needs the word of that change (`confirming`).
A policy that is made new has no word yet, so it is made without the field first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.kube.admission import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    Operation,
    forbidden,
)
from fastness.kube.confirmation import confirmed

RESOURCE: Final = "appraisalpolicies"
_FIELD: Final = "spec.replacesBuiltIn"
# What decides who is affirmed; cases and whether it is switched on decide nothing more.
_DECIDES: Final = ("for", "rego")

Object = Mapping[str, Any]


def policy_weakenings(old: Object, new: Object) -> Iterator[str]:
    """What the change of an AppraisalPolicy from `old` to `new` lowers, one phrase each."""
    before, after = _spec(old), _spec(new)
    if after.get("replacesBuiltIn") is not True:
        return
    if before.get("replacesBuiltIn") is not True:
        yield f"the policy judges {after.get('for')} in place of the built-in one"
    elif any(before.get(field) != after.get(field) for field in _DECIDES):
        yield f"the policy that judges {after.get('for')} in place of the built-in one changes"


def replacing_is_confirmed(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse a policy in place of the built-in one without the word of this change."""
    lowered = list(policy_weakenings(request.old or {}, request.new))
    if lowered and request.operation is Operation.CREATE:
        cause = DeniedCause(
            _FIELD, "FieldValueForbidden", "Forbidden: set it on a policy that exists, with its confirmation"
        )
        return forbidden(request, f"{lowered[0]}: create it without {_FIELD}, and set the field afterwards", cause)
    return confirmed(request, lowered)


def _spec(policy: Object) -> Object:
    spec = policy.get("spec")
    return spec if isinstance(spec, Mapping) else {}
