"""An authority that lives in a Secret of the cluster and changes with overlap.

Replicas share it: it is made once, by whoever comes first, and every step of its life is written with the version that was read,
so of two who take the same step one wins and the other reads what came of it.

    tls.crt, tls.key     the authority that issues now
    next.crt, next.key   its successor: trusted already, not issuing yet
    old.crt              predecessors: not issuing any more, still trusted
    ca.crt               all of them: what clients should trust

* With a third of its life left, or when the annotation `fastness.dev/rotate` asks for it, a successor is made and handed out.
* The successor issues when it has been handed out for the overlap and the one who knows where copies lie (`may_promote`) agrees.
* A predecessor is forgotten when the overlap has passed once more.

`Lineage` is that life without I/O; `AuthoritySecret` reads and writes it; `LiveAuthority` follows the Secret for one process.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import BACKDATE, Certificate, CertificateAuthority, split_pem
from fastness.keys.errors import DamagedAuthority
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NAMESPACE as NAMESPACE_KIND
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.objects import annotations_of, metadata, rfc3339
from fastness.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock, Entropy

SECRETS: Final = SECRET.resource
NAMESPACES: Final = NAMESPACE_KIND.resource
HERE: Final = Scope(NAMESPACE)
ACCOUNTS_HINT: Final = (
    "Install accounts and Secrets of the roles: fastness crds --accounts | kubectl apply --server-side -f -"
)
ROTATE: Final = "fastness.dev/rotate"
PROMOTED: Final = "fastness.dev/promoted-at"
# Rotated with a third of it left: images and machines that were off for years must still find a generation that they know.
CA_LIFETIME: Final = timedelta(days=3650)
TRIES: Final = 5
PAUSE_SECONDS: Final = 0.05  # a write that another one made is told of before it can be read
NEVER: Final = datetime.min.replace(tzinfo=UTC)
_AS: Final = WriteOptions(manager="doors")

MayPromote = Callable[[Certificate], bool]


def named(name: str) -> Scope:
    """Where one object of ours is: an account that may watch this name and no other can follow it."""
    return Scope(NAMESPACE, fields=f"metadata.name={name}")


async def found_secret(cluster: Cluster, name: str) -> JsonObject | None:
    """A Secret of ours, None when there is none; raises ApiError."""
    try:
        return await cluster.get(SECRETS, name, NAMESPACE)
    except NotFound:
        return None


async def first_content(cluster: Cluster, name: str, empty: JsonObject | None, data: Mapping[str, str]) -> bool:
    """Give a Secret its first content, or make it; no when another one was faster; raises Forbidden, ApiError.

    Roles with accounts of their own cannot create Secrets, because no rule can say which: they find theirs empty and fill it.
    """
    try:
        if empty is None:
            meta = {"name": name, "namespace": NAMESPACE}
            body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": dict(data)}
            await cluster.create(SECRETS, body, _AS)
        else:
            patch = {"metadata": {"resourceVersion": metadata(empty)["resourceVersion"]}, "data": dict(data)}
            await cluster.patch(SECRETS, name, patch, PatchType.MERGE, NAMESPACE, _AS)
    except (AlreadyExists, Conflict, NotFound):
        return False
    except Forbidden as error:
        raise Forbidden(f"the Secret {NAMESPACE}/{name} cannot be made: {error.message}. {ACCOUNTS_HINT}") from error
    return True


async def create_in_namespace(cluster: Cluster, secret: JsonObject, options: WriteOptions) -> None:
    """Make a Secret in a namespace of ours, and that namespace if nobody installed it; raises AlreadyExists, ApiError."""
    try:
        await cluster.create(SECRETS, secret, options)
    except NotFound:
        with suppress(AlreadyExists):
            meta = {"name": metadata(secret)["namespace"]}
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, options)
        await cluster.create(SECRETS, secret, options)


def nobody_objects(_successor: Certificate) -> bool:
    """Every copy is kept by ourselves, so the overlap alone decides."""
    return True


@dataclass(frozen=True, slots=True)
class Lineage:
    """An authority with its successor and its predecessors."""

    issuing: CertificateAuthority
    successor: CertificateAuthority | None = None
    predecessors: tuple[Certificate, ...] = ()
    promoted: datetime = NEVER

    @property
    def trusted(self) -> tuple[Certificate, ...]:
        """All whose certificates are accepted, the issuing one first."""
        upcoming = (self.successor.certificate,) if self.successor else ()
        return (self.issuing.certificate, *upcoming, *self.predecessors)

    @property
    def bundle(self) -> str:
        """What clients should trust, as PEM."""
        return b"".join(certificate.pem for certificate in self.trusted).decode()


@dataclass(frozen=True, slots=True)
class AuthoritySecret:
    """Which Secret holds an authority, what it is called, and how long two generations overlap."""

    name: str
    common_name: str
    overlap: timedelta
    lifetime: timedelta = CA_LIFETIME

    async def open(self, cluster: Cluster, entropy: Entropy, now: datetime) -> Lineage:
        """The authority out of the cluster, made if there is none; raises DamagedAuthority, ApiError."""
        for _ in range(TRIES):
            secret = await found_secret(cluster, self.name)
            if secret is not None and secret.get("data"):
                return self.read(secret, entropy)
            made = Lineage(self._made(entropy, now))
            data = {name: value for name, value in _data(made).items() if value is not None}
            if await first_content(cluster, self.name, secret, data):
                return made
            await asyncio.sleep(PAUSE_SECONDS)
        raise Conflict(f"the Secret {NAMESPACE}/{self.name} comes and goes")

    def manifest(self, entropy: Entropy, now: datetime) -> JsonObject:
        """The Secret of a new authority, for a cluster that does not exist yet; it holds the key."""
        data = {name: value for name, value in _data(Lineage(self._made(entropy, now))).items() if value is not None}
        meta = {"name": self.name, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": data}

    async def renew(
        self, cluster: Cluster, entropy: Entropy, now: datetime, may_promote: MayPromote = nobody_objects
    ) -> Lineage:
        """Take the steps that are due; raises DamagedAuthority, ApiError."""
        for _ in range(TRIES):
            secret = await cluster.get(SECRETS, self.name, NAMESPACE)
            lineage = self.read(secret, entropy)
            after = self.step(lineage, now, entropy, may_promote, requested=ROTATE in annotations_of(secret))
            if after == lineage:
                return lineage
            try:
                await cluster.patch(SECRETS, self.name, self._patch(secret, after), PatchType.MERGE, NAMESPACE, _AS)
            except Conflict:
                continue
            return after
        return lineage

    def step(
        self,
        lineage: Lineage,
        now: datetime,
        entropy: Entropy,
        may_promote: MayPromote = nobody_objects,
        *,
        requested: bool = False,
    ) -> Lineage:
        """The lineage after whatever is due now."""
        after = lineage
        # Made and handed out first, issuing later: a certificate of an authority that a client has not heard of is refused by
        # it.
        if after.successor is None and (requested or _left(after.issuing.certificate, now) < 1 / 3):
            after = replace(after, successor=self._made(entropy, now))
        # Not at promotion: certificates of the predecessor are still being shown until each was renewed.
        if after.predecessors and now - after.promoted >= self.overlap:
            after = replace(after, predecessors=())
        successor = after.successor
        if successor is not None and self._is_known(successor, now) and may_promote(successor.certificate):
            # Certificates without keys: a predecessor is believed for a while and can never issue again.
            old = (after.issuing.certificate, *after.predecessors)
            after = Lineage(successor, None, old, now.replace(microsecond=0))
        return after

    def read(self, secret: JsonObject, entropy: Entropy) -> Lineage:
        """The lineage in a Secret; raises DamagedAuthority."""
        try:
            data = {name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()}
            issuing = CertificateAuthority.load(data["tls.crt"], SecretBytes(data["tls.key"]), entropy)
            successor = None
            if data.get("next.crt"):
                successor = CertificateAuthority.load(data["next.crt"], SecretBytes(data["next.key"]), entropy)
            old = tuple(split_pem(data["old.crt"])) if data.get("old.crt") else ()
            since = annotations_of(secret).get(PROMOTED)
            promoted = datetime.fromisoformat(since) if since else NEVER
        except (KeyError, ValueError, binascii.Error, CryptoError) as error:
            raise DamagedAuthority(
                f"the Secret {NAMESPACE}/{self.name} does not hold an authority",
                "Restore it from a backup. If it is deleted a new one is made, and clients must be told of it.",
            ) from error
        return Lineage(issuing, successor, old, promoted)

    def _is_known(self, successor: CertificateAuthority, now: datetime) -> bool:
        # Counted from when it was made: its own beginning lies a little before that, for clocks that lag.
        return now - (successor.certificate.not_before + BACKDATE) >= self.overlap

    def _made(self, entropy: Entropy, now: datetime) -> CertificateAuthority:
        # The month in the name tells two generations apart in `openssl x509`.
        return CertificateAuthority.create(f"{self.common_name} {now:%Y-%m}", now, entropy, self.lifetime)

    def _patch(self, read: JsonObject, lineage: Lineage) -> JsonObject:
        notes = {ROTATE: None, PROMOTED: rfc3339(lineage.promoted) if lineage.predecessors else None}
        # Two controllers that take the same step at once would make two successors, and clients would know either.
        version = metadata(read).get("resourceVersion")
        return {"metadata": {"resourceVersion": version, "annotations": notes}, "data": _data(lineage)}


class LiveAuthority:
    """The authority as this process sees it now: what the Secret says, or the last good state of it."""

    def __init__(
        self, kind: AuthoritySecret, lineage: Lineage, informer: Informer, clock: Clock, entropy: Entropy
    ) -> None:
        self.kind = kind
        self.informer = informer
        self._lineage = lineage
        self._read = ""
        self._clock = clock
        self._entropy = entropy

    @classmethod
    async def open(
        cls, kind: AuthoritySecret, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy
    ) -> LiveAuthority:
        """Make the authority if there is none and follow it."""
        lineage = await kind.open(cluster, entropy, clock.now())
        informer = informers.of(SECRETS, named(kind.name))
        await informer.synced()
        return cls(kind, lineage, informer, clock, entropy)

    @property
    def current(self) -> Lineage:
        """The lineage now; a damaged Secret changes nothing, `renew` tells of it."""
        secret = self.informer.get(NAMESPACE, self.kind.name)
        version = str(metadata(secret or {}).get("resourceVersion") or "")
        if secret is not None and version != self._read:
            self._read = version
            try:
                self._lineage = self.kind.read(secret, self._entropy)
            except DamagedAuthority:
                return self._lineage
        return self._lineage

    async def renew(self, cluster: Cluster, may_promote: MayPromote = nobody_objects) -> None:
        """Take the steps that are due; raises DamagedAuthority, ApiError."""
        await self.kind.renew(cluster, self._entropy, self._clock.now(), may_promote)


def _left(certificate: Certificate, now: datetime) -> float:
    """The share of its life that a certificate still has."""
    return (certificate.not_after - now) / (certificate.not_after - certificate.not_before)


def _data(lineage: Lineage) -> dict[str, str | None]:
    successor = lineage.successor
    parts = {
        "tls.crt": lineage.issuing.certificate.pem,
        "tls.key": lineage.issuing.key_pem.reveal(),
        "next.crt": successor.certificate.pem if successor else None,
        "next.key": successor.key_pem.reveal() if successor else None,
        "old.crt": b"".join(entry.pem for entry in lineage.predecessors) or None,
        "ca.crt": lineage.bundle.encode(),
    }
    return {name: base64.b64encode(part).decode() if part is not None else None for name, part in parts.items()}
