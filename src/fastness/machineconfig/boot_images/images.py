"""The boot image of the release for one machine set, by provider: what would be written, or why nothing is.

| provider | what is changed | for which images |
| --- | --- | --- |
| AWS | `ami.id`, by region | an AMI of the stream, or one with the note of who wrote it: whose an AMI is only AWS could tell |
| GCP | `image` of boot disks | those of `projects/rhcos-cloud` |
| Azure | `image`, by plan and generation | those of the marketplace with the same publisher and offer, or uploaded ones |
| bare metal | `image.url`, `image.checksum` | files of the stream under the name of another release, and approved (decision 52) |
| our own | `bootImage.release` | all |
| vSphere, others | nothing | a template must be uploaded first, by somebody with the credentials |

`Target` is what a set should have; `NotManaged` says why there is none. A set is passed over quietly where nobody could expect it
to be looked after, and counted where somebody should look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.coreos_stream import Architecture, Stream
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import GROUP
from fastness.kinds.objects import labels_of, metadata
from fastness.machineconfig.boot_images import makers
from fastness.machineconfig.boot_images.makers import BootImage, Object
from fastness.machineconfig.scaling.providers import VIRTUAL

STREAM_LABEL: Final = f"{GROUP}/osstream"
DEFAULT_STREAM: Final = "rhel-9"
OS_LABEL: Final = "machine.openshift.io/os-id"
GCP_PROJECT: Final = "rhcos-cloud"
_NO_PLAN: Final = "no-purchase-plan"


@dataclass(frozen=True, slots=True)
class Target:
    """The image that a set should have; `change` is a merge patch of the provider's part."""

    image: str
    release: str
    change: JsonObject


@dataclass(frozen=True, slots=True)
class NotManaged:
    """Why a set is not looked after; `counted` where somebody should look."""

    reason: str
    counted: bool = True


def target_of(maker: Object, stream: Stream) -> Target | NotManaged:
    """The image of the release for a set."""
    if left := _left_alone(maker):
        return left
    read = _PROVIDERS.get(makers.provider_of(maker))
    if read is None:
        provider = makers.provider_of(maker) or "(none)"
        return NotManaged(f"boot images of provider {provider} are not managed here", counted=False)
    image = makers.boot_image(maker, stream)
    if not image.architecture:
        return NotManaged(
            f"its architecture is not known: annotate it with {makers.CAPACITY_LABELS}=kubernetes.io/arch=amd64"
        )
    offered = stream.architectures.get(image.architecture)
    if offered is None:
        return NotManaged(f"the release has no boot image for {image.architecture}")
    return read(makers.value_of(maker), image, offered)


def _left_alone(maker: Object) -> NotManaged | None:
    """What no provider needs to be asked about."""
    if metadata(maker).get("ownerReferences"):
        return NotManaged("it belongs to another object, which would put it back")
    if labels_of(maker).get(OS_LABEL, "").lower() == "windows":
        return NotManaged("its machines run Windows", counted=False)
    stream = labels_of(maker).get(STREAM_LABEL, DEFAULT_STREAM)
    if stream != DEFAULT_STREAM:
        return NotManaged(f"it follows the stream {stream}", counted=False)
    return None


def _aws(value: Object, image: BootImage, offered: Architecture) -> Target | NotManaged:
    placement = value.get("placement")
    region = str(placement.get("region") or "") if isinstance(placement, Mapping) else ""
    if not image.image:
        return NotManaged("it chooses its AMI by something else than an id")
    if not image.release:
        return NotManaged(
            f"{image.image} is not an image of the release, and nobody noted what it is: whose it is only AWS could tell"
        )
    if region not in offered.amis:
        return NotManaged(f"the release has no AMI in region {region or '(none)'}")
    new = offered.amis[region]
    return Target(new.image, new.release, {"ami": {"id": new.image}})


