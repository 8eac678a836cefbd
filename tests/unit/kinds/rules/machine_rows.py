"""Rows of machineconfiguration.openshift.io, without the ControllerConfig."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.kinds.examples import LATER, NOW
from tests.unit.kinds.rules import messages as m
from tests.unit.kinds.rules.cases import (
    BUILD,
    IMAGE,
    NODE,
    OS_CONFIG,
    PINNED,
    POOL,
    RUNTIME,
    STREAM,
    Case,
    at,
    case,
    each,
)

_STORES: Final = "spec.containerRuntimeConfig"
RUNTIME_ROWS: Final = [
    row
    for name in ("additionalLayerStores", "additionalImageStores", "additionalArtifactStores")
    for row in (
        case(RUNTIME, f"{_STORES}.{name}", f"{name} must not contain duplicate paths",
             [{"path": "/a"}, {"path": "/b"}], [{"path": "/a"}, {"path": "/b"}, {"path": "/a"}]),
        case(RUNTIME, f"{_STORES}.{name}[].path",
             "path must be absolute and contain only alphanumeric characters, '/', '.', '_', and '-'",
             "/var/lib/store_1.d", "/var/lib/store:ref"),
        case(RUNTIME, f"{_STORES}.{name}[].path", "path must not contain consecutive forward slashes", "/var/lib", "/var//lib"),
    )
]  # fmt: skip

_SETS: Final = "status.pinnedImageSets[]"
_RELEASES: Final = "status.internalReleaseImage.releases[]"
NODE_ROWS: Final = [
    Case(NODE, "", "spec.node.name should match metadata.name",
         {"metadata": {"name": "worker-1"}, "spec": {"node": {"name": "worker-1"}}}, {"metadata": {"name": "worker-1"}}),
    # The name of the object is the one of the node, so both change.
    Case(NODE, "spec.node.name", m.SUBDOMAIN[0], {"metadata": {"name": "a.b"}, "spec": {"node": {"name": "a.b"}}},
         {"spec": {"node": {"name": "Worker_0"}}}),
    *each(NODE, ("spec.pool.name", "spec.configVersion.desired", "status.configVersion.current",
                 "status.configVersion.desired", f"{_SETS}.name"), m.SUBDOMAIN),
    *each(NODE, ("spec.configImage.desiredImage", "status.configImage.currentImage", "status.configImage.desiredImage"),
          *m.IMAGE_ROWS),
    *each(NODE, (f"{_RELEASES}.image",), m.DIGEST_FORM, m.LOCAL_NAME_FORM),
    case(NODE, f"{_RELEASES}.name", "must be ocp-release-bundle-<version>-<arch|stream> and <= 64 chars",
         "ocp-release-bundle-4.20.1-aarch64", "ocp-release-bundle-4.20-aarch64"),
    case(NODE, "status.irreconcilableChanges[].fieldPath", "The fieldPath must start with `spec.`", "spec.a[0].b", "config.a"),
    case(NODE, "status.irreconcilableChanges[].fieldPath",
         "The fieldPath must consist only of alphanumeric characters, brackets [] and dots ('.').", "spec.a[0]", "spec.a-b"),
    case(NODE, "status.observedGeneration", "observedGeneration must not decrease", 7, 6, old=7),
    case(NODE, _SETS, "desired generation must be greater than or equal to the current generation",
         {"desiredGeneration": 2, "currentGeneration": 2}, {"desiredGeneration": 2, "currentGeneration": 3}),
    case(NODE, _SETS, "desired generation must be greater than or equal to the last failed generation",
         {"desiredGeneration": 2, "lastFailedGeneration": 2, "lastFailedGenerationError": "x"},
         {"desiredGeneration": 2, "lastFailedGeneration": 3, "lastFailedGenerationError": "x"}),
    case(NODE, _SETS, "last failed generation error must be defined on image pull and pin failure",
         {"lastFailedGeneration": 2, "lastFailedGenerationError": "x"}, {"lastFailedGeneration": 2}),
    *(Case(NODE, f"{_SETS}.{name}", f"{name} must not decrease",
           *(at(NODE, _SETS, {"lastFailedGenerationError": "x", name: generation}) for generation in (4, 3, 4)))
      for name in ("currentGeneration", "desiredGeneration", "lastFailedGeneration")),
]  # fmt: skip

_SYNC: Final = "status.poolSynchronizersStatus[]"


def _fewer(count: str) -> dict[str, int]:
    """Counts of which only this one is more than there are machines; what is ready is available, so both are."""
    more = ("availableMachineCount", "readyMachineCount") if count == "readyMachineCount" else (count,)
    return dict.fromkeys(more, 6)


POOL_ROWS: Final = [
    *each(POOL, ("spec.osImageStream.name", "status.osImageStream.name"), m.STREAM),
    *(case(POOL, _SYNC, f"machineCount must be greater than or equal to {count}", {}, _fewer(count))
      for count in ("updatedMachineCount", "availableMachineCount", "unavailableMachineCount", "readyMachineCount")),
    case(POOL, _SYNC, "availableMachineCount must be greater than or equal to readyMachineCount",
         {"availableMachineCount": 5}, {"availableMachineCount": 4}),
    case(POOL, f"{_SYNC}.observedGeneration", "observedGeneration must not move backwards except to zero", 0, 6, old=7),
    case(POOL, f"{_SYNC}.observedGeneration", "observedGeneration must not move backwards except to zero", 8, 6, old=7,
         again=True),
]  # fmt: skip


def _ended(kind: str, reason: str = "Done") -> list[dict[str, Any]]:
    return [{"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": NOW}]


_OBJECTS: Final = ("status.builder.job", "status.relatedObjects[]")
BUILD_ROWS: Final = [
    case(BUILD, "spec", "machineOSBuildSpec is immutable once set", {}, {"machineOSConfig": {"name": "infra"}}, old={}),
    *each(BUILD, ("spec.machineConfig.name", "spec.machineOSConfig.name"), m.SUBDOMAIN),
    *each(BUILD, ("spec.renderedImagePushSpec",), m.TAG_FORM),
    case(BUILD, "status", "buildEnd must be after buildStart",
         {"buildStart": NOW, "buildEnd": LATER}, {"buildStart": LATER, "buildEnd": LATER}),
    case(BUILD, "status", "buildEnd must be after buildStart", {"buildStart": NOW}, {"buildEnd": NOW}, again=True),
    case(BUILD, "status.buildStart", "buildStart is immutable once set", NOW, LATER, old=NOW),
    Case(BUILD, "status.buildEnd", "buildEnd is immutable once set",
         *({"status": {"buildStart": "2026-11-15T19:00:00Z", "buildEnd": end}} for end in (NOW, LATER, NOW))),
    Case(BUILD, "status.builder", "job is required when imageBuilderType is Job, and forbidden otherwise",
         at(BUILD, "status.builder", {}), {"status": {"builder": {"imageBuilderType": "Job"}}}),
    *each(BUILD, [f"{place}.{field}" for place in _OBJECTS for field in ("group", "name")], m.SUBDOMAIN),
    *each(BUILD, [f"{place}.namespace" for place in _OBJECTS], m.LABEL),
    *each(BUILD, [f"{place}.resource" for place in _OBJECTS], m.RESOURCE),
    *(case(BUILD, "status.conditions", f"once {article} {kind} condition is set, conditions are immutable",
           _ended(kind), _ended(kind, "Other"), old=_ended(kind))
      for article, kind in (("a", "Failed"), ("an", "Interrupted"), ("an", "Succeeded"))),
    *each(BUILD, ("status.digestedImagePushSpec",), *m.IMAGE_ROWS),
]  # fmt: skip

_ONE_PER_POOL: Final = (
    "MachineOSConfig name must match the referenced MachineConfigPool name; can only have one MachineOSConfig per "
    "MachineConfigPool"
)
_OTHER_POOL: Final = {"spec": {"machineConfigPool": {"name": "infra"}}}
OS_CONFIG_ROWS: Final = [
    Case(OS_CONFIG, "", _ONE_PER_POOL, {"metadata": {"name": "infra"}, **_OTHER_POOL}, _OTHER_POOL),
    Case(OS_CONFIG, "", _ONE_PER_POOL, {}, _OTHER_POOL, {}, again=True),
    Case(OS_CONFIG, "spec.machineConfigPool.name", m.SUBDOMAIN[0],
         {"metadata": {"name": "a.b"}, "spec": {"machineConfigPool": {"name": "a.b"}}},
         {"spec": {"machineConfigPool": {"name": "Infra_0"}}}),
    *each(OS_CONFIG, ("spec.baseImagePullSecret.name", "spec.renderedImagePushSecret.name"), m.SUBDOMAIN),
    *each(OS_CONFIG, ("spec.renderedImagePushSpec",), m.TAG_FORM),
    case(OS_CONFIG, "spec.renderedImagePushSpec", m.TAG_FORM[0], "registry.ns.svc:5000/repo/os:tag",
         "registry.ns:5000/repo/os", again=True),
    *each(OS_CONFIG, ("status.currentImagePullSpec",), *m.IMAGE_ROWS),
    *each(OS_CONFIG, ("status.machineOSBuild.group", "status.machineOSBuild.name"), m.SUBDOMAIN),
    *each(OS_CONFIG, ("status.machineOSBuild.namespace",), m.LABEL),
    *each(OS_CONFIG, ("status.machineOSBuild.resource",), m.RESOURCE),
    case(OS_CONFIG, "status.observedGeneration", "observedGeneration must not move backwards", 7, 6, old=7),
]  # fmt: skip

_STREAMS: Final = at(STREAM, "status", {
    "availableStreams": [{"name": name, "osImage": IMAGE, "osExtensionsImage": IMAGE} for name in ("rhel-9", "rhel-10")],
})  # fmt: skip
STREAM_ROWS: Final = [
    Case(STREAM, "", "osimagestream is a singleton, .metadata.name must be 'cluster'", {}, {"metadata": {"name": "other"}}),
    Case(STREAM, "", "spec.defaultStream must reference an existing stream name from status.availableStreams",
         *({**_STREAMS, "spec": {"defaultStream": name}} for name in ("rhel-10", "rhel-11", "rhel-9"))),
    *each(STREAM, ("spec.defaultStream",), m.STREAM),
    case(STREAM, "status.defaultStream", m.STREAM[0], "rhel-9", "rhel@9!"),
    case(STREAM, "status.availableStreams[].name", m.STREAM[0], "rhel-9", "rhel@9!"),
    case(STREAM, "status", "defaultStream must reference a stream name from availableStreams", {}, {"defaultStream": "rhel-10"}),
    *each(STREAM, ("status.availableStreams[].osImage", "status.availableStreams[].osExtensionsImage"), *m.IMAGE_ROWS),
]  # fmt: skip

PINNED_ROWS: Final = each(PINNED, ("spec.pinnedImages[].name",), *m.IMAGE_ROWS)

ROWS: Final = [
    *RUNTIME_ROWS, *NODE_ROWS, *POOL_ROWS, *BUILD_ROWS, *OS_CONFIG_ROWS, *STREAM_ROWS, *PINNED_ROWS,
]  # fmt: skip
