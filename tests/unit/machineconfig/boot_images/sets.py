"""Machine sets of every provider, and a release's boot images, small."""

from __future__ import annotations

import hashlib
from typing import Any

from fastness.formats import json
from fastness.formats.coreos_stream import Stream, parse_stream
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.boot_images.makers import CAPACITY_LABELS

RELEASE = "9.8.20260428-0"
OLD_RELEASE = "418.94.202501221327-0"
MIRROR = "https://mirror.example/rhcos"


def ami(release: str = RELEASE, arch: str = "x86_64") -> str:
    """An AMI: a number that tells nothing."""
    return f"ami-{hashlib.sha256(f'{arch} {release}'.encode()).hexdigest()[:17]}"


def stream_document(release: str = RELEASE) -> dict[str, Any]:
    """What a release publishes about its boot images, cut down to two architectures."""

    def artifact(platform: str, ending: str, arch: str) -> dict[str, Any]:
        disk = {"location": f"{MIRROR}-{release}-{platform}.{arch}.{ending}", "sha256": "ab" * 32}
        return {"release": release, "formats": {ending: {"disk": disk}}}

    def images(arch: str) -> dict[str, Any]:
        name = f"rhcos-{release.replace('.', '-')}-gcp-{arch.replace('_', '-')}"
        regions = {"eu-west-1": {"release": release, "image": ami(release, arch)}}
        return {"aws": {"regions": regions}, "gcp": {"release": release, "project": "rhcos-cloud", "name": name}}

    def architecture(arch: str) -> dict[str, Any]:
        plan = {"publisher": "azureopenshift", "offer": "aro4", "version": "419.6.20260428"}
        generations = {"hyperVGen1": {**plan, "sku": "aro_419"}, "hyperVGen2": {**plan, "sku": "419-v2"}}
        return {
            "artifacts": {
                "qemu": artifact("qemu", "qcow2.gz", arch), "openstack": artifact("openstack", "qcow2.gz", arch),
            },
            "images": images(arch),
            "rhel-coreos-extensions": {"marketplace": {"azure": {"no-purchase-plan": generations}}},
        }  # fmt: skip

    return {"stream": "rhcos-4.21", "architectures": {arch: architecture(arch) for arch in ("x86_64", "aarch64")}}


def stream(release: str = RELEASE) -> Stream:
    """The same, read."""
    return parse_stream(json.encode(stream_document(release)))


def maker(value: dict[str, Any], name: str = "workers-a", arch: str = "amd64", **more: Any) -> dict[str, Any]:
    """A MachineSet with a provider's part; `more` is metadata."""
    notes = {CAPACITY_LABELS: f"kubernetes.io/arch={arch}"} if arch else {}
    meta = {"name": name, "namespace": names.USER_DATA_NAMESPACE, "uid": name, **more}
    meta["annotations"] = {**notes, **more.get("annotations", {})}
    return {
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "metadata": meta,
        "spec": {"replicas": 1, "template": {"metadata": {}, "spec": {"providerSpec": {"value": value}}}},
    }  # fmt: skip


def aws(image: str = "ami-old", user_data: str = "worker-user-data", region: str = "eu-west-1") -> dict[str, Any]:
    """AWS."""
    return {
        "kind": "AWSMachineProviderConfig", "ami": {"id": image}, "placement": {"region": region},
        "userDataSecret": {"name": user_data},
    }  # fmt: skip


def gcp(
    release: str = OLD_RELEASE, project: str = "rhcos-cloud", user_data: str = "worker-user-data"
) -> dict[str, Any]:
    """Google's cloud, with a second disk."""
    image = f"projects/{project}/global/images/rhcos-{release.replace('.', '-')}-gcp-x86-64"
    disks = [{"boot": True, "image": image, "sizeGb": 128}, {"boot": False, "image": "data"}]
    return {"kind": "GCPMachineProviderSpec", "disks": disks, "userDataSecret": {"name": user_data}}


def azure(image: dict[str, Any], user_data: str = "worker-user-data", **more: Any) -> dict[str, Any]:
    """Azure."""
    return {"kind": "AzureMachineProviderSpec", "image": image, "userDataSecret": {"name": user_data}, **more}


def metal(url: str, user_data: str = "worker-user-data", **more: Any) -> dict[str, Any]:
    """Bare metal, as Metal3 has it."""
    return {
        "kind": "BareMetalMachineProviderSpec", "image": {"url": url, "checksum": "00"},
        "userData": {"name": user_data, "namespace": names.USER_DATA_NAMESPACE}, **more,
    }  # fmt: skip


def virtual(release: str = OLD_RELEASE, user_data: str = "worker-user-data") -> dict[str, Any]:
    """Our own provider."""
    image = {"bootImage": {"release": release}} if release else {}
    return {"kind": "VirtualMachineProviderSpec", "userDataSecret": {"name": user_data}, **image}
