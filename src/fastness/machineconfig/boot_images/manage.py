"""Which machine sets are looked after, what each gets, and what MachineConfiguration reports about it.

    selected = managed_status(spec, platform)                   status.managedBootImagesStatus
    step = decide(maker, stream, trust, …)                      Update, Current, or why not
    conditions = boot_image_conditions(…)                       BootImageUpdateProgressing, -Degraded, BootImageSkewEnforced

* What is looked after is what the spec says; a spec without a word means all MachineSets on the clouds that the public API
  manages by default, and no set of the control plane; an empty list means nothing. Where machines are bare metal or our own,
  somebody asks for it.
* A new boot image comes with the managed Secret of its pool in the same write: an old stub would not let its machines in.
* Of bare metal, and of pools whose machines attest, an image must be approved first: a machine with another one would be refused.
* A set that somebody puts back three times is left: two who disagree must not make machines at random.
* Skew between boot images and the release is not judged here. A condition says so whenever somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from fastness.formats.coreos_stream import Stream
from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition, labels_of, object_name, with_condition
from fastness.kinds.openshift.config import platform_of
from fastness.machineconfig.boot_images import makers
from fastness.machineconfig.boot_images.images import NotManaged, Target, target_of
from fastness.machineconfig.boot_images.makers import Object

SETS: Final = "machinesets"
CONTROL_PLANE_SETS: Final = "controlplanemachinesets"
PROGRESSING: Final = "BootImageUpdateProgressing"
DEGRADED: Final = "BootImageUpdateDegraded"
SKEW_ENFORCED: Final = "BootImageSkewEnforced"
MOST_PATCHES: Final = 3
_GROUP: Final = "machine.openshift.io"
_BY_DEFAULT: Final = ("AWS", "GCP", "VSphere", "Azure")
_AZURE_STACK: Final = "AzureStackCloud"
_MOST_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class Update:
    """A set gets the image of the release; `patch` is everything that changes, in one write."""

    image: str
    release: str
    patch: JsonObject


@dataclass(frozen=True, slots=True)
class Current:
    """A set has the image of the release and the managed Secret."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A set should get an image and cannot: somebody must do something."""

    reason: str


Step = Update | Current | Refused | NotManaged


@dataclass(slots=True)
class Tally:
    """How far the sets of one kind are."""

    total: int = 0
    done: int = 0
    refused: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def managed_status(settings: Object, infrastructure: Object | None) -> JsonObject:
    """Whose boot images are kept current, as MachineConfiguration reports it."""
    managers = (((settings.get("spec") or {}).get("managedBootImages")) or {}).get("machineManagers")
    if managers is not None:
        return {"machineManagers": [dict(manager) for manager in managers]}
    managers = [_manager(SETS, "All" if _managed_by_default(infrastructure) else "None")]
    # The public API has no set of the control plane there, and refuses a word about it.
    if platform_of(infrastructure) != "VSphere":
        managers.append(_manager(CONTROL_PLANE_SETS, "None"))
    return {"machineManagers": managers}


def is_selected(managed: Object, resource: str, maker: Object) -> bool:
    """Whether a set is among those that are looked after."""
    for manager in managed.get("machineManagers") or ():
        if manager.get("resource") != resource:
            continue
        selection = manager.get("selection") or {}
        if selection.get("mode") == "All":
            return True
        if selection.get("mode") == "Partial":
            return _matches((selection.get("partial") or {}).get("machineResourceSelector"), maker)
    return False


def decide(
    maker: Object, stream: Stream, pools: Mapping[str, TrustModel], managed: Iterable[str], approved: Iterable[str]
) -> Step:
    """What becomes of a set; `managed` are the Secrets that we keep, `approved` the releases whose images are approved."""
    target = target_of(maker, stream)
    if isinstance(target, NotManaged):
        return target
    pool = _pool_of(makers.user_data_of(maker))
    if pool not in pools:
        secret = makers.user_data_of(maker) or "(none)"
        return NotManaged(f"its user-data is {secret}, which is that of no pool")
    if _is_current(maker, target, pool):
        return Current()
    own = f"{pool}{names.USER_DATA_SUFFIX}"
    if own not in managed:
        return Refused(f"{own} is not there yet, and machines of the new image boot with it")
    attests = pools[pool] is TrustModel.CONFIDENTIAL_CLUSTER
    if (attests or makers.provider_of(maker) == makers.METAL) and target.release not in approved:
        who = f"machines of pool {pool} attest" if attests else "bare metal boots what it is given"
        return Refused(
            f"{who}, and no ApprovedImage is of release {target.release}: approve one and annotate it with {names.BOOT_IMAGE}"
        )
    return Update(target.image, target.release, _patch(maker, target, own))


