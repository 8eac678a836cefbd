"""Which boot image a machine set should have, by provider, and which sets are not looked after."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.boot_images.images import NotManaged, Target, target_of
from fastness.machineconfig.boot_images.makers import with_value
from tests.unit.machineconfig.boot_images.sets import (
    MIRROR,
    OLD_RELEASE,
    RELEASE,
    ami,
    aws,
    azure,
    gcp,
    maker,
    metal,
    stream,
    virtual,
)

GALLERY = "/resourceGroups/c/providers/Microsoft.Compute/galleries/gallery_c/images/c-gen2/versions/latest"
GCP_NEW = "projects/rhcos-cloud/global/images/rhcos-9-8-20260428-0-gcp-x86-64"


@pytest.mark.parametrize(
    ("obj", "image", "change"),
    [
        (
            maker(aws(), annotations={"fastness.dev/boot-image": f"{OLD_RELEASE} ami-old"}),
            ami(),
            {"ami": {"id": ami()}},
        ),
        (
            maker(aws(ami(arch="aarch64")), arch="arm64"),
            ami(arch="aarch64"),
            {"ami": {"id": ami(arch="aarch64")}},
        ),
        (
            maker(gcp()),
            GCP_NEW,
            {"disks": [{"boot": True, "image": GCP_NEW, "sizeGb": 128}, {"boot": False, "image": "data"}]},
        ),
        (
            maker(azure({"resourceID": GALLERY})),
            "azureopenshift:aro4:419-v2:419.6.20260428",
            {
                "image": {
                    "publisher": "azureopenshift", "offer": "aro4", "sku": "419-v2", "version": "419.6.20260428",
                    "resourceID": "", "type": "MarketplaceNoPlan",
                }
            },
        ),
        (
            maker(metal(f"http://cache/rhcos-{OLD_RELEASE}-openstack.x86_64.qcow2.gz")),
            f"{MIRROR}-{RELEASE}-openstack.x86_64.qcow2.gz",
            {"image": {"url": f"{MIRROR}-{RELEASE}-openstack.x86_64.qcow2.gz", "checksum": "ab" * 32}},
        ),
        (maker(virtual(), arch=""), RELEASE, {"bootImage": {"release": RELEASE}}),
    ],
    ids=["AWS", "AWS on ARM", "GCP", "Azure", "bare metal", "our own"],
)  # fmt: skip
def test_a_set_should_have_the_image_of_the_release(obj: dict[str, Any], image: str, change: dict[str, Any]) -> None:
    target = target_of(obj, stream())
    assert isinstance(target, Target), target
    assert (target.image, target.change) == (image, change)


@pytest.mark.parametrize(
    ("obj", "reason", "counted"),
    [
        (maker(gcp(), ownerReferences=[{"kind": "ClusterDeployment"}]), "belongs to another object", True),
        (maker(gcp(), labels={"machine.openshift.io/os-id": "Windows"}), "Windows", False),
        (maker(gcp(), labels={"machineconfiguration.openshift.io/osstream": "rhel-10"}), "stream rhel-10", False),
        (maker(gcp(project="mine")), "not one of projects/rhcos-cloud", True),
        (maker(aws("ami-mine")), "nobody noted what it is", True),
        (maker({**aws(), "ami": {"filters": []}}), "chooses its AMI by something else", True),
        (maker(aws(ami(), region="mars")), "no AMI in region mars", True),
        (maker(aws(ami()), arch=""), "its architecture is not known", True),
        (maker(gcp(), arch="s390x"), "no boot image for s390x", True),
        (
            maker(azure({"resourceID": GALLERY}, securityProfile={"settings": {"securityType": "ConfidentialVM"}})),
            "approved one by one",
            False,
        ),
        (maker(azure({"publisher": "me", "offer": "mine", "sku": "s", "version": "1"})), "none that the release", True),
        (maker(metal("http://cache/mine.qcow2")), "is no file of which the release has another one", True),
        (maker(metal("http://c/x", customDeploy={"method": "install_coreos"})), "customDeploy", True),
        (maker({"kind": "VSphereMachineProviderSpec", "template": "rhcos"}), "uploaded to vCenter", True),
        (maker({"kind": "OpenstackProviderSpec"}), "OpenstackProviderSpec are not managed here", False),
        (maker({}), "provider (none)", False),
    ],
)
def test_a_set_that_is_not_looked_after_says_why(obj: dict[str, Any], reason: str, counted: bool) -> None:
    target = target_of(obj, stream())
    assert isinstance(target, NotManaged), target
    assert reason in target.reason
    assert target.counted is counted


@pytest.mark.parametrize(
    "value", [None, [], "x", 7, {"disks": "x"}, {"kind": "GCPMachineProviderSpec", "disks": [None, 1]}]
)
def test_a_template_of_any_shape_is_only_passed_over(value: Any) -> None:
    assert isinstance(target_of(maker(value), stream()), NotManaged)
    assert isinstance(target_of({"metadata": {"name": "x"}, "spec": {"template": value}}, stream()), NotManaged)


def test_a_set_of_the_control_plane_has_its_provider_one_level_deeper() -> None:
    inner = {"spec": {"providerSpec": {"value": gcp()}}}
    template = {"machines_v1beta1_machine_openshift_io": inner}
    control_plane = {**maker(gcp()), "spec": {"template": template}}
    assert isinstance(target_of(control_plane, stream()), Target)
    patch = with_value(control_plane, {"a": 1})["spec"]["template"]
    assert patch["machines_v1beta1_machine_openshift_io"]["spec"]["providerSpec"]["value"] == {"a": 1}