def _gcp(value: Object, image: BootImage, offered: Architecture) -> Target | NotManaged:
    if f"projects/{GCP_PROJECT}/" not in image.image:
        return NotManaged(f"{image.image or 'its image'} is not one of projects/{GCP_PROJECT}")
    if offered.gcp is None:
        return NotManaged("the release has no image for Google's cloud")
    new = f"projects/{offered.gcp_project}/global/images/{offered.gcp.image}"
    disks = [
        {**disk, "image": new} if isinstance(disk, Mapping) and disk.get("boot") is True else disk
        for disk in value["disks"]
    ]
    return Target(new, offered.gcp.release, {"disks": disks})


def _azure(value: Object, image: BootImage, offered: Architecture) -> Target | NotManaged:
    if _security_type(value):
        # Images of confidential machines are measured: which of them may boot is decided by who approves images.
        return NotManaged("its machines have a securityType: their images are approved one by one", counted=False)
    if image.architecture in ("ppc64le", "s390x"):
        return NotManaged(f"Azure has no {image.architecture}", counted=False)
    before = value.get("image")
    before = before if isinstance(before, Mapping) else {}
    uploaded = "/galleries/" in image.image or "/images/" in image.image
    variants = {variant for (variant, _), offer in offered.marketplace.items() if _same_offer(before, offer)}
    variant = _NO_PLAN if uploaded else min(variants, default="")
    new = offered.marketplace.get((variant, _generation(image.image)))
    if new is None:
        return NotManaged(f"{image.image or 'its image'} is none that the release has another one for")
    described = {"publisher": new.publisher, "offer": new.offer, "sku": new.sku, "version": new.version}
    kind = before.get("type") or ("MarketplaceNoPlan" if variant == _NO_PLAN else "MarketplaceWithPlan")
    kind = "MarketplaceNoPlan" if uploaded else kind
    change = {"image": {**described, "resourceID": "", "type": kind}}
    return Target(":".join(described.values()), new.version, change)


def _same_offer(before: Object, offer: Any) -> bool:
    return (before.get("publisher"), before.get("offer")) == (offer.publisher, offer.offer)


def _generation(image: str) -> str:
    """Generation 2 says so in the name of the image or of its plan; all others are of the first."""
    lowered = image.lower()
    return "hyperVGen2" if "gen2" in lowered or "-v2" in lowered else "hyperVGen1"


def _security_type(value: Object) -> bool:
    profile = value.get("securityProfile")
    settings = profile.get("settings") if isinstance(profile, Mapping) else None
    return bool(settings.get("securityType")) if isinstance(settings, Mapping) else False


def _metal(value: Object, image: BootImage, offered: Architecture) -> Target | NotManaged:
    if value.get("customDeploy"):
        return NotManaged("customDeploy installs what its own method says")
    name = image.image.rpartition("/")[2]
    for disk in offered.disks if image.release else ():
        # The same file of another release: format and platform are what the host was set up for.
        if disk.location.rpartition("/")[2] == name.replace(image.release, disk.release):
            change = {"image": {"url": disk.location, "checksum": disk.sha256}}
            return Target(disk.location, disk.release, change)
    return NotManaged(f"{name or 'its image'} is no file of which the release has another one")


def _virtual(value: Object, image: BootImage, offered: Architecture) -> Target | NotManaged:
    release = offered.releases.get("qemu", "")
    if not release:
        return NotManaged("the release has no image for QEMU")
    return Target(release, release, {"bootImage": {"release": release}})


def _vsphere(value: Object, image: BootImage, offered: Architecture) -> NotManaged:
    return NotManaged("a new template must be uploaded to vCenter, and nobody here has its credentials")


_PROVIDERS: Final[Mapping[str, Callable[[Object, BootImage, Architecture], Target | NotManaged]]] = {
    makers.AWS: _aws, makers.GCP: _gcp, makers.AZURE: _azure, makers.METAL: _metal, makers.VSPHERE: _vsphere, VIRTUAL: _virtual,
}  # fmt: skip