def hot_loop(count: int, image: str) -> Refused | None:
    """The refusal of a set that was given an image so many times already and does not keep it."""
    if count < MOST_PATCHES:
        return None
    return Refused(
        f"{image} was written {count} times and somebody puts another one back: end that, or leave the set out"
    )


def boot_image_conditions(
    settings: Object, tallies: Mapping[str, Tally], problem: str, waiting: str, now: datetime
) -> list[JsonObject]:
    """All conditions of MachineConfiguration with ours set; `problem` stops everything, `waiting` is what it waits for."""
    total, done = sum(tally.total for tally in tallies.values()), sum(tally.done for tally in tallies.values())
    refused = [text for tally in tallies.values() for text in tally.refused]
    skipped = [text for tally in tallies.values() for text in tally.skipped]
    progress = " | ".join(f"Reconciled {tally.done} of {tally.total} {kind}" for kind, tally in tallies.items())
    left = f"; not managed: {_some(skipped)}" if skipped else ""
    wait = f"; waiting: {waiting}" if waiting else ""
    failure = problem or (f"{counted(len(refused), 'set')} cannot be updated: {_some(refused)}" if refused else "")
    moving = not problem and done + len(refused) < total
    conditions: Sequence[JsonObject] = (settings.get("status") or {}).get("conditions") or ()
    for kind, status, reason, message in (
        (
            PROGRESSING,
            moving,
            "BootImageUpdateProgressing" if moving else "BootImagesReconciled",
            f"{progress}{left}{wait}",
        ),
        (DEGRADED, bool(failure), "BootImageUpdateFailed" if failure else "AsExpected", failure),
        *_skew(settings),
    ):
        text = "True" if status else "False"
        conditions = with_condition(conditions, kind=kind, status=text, reason=reason, message=message, now=now)
    return list(conditions)


def _skew(settings: Object) -> list[tuple[str, bool, str, str]]:
    asked_for = ((settings.get("spec") or {}).get("bootImageSkewEnforcement") or {}).get("mode")
    if not asked_for and condition(settings, SKEW_ENFORCED) is None:
        return []
    if asked_for in (None, "None"):
        return [(SKEW_ENFORCED, False, "NotRequested", "nobody asks for it")]
    message = (
        f"spec.bootImageSkewEnforcement is {asked_for}, and this control plane does not compare boot images with the release: "
        "upgrades are not held back by it"
    )
    return [(SKEW_ENFORCED, False, "NotEnforced", message)]


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_TOLD
    return "; ".join(texts[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")


def _managed_by_default(infrastructure: Object | None) -> bool:
    of_platform = ((infrastructure or {}).get("status") or {}).get("platformStatus") or {}
    cloud = (of_platform.get("azure") or {}).get("cloudName")
    return platform_of(infrastructure) in _BY_DEFAULT and cloud != _AZURE_STACK


def _manager(resource: str, mode: str) -> JsonObject:
    return {"resource": resource, "apiGroup": _GROUP, "selection": {"mode": mode}}


def _matches(selector: Any, maker: Object) -> bool:
    try:
        return label_selector_from_object(selector).matches(labels_of(maker))
    except SelectorError:
        return False  # a selector that cannot be understood chooses nothing: nobody meant these machines by it


def _pool_of(secret: str) -> str:
    for suffix in (names.USER_DATA_SUFFIX, names.UNMANAGED_USER_DATA_SUFFIX):
        if secret.endswith(suffix):
            return secret.removesuffix(suffix)
    return ""


def _is_current(maker: Object, target: Target, pool: str) -> bool:
    same = makers.boot_image(maker, None).image == target.image
    return same and makers.user_data_of(maker) == f"{pool}{names.USER_DATA_SUFFIX}"


def _patch(maker: Object, target: Target, own: str) -> JsonObject:
    """Image, user-data and the note of which release it is, together: no machine is made between the two."""
    change = {**target.change, makers.user_data_member(maker): {"name": own}}
    note = {names.BOOT_IMAGE: f"{target.release} {target.image}"}
    # What a person said about the old image says nothing about the new one.
    notes = {**note, **({names.POINTER_VERSION: None} if names.POINTER_VERSION in annotations_of(maker) else {})}
    version = {"resourceVersion": (maker.get("metadata") or {}).get("resourceVersion")}
    return {**makers.with_value(maker, change), "metadata": {"annotations": notes, **version}}


def told(maker: Object, reason: str) -> str:
    """A reason with the set that it is about."""
    return f"{object_name(maker).name}: {reason}"
