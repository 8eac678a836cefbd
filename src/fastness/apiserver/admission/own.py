"""What the embedded API asks of every write itself, as any Kubernetes does; rules of a product are asked after these.

Namespaces come first (`namespaces.py`), because nothing else about an object in a missing namespace is worth saying; then who
writes: nobody grants more than they have, and a node writes its own objects only. The decisions about that live in `kube/access`;
the functions here put them into the words of admission.
"""

from __future__ import annotations

from typing import Final

from fastness.apiserver.admission import namespaces
from fastness.kube.access.escalation import Refusal, refuse_binding, refuse_role
from fastness.kube.access.node_restriction import refuse_node_token, refuse_node_write
from fastness.kube.access.policy import RBAC_GROUP
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, forbidden
from fastness.kube.admission_rules import EVERY_SUBRESOURCE, ON_ANY, ON_CREATE, ON_DELETE, ON_WRITE, Row


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
        return None if why is None else forbidden(request, why)
    why = refuse_node_write(
        node, request.operation.value, request.group, request.resource, request.subresource, request.object, request.old
    )
    return None if why is None else forbidden(request, why)


def _denied(request: AdmissionRequest, refusal: Refusal | None) -> Denied | None:
    if refusal is None:
        return None
    about = (request.resource, refusal.about) if refusal.about else None
    return Denied(refusal.message, refusal.code, refusal.reason, about=about)


# Also on subresources: `pods/binding` or `serviceaccounts/token` of a missing namespace, or of another node, are writes as well.
OWN: Final = (
    Row(namespaces.namespace_exists, ON_WRITE, subresources=EVERY_SUBRESOURCE),
    Row(namespaces.namespace_is_alive, ON_CREATE, subresources=EVERY_SUBRESOURCE),
    Row(namespaces.namespace_may_go, ON_DELETE, "", "namespaces"),
    Row(namespaces.reserved_name_is_an_administrators, ON_CREATE, "", "namespaces"),
    Row(node_writes_its_own, ON_ANY, subresources=EVERY_SUBRESOURCE),
    Row(role_grants_no_more, ON_WRITE, RBAC_GROUP, "roles"),
    Row(role_grants_no_more, ON_WRITE, RBAC_GROUP, "clusterroles"),
    Row(binding_grants_no_more, ON_WRITE, RBAC_GROUP, "rolebindings"),
    Row(binding_grants_no_more, ON_WRITE, RBAC_GROUP, "clusterrolebindings"),
)
