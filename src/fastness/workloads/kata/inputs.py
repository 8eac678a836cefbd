"""What the state machine looks at, and what it may ask for.

`Inputs` is everything that a decision depends on, taken at one moment. A `Plan` is a list of actions in the order in which
they are to be done, the status to tell, and when to look again. Doing the actions and telling the status twice changes
nothing: at rest the plan is empty.

One of the inputs is whether the operator of sandboxed containers is there. The work is done by this control plane whatever is
subscribed to, so a KataConfig needs nobody to install an operator first: where there never was one, it is acted on. Who
installs the operator, and later removes it, expects what the manual says: that nothing acts on a KataConfig any more. So:

    ClusterServiceVersion    Subscription    there before   the KataConfig
    there                    either          either         is acted on
    not there                either          yes            is left alone: the operator was removed
    not there                there           no             is left alone: the operator is not installed yet
    not there                not there       no             is acted on: nobody uses operators here

* A version that is being deleted is not there. Deleting the Subscription alone changes nothing: as in OLM, the version stays.
* That it was there stands in an annotation of our own namespace: the operator's namespace goes with the operator, and an object
  of our own would stay behind in a cluster that was cleaned up.
* Left alone means all of it, removal included: no node is touched, no object is changed. It goes on when a version is back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, is_being_deleted, metadata, object_name
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.kata.status import KataCondition, Status

Object = Mapping[str, Any]
MISSING: Final = "OperatorMissing"
WAITING: Final = "WaitingForOperator"
_WAY_BACK: Final = f"subscribe to {names.OPERATOR} in namespace {names.NAMESPACE}"
_NO_GATES = FeatureGates()
_NEVER = datetime.fromtimestamp(0, UTC)


class Ref(NamedTuple):
    """An object by kind, namespace and name."""

    kind: str
    name: str
    namespace: str = ""


def ref_of(obj: Object) -> Ref:
    """Which object it is."""
    place = object_name(obj)
    return Ref(str(obj["kind"]), place.name, place.namespace)


@dataclass(frozen=True, slots=True)
class PodUse:
    """Which classes live pods use, and on which nodes, with one pod of each; `error` when nobody could be asked."""

    classes: Mapping[str, str] = field(default_factory=dict)
    first: str = ""
    error: str | None = None
    nodes: Mapping[str, str] = field(default_factory=dict)


def pod_use(pods: Sequence[Object], classes: Sequence[str]) -> PodUse:
    """The use that pods make of some classes; pods that ended do not count."""
    users: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for pod in sorted(pods, key=object_name):
        spec = pod.get("spec") or {}
        name = str(spec.get("runtimeClassName") or "")
        # A pod that ended has no sandbox any more, even while its object stays.
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if name in classes and not ended:
            users.setdefault(name, str(object_name(pod)))
            nodes.setdefault(str(spec.get("nodeName") or ""), str(object_name(pod)))
    return PodUse(users, next(iter(users), ""), nodes=nodes)


class Operator(NamedTuple):
    """The version that is there, the Subscription that asks for one, and the version that was there last, as recorded on our own
    namespace; each by name, or empty.
    """

    installed: str = ""
    subscription: str = ""
    recorded: str = ""

    @property
    def unrecorded(self) -> bool:
        """Whether the version that is there is not written down yet."""
        return bool(self.installed) and self.installed != self.recorded

    @property
    def against(self) -> KataCondition | None:
        """Why nothing may be done for a KataConfig; None when nothing speaks against it."""
        if self.installed:
            return None
        if self.recorded:
            gone = f"operator {self.recorded} was removed: nothing is done, and no node is touched, until it is back"
            return KataCondition(False, MISSING, f"{gone}; {_WAY_BACK}")
        if self.subscription:
            pending = f"Subscription {names.NAMESPACE}/{self.subscription} has not installed its operator yet"
            return KataCondition(
                True, WAITING, f"{pending}: nothing is done until it has; look at its conditions and InstallPlan"
            )
        return None


def read_operator(versions: Iterable[Object], subscriptions: Iterable[Object], home: Object) -> Operator:
    """The operator, from the objects of its namespace and from our own namespace (`home`)."""
    there = [version for version in versions if _is_version(version) and not is_being_deleted(version)]
    newest = max(
        there,
        key=lambda version: (str(metadata(version).get("creationTimestamp")), object_name(version).name),
        default={},
    )
    asking = sorted(object_name(subscription).name for subscription in subscriptions if _asks(subscription))
    return Operator(
        object_name(newest).name if newest else "",
        asking[0] if asking else "",
        annotations_of(home).get(names.OPERATOR_SEEN, ""),
    )


def _is_version(version: Object) -> bool:
    return object_name(version).name.startswith(f"{names.OPERATOR}.")


def _asks(subscription: Object) -> bool:
    spec = subscription.get("spec")
    package = spec.get("name") if isinstance(spec, Mapping) else None
    return package == names.OPERATOR and not is_being_deleted(subscription)


_NO_OPERATOR = Operator()


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that decisions depend on, taken at one moment; `served` says whether the cluster has machine configs at all."""

    config: Object | None
    gates: FeatureGates = _NO_GATES
    nodes: Sequence[Object] = ()
    pools: Sequence[Object] = ()
    objects: Mapping[Ref, Object] = field(default_factory=dict)
    pods: PodUse = PodUse()
    cluster: Object | None = None
    machines: Sequence[Object] = ()
    version: str = ""
    served: bool = True
    namespace: bool = True
    console: bool = False
    layered: Object | None = None
    pull_secret: Object | None = None
    operator: Operator = _NO_OPERATOR
    now: datetime = _NEVER

    def node(self, name: str) -> Object | None:
        """The node of that name, or None."""
        return next((node for node in self.nodes if object_name(node).name == name), None)

    def pool(self, name: str) -> Object:
        """The pool of that name; an empty object when there is none."""
        return next((pool for pool in self.pools if object_name(pool).name == name), {})


