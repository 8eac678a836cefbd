"""What the public API refuses beside its definitions: streams, boot images, and reports for another node.

There these are admission policies with a parameter; the words are those that users know from them.

* A pool follows a stream that is on offer. What a pool says already is not judged again: when an offer ends, its rollouts and
  everything else about it must go on, and rendering says what is wrong.
* The OSImageStream is never deleted: without it nobody knows which images belong to the release.
* Boot images are looked after only where somebody can do it. A cluster without an installer's Infrastructure has machines of our
  own making, which are bare metal.
* The daemon of a node reports about that node alone: its token says where it runs. Nodes themselves are held to the same by
  `kube/access/node_restriction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.kinds.openshift.config import is_installers, platform_of
from fastness.kube.access.user import service_account_name
from fastness.kube.admission import AdmissionLookups, AdmissionRequest, Denied, forbidden

STREAM_NOT_OFFERED: Final = (
    "The specified osImageStream name must reference a valid stream from the cluster OSImageStream resource"
)
STREAM_STAYS: Final = "Deletion of OSImageStream resources is not allowed"
# The public API knows the clouds; bare metal is what our own provider makes machines of.
PLATFORMS: Final = ("GCP", "AWS", "VSphere", "Azure", "BareMetal")
CONTROL_PLANE_PLATFORMS: Final = ("GCP", "AWS", "Azure", "BareMetal")
CONTROL_PLANE_SETS: Final = "controlplanemachinesets"
DAEMON: Final = service_account_name("openshift-machine-config-operator", "machine-config-daemon")
NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"

Object = Mapping[str, Any]


def stream_is_on_offer(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a pool that is to follow a stream which the cluster does not have."""
    name = _stream(request.new)
    if name is None or name == _stream(request.old or {}):
        return None
    offers = _table(lookups.os_image_stream() or {}, "status").get("availableStreams")
    there = [str(offer.get("name")) for offer in _entries(offers)]
    if name in there:
        return None
    return forbidden(request, f"{STREAM_NOT_OFFERED}: {name} is not on offer (there are: {', '.join(there) or 'none'})")


def streams_stay(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse to delete the OSImageStream."""
    return forbidden(request, STREAM_STAYS)


def boot_images_fit_the_platform(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse to look after boot images where nobody can."""
    if _managers(request.new) is None or _managers(request.new) == _managers(request.old or {}):
        return None
    infrastructure = lookups.infrastructure()
    platform = platform_of(infrastructure) if is_installers(infrastructure) else "BareMetal"
    if platform not in PLATFORMS:
        return forbidden(request, f"This feature is only supported on these platforms: {', '.join(PLATFORMS)}")
    resources = {manager.get("resource") for manager in _managers(request.new) or ()}
    if CONTROL_PLANE_SETS in resources and platform not in CONTROL_PLANE_PLATFORMS:
        return forbidden(
            request,
            "The control plane machineset boot image update feature is only supported on these platforms: "
            f"{', '.join(CONTROL_PLANE_PLATFORMS)}",
        )
    return None


def daemon_reports_for_its_node(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a daemon that writes the MachineConfigNode of another node, or that cannot say which node it is on."""
    if request.user.name != DAEMON:
        return None
    claimed = request.user.extra.get(NODE_CLAIM) or ()
    if not claimed:
        return forbidden(request, f'this user must have a "{NODE_CLAIM}" claim')
    if claimed[0] != request.name:
        return forbidden(request, f"updates to MCN {request.name} can only be done from the MCN's owner node")
    return None


def _managers(configuration: Object) -> list[Object] | None:
    """The machine managers of a configuration; None where it says nothing of boot images."""
    images = _table(configuration, "spec").get("managedBootImages")
    return _entries(images.get("machineManagers")) if isinstance(images, dict) else None


def _stream(pool: Object) -> str | None:
    stream = _table(pool, "spec").get("osImageStream")
    return str(stream.get("name") or "") if isinstance(stream, dict) else None


def _entries(value: Any) -> list[Object]:
    entries: Iterable[Any] = value if isinstance(value, list) else ()
    return [entry for entry in entries if isinstance(entry, dict)]


def _table(obj: Object, name: str) -> Object:
    below = obj.get(name)
    return below if isinstance(below, dict) else {}
