"""The kinds that may come as protobuf, and which message describes each.

They are what kubectl's typed commands send, and what the nodes' own clients write. Everything else (custom kinds, `apply`,
`patch`, `edit`) is always JSON. `DeleteOptions` belongs to every group and version: it is the body of any typed delete.
"""

from typing import Final

from fastness.formats.errors import ProtobufError

_KINDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "v1": (
        "core",
        (
            "Binding",
            "ConfigMap",
            "Event",
            "Namespace",
            "Node",
            "Pod",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ),
    ),
    "apps/v1": ("apps", ("Deployment",)),
    "authentication.k8s.io/v1": ("authentication", ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    "authorization.k8s.io/v1": (
        "authorization",
        ("LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
    ),
    "batch/v1": ("batch", ("CronJob", "Job")),
    "certificates.k8s.io/v1": ("certificates", ("CertificateSigningRequest",)),
    "coordination.k8s.io/v1": ("coordination", ("Lease",)),
    "events.k8s.io/v1": ("events", ("Event",)),
    "networking.k8s.io/v1": ("networking", ("Ingress",)),
    "policy/v1": ("policy", ("Eviction", "PodDisruptionBudget")),
    "rbac.authorization.k8s.io/v1": ("rbac", ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    "scheduling.k8s.io/v1": ("scheduling", ("PriorityClass",)),
    "storage.k8s.io/v1": ("storage", ("CSINode",)),
}
_MESSAGES: Final = {
    (api_version, kind): f"{package}.{kind}" for api_version, (package, kinds) in _KINDS.items() for kind in kinds
}


def message_of(api_version: str, kind: str) -> str:
    """The name of the message that describes a kind; raises `ProtobufError`."""
    if kind == "DeleteOptions":
        return "meta.DeleteOptions"
    name = _MESSAGES.get((api_version, kind))
    if name is None:
        raise ProtobufError(
            "protobuf-unknown-kind", f"{kind[:80]!r} of {api_version[:80]!r} is not known in protobuf", hint="send JSON"
        )
    return name


def supported_kinds() -> list[tuple[str, str]]:
    """Every (apiVersion, kind) with a table; `DeleteOptions` comes on top, in any version."""
    return sorted(_MESSAGES)