@dataclass(frozen=True, slots=True)
class Ensure:
    """Make an object, or bring the fields of it that are ours to what they should be.

    `owned` are paths; what a server adds below them (defaults) counts as ours only when `exact`.
    """

    obj: JsonObject
    owned: tuple[tuple[str, ...], ...]
    exact: bool = True

    @property
    def ref(self) -> Ref:
        """Which object it is."""
        return ref_of(self.obj)

    def differs(self, present: Object) -> bool:
        """Whether the object that is there is not what it should be."""
        labels, own = metadata(present).get("labels") or {}, metadata(self.obj).get("labels") or {}
        if not own.items() <= labels.items():
            return True
        fits = _same if self.exact else covers
        return any(not fits(at(present, path), at(self.obj, path)) for path in self.owned)


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Mark:
    """Set labels and annotations of a node; None takes one away."""

    node: str
    labels: Mapping[str, str | None] = field(default_factory=dict)
    notes: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hold:
    """Put the finalizer on the KataConfig and write down the mode."""

    mode: str


@dataclass(frozen=True, slots=True)
class LetGo:
    """Take our finalizer from an object: the KataConfig, or a runtime class that nobody uses."""

    ref: Ref
    finalizer: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Write on our own namespace which version of the operator was there."""

    version: str


Action = Ensure | Remove | Mark | Hold | LetGo | Remember


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, what to tell, and when to look again (seconds; None: when something changes)."""

    actions: tuple[Action, ...] = ()
    status: Status | None = None
    again: float | None = None


def at(obj: Any, path: Sequence[str]) -> Any:
    """The value at a path, or None."""
    for key in path:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def covers(present: Any, required: Any) -> bool:
    """Whether a value has everything that is required; what else it has does not matter, lists must be as long."""
    if isinstance(required, Mapping):
        return isinstance(present, Mapping) and all(covers(present.get(key), value) for key, value in required.items())
    if isinstance(required, list):
        return (
            isinstance(present, list)
            and len(present) == len(required)
            and all(covers(*pair) for pair in zip(present, required, strict=True))
        )
    return bool(present == required)


def _same(present: Any, required: Any) -> bool:
    return bool(present == required)
