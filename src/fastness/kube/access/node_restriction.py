"""What a node may write into the objects that it may touch.

The node authorizer lets a node update its own Node; this decides about the content. A node that could choose its labels would
choose its pool, and with it the configuration and keys that it is given. Hence:

* Labels under `node-restriction.kubernetes.io/` never; labels of Kubernetes (`kubernetes.io`, `k8s.io` and below) only those that
  describe the machine: host name, architecture, zone, instance type, and what lies under `kubelet.` and `node.kubernetes.io`.
  Labels of other domains are free, except the pool labels of machine configuration.
* Taints can be set when the node registers, never changed later; owner references never.
* Which configuration is desired is decided by the control plane: a node writes neither the spec of its MachineConfigNode nor the
  desired-configuration annotations of its Node. It reports as current only what was desired of it, because what stands there
  decides which rendered configurations it may read.
* What was found on a node is told by the node itself, in the NodeFeature that has its name and no other: a host may lie about
  what it can do, never about what another can. It asks for labels only that describe features, or that it could set anyway.
* A node creates mirror pods of its own only, and events and leases freely within what the authorizer allows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastness.kinds.machineconfiguration.names import DESIRED_OVERLAY, IMAGE_QUEUE
from fastness.kinds.nfd.feature import NODE_NAME_LABEL
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.kube.access.node import FEATURE_GROUPS, LEASE_NAMESPACE, MCO_GROUP, bound_to
from fastness.kube.access.pod_references import references

Object = Mapping[str, Any]

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
RESTRICTED_PREFIX: Final = "node-restriction.kubernetes.io/"
_DESIRED: Final = (f"{MCO_GROUP}/desiredConfig", f"{MCO_GROUP}/desiredImage", DESIRED_OVERLAY)
_CURRENT: Final = {f"{MCO_GROUP}/currentConfig": _DESIRED[0], f"{MCO_GROUP}/currentImage": _DESIRED[1]}
_FEATURE_DOMAINS: Final = ("feature.node.kubernetes.io", "profile.node.kubernetes.io")
_OWN_LABEL_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_OWN_LABELS: Final = frozenset({
    "kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os",
    "beta.kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type", "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
})  # fmt: skip
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io", "openshift.io", "fastness.dev")


def refuse_node_write(
    node: str, operation: str, group: str, resource: str, subresource: str, new: Object | None, old: Object | None
) -> str | None:
    """Why the node may not make this write, None when it may; `operation` is CREATE, UPDATE or DELETE."""
    match (group, resource):
        case ("", "nodes"):
            return _node(node, operation, new, old)
        case (group, "machineconfignodes") if group == MCO_GROUP:
            return _config_node(node, operation, subresource, new, old)
        case ("", "pods"):
            return _pod(node, operation, subresource, new, old)
        case ("coordination.k8s.io", "leases"):
            return _lease(node, new or old or {})
        case ("storage.k8s.io", "csinodes"):
            own = object_name(new or old or {}).name == node
            return None if own else f"node '{node}' may write only its own CSINode"
        case (group, "nodefeatures") if group in FEATURE_GROUPS:
            return _feature(node, new, old)
        case _:
            return None


def refuse_node_token(
    node: str, namespace: str, request: Object, find_pod: Callable[[str, str], Object | None]
) -> str | None:
    """Why the node may not ask for this service-account token; None for one that is bound to a pod which runs on the node."""
    reference = _spec(request).get("boundObjectRef")
    reference = reference if isinstance(reference, dict) else {}
    # By uid, too: a pod that the node deletes and makes anew under the name would get the token of the first.
    if reference.get("kind") != "Pod" or not reference.get("uid"):
        return f"node '{node}' may ask only for tokens that are bound to a pod, by name and uid"
    pod = find_pod(namespace, str(reference.get("name") or ""))
    if pod is None or bound_to(pod) != node or metadata(pod).get("uid") != reference["uid"]:
        return f"node '{node}' may ask only for tokens of pods that are bound to it"
    return None


def _node(node: str, operation: str, new: Object | None, old: Object | None) -> str | None:
    if operation == "DELETE":
        return f"node '{node}' may not delete nodes"
    new, old = new or {}, old or {}
    if object_name(new).name != node:
        return f"node '{node}' may write only its own Node"
    # An owner that does not exist has the garbage collector delete the object, with all that hangs on it.
    if metadata(new).get("ownerReferences", []) != metadata(old).get("ownerReferences", []):
        return f"node '{node}' may not change the ownerReferences of its Node"
    # A node that could take its taints off would call the workloads, and their Secrets, back to itself.
    if operation == "UPDATE" and _spec(new).get("taints", []) != _spec(old).get("taints", []):
        return f"node '{node}' may not change the taints of its Node"
    wrong = sorted(key for key in _changed(labels_of(new), labels_of(old)) if not _may_label(key))
    if wrong:
        return f"node '{node}' may not set these labels: {', '.join(wrong)}"
    wrong = _chosen(annotations_of(new), annotations_of(old))
    return f"node '{node}' may not choose its configuration: {', '.join(sorted(wrong))}" if wrong else None


def _chosen(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """The annotations by which a node would choose its configuration instead of reporting it."""
    changed = _changed(new, old)
    # Compared with what was desired before this write: a node that sets both in one patch would name any rendered config.
    reported = [key for key in changed if key in _CURRENT and key in new and new[key] != old.get(_CURRENT[key])]
    return [*(key for key in changed if key in _DESIRED), *reported]


def _config_node(node: str, operation: str, subresource: str, new: Object | None, old: Object | None) -> str | None:
    if operation != "UPDATE" or object_name(new or {}).name != node:
        return f"node '{node}' may only update its own MachineConfigNode"
    new, old = new or {}, old or {}
    if metadata(new).get("ownerReferences", []) != metadata(old).get("ownerReferences", []):
        return f"node '{node}' may not change the ownerReferences of its MachineConfigNode"
    if subresource != "status" and _spec(new) != _spec(old):
        return f"node '{node}' may not change the spec of its MachineConfigNode"
    if annotations_of(new).get(IMAGE_QUEUE) != annotations_of(old).get(IMAGE_QUEUE):
        return f"node '{node}' may not change what is kept about the images that it booted"
    return None


def _pod(node: str, operation: str, subresource: str, new: Object | None, old: Object | None) -> str | None:
    if operation == "CREATE" and not subresource:
        return _mirror_pod(node, new or {})
    if subresource == "eviction" or operation == "DELETE":
        return (
            None if old is None or bound_to(old) == node else f"node '{node}' may remove only pods that are bound to it"
        )
    if bound_to(old or {}) != node or bound_to(new or {}) != node:
        return f"node '{node}' may update only the status of pods that are bound to it"
    # Labels of pods choose Services and budgets: a node could send itself another workload's traffic.
    if labels_of(new or {}) != labels_of(old or {}):
        return f"node '{node}' may not change labels of a pod through its status"
    return None


def _mirror_pod(node: str, pod: Object) -> str | None:
    if MIRROR_ANNOTATION not in annotations_of(pod):
        return f"node '{node}' may create only mirror pods"
    if bound_to(pod) != node:
        return f"node '{node}' may create only pods that are bound to it"
    # A mirror pod that names a secret would open it to the node by way of the authorizer.
    if (pod.get("spec") or {}).get("serviceAccountName"):
        return "a mirror pod may not have a service account"
    named = sorted(f"{ref.resource}/{ref.name}" for ref in references(pod) if ref.resource != "serviceaccounts")
    return f"a mirror pod may not refer to {', '.join(named)}" if named else None


def _lease(node: str, lease: Object) -> str | None:
    if object_name(lease) != (LEASE_NAMESPACE, node):
        return f"node '{node}' may write only its own lease in {LEASE_NAMESPACE}"
    return None


def _feature(node: str, new: Object | None, old: Object | None) -> str | None:
    for feature in (old, new):
        if feature is not None and object_name(feature).name != node:
            return f"node '{node}' may write only the NodeFeature of its own name"
    if new is None:
        return None
    if labels_of(new).get(NODE_NAME_LABEL) != node:
        return f"node '{node}' may tell only about itself: label {NODE_NAME_LABEL} must be {node}"
    labels = _spec(new).get("labels")
    wrong = sorted(key for key in (labels if isinstance(labels, dict) else {}) if not _may_ask_for(key))
    return f"node '{node}' may not ask for these labels: {', '.join(wrong)}" if wrong else None


def _may_ask_for(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    return any(_within(domain, feature) for feature in _FEATURE_DOMAINS) or _may_label(key)


def _may_label(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if key.startswith(RESTRICTED_PREFIX) or domain.endswith("." + RESTRICTED_PREFIX.rstrip("/")):
        return False
    if key in _OWN_LABELS or any(_within(domain, own) for own in _OWN_LABEL_DOMAINS):
        return True
    return not any(_within(domain, reserved) for reserved in _RESERVED_DOMAINS)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith("." + parent)


def _changed(new: Mapping[str, str], old: Mapping[str, str]) -> set[str]:
    return {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}


def _spec(obj: Object) -> Mapping[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}
