"""Bootstrap tokens of Kubernetes, one for each machine that proved itself.

    token = await BootstrapTokens(cluster, clock, entropy).release(grant, key)        # "abcdef.0123456789abcdef"

The broker hands one out as `machine/<uid>/bootstrap-token` to the machine of that uid and to nobody else. It is a Secret as
kubeadm makes them, so any API server accepts it; it lets its holder ask for a certificate, and nothing more. Who gets one is
decided by `domain.attestation.joins`, from what the Secret says of its machine and key.

* The id follows from the machine, so all replicas of the broker find the same Secret and a machine has one token at a time. Ids
  are short: when two machines meet in one, the later takes the next of its own.
* Asking again gives the same token while it is good for a while, and a new secret under the same id otherwise, or when the key is
  another. Each is one write that depends on what was read.
* It authenticates only: discovery (`cluster-info`) is not signed with it, because the measured image knows the authority.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, Conflict, NotFound
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.crypto.digests import Digest, sha256
from fastness.crypto.secret import SecretBytes
from fastness.domain.attestation.joins import BOOTSTRAP_GROUP, JoinToken
from fastness.domain.attestation.resources import ResourcePath
from fastness.domain.attestation.subject import Grant
from fastness.model.kind import JsonObject
from fastness.model.objects import annotations_of, labels_of, metadata, object_name, rfc3339
from fastness.trust.authorities import SECRETS
from fastness.trust.errors import TokenContended

NAMESPACE: Final = "kube-system"
TYPE: Final = "bootstrap.kubernetes.io/token"
PREFIX: Final = "bootstrap-token-"
LABEL: Final = "fastness.dev/join-token"
MACHINE: Final = "fastness.dev/machine"
MACHINE_NAME: Final = "fastness.dev/machine-name"
KEY: Final = "fastness.dev/join-key"
EVIDENCE_TYPE: Final = "fastness.dev/evidence-type"
ENDORSEMENT: Final = "fastness.dev/endorsement"
LIFETIME: Final = timedelta(minutes=15)
# What a kubelet needs to come up, ask and be answered.
GOOD_FOR: Final = timedelta(minutes=5)
TAG: Final = "bootstrap-token"
_ID, _SECRET = 6, 16
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_TRIES: Final = 8
PAUSE: Final = 0.01
_AS: Final = WriteOptions(manager="broker")


def is_bootstrap_token(path: ResourcePath) -> bool:
    """Whether a path is the bootstrap token of a machine."""
    return path.repository == "machine" and path.tag == TAG


class BootstrapTokens:
    """Makes and finds the tokens of machines."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy

    async def release(self, grant: Grant, key: Digest) -> SecretBytes:
        """The token of the grant's machine for a key (SHA-256 of its SubjectPublicKeyInfo); raises ApiError, TokenContended."""
        for number in range(_TRIES):
            identity = token_id(grant.subject.machine, number)
            found = await self._at(identity, grant, key)
            if found is not None:
                return found
        raise TokenContended(
            "no id for a bootstrap token is free", "Delete bootstrap tokens in kube-system that nobody uses."
        )

    async def _at(self, identity: str, grant: Grant, key: Digest) -> SecretBytes | None:
        """The token under one id; None when the id is somebody else's."""
        for turn in range(_TRIES):
            now = self._clock.now()
            try:
                secret = await self._cluster.get(SECRETS, f"{PREFIX}{identity}", NAMESPACE)
            except NotFound:
                secret = None
            if secret is not None:
                known = join_token(secret)
                if known is None or known.machine != grant.subject.machine:
                    return None
                same = (known.key, known.tee, known.endorsement) == (str(key), *grant.subject.endorsed)
                if same and known.expires - now >= GOOD_FOR:
                    return _text(identity, _value(secret, "token-secret"))
            wanted = self._object(identity, grant, key, now)
            try:
                await self._write(secret, wanted)
            except (AlreadyExists, Conflict, NotFound):
                # Another replica was faster; what it wrote may not be visible yet.
                await self._clock.sleep(PAUSE * 2**turn * (0.5 + self._entropy.fraction()))
                continue
            return _text(identity, _value(wanted, "token-secret"))
        raise TokenContended("the bootstrap token is being changed by others", "Ask again.")

    async def _write(self, known: JsonObject | None, wanted: JsonObject) -> None:
        if known is None:
            await self._cluster.create(SECRETS, wanted, _AS)
            return
        meta = {**wanted["metadata"], "resourceVersion": metadata(known)["resourceVersion"]}
        patch = {"metadata": meta, "data": wanted["data"]}
        await self._cluster.patch(SECRETS, object_name(known).name, patch, PatchType.MERGE, NAMESPACE, _AS)

    def _object(self, identity: str, grant: Grant, key: Digest, now: datetime) -> JsonObject:
        data = {
            "token-id": identity,
            "token-secret": _random(self._entropy, _SECRET),
            "expiration": rfc3339(now + LIFETIME),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": BOOTSTRAP_GROUP,
            "description": f"released to {grant.subject.name} by {grant.id}",
        }
        subject = grant.subject
        notes = {
            MACHINE: subject.machine, MACHINE_NAME: subject.name, EVIDENCE_TYPE: subject.tee,
            ENDORSEMENT: subject.endorsement, KEY: str(key),
        }  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Secret", "type": TYPE,
            "metadata": {
                "name": f"{PREFIX}{identity}", "namespace": NAMESPACE, "labels": {LABEL: "true"}, "annotations": notes,
            },
            "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
        }  # fmt: skip


def token_id(machine: str, number: int) -> str:
    """The id of a machine's token; the number is for machines that meet in one."""
    found = int.from_bytes(sha256(f"fastness bootstrap token\0{machine}\0{number}".encode()).value, "big")
    return "".join(_LETTERS[found // 36**place % 36] for place in range(_ID))


def join_token(secret: Mapping[str, Any]) -> JoinToken | None:
    """What a Secret says of a token; None when it is not one of ours, or cannot be read."""
    name, notes = object_name(secret).name, annotations_of(secret)
    identity = _value(secret, "token-id")
    ours = secret.get("type") == TYPE and labels_of(secret).get(LABEL) == "true"
    if not ours or name != f"{PREFIX}{identity}" or not notes.get(MACHINE) or not notes.get(KEY):
        return None
    try:
        expires = datetime.fromisoformat(_value(secret, "expiration"))
    except ValueError:
        return None
    return JoinToken(
        identity, notes[MACHINE], notes[KEY], expires if expires.tzinfo else expires.replace(tzinfo=UTC),
        notes.get(EVIDENCE_TYPE, ""), notes.get(ENDORSEMENT, ""),
    )  # fmt: skip


def _value(secret: Mapping[str, Any], name: str) -> str:
    try:
        return base64.b64decode((secret.get("data") or {}).get(name) or "", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _random(entropy: Entropy, length: int) -> str:
    """Letters and digits, each as likely: a byte beyond the last full round is drawn again."""
    found = ""
    while len(found) < length:
        found += "".join(_LETTERS[byte % 36] for byte in entropy.token(length) if byte < 252)
    return found[:length]


def _text(identity: str, secret: str) -> SecretBytes:
    return SecretBytes(f"{identity}.{secret}".encode())
