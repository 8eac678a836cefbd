"""The keys that sign the record's checkpoints: one signs, older ones stay known.

They live in the Secret `record-key`; the public halves are in the ConfigMap `record-keys`, which anybody who verifies may
read. A key is used for a year.

The name of the log is bound to the identity of the cluster, as Kubernetes has it: the uid of namespace `kube-system`, which
nobody can delete. So the records of two clusters are never confused, and whoever makes our own namespace anew does not get a
record of a new name with it: a witness sees the old name with less behind it. Only a person gives the record another name
(`record.live.epoch`).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.crypto.notes import NoteSigner, NoteVerifier
from fastness.crypto.secret import SecretBytes
from fastness.keys.authorities import NAMESPACES, SECRETS, first_content, found_secret
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Entropy

IDENTITY: Final = "kube-system"
SECRET: Final = "record-key"
PUBLIC: Final = "record-keys"
LIFETIME: Final = timedelta(days=365)
_AS: Final = WriteOptions(manager="record")


@dataclass(frozen=True, slots=True)
class LogKey:
    """The key that signs now, and the name of the log."""

    origin: str
    signer: NoteSigner


async def log_key(cluster: Cluster, entropy: Entropy, now: datetime, epoch: int = 1) -> LogKey:
    """The key of the record, made or renewed where that is due; its public half is published before it signs."""
    origin = await log_name(cluster, epoch)
    secret = await found_secret(cluster, SECRET)
    if secret is None or not secret.get("data"):
        await first_content(cluster, SECRET, secret, _fresh(entropy, now))
        secret = await cluster.get(SECRETS, SECRET, NAMESPACE)  # ours, or that of whoever was faster
    if now - datetime.fromisoformat(_text(secret, "created")) >= LIFETIME:
        secret = await _renew(cluster, secret, entropy, now)
    signer = NoteSigner(origin, SecretBytes(base64.b64decode(secret["data"]["seed"])))
    # Published before it signs: a checkpoint whose key nobody knows would be taken for a forged one.
    await _publish(cluster, signer.verifier)
    return LogKey(origin, signer)


async def log_name(cluster: Cluster, epoch: int = 1) -> str:
    """The origin that stands in every checkpoint of an epoch."""
    identity = (await cluster.get(NAMESPACES, IDENTITY))["metadata"]["uid"]
    return f"fastness.dev/record/{identity}" + (f"/{epoch}" if epoch > 1 else "")


async def known_keys(cluster: Cluster) -> list[NoteVerifier]:
    """Every key that has signed checkpoints of this record; raises BadKey for one that was changed."""
    try:
        stored = await cluster.get(CONFIG_MAP.resource, PUBLIC, NAMESPACE)
    except NotFound:
        return []
    return [NoteVerifier.parse(text) for _, text in sorted((stored.get("data") or {}).items())]


async def _renew(cluster: Cluster, secret: JsonObject, entropy: Entropy, now: datetime) -> JsonObject:
    version = secret["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": _fresh(entropy, now)}
    return await cluster.patch(SECRETS, SECRET, patch, PatchType.MERGE, NAMESPACE, _AS)


async def _publish(cluster: Cluster, verifier: NoteVerifier) -> None:
    data = {verifier.id.hex(): str(verifier)}
    try:
        stored = await cluster.get(CONFIG_MAP.resource, PUBLIC, NAMESPACE)
    except NotFound:
        metadata = {"name": PUBLIC, "namespace": NAMESPACE}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        await cluster.create(CONFIG_MAP.resource, body, _AS)
        return
    if (stored.get("data") or {}).get(verifier.id.hex()) != str(verifier):
        await cluster.patch(CONFIG_MAP.resource, PUBLIC, {"data": data}, PatchType.MERGE, NAMESPACE, _AS)


def _fresh(entropy: Entropy, now: datetime) -> dict[str, str]:
    _, seed = NoteSigner.generate("new", entropy)
    values = {"seed": seed.reveal(), "created": rfc3339(now).encode()}
    return {name: base64.b64encode(value).decode() for name, value in values.items()}


def _text(secret: JsonObject, name: str) -> str:
    return base64.b64decode(secret["data"][name]).decode()
