"""The life of a MachineOSBuild: what it is called, what it says, which one is current, which may go.

    (initial) ──▶ Prepared ──▶ Building ──▶ Succeeded | Failed | Interrupted

All five conditions are there from the beginning and at most one is True. What ended stays as it ended; anything else that
somebody asks for is ignored. A build that failed is kept for people to look at, until the next one starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.builds.checks import PUSH, push_spec, secret_name
from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name, rfc3339, with_condition
from fastness.machineconfig.rollout.built import phase_of
from fastness.machineconfig.rollout.status import BuildPhase

Object = Mapping[str, Any]
KEPT: Final = 5
"""Builds of a MachineOSConfig that stay although nothing names them: somebody may go back to them."""
_REASONS: Final = {
    BuildPhase.PREPARED: "Prepared", BuildPhase.BUILDING: "Building", BuildPhase.FAILED: "Failed",
    BuildPhase.INTERRUPTED: "Interrupted", BuildPhase.SUCCEEDED: "Ready",
}  # fmt: skip
_NEXT: Final[Mapping[BuildPhase, frozenset[BuildPhase]]] = {
    BuildPhase.INITIAL: frozenset(_REASONS),
    BuildPhase.PREPARED: frozenset(_REASONS) - {BuildPhase.PREPARED},
    BuildPhase.BUILDING: frozenset({BuildPhase.SUCCEEDED, BuildPhase.FAILED, BuildPhase.INTERRUPTED}),
}
_MOST_MESSAGE: Final = 4096


def manifest(
    name: str, config: Object, rendered: str, inputs: str, sources: Sequence[str] = (), *, pre_built: bool = False
) -> JsonObject:
    """A build as it is made, of a rendered config with these sources; `pre_built` stands for an image that nobody builds here."""
    meta = metadata(config)
    owner = {
        "apiVersion": names.API_VERSION, "kind": "MachineOSConfig", "name": meta["name"], "uid": meta["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    pool = ((config.get("spec") or {}).get("machineConfigPool") or {}).get("name")
    return {
        "apiVersion": names.API_VERSION, "kind": MACHINE_OS_BUILD.kind,
        "metadata": {
            "name": name, "ownerReferences": [owner], "finalizers": [names.BUILD_FINALIZER],
            "labels": {
                names.BUILD_POOL_LABEL: pool, names.BUILD_CONFIG_LABEL: rendered, names.BUILD_OF_LABEL: meta["name"],
                **({names.PRE_BUILT: "true"} if pre_built else {}),
            },
            "annotations": {
                names.PUSH_SECRET: secret_name(config, PUSH), names.IMAGE_INPUTS: inputs,
                **({names.MADE_OF: ",".join(sources)} if sources else {}),
            },
        },
        "spec": {
            "machineConfig": {"name": rendered}, "machineOSConfig": {"name": meta["name"]},
            "renderedImagePushSpec": tagged(config, name),
        },
    }  # fmt: skip


def tagged(config: Object, build: str) -> str:
    """Where the image of a build is pushed to: the repository of the push spec, with the build as its tag."""
    reference = oci.reference(push_spec(config))
    return f"{reference.registry}/{reference.repository}:{build}"


def moved(build: Object, phase: BuildPhase, message: str, now: datetime) -> list[JsonObject] | None:
    """The conditions of a build that goes on to a phase; None where it cannot go there."""
    present = phase_of(build)
    if phase not in _NEXT.get(present, frozenset()):
        return None
    conditions = list((build.get("status") or {}).get("conditions") or ())
    for each, reason in _REASONS.items():
        text = message[-_MOST_MESSAGE:] if each is phase else ""
        status = "True" if each is phase else "False"
        conditions = with_condition(conditions, kind=each, status=status, reason=reason, message=text, now=now)
    return conditions


def told(build: Object, message: str, now: datetime) -> list[JsonObject] | None:
    """The conditions of a build that goes on and says how far it is; None for one that does not."""
    if phase_of(build) is not BuildPhase.BUILDING:
        return None
    conditions = list((build.get("status") or {}).get("conditions") or ())
    return with_condition(
        conditions, kind=BuildPhase.BUILDING, status="True", reason=_REASONS[BuildPhase.BUILDING],
        message=message[:_MOST_MESSAGE], now=now,
    )  # fmt: skip


def ended_at(build: Object, now: datetime) -> str:
    """When a build ended: later than it began, also where it took less than a second."""
    start = str((build.get("status") or {}).get("buildStart") or "")
    began = datetime.fromisoformat(start.replace("Z", "+00:00")) if start else now
    return rfc3339(max(now, began + timedelta(seconds=1)))


def image_of(build: Object) -> str:
    """The image that a build pushed, by digest; empty before."""
    return str((build.get("status") or {}).get("digestedImagePushSpec") or "")


def is_pre_built(build: Object) -> bool:
    """Whether the image of a build was there before it: it is not ours to delete."""
    return labels_of(build).get(names.PRE_BUILT) == "true"


def pre_built_image(config: Object) -> str:
    """The image that a MachineOSConfig starts with, by digest; empty for none; raises ValueError for what names none."""
    text = annotations_of(config).get(names.PRE_BUILT, "").strip()
    if not text:
        return ""
    try:
        reference = oci.reference(text)
    except FormatError as error:
        raise ValueError(str(error)) from error
    if not reference.digest:
        raise ValueError(f"{text[:200]} is a tag, whose content may change: name the image by digest")
    return str(reference)


def same_image(builds: Iterable[Object], inputs: str, but: str) -> Object | None:
    """A build that made an image of the same inputs already; the newest, for its registry has it most likely."""
    good = [
        each for each in builds
        if annotations_of(each).get(names.IMAGE_INPUTS) == inputs and object_name(each).name != but
        and phase_of(each) is BuildPhase.SUCCEEDED and image_of(each)
    ]  # fmt: skip
    return max(good, key=_age, default=None)


def superseded(builds: Iterable[Object], but: str) -> list[Object]:
    """The builds that go when another starts: all that did not succeed."""
    return [each for each in builds if object_name(each).name != but and phase_of(each) is not BuildPhase.SUCCEEDED]


def prunable(builds: Sequence[Object], current: str, used: Collection[str]) -> list[Object]:
    """The builds that nobody needs: not current, booted or wanted by no node, and older than the last few."""
    free = [
        each for each in builds
        if object_name(each).name != current and phase_of(each) is BuildPhase.SUCCEEDED and image_of(each) not in used
    ]  # fmt: skip
    return sorted(free, key=_age, reverse=True)[KEPT:]


def _age(build: Object) -> tuple[str, str]:
    return str(metadata(build).get("creationTimestamp") or ""), object_name(build).name
