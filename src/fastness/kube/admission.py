"""The nouns of admission: what is asked, what is looked up, what is answered.

A rule is a function of a request and the lookups. It returns None when it has nothing to say, or one of the three answers; the
first `Denied` ends the review, warnings add up, and a patch is applied before the next rule looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from fastness.kube.access.policy import Policy
from fastness.kube.access.user import Attributes, Decision, User

MAX_WARNING: Final = 256  # bytes
_CUT: Final = "…"
Object = Mapping[str, Any]
JsonPatch = Sequence[Mapping[str, Any]]


class Operation(StrEnum):
    """What a write does, as Kubernetes names it in an AdmissionReview."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class PolicyTrial(NamedTuple):
    """What the policy engine says of an agent policy: requests that are open to everybody, and its complaint."""

    opened: Collection[str] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """One write: who, what, the object before and after, and what the engine said of a policy in it where it was asked."""

    operation: Operation
    user: User
    group: str
    version: str
    kind: str
    resource: str
    name: str
    namespace: str = ""
    subresource: str = ""
    object: Object | None = None
    old: Object | None = None
    dry_run: bool = False
    trial: PolicyTrial | None = None

    @property
    def new(self) -> Object:
        """The object as it will be; empty for a delete."""
        return self.object or {}

    @property
    def target(self) -> str:
        """The object in the form of Kubernetes' messages: `pods "a"`."""
        plural = f"{self.resource}.{self.group}" if self.group else self.resource
        return f'{plural} "{self.name}"'


class DeniedCause(NamedTuple):
    """One field that is the reason: `reason` is a Kubernetes cause type."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Allowed:
    """Let it pass, with words for the user."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Denied:
    """Refuse it: `code` is the HTTP status, `reason` the Kubernetes reason, `message` the whole sentence.

    `about` is the resource and name that the details name when it is not the written object: a namespace that is missing.
    """

    message: str
    code: int = 403
    reason: str = "Forbidden"
    causes: tuple[DeniedCause, ...] = ()
    about: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Patched:
    """Let it pass with a change (RFC 6902), with words for the user."""

    patch: JsonPatch
    warnings: tuple[str, ...] = ()


Answer = Allowed | Denied | Patched


class AdmissionLookups(Protocol):
    """What the rules must know of the store."""

    def namespace(self, name: str) -> Object | None:
        """One Namespace."""

    def pod(self, namespace: str, name: str) -> Object | None:
        """One Pod."""

    def policy(self) -> Policy:
        """The current roles and bindings."""

    def authorize(self, attrs: Attributes) -> Decision:
        """The decision of the server's authorizer."""

    def confidential_cluster(self) -> Object | None:
        """The ConfidentialCluster `cluster`."""

    def pools(self) -> Iterable[Object]:
        """All MachineConfigPools."""

    def nodes(self) -> Iterable[Object]:
        """All Nodes."""

    def pods(self) -> Iterable[Object]:
        """All Pods."""

    def machines(self) -> Iterable[Object]:
        """The Machines that count."""

    def kata_configs(self) -> Iterable[Object]:
        """All KataConfigs."""

    def feature_gates(self) -> Object | None:
        """The ConfigMap with the feature gates of confidential containers."""

    def appointments(self) -> Object | None:
        """The ConfigMap that says who counts as an approver of overrides."""

    def simulated(self) -> bool | None:
        """Whether this store belongs to a simulated cluster; None as long as it is not bound."""

    def runtime_class(self, name: str) -> Object | None:
        """One RuntimeClass."""

    def runtime_classes(self) -> Iterable[str]:
        """The names of all RuntimeClasses."""

    def os_image_stream(self) -> Object | None:
        """The OSImageStream `cluster`."""

    def infrastructure(self) -> Object | None:
        """The Infrastructure `cluster`."""

    def microshift(self) -> Object | None:
        """The ConfigMap by which MicroShift says that it is one."""

    def has_operator_group(self, namespace: str) -> bool:
        """Whether an operator was installed into a namespace."""


Rule = Callable[[AdmissionRequest, AdmissionLookups], Answer | None]


def shortened(warning: str) -> str:
    """A warning as short as clients get it: Kubernetes cuts longer ones, in the middle of a word."""
    if len(warning.encode()) <= MAX_WARNING:
        return warning
    return f"{warning.encode()[: MAX_WARNING - len(_CUT.encode())].decode(errors='ignore')}{_CUT}"


def forbidden(request: AdmissionRequest, why: str, *causes: DeniedCause) -> Denied:
    """A 403 in the words of Kubernetes."""
    return Denied(f"{request.target} is forbidden: {why}", causes=causes)


def invalid(request: AdmissionRequest, field: str, why: str) -> Denied:
    """A 422 that names the field."""
    target = f"{request.kind}.{request.group}" if request.group else request.kind
    cause = DeniedCause(field, "FieldValueInvalid", f"Invalid value: {why}")
    return Denied(f'{target} "{request.name}" is invalid: {field}: {cause.message}', 422, "Invalid", (cause,))
