"""What the credential of a node may touch: itself, and what runs on it.

A credential `system:node:<name>` in group `system:nodes` gets its permissions from this table, not from a role, because they
depend on names and on what is bound to the node. `authorize_node` gives the decision before a request is read; what a write may
contain is decided by `node_restriction.py`.

* Its own Node, CSINode, MachineConfigNode, NodeFeature and Lease; nothing of another node. A list or a watch must select by the
  own name.
* Pods that are bound to it; a list or a watch must select `spec.nodeName`.
* Secrets, ConfigMaps, claims and service-account tokens only when a pod bound to it refers to them, by get only: a list would
  tell names.
* The settings of machine configuration: they say what a change disturbs on the node. PinnedImageSets by get: its Node names
  those that are its own.
* The rendered MachineConfigs that are meant for it. Whoever answers `rendered_configs` must not take them from anything that the
  node itself can write. In pools that enforce attestation there are none: configurations leave by the doors.
* What nodes have beside their configs is made of the ControllerConfig and one ConfigMap: read by get, in the same pools alone.
* The credential of a machine in quarantine, or of one that is revoked, reads its own objects and the pods that it still runs, so
  that it can be emptied, and nothing else: no configurations, no Secrets, no writes. No role gives it more.
* The credential of a machine without a live proof, where its pool enforces them, reads no Secret, no ConfigMap and no
  configuration, and gets no token of a service account. It still tells how it is and confirms which pods left, so that it can be
  drained. No role gives it more.

What is not in the table is not allowed here; RBAC may still allow it, as on any Kubernetes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import parse_field_selector
from fastness.kinds.nfd import GROUP as NFD
from fastness.kinds.nfd import UPSTREAM
from fastness.kube.access.pod_references import Reference, references
from fastness.kube.access.user import NO_OPINION, Attributes, Decision, User

Object = Mapping[str, Any]
LEASE_NAMESPACE: Final = "kube-node-lease"
MCO_GROUP: Final = "machineconfiguration.openshift.io"
TRUST_SOURCE: Final = "machine-config-controller"
API_AUTHORITY: Final = ("fastness-system", "kubeconfig-data")
FEATURE_GROUPS: Final = (NFD, UPSTREAM)


class NodeLookups(Protocol):
    """What the node authorizer must know of the store."""

    def pod(self, namespace: str, name: str) -> Object | None:
        """One pod."""

    def pods_on(self, node: str) -> Iterable[Object]:
        """The pods that are bound to a node."""

    def rendered_configs(self, node: str) -> Collection[str]:
        """Names of the rendered MachineConfigs that are meant for a node."""

    def reads_trust(self, node: str) -> bool:
        """Whether a node reads here what it has beside its config, and not at the doors."""

    def barred(self, node: str) -> str | None:
        """Why the machine that is a node is no longer trusted; None while nobody took trust away."""

    def unproved(self, node: str) -> str | None:
        """Why the machine that is a node has no live proof where one is demanded; None while it has, or none is."""

    def signing_request(self, name: str) -> Object | None:
        """One CertificateSigningRequest."""


Check = Callable[[Attributes, str, NodeLookups], str | None]
"""Why the node may not do it; None when it may."""


def authorize_node(attrs: Attributes, lookups: NodeLookups) -> Decision:
    """Whether a node's credential may do this; no opinion for everybody else."""
    node = attrs.user.node
    if not node or not attrs.is_resource_request:
        return NO_OPINION
    # Before the table, and as a denial that RBAC cannot overrule: a binding to system:nodes must not open what a quarantine
    # closed.
    barred = lookups.barred(node)
    if barred is not None and not (attrs.verb in _READ and (attrs.group, attrs.resource) in _STILL_READ):
        return Decision(False, f"{barred}: the credential of node '{node}' opens nothing", denied=True)
    unproved = lookups.unproved(node) if (attrs.group, attrs.resource, attrs.subresource) in _FOR_PROVED else None
    if unproved is not None:
        return Decision(
            False, f"{unproved}: node '{node}' reads nothing that is secret until it proved itself", denied=True
        )
    entry = _TABLE.get((attrs.group, attrs.resource, attrs.subresource))
    if entry is None or attrs.verb not in entry[0]:
        return NO_OPINION
    problem = entry[1](attrs, node, lookups)
    return Decision(True) if problem is None else Decision(False, problem)


