"""Sizes, closed sets, required fields and keys of lists are those of the public API.

A row is a path with a value at the limit and one beyond; where the refusal names another place than the path, it says which.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from fastness.apiserver.schema import CompiledSchema
from fastness.kinds import registry
from fastness.kinds.crd.manifest import full_schema
from fastness.kinds.kind import JsonObject
from tests.unit.kinds.rules.cases import (
    BUILD,
    CONTROLLER,
    DIGEST,
    IMAGE,
    NODE,
    OPERATOR,
    OS_CONFIG,
    PINNED,
    POOL,
    RUNTIME,
    STREAM,
    Case,
    at,
)
from tests.unit.kinds.rules.platform_status_rows import PLATFORM

LONG_IMAGE = "registry.example.com/" + "a" * (447 - 21 - len(DIGEST)) + DIGEST
NAME = "a" * 253
ACTION = {"type": "Drain"}
MANAGER = {"apiGroup": "machine.openshift.io", "selection": {"mode": "All"}}


def images(count: int) -> list[JsonObject]:
    return [{"name": f"registry.example.com/os/i{number}{DIGEST}"} for number in range(count)]


def named(count: int, key: str = "name", value: str = "a{}", **more: Any) -> list[JsonObject]:
    return [{key: value.format(number), **more} for number in range(count)]


def streams(count: int) -> list[JsonObject]:
    return named(count, value="rhel-{}", osImage=IMAGE, osExtensionsImage=IMAGE)


def references(count: int) -> list[JsonObject]:
    return named(count, group="batch", resource="jobs")


def releases(count: int) -> list[JsonObject]:
    return named(count, value="ocp-release-bundle-4.20.{}-x86_64")


LIMITS: list[tuple[str, str, Any, Any, str]] = [
    (RUNTIME, "spec.containerRuntimeConfig.additionalLayerStores", named(5, "path", "/{}"), named(6, "path", "/{}"), ""),
    (RUNTIME, "spec.containerRuntimeConfig.additionalImageStores", named(10, "path", "/{}"), named(11, "path", "/{}"), ""),
    (RUNTIME, "spec.containerRuntimeConfig.additionalArtifactStores", named(10, "path", "/{}"), [], ""),
    (RUNTIME, "spec.containerRuntimeConfig.additionalLayerStores[].path", "/" + "a" * 255, "/" + "a" * 256, ""),
    (RUNTIME, "spec.containerRuntimeConfig.logLevel", "loud", 5, ""),
    (NODE, "spec.pool.name", NAME, NAME + "a", ""),
    (NODE, "spec.configImage", {"desiredImage": IMAGE}, {}, ".desiredImage"),
    (NODE, "spec.configImage.desiredImage", LONG_IMAGE, "a" + LONG_IMAGE, ""),
    (NODE, "status.configImage", {"currentImage": IMAGE}, {}, ""),
    (NODE, "status.configVersion.desired", NAME, NAME + "a", ""),
    (NODE, "status.pinnedImageSets", named(100), named(101), ""),
    (NODE, "status.pinnedImageSets", named(2), named(1) * 2, "[1]"),
    (NODE, "status.pinnedImageSets[].currentGeneration", 1, 0, ""),
    (NODE, "status.pinnedImageSets[].desiredGeneration", 1, 0, ""),
    (NODE, "status.pinnedImageSets[].lastFailedGenerationError", "x" * 32768, "x" * 32769, ""),
    (NODE, "status.irreconcilableChanges", named(32, "fieldPath", "spec.a{}", diff="x"), [], ""),
    (NODE, "status.irreconcilableChanges", named(1, "fieldPath", "spec.a{}", diff="x"),
     named(33, "fieldPath", "spec.a{}", diff="x"), ""),
    (NODE, "status.irreconcilableChanges[].fieldPath", "spec." + "a" * 65, "spec." + "a" * 66, ""),
    (NODE, "status.irreconcilableChanges[].diff", "x" * 4096, "x" * 4097, ""),
    (NODE, "status.internalReleaseImage.releases", releases(32), releases(33), ""),
    (NODE, "status.internalReleaseImage.releases", releases(1), [], ""),
    (NODE, "status.observedGeneration", 1, 0, ""),
    (NODE, "status.conditions", named(20, "type", "A{}", status="True"), named(21, "type", "A{}", status="True"), ""),
    (POOL, "spec.pinnedImageSets", named(100), named(101), ""),
    (POOL, "spec.pinnedImageSets[].name", "Set-1." + "a" * 63, "set." + "a" * 64, ""),
    (POOL, "spec.osImageStream", {"name": NAME}, {}, ".name"),
    (POOL, "spec.osImageStream.name", NAME, NAME + "a", ""),
    (POOL, "status.poolSynchronizersStatus[].poolSynchronizerType", "PinnedImageSets", "Others", ""),
    (POOL, "status.poolSynchronizersStatus[].observedGeneration", 0, -1, ""),
    (POOL, "status.certExpirys", [{"bundle": "b", "subject": "s"}], [{"bundle": "b"}], "[0].subject"),
    (OPERATOR, "spec.nodeDisruptionPolicy.files", named(50, "path", "/{}", actions=[]), named(51, "path", "/{}", actions=[]), ""),
    (OPERATOR, "spec.nodeDisruptionPolicy.units", named(50, value="{}.service", actions=[]),
     named(51, value="{}.service", actions=[]), ""),
    (OPERATOR, "status.nodeDisruptionPolicyStatus.clusterPolicies.files", named(100, "path", "/{}", actions=[]),
     named(101, "path", "/{}", actions=[]), ""),
    (OPERATOR, "spec.nodeDisruptionPolicy.units[].name", "a" * 247 + ".service", "a" * 248 + ".service", ""),
    (OPERATOR, "spec.nodeDisruptionPolicy.sshkey", {"actions": []}, {}, ".actions"),
    (OPERATOR, "spec.nodeDisruptionPolicy.sshkey.actions", [ACTION] * 10, [ACTION] * 11, ""),
    (OPERATOR, "spec.nodeDisruptionPolicy.sshkey.actions[].type", "DaemonReload", "Special", ""),
    (OPERATOR, "status.nodeDisruptionPolicyStatus.clusterPolicies.sshkey.actions[].type", "Special", "Explode", ""),
    (OPERATOR, "spec.managedBootImages.machineManagers[].resource", "machinesets", "machines", ""),
    (OPERATOR, "spec.managedBootImages.machineManagers[].apiGroup", "machine.openshift.io", "cluster.x-k8s.io", ""),
    (OPERATOR, "spec.managedBootImages.machineManagers", [{**MANAGER, "resource": "machinesets"}],
     [{**MANAGER, "resource": "machinesets"}] * 2, "[1]"),
    (OPERATOR, "spec.managedBootImages.machineManagers[].selection", {"mode": "None"}, {}, ".mode"),
    (OPERATOR, "spec.bootImageSkewEnforcement", {"mode": "None"}, {"mode": "Automatic"}, ".mode"),
    (OPERATOR, "spec.bootImageSkewEnforcement", {"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.20.10101"}},
     {"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.20.101010"}}, ".manual.ocpVersion"),
    (OPERATOR, "spec.irreconcilableValidationOverrides.storage", ["Disks", "FileSystems", "Raid"], [], ""),
    (OPERATOR, "spec.irreconcilableValidationOverrides.storage", ["Disks"], ["Disks", "Disks"], "[1]"),
    (OPERATOR, "spec.managementState", "Removed", "Gone", ""),
    (OPERATOR, "spec.logLevel", "", "Loud", ""),
    (BUILD, "spec.machineConfig.name", "rendered-1", "rendered1", ""),
    (BUILD, "status.relatedObjects", references(10), references(11), ""),
    (BUILD, "status.relatedObjects", [{**references(1)[0], "resource": kind} for kind in ("jobs", "pods")], references(1) * 2,
     "[1]"),
    (BUILD, "status.relatedObjects[].resource", "a" * 63, "a" * 64, ""),
    (BUILD, "status.relatedObjects[].namespace", "a" * 63, "a" * 64, ""),
    (BUILD, "status.conditions", named(8, "type", "A{}", status="True"), named(9, "type", "A{}", status="True"), ""),
    (OS_CONFIG, "spec.containerFile", [{"containerfileArch": arch, "content": ""} for arch in ("ARM64", "NoArch")],
     [{"content": ""}] * 2, "[1]"),
    (OS_CONFIG, "spec.containerFile[].content", "x" * 4096, "x" * 4097, ""),
    (OS_CONFIG, "spec.imageBuilder.imageBuilderType", "Job", "PodImageBuilder", ""),
    (STREAM, "spec.defaultStream", NAME, NAME + "a", ""),
    (STREAM, "status.availableStreams", streams(100), streams(101), ""),
    (STREAM, "status.availableStreams", streams(10), [], ""),
    (PINNED, "spec.pinnedImages", images(500), images(501), ""),
    (PINNED, "spec.pinnedImages", images(1), [], ""),
    (PINNED, "spec.pinnedImages[].name", LONG_IMAGE, "a" + LONG_IMAGE, ""),
    (CONTROLLER, "spec.ipFamilies", "DualStackIPv6Primary", "IPv5", ""),
    (CONTROLLER, "spec.infra.spec.platformSpec.vsphere.vcenters", named(3, "server"), named(4, "server"), ""),
    (CONTROLLER, f"{PLATFORM}.aws.cloudLoadBalancerConfig.dnsType", "ClusterHosted", "Other", ""),
    (CONTROLLER, f"{PLATFORM}.nutanix.ingressIPs", ["192.0.2.1"], ["192.0.2.1"] * 2, "[1]"),
]  # fmt: skip


@cache
def compiled(crd: str) -> CompiledSchema:
    plural, _, group = crd.partition(".")
    return CompiledSchema(full_schema(registry.versions_of(group, plural)[0]))


def refused(crd: str, path: str, value: Any) -> list[str]:
    """The fields that a document with the value at the path is refused for."""
    document = Case(crd, path, "", {}, {}).document(at(crd, path, value))
    schema = compiled(crd)
    stored = schema.default(schema.prune(document)[0])
    if crd == STREAM and path == "status.availableStreams" and value:
        stored["status"]["defaultStream"] = value[0]["name"]
    return [cause.field for cause in schema.validate(stored) if cause.field != "<nil>"]


@pytest.mark.parametrize("row", LIMITS, ids=lambda row: f"{row[0].partition('.')[0]} {row[1]}{row[4]}")
def test_the_limit_is_where_the_public_api_has_it(row: tuple[str, str, Any, Any, str]) -> None:
    crd, path, within, beyond, below = row
    assert refused(crd, path, within) == []
    place = path.replace("[]", "[0]") + below
    assert place in refused(crd, path, beyond)


def test_what_installers_leave_out_is_filled_in() -> None:
    schema = compiled(CONTROLLER)
    platforms: JsonObject = {"aws": {}, "azure": {}, "gcp": {}, "vsphere": {}, "baremetal": {}}
    infra = {"spec": {"platformSpec": {"external": {}}}, "status": {"platformStatus": platforms}}
    copies = schema.default(Case(CONTROLLER, "", "", {}, {}).document(at(CONTROLLER, "spec.infra", infra)))["spec"][
        "infra"
    ]
    assert copies["spec"]["platformSpec"]["external"] == {"platformName": "Unknown"}
    status = copies["status"]
    assert {name: status[name] for name in ("controlPlaneTopology", "infrastructureTopology", "cpuPartitioning")} == {
        "controlPlaneTopology": "HighlyAvailable",
        "infrastructureTopology": "HighlyAvailable",
        "cpuPartitioning": "None",
    }
    platforms = status["platformStatus"]
    by_cloud = {"cloudLoadBalancerConfig": {"dnsType": "PlatformDefault"}}
    assert platforms["aws"] == platforms["azure"] == {**by_cloud, "ipFamily": "IPv4"}
    assert platforms["gcp"] == by_cloud
    assert platforms["vsphere"] == platforms["baremetal"] == {"loadBalancer": {"type": "OpenShiftManagedDefault"}}


def test_a_copy_keeps_fields_that_we_do_not_know() -> None:
    schema = compiled(CONTROLLER)
    unknown = {"later": {"a": [1, {"b": 2}]}}
    places = [
        "spec.dns", "spec.dns.spec", "spec.infra", "spec.infra.spec", "spec.infra.spec.platformSpec", "spec.infra.status",
        PLATFORM, f"{PLATFORM}.aws", f"{PLATFORM}.kubevirt", "spec.infra.spec.platformSpec.vsphere.failureDomains[]",
    ]  # fmt: skip
    for place in places:
        document = Case(CONTROLLER, "", "", {}, {}).document(at(CONTROLLER, place, unknown))
        assert schema.prune(document)[1] == [], place
