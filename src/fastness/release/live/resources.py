"""What the key broker hands out, and where it lies.

    SealedResources     written through the admin API; sealed with the vault key before the cluster sees them
    SecretResources     Secrets that a KbsConfig names, under default/<secret>/<key>
    StatusResource      default/attestation-status/status, which says `success` to whoever attested

`Resources` asks them in this order: what an administrator wrote counts before what a namespace offers. Everything is read when
it is asked for, so a change counts at once and nothing secret stays in memory.

* A sealed value opens only under its own path: swapping two objects in the cluster gives nobody the other's secret.
* Names of objects are hashes of paths; no name is built from what a caller wrote.
* A KbsConfig counts in the namespaces of the broker's settings only, and when its controller found it good.
* In the namespace that holds our own keys, only Secrets that are labelled as resources are ever read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from fastness.crypto.digests import sha256
from fastness.crypto.secret import SecretBytes
from fastness.keys.authorities import SECRETS, create_in_namespace
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informer
from fastness.kube.places import SEALED
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.protocol.kbs_path import ResourcePath, parse_path
from fastness.release.resources import STATUS

STORE_LABEL: Final = "fastness.dev/resource-store"
RESOURCE_LABEL: Final = "fastness.dev/resource"
PATH: Final = "fastness.dev/resource-path"
TYPE: Final = "fastness.dev/sealed-resource"
MAX_RESOURCE: Final = 512 * 1024
SECRETS_REPOSITORY: Final = "default"
# Settings of the broker count here alone: whoever may write into some other namespace must not decide what is trusted.
# Apart from our keys: whoever may read any resource here must not be able to read a key of another role.
SEALED_NAMESPACE: Final = SEALED
_AS: Final = WriteOptions(manager="broker")


class Cipher(Protocol):
    """Seals and opens; `keys.vault.Vault` is one."""

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """An envelope that opens only with the same context."""

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises BrokenSeal, UnknownSealKey."""


class Backend(Protocol):
    """A place where resources lie."""

    async def read(self, path: ResourcePath) -> SecretBytes | None:
        """The resource, None when this place has none; raises ApiError, CryptoError."""


class Resources:
    """All places, asked in order."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)

    async def read(self, path: ResourcePath) -> SecretBytes | None:
        """The resource, None when there is none; raises ApiError, CryptoError."""
        for backend in self._backends:
            found = await backend.read(path)
            if found is not None:
                return found
        return None


class StatusResource:
    """Says that whoever can read it has attested."""

    async def read(self, path: ResourcePath) -> SecretBytes | None:
        """`success`, without a newline, under the one path."""
        return SecretBytes(b"success") if path == STATUS else None


class SealedResources:
    """Resources that are sealed in the cluster."""

    def __init__(self, cluster: Cluster, cipher: Cipher) -> None:
        self._cluster = cluster
        self._cipher = cipher

    async def read(self, path: ResourcePath) -> SecretBytes | None:
        """The resource, opened; raises ApiError, BrokenSeal, UnknownSealKey."""
        try:
            secret = await self._cluster.get(SECRETS, resource_name(path), SEALED_NAMESPACE)
        except NotFound:
            return None
        sealed = _data(secret).get("sealed")
        return None if sealed is None else SecretBytes(self._cipher.open(sealed, _context(path)))

    async def write(self, path: ResourcePath, value: SecretBytes) -> bool:
        """Write a resource, replacing what was there; whether it is new. Raises ApiError."""
        sealed = base64.b64encode(self._cipher.seal(value.reveal(), _context(path))).decode()
        name = resource_name(path)
        meta = {
            "name": name, "namespace": SEALED_NAMESPACE, "labels": {STORE_LABEL: "sealed"}, "annotations": {PATH: str(path)},
        }  # fmt: skip
        data = {"sealed": sealed}
        try:
            made = {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": meta, "data": data}
            await create_in_namespace(self._cluster, made, _AS)
        except AlreadyExists:
            await self._cluster.patch(SECRETS, name, {"data": data}, PatchType.MERGE, SEALED_NAMESPACE, _AS)
            return False
        return True

    async def reseal(self, is_current: Callable[[bytes], bool]) -> int:
        """Seal every resource with the present key that is not yet; how many. Raises ApiError, BrokenSeal, UnknownSealKey."""
        count = 0
        for path in filter(None, map(parse_path, await self.list())):
            secret = await self._cluster.get(SECRETS, resource_name(path), SEALED_NAMESPACE)
            sealed = _data(secret).get("sealed")
            if sealed is not None and not is_current(sealed):
                await self.write(path, SecretBytes(self._cipher.open(sealed, _context(path))))
                count += 1
        return count

    async def delete(self, path: ResourcePath) -> bool:
        """Delete a resource; whether there was one. Raises ApiError."""
        try:
            await self._cluster.delete(SECRETS, resource_name(path), SEALED_NAMESPACE)
        except NotFound:
            return False
        return True

    async def list(self) -> list[str]:
        """The paths of all resources, in order; raises ApiError."""
        found = await self._cluster.list(SECRETS, Scope(SEALED_NAMESPACE, labels=f"{STORE_LABEL}=sealed"))
        return sorted(path for secret in found.items if parse_path(path := annotations_of(secret).get(PATH, "")))


class SecretResources:
    """Kubernetes Secrets that a KbsConfig names."""

    def __init__(self, cluster: Cluster, configs: Informer) -> None:
        self._cluster = cluster
        self._configs = configs

    async def read(self, path: ResourcePath) -> SecretBytes | None:
        """The value of a key of a Secret; raises ApiError."""
        if path.repository != SECRETS_REPOSITORY:
            return None
        owner = owner_of(path.type, self._configs.list())
        if owner is None:
            return None
        namespace = object_name(owner).namespace
        try:
            secret = await self._cluster.get(SECRETS, path.type, namespace)
        except NotFound:
            return None
        if namespace == NAMESPACE and labels_of(secret).get(RESOURCE_LABEL) != "true":
            return None
        value = _data(secret).get(path.tag)
        return None if value is None else SecretBytes(value)


def owner_of(secret: str, configs: Sequence[JsonObject]) -> JsonObject | None:
    """The KbsConfig that offers a Secret by this name. Of several the oldest does: a newcomer takes nothing over."""
    naming = [
        config
        for config in configs
        if secret in ((config.get("spec") or {}).get("kbsSecretResources") or ())
        and (config.get("status") or {}).get("isReady") is True
        and not metadata(config).get("deletionTimestamp")
    ]
    return min(naming, key=_age, default=None)


def _age(config: JsonObject) -> tuple[str, str, str]:
    place = object_name(config)
    return str(metadata(config).get("creationTimestamp") or "9"), place.namespace, place.name


def resource_name(path: ResourcePath) -> str:
    """The name of the object that holds a resource."""
    return f"resource-{sha256(str(path).encode()).hex[:40]}"


def _context(path: ResourcePath) -> bytes:
    return b"fastness resource\0" + str(path).encode()


def _data(secret: Mapping[str, Any]) -> dict[str, bytes]:
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
