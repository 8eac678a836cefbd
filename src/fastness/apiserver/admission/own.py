"""What the embedded API asks of every write itself, as any Kubernetes does; rules of a product are asked after these.

Namespaces come first, because nothing else about an object in a missing namespace is worth saying; then who may write.
"""

from __future__ import annotations

from typing import Final

from fastness.apiserver.admission import namespaces, rbac
from fastness.kube.access.policy import RBAC_GROUP
from fastness.kube.admission_rules import EVERY_SUBRESOURCE, ON_ANY, ON_CREATE, ON_DELETE, ON_WRITE, Row

OWN: Final = (
    Row(namespaces.namespace_exists, ON_WRITE, subresources=EVERY_SUBRESOURCE),
    Row(namespaces.namespace_is_alive, ON_CREATE, subresources=EVERY_SUBRESOURCE),
    Row(namespaces.namespace_may_go, ON_DELETE, "", "namespaces"),
    Row(namespaces.reserved_name_is_an_administrators, ON_CREATE, "", "namespaces"),
    Row(rbac.node_writes_its_own, ON_ANY, subresources=EVERY_SUBRESOURCE),
    Row(rbac.role_grants_no_more, ON_WRITE, RBAC_GROUP, "roles"),
    Row(rbac.role_grants_no_more, ON_WRITE, RBAC_GROUP, "clusterroles"),
    Row(rbac.binding_grants_no_more, ON_WRITE, RBAC_GROUP, "rolebindings"),
    Row(rbac.binding_grants_no_more, ON_WRITE, RBAC_GROUP, "clusterrolebindings"),
)
