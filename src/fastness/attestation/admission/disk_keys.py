"""Names that keys of disks have, and Machines that have such keys.

* `machine/<uid>/disk-<volume>` and `default/<uid>/root` are never what somebody wrote: a Secret or a ResourceBinding of such a
  name would look like a disk key to whoever reads it, and open nothing.
* The Secrets with the keys are the control plane's. The finalizer `fastness.dev/disk-keys` holds a Machine until its keys are
  destroyed on the record, and nobody else takes it off.
* Deleting a Machine destroys its keys for good, so the answer says which disks are lost.
* The Clevis pin opens the root and nothing else, and knows no integrity: a pool that asks it for more is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from fastness.attestation.admission.acts import is_control_plane
from fastness.disks.volumes import NONE, ROOT, WEAKER
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CLEVIS_PIN, ConfidentialCluster
from fastness.kinds.objects import is_being_deleted, metadata, view
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, Machine
from fastness.kube.admission import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    forbidden,
    invalid,
)
from fastness.kube.places import DISKS, HOME, TRUSTEE
from fastness.protocol.kbs_path import ResourcePath, disk_of, parse_path

_OFFERED: Final = (HOME, TRUSTEE)
"""Namespaces whose Secrets a KbsConfig may offer as resources."""
_WHY: Final = "this is the name of a disk key, which the broker makes and gives to machines that boot"


def no_binding_of_disks(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a ResourceBinding that names a disk key."""
    spec = request.new.get("spec")
    resource = str(spec.get("resource") or "") if isinstance(spec, Mapping) else ""
    # As it is written, with a star in it or not: `machine/*/disk-var` means disk keys, too.
    path = parse_path(resource.replace("*", "0"))
    segments = resource.split("/")
    named = path is not None and disk_of(path) is not None
    if not named and not (segments[0] == "machine" and segments[-1].startswith("disk-")):
        return None
    return invalid(request, "spec.resource", f"{resource!r}: {_WHY}")


def no_secret_of_disks(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a Secret that a KbsConfig would offer under the name of a disk key, and any of ours that somebody else writes."""
    if request.namespace == DISKS and not is_control_plane(request.user) and not request.user.is_master:
        return forbidden(request, "keys of disks are the control plane's")
    if request.namespace not in _OFFERED:
        return None
    entries = {**(request.new.get("data") or {}), **(request.new.get("stringData") or {})}
    named = [name for name in entries if disk_of(ResourcePath("default", request.name, name)) is not None]
    return invalid(request, f"data[{named[0]}]", f"{request.name}/{named[0]}: {_WHY}") if named else None


def keys_are_not_let_go(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse to let go of a Machine whose keys are not destroyed yet."""
    if HOLDS_KEYS not in _finalizers(request.old or {}) or HOLDS_KEYS in _finalizers(request.new):
        return None
    if is_control_plane(request.user) or request.user.is_master:
        return None
    cause = DeniedCause("metadata.finalizers", "FieldValueForbidden", f"Forbidden: {HOLDS_KEYS} is the control plane's")
    return forbidden(request, "its disk keys are destroyed first, on the record", cause)


def lost_disks_are_told(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Say which disks are lost with a Machine that is deleted."""
    old = request.old or {}
    if request.namespace != NAMESPACE or is_being_deleted(old):
        return None
    lost = lost_disks(view(old, Machine))
    return Allowed((f"for good: {lost}",)) if lost else None


def pin_opens_what_is_asked(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse a pool whose disk the Clevis pin cannot open like that; say what the pin gives less, and what it needs."""
    try:
        before = {pool.name: pool.disk for pool in view(request.old or {}, ConfidentialCluster).spec.pools}
        spec = view(request.new, ConfidentialCluster).spec
    except msgspec.ValidationError:
        return None  # the schema says what is wrong with it
    chosen = False
    for index, pool in enumerate(spec.pools):
        # What was stored while nothing acted on it stays writable: a status must not fail for it.
        if pool.disk.pin != CLEVIS_PIN or before.get(pool.name) == pool.disk:
            continue
        if pool.disk.volume != ROOT:
            why = f"{pool.disk.volume!r}: the Clevis pin opens the root and nothing else; set it to root"
            return invalid(request, f"spec.pools[{index}].disk.volume", why)
        if pool.disk.integrity != NONE:
            why = f"{pool.disk.integrity!r}: disks of the Clevis pin have none; set it to none"
            return invalid(request, f"spec.pools[{index}].disk.integrity", why)
        chosen = True
    if not chosen:
        return None
    needs = () if spec.join.trust_on_first_use else ("spec.join.trustOnFirstUse is off: no machine of the pin enrols",)
    return Allowed((f"disks of new machines are {WEAKER}", *needs))


def lost_disks(machine: Machine) -> str:
    """What is lost with a Machine, in a sentence; empty for nothing."""
    volumes = ", ".join(entry.volume for entry in machine.status.disks)
    return f"the keys of its disks are destroyed, and what is on {volumes} cannot be read again" if volumes else ""


def _finalizers(obj: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(metadata(obj).get("finalizers") or ())
