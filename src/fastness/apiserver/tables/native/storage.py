"""Printers of volumes, claims, storage classes and drivers of storage."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.native.reading import UNSET, Cells, Obj, age_of, name_of, part, text, words

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def volume(obj: Obj, now: datetime) -> list[Any]:
    """Size, modes, what becomes of it, and whose it is."""
    spec = part(obj, "spec")
    claim = part(spec, "claimRef")
    return [
        name_of(obj),
        text(spec, "capacity", "storage", default="0"),
        _modes(words(spec, "accessModes")),
        text(spec, "persistentVolumeReclaimPolicy"),
        _phase(obj),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        _class(obj),
        text(spec, "volumeAttributesClassName", default=UNSET),
        text(obj, "status", "reason"),
        age_of(obj, now),
        text(spec, "volumeMode", default=UNSET),
    ]


def claim(obj: Obj, now: datetime) -> list[Any]:
    """Phase, volume and, once bound, what it got."""
    spec, status = part(obj, "spec"), part(obj, "status")
    bound = bool(text(spec, "volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        text(spec, "volumeName"),
        text(status, "capacity", "storage", default="0") if bound else "",
        _modes(words(status, "accessModes")) if bound else "",
        _class(obj),
        text(spec, "volumeAttributesClassName", default=UNSET),
        age_of(obj, now),
        text(spec, "volumeMode", default=UNSET),
    ]


def storage_class(obj: Obj, now: datetime) -> list[Any]:
    """Who makes volumes and when; the default class says so."""
    annotations = part(obj, "metadata", "annotations")
    default = any(annotations.get(name) == "true" for name in DEFAULT_CLASS)
    return [
        name_of(obj) + (" (default)" if default else ""),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy", default="Delete"),
        text(obj, "volumeBindingMode", default="Immediate"),
        obj.get("allowVolumeExpansion") is True,
        age_of(obj, now),
    ]


def driver(obj: Obj, now: datetime) -> list[Any]:
    """What a driver of storage asks of kubelets; nothing said is what the API means by it."""
    spec = part(obj, "spec")
    requests = spec.get("tokenRequests")
    tokens = [str(each.get("audience") or "") for each in requests] if isinstance(requests, list) else None
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        ",".join(tokens) if tokens is not None else UNSET,
        spec.get("requiresRepublish") is True,
        ",".join(words(spec, "volumeLifecycleModes")) or UNSET,
        age_of(obj, now),
    ]


def drivers_of_node(obj: Obj, now: datetime) -> list[Any]:
    """How many drivers of storage a node has."""
    drivers = part(obj, "spec").get("drivers")
    return [name_of(obj), len(drivers) if isinstance(drivers, list) else 0, age_of(obj, now)]


def _phase(obj: Obj) -> str:
    return "Terminating" if part(obj, "metadata").get("deletionTimestamp") else text(obj, "status", "phase")


def _class(obj: Obj) -> str:
    return text(obj, "metadata", "annotations", CLASS_ANNOTATION) or text(obj, "spec", "storageClassName")


def _modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in MODES.items() if mode in modes)


CELLS: Final[dict[tuple[str, str], Cells]] = {
    ("", "PersistentVolume"): volume,
    ("", "PersistentVolumeClaim"): claim,
    ("storage.k8s.io", "StorageClass"): storage_class,
    ("storage.k8s.io", "CSIDriver"): driver,
    ("storage.k8s.io", "CSINode"): drivers_of_node,
}
