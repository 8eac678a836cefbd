"""Bootstrap tokens of Kubernetes, one for each machine that proved itself.

    token = await BootstrapTokens(cluster, clock, entropy).release(grant, key)        # "abcdef.0123456789abcdef"

    broker       Secret fastness-joins/join-<id>                   the token that it hands out, for which machine and key
    controllers  Secret kube-system/bootstrap-token-<id>           the same as kubeadm makes them, so any API server accepts it

The broker hands one out as `machine/<uid>/bootstrap-token` to the machine of that uid and to nobody else. It lets its holder ask
for a certificate, and nothing more. Who gets one is decided by `enrolment.kubelet_certificates`, from what the Secret says of its
machine and key.

* No rule of Kubernetes limits Secrets by the beginning of their names, and kube-system holds those of others. So the broker asks
  in a namespace that has nothing else in it. The controllers, which decide about joins anyway, publish what they understand of it
  (`published`): group, usages and the longest life are theirs to say.
* The id follows from the machine, so all replicas of the broker find the same request and a machine has one token at a time. Ids
  are short: when two machines meet in one, or somebody else has it, the later takes the next of its own.
* Asking again gives the same token while it is good for a while, and a new secret under the same id otherwise, or when the key is
  another. Each is one write that depends on what was read.
* It authenticates only: discovery (`cluster-info`) is not signed with it, because the measured image knows the authority.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastness.crypto.digests import Digest, sha256
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.kubelet_certificates import BOOTSTRAP_GROUP, JoinToken
from fastness.keys.authorities import SECRETS, create_in_namespace
from fastness.keys.errors import TokenContended
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name, rfc3339
from fastness.kinds.trusted_execution.subject import Grant
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.places import JOINS
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.kbs_path import ResourcePath
from fastness.runtime.clock import Clock, Entropy

NAMESPACE: Final = "kube-system"
TYPE: Final = "bootstrap.kubernetes.io/token"
PREFIX: Final = "bootstrap-token-"
ASKED_NAMESPACE: Final = JOINS
ASKED_TYPE: Final = "fastness.dev/join-token"
ASKED_PREFIX: Final = "join-"
PUBLISHED: Final = "fastness.dev/published"
TAKEN: Final = "fastness.dev/id-taken"
LABEL: Final = "fastness.dev/join-token"
MACHINE: Final = "fastness.dev/machine"
MACHINE_NAME: Final = "fastness.dev/machine-name"
KEY: Final = "fastness.dev/join-key"
EVIDENCE_TYPE: Final = "fastness.dev/evidence-type"
ENDORSEMENT: Final = "fastness.dev/endorsement"
# kubeadm's tokens live a day; this one only has to last from the answer to the first request of the kubelet.
LIFETIME: Final = timedelta(minutes=15)
# What a kubelet needs to come up, ask and be answered.
GOOD_FOR: Final = timedelta(minutes=5)
TAG: Final = "bootstrap-token"
_ID, _SECRET = 6, 16
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_TRIES: Final = 8
PAUSE: Final = 0.01
PUBLISH_SECONDS: Final = 6.0  # below what the door gives a release, so that its reason reaches the machine
LONGEST_PAUSE: Final = 0.5
_TOKEN_ID: Final = re.compile(r"[a-z0-9]{6}\Z")
_TOKEN_SECRET: Final = re.compile(r"[a-z0-9]{16}\Z")
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
            token = await self._at(identity, grant, key)
            if token is not None:
                return token
        raise TokenContended(
            "no id for a bootstrap token is free", "Delete bootstrap tokens in kube-system that nobody uses."
        )

    async def _join_request(self, identity: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SECRETS, f"{ASKED_PREFIX}{identity}", ASKED_NAMESPACE)
        except NotFound:
            return None

    async def _at(self, identity: str, grant: Grant, key: Digest) -> SecretBytes | None:
        """The token under one id; None when the id is somebody else's."""
        for turn in range(_TRIES):
            now = self._clock.now()
            secret = await self._join_request(identity)
            if secret is not None:
                held = asked_token(secret)
                if held is None or held.machine != grant.subject.machine or TAKEN in annotations_of(secret):
                    return None
                # The token is bound to one key: a machine that made a new one gets a new secret, and the old one joins nobody.
                same = (held.key, held.tee, held.endorsement) == (str(key), *grant.subject.endorsed)
                if same and held.expires - now >= GOOD_FOR:
                    return await self._once_published(identity, secret_value(secret, "token-secret"))
            made = self._object(identity, grant, key, now)
            try:
                await self._write(secret, made)
            except (AlreadyExists, Conflict, NotFound):
                # Another replica was faster; what it wrote may not be visible yet.
                await self._clock.sleep(PAUSE * 2**turn * (0.5 + self._entropy.fraction()))
                continue
            return await self._once_published(identity, secret_value(made, "token-secret"))
        raise TokenContended("the bootstrap token is being changed by others", "Ask again.")

    async def _once_published(self, identity: str, secret: str) -> SecretBytes | None:
        """The token, when the API accepts it; None when its id turned out to be somebody else's. Raises TokenContended."""
        end, pause = self._clock.monotonic() + PUBLISH_SECONDS, PAUSE
        while self._clock.monotonic() < end:
            join_request = await self._join_request(identity)
            if join_request is None:
                raise TokenContended(
                    "the controllers publish no bootstrap token for this machine", "See whether it is still trusted."
                )
            notes = annotations_of(join_request)
            if TAKEN in notes:
                return None
            # Of this very secret: a mark of the token before would hand out one that the API does not accept yet.
            if notes.get(PUBLISHED) == _mark(secret):
                return _text(identity, secret)
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        raise TokenContended(
            "the controllers have not published the bootstrap token", "See that they run, and ask again."
        )

    async def _write(self, held: JsonObject | None, made: JsonObject) -> None:
        if held is None:
            await create_in_namespace(self._cluster, made, _AS)
            return
        meta = {**made["metadata"], "resourceVersion": metadata(held)["resourceVersion"]}
        patch = {"metadata": meta, "data": made["data"]}
        await self._cluster.patch(SECRETS, object_name(held).name, patch, PatchType.MERGE, ASKED_NAMESPACE, _AS)

    def _object(self, identity: str, grant: Grant, key: Digest, now: datetime) -> JsonObject:
        data = {
            "token-id": identity,
            "token-secret": random_letters(self._entropy, _SECRET),
            "expiration": rfc3339(now + LIFETIME),
            "description": f"released to {grant.subject.name} by {grant.id}",
        }
        subject = grant.subject
        notes = {
            MACHINE: subject.machine, MACHINE_NAME: subject.name, EVIDENCE_TYPE: subject.tee,
            ENDORSEMENT: subject.endorsement, KEY: str(key),
        }  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Secret", "type": ASKED_TYPE,
            "metadata": {
                "name": f"{ASKED_PREFIX}{identity}", "namespace": ASKED_NAMESPACE, "labels": {LABEL: "true"},
                "annotations": notes,
            },
            "data": encoded(data),
        }  # fmt: skip


