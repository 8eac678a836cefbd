"""Which Secrets, ConfigMaps, claims and service accounts a pod refers to.

The credential of a node may read what a pod bound to that node needs, and nothing else. This module lists those references from
every place of the pod spec that can hold one; a field that is forgotten here is a pod that does not start, never a secret that
leaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

_NAMED_SECRETS = {
    "azureFile": "secretName",
    "cephfs": "secretRef", "cinder": "secretRef", "flexVolume": "secretRef", "iscsi": "secretRef", "rbd": "secretRef",
    "scaleIO": "secretRef", "storageos": "secretRef", "csi": "nodePublishSecretRef",
}  # fmt: skip


class Reference(NamedTuple):
    """A resource (plural) and a name, in the namespace of the pod."""

    resource: str
    name: str


def references(pod: Mapping[str, Any]) -> frozenset[Reference]:
    """Everything in its namespace that the pod refers to by name."""
    spec = _mapping(pod.get("spec"))
    named = [*_names("secrets", _entries(spec, "imagePullSecrets"))]
    for volume in _entries(spec, "volumes"):
        named += _volume(volume)
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container in _entries(spec, key):
            named += _container(container)
    account = spec.get("serviceAccountName") or "default"
    named.append(Reference("serviceaccounts", str(account)))
    return frozenset(reference for reference in named if reference.name)


def _volume(volume: Mapping[str, Any]) -> Iterator[Reference]:
    yield Reference("secrets", _text(_mapping(volume.get("secret")).get("secretName")))
    yield Reference("configmaps", _text(_mapping(volume.get("configMap")).get("name")))
    yield Reference("persistentvolumeclaims", _text(_mapping(volume.get("persistentVolumeClaim")).get("claimName")))
    for source in _entries(_mapping(volume.get("projected")), "sources"):
        yield Reference("secrets", _text(_mapping(source.get("secret")).get("name")))
        yield Reference("configmaps", _text(_mapping(source.get("configMap")).get("name")))
    for kind, field in _NAMED_SECRETS.items():
        value = _mapping(volume.get(kind)).get(field)
        yield Reference("secrets", _text(value.get("name") if isinstance(value, dict) else value))


def _container(container: Mapping[str, Any]) -> Iterator[Reference]:
    for source in _entries(container, "envFrom"):
        yield Reference("secrets", _text(_mapping(source.get("secretRef")).get("name")))
        yield Reference("configmaps", _text(_mapping(source.get("configMapRef")).get("name")))
    for variable in _entries(container, "env"):
        origin = _mapping(variable.get("valueFrom"))
        yield Reference("secrets", _text(_mapping(origin.get("secretKeyRef")).get("name")))
        yield Reference("configmaps", _text(_mapping(origin.get("configMapKeyRef")).get("name")))


def _names(resource: str, entries: Iterable[Mapping[str, Any]]) -> Iterator[Reference]:
    return (Reference(resource, _text(entry.get("name"))) for entry in entries)


def _entries(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = holder.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
