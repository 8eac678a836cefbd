"""One row for every CEL rule of the kinds that the public API has rules for.

A `Case` says where a rule stands and what it says, with a value that passes and one that fails; a rule that compares has what was
there before. `at` makes a document of a path and a value: what else the place needs to be whole comes from `AROUND`. The unit
test runs the rows in process, the component test on the embedded API and on a real one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds.kind import JsonObject
from tests.unit.kinds.examples import mco

_MCO: Final = "machineconfiguration.openshift.io"
RUNTIME: Final = f"containerruntimeconfigs.{_MCO}"
CONTROLLER: Final = f"controllerconfigs.{_MCO}"
NODE: Final = f"machineconfignodes.{_MCO}"
POOL: Final = f"machineconfigpools.{_MCO}"
BUILD: Final = f"machineosbuilds.{_MCO}"
OS_CONFIG: Final = f"machineosconfigs.{_MCO}"
STREAM: Final = f"osimagestreams.{_MCO}"
PINNED: Final = f"pinnedimagesets.{_MCO}"
OPERATOR: Final = "machineconfigurations.operator.openshift.io"

DIGEST: Final = "@sha256:" + "ab" * 32
IMAGE: Final = f"registry.example.com/os/rhcos{DIGEST}"

BASES: Final[dict[str, JsonObject]] = {
    RUNTIME: mco("ContainerRuntimeConfig", "rules", spec={"containerRuntimeConfig": {}}),
    CONTROLLER: mco("ControllerConfig", "rules", spec={}),
    NODE: mco(
        "MachineConfigNode",
        "worker-0",
        spec={"node": {"name": "worker-0"}, "pool": {"name": "worker"}, "configVersion": {"desired": "not-yet-set"}},
    ),
    POOL: mco("MachineConfigPool", "rules", spec={}),
    BUILD: mco(
        "MachineOSBuild",
        "worker-1",
        spec={
            "machineConfig": {"name": "rendered-worker-1"},
            "machineOSConfig": {"name": "worker"},
            "renderedImagePushSpec": "registry.example.com/org/os:latest",
        },
    ),
    OS_CONFIG: mco(
        "MachineOSConfig",
        "worker",
        spec={
            "machineConfigPool": {"name": "worker"},
            "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"},
            "renderedImagePushSpec": "registry.example.com/org/os:latest",
        },
    ),
    STREAM: mco("OSImageStream", "cluster", spec={"defaultStream": "rhel-9"}),
    PINNED: mco("PinnedImageSet", "rules", spec={"pinnedImages": [{"name": IMAGE}]}),
    OPERATOR: {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "MachineConfiguration",
        "metadata": {"name": "cluster"},
        "spec": {},
    },
}

_RHEL_9: Final = {"name": "rhel-9", "osImage": IMAGE, "osExtensionsImage": IMAGE}
_REFERENCE: Final = {"name": "build-1", "group": "batch", "resource": "jobs"}
_MACHINE_SETS: Final = {"resource": "machinesets", "apiGroup": "machine.openshift.io", "selection": {"mode": "All"}}
_COPY: Final = {"apiVersion": "config.openshift.io/v1", "spec": {}}
_COUNTS: Final = (
    "machineCount",
    "updatedMachineCount",
    "readyMachineCount",
    "availableMachineCount",
    "unavailableMachineCount",
)
AROUND: Final[dict[tuple[str, str], JsonObject]] = {
    (NODE, "status.configVersion"): {"desired": "rendered-worker-1"},
    (NODE, "status.pinnedImageSets[]"): {"name": "set"},
    (NODE, "status.irreconcilableChanges[]"): {"fieldPath": "spec.config", "diff": "-a +b"},
    (NODE, "status.internalReleaseImage.releases[]"): {"name": "ocp-release-bundle-4.20.1-x86_64"},
    (POOL, "status.poolSynchronizersStatus[]"): {"poolSynchronizerType": "PinnedImageSets", **dict.fromkeys(_COUNTS, 5)},
    (BUILD, "status.builder"): {"imageBuilderType": "Job", "job": _REFERENCE},
    (BUILD, "status.builder.job"): _REFERENCE,
    (BUILD, "status.relatedObjects[]"): _REFERENCE,
    (OS_CONFIG, "status.machineOSBuild"): _REFERENCE,
    (STREAM, "status"): {"defaultStream": "rhel-9", "availableStreams": [_RHEL_9]},
    (STREAM, "status.availableStreams[]"): _RHEL_9,
    **{(OPERATOR, f"{place}.machineManagers[]"): _MACHINE_SETS
       for place in ("spec.managedBootImages", "status.managedBootImagesStatus")},
    **{(OPERATOR, f"{place}.{entries}[]"): fields
       for place in ("spec.nodeDisruptionPolicy", "status.nodeDisruptionPolicyStatus.clusterPolicies")
       for entries, fields in (("files", {"path": "/etc/x", "actions": []}), ("units", {"name": "x.service", "actions": []}))},
    (CONTROLLER, "spec.dns"): {**_COPY, "kind": "DNS"},
    (CONTROLLER, "spec.infra"): {**_COPY, "kind": "Infrastructure"},
    (CONTROLLER, "spec.infra.spec.platformSpec.nutanix.failureDomains[]"): {
        "name": "a", "cluster": {"type": "Name", "name": "c"}, "subnets": [{"type": "Name", "name": "s"}]},
    (CONTROLLER, "spec.infra.spec.platformSpec.vsphere.failureDomains[]"): {
        "name": "a", "server": "vc.example.com", "region": "r", "zone": "z", "topology": {}},
    # Every failure domain needs its vCenter, so both come together.
    (CONTROLLER, "spec.infra.spec.platformSpec.vsphere"): {"vcenters": [{"server": "vc.example.com"}]},
    **{(CONTROLLER, f"spec.infra.{place}.ibmcloud.serviceEndpoints[]"): {"name": "IAM"}
       for place in ("spec.platformSpec", "status.platformStatus")},
    (CONTROLLER, "spec.infra.status.platformStatus.aws.resourceTags[]"): {"key": "k", "value": "v"},
    (CONTROLLER, "spec.infra.status.platformStatus.gcp.resourceLabels[]"): {"key": "k", "value": "v"},
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A rule, proved by a document that passes and one that fails; with `old` it compares with that."""

    crd: str
    path: str
    message: str
    passes: JsonObject
    fails: JsonObject
    old: JsonObject | None = None
    again: bool = field(default=False, kw_only=True)
    """One more proof of a rule that has a row already."""

    def __str__(self) -> str:
        return f"{self.crd.partition('.')[0]} {self.path or '(root)'}: {self.message[:40]}"

    @property
    def place(self) -> str:
        """Where the refusal points to."""
        return self.path.replace("[]", "[0]") or "<nil>"

    @property
    def by_status(self) -> bool:
        """Whether it is the status that is written: the API has another address for it."""
        changed = self.fails if self.old is None else {k: v for k, v in self.fails.items() if v != self.old.get(k)}
        return "status" in changed

    def document(self, patch: JsonObject) -> JsonObject:
        """A whole object of the kind."""
        made: JsonObject = apply_merge_patch(BASES[self.crd], patch)
        return made


def at(crd: str, path: str, value: Any) -> JsonObject:
    """What a document has at a path, with everything that must stand around it; `[]` is a list with one entry."""
    done = value
    steps = path.split(".") if path else []
    for end in range(len(steps), 0, -1):
        place = ".".join(steps[:end])
        done = _filled(done, AROUND.get((crd, place)))
        if steps[end - 1].endswith("[]"):
            done = [done]
            done = _filled(done, AROUND.get((crd, place.removesuffix("[]"))))
        done = {steps[end - 1].removesuffix("[]"): done}
    return done if isinstance(done, dict) else {}


def _filled(value: Any, around: JsonObject | None) -> Any:
    return {**around, **value} if around is not None and isinstance(value, dict) else value


def case(crd: str, path: str, message: str, passes: Any, fails: Any, **more: Any) -> Case:
    """A row about the value at a path; `old` is the value before."""
    if "old" in more:
        more["old"] = at(crd, path, more["old"])
    return Case(crd, path, message, at(crd, path, passes), at(crd, path, fails), **more)


def each(crd: str, paths: Iterable[str], *rows: tuple[str, Any, Any]) -> list[Case]:
    """The same rules at several paths: (message, passes, fails)."""
    return [case(crd, path, *row) for path in paths for row in rows]
