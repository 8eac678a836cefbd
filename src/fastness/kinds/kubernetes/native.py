"""The native kinds, made of the facts about a real API server.

Names, scope, verbs and subresources come from `definitions`, so they are those of the pinned release by construction. What is
added here is what the facts leave out: a sentence per kind (the facts carry no prose), which kinds are questions, and which
share their storage. Schemas stay where they are (`Kind.definition` names them), and so do columns: native tables are computed,
not read from paths.
"""

from __future__ import annotations

from functools import cache

from fastness.kinds.errors import UnknownKind
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.kubernetes import definitions

# Both groups show the same events; whichever was used to write one, the other lists it.
STORAGE = {("events.k8s.io", "events"): ("", "events")}

DESCRIPTIONS = {
    "Binding": "Puts a pod on a node.",
    "ConfigMap": "Settings for programs to read.",
    "Endpoints": "The addresses behind a service.",
    "Event": "Something that happened to an object.",
    "LimitRange": "Bounds and defaults for resources of pods in a namespace.",
    "Namespace": "A scope for names, and for everything that is deleted together.",
    "Node": "A machine that runs pods.",
    "PersistentVolume": "Storage that outlives pods.",
    "PersistentVolumeClaim": "A request for storage.",
    "Pod": "Containers that run together on one node.",
    "PodTemplate": "A template that pods are made from.",
    "ReplicationController": "Keeps a number of equal pods; ReplicaSet is its successor.",
    "ResourceQuota": "The most that a namespace may use.",
    "Secret": "Data that is kept from view.",
    "Service": "A stable address for a set of pods.",
    "ServiceAccount": "An identity for programs.",
    "MutatingWebhookConfiguration": "Who may change objects before they are stored.",
    "ValidatingWebhookConfiguration": "Who may refuse objects before they are stored.",
    "ValidatingAdmissionPolicy": "Rules that objects must meet before they are stored.",
    "ValidatingAdmissionPolicyBinding": "Where a ValidatingAdmissionPolicy applies.",
    "CustomResourceDefinition": "Adds a kind of object to the API.",
    "APIService": "Who serves a group and version of the API.",
    "ControllerRevision": "A snapshot of the state that a controller rolls out.",
    "DaemonSet": "Keeps one pod on every chosen node.",
    "Deployment": "Keeps a number of equal pods and replaces them step by step.",
    "ReplicaSet": "Keeps a number of equal pods.",
    "StatefulSet": "Keeps a number of pods that each have a name and storage of their own.",
    "SelfSubjectReview": "Asks who the caller is.",
    "TokenReview": "Asks whom a token belongs to.",
    "LocalSubjectAccessReview": "Asks whether somebody may do something in a namespace.",
    "SelfSubjectAccessReview": "Asks whether the caller may do something.",
    "SelfSubjectRulesReview": "Asks what the caller may do in a namespace.",
    "SubjectAccessReview": "Asks whether somebody may do something.",
    "CronJob": "Runs a job on a schedule.",
    "Job": "Runs pods until they have succeeded.",
    "CertificateSigningRequest": "Asks for a certificate.",
    "Lease": "Says who holds a role, and until when.",
    "EndpointSlice": "A part of the addresses behind a service.",
    "IngressClass": "Who looks after a class of ingresses.",
    "Ingress": "How requests from outside reach services.",
    "NetworkPolicy": "Which traffic pods may receive and send.",
    "RuntimeClass": "A way to run containers that pods can choose.",
    "PodDisruptionBudget": "How many pods of a set may be evicted at a time.",
    "ClusterRoleBinding": "Grants a ClusterRole in all namespaces.",
    "ClusterRole": "A set of permissions in all namespaces or outside of any.",
    "RoleBinding": "Grants a role in one namespace.",
    "Role": "A set of permissions in one namespace.",
    "PriorityClass": "How important pods are when there is not enough room.",
    "CSIDriver": "A driver that brings storage to nodes.",
    "CSINode": "Which drivers of storage a node has.",
    "StorageClass": "A way to provide storage.",
}


def _kind(resource: definitions.NativeResource) -> Kind:
    return Kind(
        group=resource.group,
        version=resource.version,
        kind=resource.kind,
        plural=resource.plural,
        singular=resource.singular,
        short_names=resource.short_names,
        categories=resource.categories,
        scope=Scope.NAMESPACED if resource.namespaced else Scope.CLUSTER,
        description=DESCRIPTIONS.get(resource.kind, ""),
        columns=(),
        subresources=tuple(child.name for child in resource.subresources),
        verbs=resource.verbs,
        native=True,
        computed="get" not in resource.verbs,
        definition=definitions.definition_for(resource.group, resource.version, resource.kind),
        storage=STORAGE.get((resource.group, resource.plural), ("", "")),
    )


@cache
def native_kinds() -> tuple[Kind, ...]:
    """All native kinds."""
    return tuple(_kind(resource) for resource in definitions.resources())


def native(group: str, kind: str) -> Kind:
    """One native kind; raises UnknownKind."""
    for kind_of_group in native_kinds():
        if (kind_of_group.group, kind_of_group.kind) == (group, kind):
            return kind_of_group
    raise UnknownKind(f"{kind} is not a native kind of {group or 'the core group'}", "see tools/kube_types.py")


KINDS = native_kinds()

# Kinds that code names and nobody has a view of.
DEPLOYMENT = native("apps", "Deployment")
DAEMON_SET = native("apps", "DaemonSet")
CRON_JOB = native("batch", "CronJob")
JOB = native("batch", "Job")
SERVICE = native("", "Service")
PERSISTENT_VOLUME_CLAIM = native("", "PersistentVolumeClaim")
NETWORK_POLICY = native("networking.k8s.io", "NetworkPolicy")
RUNTIME_CLASS = native("node.k8s.io", "RuntimeClass")
TOKEN_REVIEW = native("authentication.k8s.io", "TokenReview")
SUBJECT_ACCESS_REVIEW = native("authorization.k8s.io", "SubjectAccessReview")
CERTIFICATE_SIGNING_REQUEST = native("certificates.k8s.io", "CertificateSigningRequest")
VALIDATING_WEBHOOK_CONFIGURATION = native("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")
