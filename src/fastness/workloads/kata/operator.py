"""Whether the operator of sandboxed containers is there: what was removed must not go on working.

The work is done by this control plane whatever is subscribed to, so a KataConfig needs nobody to install an operator first:
where none was ever seen, it is acted on. Who installs the operator, and later removes it, expects what the manual says: that
nothing acts on a KataConfig any more. So:

    ClusterServiceVersion    Subscription    seen before    the KataConfig
    there                    either          either         is acted on
    not there                either          yes            is left alone: the operator was removed
    not there                there           no             is left alone: the operator is not installed yet
    not there                not there       no             is acted on: nobody uses operators here

* A version that is being deleted is not there. Deleting the Subscription alone changes nothing: as in OLM, the version stays.
* That it was seen stands in an annotation of our own namespace: the operator's namespace goes with the operator, and an object
  of our own would stay behind in a cluster that was cleaned up.
* Left alone means all of it, removal included: no node is touched, no object is changed. It goes on when a version is back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastness.kinds.kata import names
from fastness.kinds.objects import annotations_of, is_being_deleted, metadata, object_name
from fastness.workloads.kata.status import Said

Object = Mapping[str, Any]
MISSING: Final = "OperatorMissing"
WAITING: Final = "WaitingForOperator"
_WAY_BACK: Final = f"subscribe to {names.OPERATOR} in namespace {names.NAMESPACE}"


class Operator(NamedTuple):
    """The version that is there, the Subscription that asks for one, the version that was seen last; each by name, or empty."""

    installed: str = ""
    subscription: str = ""
    seen: str = ""

    @property
    def unrecorded(self) -> bool:
        """Whether the version that is there is not written down yet."""
        return bool(self.installed) and self.installed != self.seen

    @property
    def against(self) -> Said | None:
        """Why nothing may be done for a KataConfig; None when nothing speaks against it."""
        if self.installed:
            return None
        if self.seen:
            gone = f"operator {self.seen} was removed: nothing is done, and no node is touched, until it is back"
            return Said(False, MISSING, f"{gone}; {_WAY_BACK}")
        if self.subscription:
            asked = f"Subscription {names.NAMESPACE}/{self.subscription} has not installed its operator yet"
            return Said(True, WAITING, f"{asked}: nothing is done until it has; look at its conditions and InstallPlan")
        return None


def look(versions: Iterable[Object], subscriptions: Iterable[Object], home: Object) -> Operator:
    """What the operator's namespace and our own (`home`) tell."""
    there = [one for one in versions if _is_version(one) and not is_being_deleted(one)]
    newest = max(
        there, key=lambda one: (str(metadata(one).get("creationTimestamp")), object_name(one).name), default={}
    )
    asking = sorted(object_name(one).name for one in subscriptions if _asks(one))
    return Operator(
        object_name(newest).name if newest else "",
        asking[0] if asking else "",
        annotations_of(home).get(names.OPERATOR_SEEN, ""),
    )


def _is_version(version: Object) -> bool:
    return object_name(version).name.startswith(f"{names.OPERATOR}.")


def _asks(subscription: Object) -> bool:
    spec = subscription.get("spec")
    wanted = spec.get("name") if isinstance(spec, Mapping) else None
    return wanted == names.OPERATOR and not is_being_deleted(subscription)