def _anything(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    return None


def _own_object(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    """The object named like the node; a create is named in its body, which is checked on admission."""
    if attrs.verb == "create":
        return None
    # A list that does not select by the own name would tell of every other node.
    name = attrs.name or _selected(attrs, "metadata.name")
    return None if name == node else f"node '{node}' may use only its own {attrs.resource} object"


def _own_lease(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    if attrs.namespace != LEASE_NAMESPACE:
        return f"node '{node}' may use leases in namespace {LEASE_NAMESPACE} only"
    return _own_object(attrs, node, lookups)


def _own_pod(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    if attrs.verb in ("list", "watch") and not attrs.name:
        selected = _selected(attrs, "spec.nodeName") == node
        return None if selected else f"node '{node}' may list only pods with field selector spec.nodeName={node}"
    if attrs.verb == "create" and attrs.subresource == "":
        return None
    pod = lookups.pod(attrs.namespace, attrs.name)
    return None if pod is not None and bound_to(pod) == node else f"no pod of that name is bound to node '{node}'"


def _referenced(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    reference = Reference(attrs.resource, attrs.name)
    for pod in lookups.pods_on(node):
        # In the namespace of the pod: a Secret of that name elsewhere is somebody else's.
        if (pod.get("metadata") or {}).get("namespace") == attrs.namespace and reference in references(pod):
            return None
    return f"no relationship found between node '{node}' and this object"


def _own_rendered(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    if attrs.name and attrs.name in lookups.rendered_configs(node):
        return None
    return f"this MachineConfig is not meant for node '{node}'; where attestation is enforced they come from the doors alone"


def _own_trust(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    if attrs.name == TRUST_SOURCE and lookups.reads_trust(node):
        return None
    return f"node '{node}' gets what is beside its config from the doors alone"


def _config_map(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    if (attrs.namespace, attrs.name) == API_AUTHORITY and lookups.reads_trust(node):
        return None
    return _referenced(attrs, node, lookups)


def _own_signing_request(attrs: Attributes, node: str, lookups: NodeLookups) -> str | None:
    if attrs.verb == "create":
        return None
    request = lookups.signing_request(attrs.name or _selected(attrs, "metadata.name"))
    owner = ((request or {}).get("spec") or {}).get("username")
    return None if owner == attrs.user.name else f"no signing request of that name was made by node '{node}'"


def bound_to(pod: Object) -> str:
    """The node that a pod is bound to, or empty."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def is_node(user: User) -> bool:
    """Whether these rules speak of the user."""
    return bool(user.node)


def _selected(attrs: Attributes, field: str) -> str:
    try:
        return parse_field_selector(attrs.field_selector).exact(field) or ""
    except SelectorError:
        return ""


_READ: Final = frozenset({"get", "list", "watch"})
_WRITE: Final = frozenset({"update", "patch"})
_GET: Final = frozenset({"get"})
_CREATE: Final = frozenset({"create"})
_STILL_READ: Final = frozenset({("", "nodes"), ("", "pods"), (MCO_GROUP, "machineconfignodes")})
_FOR_PROVED: Final = frozenset(
    {
        ("", "secrets", ""),
        ("", "configmaps", ""),
        ("", "serviceaccounts", "token"),
        (MCO_GROUP, "machineconfigs", ""),
        (MCO_GROUP, "controllerconfigs", ""),
    }
)

_TABLE: Final[Mapping[tuple[str, str, str], tuple[frozenset[str], Check]]] = {
    ("", "nodes", ""): (_READ | _WRITE | _CREATE, _own_object),
    ("", "nodes", "status"): (_GET | _WRITE, _own_object),
    (MCO_GROUP, "machineconfignodes", ""): (_READ | _WRITE, _own_object),
    (MCO_GROUP, "machineconfignodes", "status"): (_GET | _WRITE, _own_object),
    (MCO_GROUP, "machineconfigs", ""): (_GET, _own_rendered),
    (MCO_GROUP, "controllerconfigs", ""): (_GET, _own_trust),
    # By get alone: the Node says which sets are its own, and a list would tell which others there are.
    (MCO_GROUP, "pinnedimagesets", ""): (_GET, _anything),
    ("operator.openshift.io", "machineconfigurations", ""): (_GET, _anything),
    ("coordination.k8s.io", "leases", ""): (_GET | _WRITE | _CREATE | {"delete"}, _own_lease),
    # A kubelet counts an event that comes again by patching it.
    ("", "events", ""): (_CREATE | _WRITE, _anything),
    ("events.k8s.io", "events", ""): (_CREATE | _WRITE, _anything),
    ("", "pods", ""): (_READ | _CREATE | {"delete"}, _own_pod),
    ("", "pods", "status"): (_GET | _WRITE, _own_pod),
    ("", "pods", "eviction"): (_CREATE, _own_pod),
    # By get alone: a list or a watch would tell names and contents of what no pod here refers to.
    ("", "secrets", ""): (_GET, _referenced),
    ("", "configmaps", ""): (_GET, _config_map),
    ("", "persistentvolumeclaims", ""): (_GET, _referenced),
    ("", "serviceaccounts", "token"): (_CREATE, _referenced),
    ("", "services", ""): (_READ, _anything),
    ("node.k8s.io", "runtimeclasses", ""): (_READ, _anything),
    # A node is not Ready before its kubelet has read the one and written the other.
    ("storage.k8s.io", "csidrivers", ""): (_READ, _anything),
    ("storage.k8s.io", "csinodes", ""): (_GET | _WRITE | _CREATE | {"delete"}, _own_object),
    **{(group, "nodefeatures", ""): (_READ | _WRITE | _CREATE | {"delete"}, _own_object) for group in FEATURE_GROUPS},
    ("certificates.k8s.io", "certificatesigningrequests", ""): (_READ | _CREATE, _own_signing_request),
}
