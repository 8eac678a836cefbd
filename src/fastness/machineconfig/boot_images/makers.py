"""What makes machines, as boot images and user-data see it: a MachineSet or a ControlPlaneMachineSet.

    user_data_of(maker)     the Secret that its machines are created with
    provider_of(maker)      the kind of its provider's part, as `AWSMachineProviderConfig`
    with_value(maker, {…})  a merge patch of the provider's part
    boot_image(maker, …)    what its machines boot: how it is called there, which release, which architecture

The release of an image stands in its name, in the stream metadata that offers it, or in the annotation `fastness.dev/boot-image`,
which whoever changes an image writes beside it: an AMI is a number that tells nothing. The annotation names the image that it is
about, so it does not outlive it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.coreos_stream import Stream
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.boot_images.releases import release_in
from fastness.machineconfig.scaling.providers import VIRTUAL

Object = Mapping[str, Any]
AWS: Final = "AWSMachineProviderConfig"
GCP: Final = "GCPMachineProviderSpec"
AZURE: Final = "AzureMachineProviderSpec"
VSPHERE: Final = "VSphereMachineProviderSpec"
METAL: Final = "BareMetalMachineProviderSpec"
CAPACITY_LABELS: Final = "capacity.cluster-autoscaler.kubernetes.io/labels"
_CONTROL_PLANE: Final = "machines_v1beta1_machine_openshift_io"
_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}


@dataclass(frozen=True, slots=True)
class BootImage:
    """What machines of a set boot; `release` and `architecture` are empty where nobody can tell."""

    image: str
    release: str
    architecture: str


def value_of(maker: Object) -> Object:
    """The provider's part of a set's template; empty when there is none."""
    value: Any = maker
    for part in _path(maker):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def provider_of(maker: Object) -> str:
    """The kind of the provider's part; one without a kind is taken for AWS when it names an AMI, as old templates do."""
    value = value_of(maker)
    return str(value.get("kind") or (AWS if isinstance(value.get("ami"), Mapping) else ""))


def with_value(maker: Object, change: Object) -> JsonObject:
    """A merge patch that changes the provider's part of a set."""
    patch: JsonObject = dict(change)
    for part in reversed(_path(maker)):
        patch = {part: patch}
    return patch


def user_data_of(maker: Object) -> str:
    """The Secret that a MachineSet or a ControlPlaneMachineSet creates machines with; empty when it cannot be seen."""
    secret = value_of(maker).get(user_data_member(maker))
    name = secret.get("name") if isinstance(secret, Mapping) else None
    return name if isinstance(name, str) else ""


def user_data_member(maker: Object) -> str:
    """How the provider calls the reference to that Secret."""
    return "userData" if provider_of(maker) == METAL else "userDataSecret"


def boot_image(maker: Object, stream: Stream | None) -> BootImage:
    """What machines of a set boot."""
    image = _image(maker)
    noted, _, about = annotations_of(maker).get(names.BOOT_IMAGE, "").partition(" ")
    release = noted if image and about == image else release_in(image)
    if provider_of(maker) == AWS and about != image:
        release = stream.release_of_ami(image) if stream is not None else ""
    return BootImage(image, release, _architecture(maker, image))


def _image(maker: Object) -> str:
    """How the provider calls the image; empty where it names none, or in a way that nobody here understands."""
    read = _NAMES_OF_IMAGES.get(provider_of(maker))
    return read(value_of(maker)) if read is not None else ""


def _gcp_image(value: Object) -> str:
    disks = value.get("disks")
    boot = [disk for disk in disks if _is_boot(disk)] if isinstance(disks, list) else []
    return _text(boot[0], "image") if boot else ""


def _azure_image(value: Object) -> str:
    image = value.get("image")
    parts = (_text(image, part) for part in ("publisher", "offer", "sku", "version"))
    return _text(image, "resourceID") or ":".join(filter(None, parts))


def _is_boot(disk: Any) -> bool:
    return isinstance(disk, Mapping) and disk.get("boot") is True


def _architecture(maker: Object, image: str) -> str:
    """What the set says about its machines, else what the name of the image says; virtual machines are of one kind."""
    labels = annotations_of(maker).get(CAPACITY_LABELS, "")
    pairs = dict(pair.strip().partition("=")[::2] for pair in labels.split(","))
    if architecture := _ARCHITECTURES.get(pairs.get("kubernetes.io/arch", "")):
        return architecture
    # Clouds write x86-64 where the release writes x86_64.
    plain = image.replace("x86-64", "x86_64")
    named = [architecture for architecture in _ARCHITECTURES.values() if architecture in plain]
    if len(named) == 1:
        return named[0]
    return "x86_64" if provider_of(maker) == VIRTUAL else ""


def _path(maker: Object) -> list[str]:
    template = (maker.get("spec") or {}).get("template")
    path = ["spec", "template", "spec", "providerSpec", "value"]
    if isinstance(template, Mapping) and _CONTROL_PLANE in template:
        path.insert(2, _CONTROL_PLANE)
    return path


def _text(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""


_NAMES_OF_IMAGES: Final[Mapping[str, Callable[[Object], str]]] = {
    AWS: lambda value: _text(value.get("ami"), "id"),
    GCP: _gcp_image,
    AZURE: _azure_image,
    VSPHERE: lambda value: _text(value, "template"),
    METAL: lambda value: _text(value.get("image"), "url"),
    VIRTUAL: lambda value: _text(value.get("bootImage"), "release"),
}