def token_id(machine: str, number: int) -> str:
    """The id of a machine's token; the number is for machines that meet in one."""
    # Computed and not drawn: replicas that answer the same machine at once find one request, and a machine cannot collect tokens.
    number_of_machine = int.from_bytes(sha256(f"fastness bootstrap token\0{machine}\0{number}".encode()).value, "big")
    return "".join(_LETTERS[number_of_machine // 36**place % 36] for place in range(_ID))


def join_token(secret: Mapping[str, Any]) -> JoinToken | None:
    """What a Secret of kube-system says of a token; None when it is not one of ours, or cannot be read."""
    return _token(secret, TYPE, PREFIX)


def asked_token(secret: Mapping[str, Any]) -> JoinToken | None:
    """What the broker asks for in a Secret of its own; None when it cannot be read."""
    return _token(secret, ASKED_TYPE, ASKED_PREFIX)


def published(join_request: Mapping[str, Any], token: JoinToken) -> JsonObject | None:
    """The Secret by which the API accepts a token that the broker asks for; None when it would be none."""
    secret, notes = secret_value(join_request, "token-secret"), annotations_of(join_request)
    if not is_well_formed(token.id, secret):
        return None
    data = {
        "token-id": token.id, "token-secret": secret, "expiration": rfc3339(token.expires),
        # No `usage-bootstrap-signing`: with it the token would also vouch for the cluster's authority (cluster-info), which comes
        # from the image.
        "usage-bootstrap-authentication": "true", "auth-extra-groups": BOOTSTRAP_GROUP,
        "description": secret_value(join_request, "description")[:256],
    }  # fmt: skip
    copied = {name: notes.get(name, "") for name in (MACHINE, MACHINE_NAME, EVIDENCE_TYPE, ENDORSEMENT, KEY)}
    meta = {"name": f"{PREFIX}{token.id}", "namespace": NAMESPACE, "labels": {LABEL: "true"}, "annotations": copied}
    return {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": meta, "data": encoded(data)}


def mark_of(join_request: Mapping[str, Any]) -> str:
    """What the annotation says once this very token is published."""
    return _mark(secret_value(join_request, "token-secret"))


def _token(secret: Mapping[str, Any], kind: str, prefix: str) -> JoinToken | None:
    name, notes = object_name(secret).name, annotations_of(secret)
    identity = secret_value(secret, "token-id")
    ours = secret.get("type") == kind and labels_of(secret).get(LABEL) == "true"
    # The API accepts a token by the name of its Secret: with another id inside, two Secrets would be one token.
    if not ours or name != f"{prefix}{identity}" or not notes.get(MACHINE) or not notes.get(KEY):
        return None
    try:
        expires = datetime.fromisoformat(secret_value(secret, "expiration"))
    except ValueError:
        return None
    return JoinToken(
        identity, notes[MACHINE], notes[KEY], expires if expires.tzinfo else expires.replace(tzinfo=UTC),
        notes.get(EVIDENCE_TYPE, ""), notes.get(ENDORSEMENT, ""),
    )  # fmt: skip


def _mark(secret: str) -> str:
    return str(sha256(f"fastness published token\0{secret}".encode()))


def is_well_formed(identity: str, secret: str) -> bool:
    """Whether the two parts have the form that Kubernetes demands: another one would lie in kube-system and count for nothing."""
    return bool(_TOKEN_ID.match(identity) and _TOKEN_SECRET.match(secret))


def encoded(data: Mapping[str, str]) -> dict[str, str]:
    """The data of a Secret, as the API has it."""
    return {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}


def secret_value(secret: Mapping[str, Any], name: str) -> str:
    """A text in the data of a Secret; empty when there is none, or it is no text."""
    try:
        return base64.b64decode((secret.get("data") or {}).get(name) or "", validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def random_letters(entropy: Entropy, length: int) -> str:
    """Letters and digits, each as likely: a byte beyond the last full round is drawn again."""
    letters = ""
    while len(letters) < length:
        # 252 is seven times 36; without the bound four letters would be likelier than the rest.
        letters += "".join(_LETTERS[byte % 36] for byte in entropy.token(length) if byte < 252)
    return letters[:length]


def _text(identity: str, secret: str) -> SecretBytes:
    return SecretBytes(f"{identity}.{secret}".encode())
