"""What the key broker hands out, and where it lies: ResourceSources, which only a Grant opens.

    BootstrapTokenSource   machine/<uid>/bootstrap-token?key=sha256:<hex>, made for the machine that asks
    SealedResources        written through the admin API; sealed with the vault key before the cluster sees them
    SecretResources        Secrets that a KbsConfig names, under default/<secret>/<key>
    StatusResource         default/attestation-status/status, which says `success` to whoever attested

The broker asks them in this order: what an administrator wrote counts before what a namespace offers. Everything is read when it
is asked for, so a change counts at once and nothing secret stays in memory. (Configurations are in `copies.py`.)

* A sealed value opens only under its own path: swapping two objects in the cluster gives nobody the other's secret.
* Names of objects are hashes of paths; no name is built from what a caller wrote.
* A KbsConfig counts in the namespaces of the broker's settings only, and when its controller found it good.
* In the namespace that holds our own keys, only Secrets that are labelled as resources are ever read.
* A machine makes the key of its kubelet first and names it when it asks for its bootstrap token, inside of its attested session.
  So the token that it gets is of use with that key only, and whoever copies it has nothing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fastness.crypto.digests import Algorithm, parse_digest, sha256
from fastness.crypto.errors import BadDigest, BrokenSeal, UnknownSealKey
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.live.bootstrap_tokens import BootstrapTokens, is_bootstrap_token
from fastness.http.refusals import Refusal
from fastness.keys.authorities import SECRETS, create_in_namespace
from fastness.keys.errors import TokenContended
from fastness.keys.shared_cipher import Cipher, lasts, opened, ready
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.kube.errors import AlreadyExists, Conflict, NotFound, Unavailable
from fastness.kube.informers import Informer
from fastness.kube.places import SEALED
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.protocol.kbs_path import STATUS, ResourcePath, parse_path
from fastness.release.source import Content, Query

STORE_LABEL: Final = "fastness.dev/resource-store"
RESOURCE_LABEL: Final = "fastness.dev/resource"
PATH: Final = "fastness.dev/resource-path"
TYPE: Final = "fastness.dev/sealed-resource"
MAX_RESOURCE: Final = 512 * 1024
SECRETS_REPOSITORY: Final = "default"
# Settings of the broker count here alone: whoever may write into some other namespace must not decide what is trusted.
# Apart from our keys: whoever may read any resource here must not be able to read a key of another role.
SEALED_NAMESPACE: Final = SEALED
TRIES: Final = 5
_AS: Final = WriteOptions(manager="broker")


class BootstrapTokenSource:
    """Bootstrap tokens, each for the machine that asks and the key that it names."""

    def __init__(self, tokens: BootstrapTokens) -> None:
        self._tokens = tokens

    def serves(self, path: ResourcePath) -> bool:
        """Whether a path is the bootstrap token of a machine."""
        return is_bootstrap_token(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content:
        """The token, and which one it is, for the record; raises Refusal, ApiError."""
        # `authorise` lets nobody else come here; asked once more because this one makes a node of the cluster out of whoever gets
        # it.
        if grant.basis is not Basis.VERDICT:
            raise Refusal(403, "not-attested", "a bootstrap token rests on a verdict", grant.verdict)
        try:
            key = parse_digest(query.get("key", ""))
        except BadDigest as error:
            raise Refusal(
                400, "bad-join-key", "name the key of the kubelet: ?key=sha256:<hex of its public key>"
            ) from error
        # The signer of certificates compares this digest with the key of the request; another algorithm would never match.
        if key.algorithm is not Algorithm.SHA256:
            raise Refusal(400, "bad-join-key", "the key of the kubelet is named by its SHA-256")
        try:
            token = await self._tokens.release(grant, key)
        except TokenContended as error:
            raise Refusal(503, error.code, error.message, grant.verdict) from error
        # The first half, which names the token object in Kubernetes; the second half is the secret and goes on no record
        # (pitfall 23).
        return Content(token, {"key": str(key), "token": token.reveal().decode().partition(".")[0]})


class StatusResource:
    """Says that whoever can read it has attested."""

    def serves(self, path: ResourcePath) -> bool:
        """Whether this is the one path."""
        return path == STATUS

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content:
        """`success`, without a newline."""
        return Content(SecretBytes(b"success"))


class SealedResources:
    """Resources that are sealed in the cluster."""

    def __init__(self, cluster: Cluster, cipher: Cipher) -> None:
        self._cluster = cluster
        self._cipher = cipher

    def serves(self, path: ResourcePath) -> bool:
        """An administrator may write under any path."""
        return True

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content | None:
        """The resource, opened; None when there is none. Raises ApiError, BrokenSeal, UnknownSealKey."""
        try:
            secret = await self._cluster.get(SECRETS, resource_name(path), SEALED_NAMESPACE)
        except NotFound:
            return None
        sealed = _data(secret).get("sealed")
        return None if sealed is None else Content(SecretBytes(await opened(self._cipher, sealed, _context(path))))

    async def write(self, path: ResourcePath, value: SecretBytes) -> bool:
        """Write a resource, replacing what was there; whether it is new. Raises ApiError, TrustError."""
        new = False
        await ready(self._cipher)
        for _ in range(TRIES):
            sealed = self._cipher.seal(value.reveal(), _context(path))
            new = await self._store(path, sealed) or new
            if await lasts(self._cipher, sealed):
                return new
        raise Unavailable("the vault key changes faster than resources are written")

    async def _store(self, path: ResourcePath, sealed: bytes) -> bool:
        name, data = resource_name(path), {"sealed": base64.b64encode(sealed).decode()}
        meta = {
            "name": name, "namespace": SEALED_NAMESPACE, "labels": {STORE_LABEL: "sealed"}, "annotations": {PATH: str(path)},
        }  # fmt: skip
        try:
            made = {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": meta, "data": data}
            await create_in_namespace(self._cluster, made, _AS)
        except AlreadyExists:
            await self._cluster.patch(SECRETS, name, {"data": data}, PatchType.MERGE, SEALED_NAMESPACE, _AS)
            return False
        return True

    async def reseal(self, is_current: Callable[[bytes], bool], unreadable: Callable[[str], None] | None = None) -> int:
        """Seal every resource with the present key that is not yet; how many were not. Others may read and write meanwhile.

        What no key opens is told to `unreadable`, or raised where nobody listens. Raises ApiError, BrokenSeal, UnknownSealKey.
        """
        count = 0
        for path in filter(None, map(parse_path, await self.list())):
            try:
                secret = await self._cluster.get(SECRETS, resource_name(path), SEALED_NAMESPACE)
            except NotFound:
                continue
            sealed = _data(secret).get("sealed")
            try:
                if sealed is None or is_current(sealed):
                    continue
                value = self._cipher.open(sealed, _context(path))
            except (BrokenSeal, UnknownSealKey):
                if unreadable is None:
                    raise
                unreadable(str(path))
                continue
            count += 1
            anew = base64.b64encode(self._cipher.seal(value, _context(path))).decode()
            patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"]}, "data": {"sealed": anew}}
            # Whoever wrote or deleted it since wins; it counts all the same, so that nobody takes this for the last pass.
            with suppress(Conflict, NotFound):
                await self._cluster.patch(SECRETS, resource_name(path), patch, PatchType.MERGE, SEALED_NAMESPACE, _AS)
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
        secrets = await self._cluster.list(SECRETS, Scope(SEALED_NAMESPACE, labels=f"{STORE_LABEL}=sealed"))
        return sorted(path for secret in secrets.items if parse_path(path := annotations_of(secret).get(PATH, "")))


class SecretResources:
    """Kubernetes Secrets that a KbsConfig names."""

    def __init__(self, cluster: Cluster, configs: Informer) -> None:
        self._cluster = cluster
        self._configs = configs

    def serves(self, path: ResourcePath) -> bool:
        """Whether the path is where Secrets are offered."""
        return path.repository == SECRETS_REPOSITORY

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Content | None:
        """The value of a key of a Secret; None when nobody offers it. Raises ApiError."""
        # A Secret is a resource because a KbsConfig names it, never because it is there.
        owner = owner_of(path.type, self._configs.list())
        if owner is None:
            return None
        namespace = object_name(owner).namespace
        try:
            secret = await self._cluster.get(SECRETS, path.type, namespace)
        except NotFound:
            return None
        # Our own keys lie here: a KbsConfig that names one of them must not make it a resource.
        if namespace == NAMESPACE and labels_of(secret).get(RESOURCE_LABEL) != "true":
            return None
        value = _data(secret).get(path.tag)
        return None if value is None else Content(SecretBytes(value))


def owner_of(secret: str, configs: Sequence[JsonObject]) -> JsonObject | None:
    """The KbsConfig that offers a Secret by this name. Of several the oldest does: a newcomer takes nothing over."""
    naming = [
        config
        for config in configs
        if secret in ((config.get("spec") or {}).get("kbsSecretResources") or ())
        # Only what its controller found good: a Secret that is offered twice, or does not exist, is offered by nobody.
        and (config.get("status") or {}).get("isReady") is True
        and not metadata(config).get("deletionTimestamp")
    ]
    return min(naming, key=_age, default=None)


def _age(config: JsonObject) -> tuple[str, str, str]:
    place = object_name(config)
    return str(metadata(config).get("creationTimestamp") or "9"), place.namespace, place.name


def resource_name(path: ResourcePath) -> str:
    """The name of the object that holds a resource."""
    # A hash, because a path may be longer than the name of an object, and its segments must not meet rules of names.
    return f"resource-{sha256(str(path).encode()).hex[:40]}"


def _context(path: ResourcePath) -> bytes:
    # The path is authenticated with the value: whoever may edit Secrets cannot put one resource in another's place.
    return b"fastness resource\0" + str(path).encode()


def _data(secret: Mapping[str, Any]) -> dict[str, bytes]:
    try:
        # Strict: base64 that is read leniently has many spellings, and the API refuses such data anyway.
        return {name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()}
    except (binascii.Error, TypeError, ValueError):
        return {}
