"""Rules about who writes: nobody grants more than they have, and a node writes its own objects only.

The decisions live in `kube/access`; these functions put them into the words of admission.
"""

from __future__ import annotations

from fastness.kube.access.escalation import Refusal, refuse_binding, refuse_role
from fastness.kube.access.node_restriction import refuse_node_token, refuse_node_write
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, forbidden


def role_grants_no_more(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a role with rules that its writer does not hold."""
    return _denied(request, refuse_role(request.user, request.new, request.old, lookups.policy(), lookups.authorize))


def binding_grants_no_more(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a binding to a role with rules that its writer does not hold."""
    return _denied(request, refuse_binding(request.user, request.new, request.old, lookups.policy(), lookups.authorize))


def node_writes_its_own(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse what a node's credential may not put into its own objects."""
    node = request.user.node
    if not node:
        return None
    if (request.group, request.resource, request.subresource) == ("", "serviceaccounts", "token"):
        why = refuse_node_token(node, request.namespace, request.new, lookups.pod)
        return forbidden(request, why) if why else None
    why = refuse_node_write(
        node, request.operation.value, request.group, request.resource, request.subresource, request.object, request.old
    )
    return forbidden(request, why) if why else None


def _denied(request: AdmissionRequest, refusal: Refusal | None) -> Denied | None:
    if refusal is None:
        return None
    about = (request.resource, refusal.about) if refusal.about else None
    return Denied(refusal.message, refusal.code, refusal.reason, about=about)
