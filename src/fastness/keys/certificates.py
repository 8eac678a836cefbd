"""Certificates of the doors: each role has its own in a Secret of its own, and the controllers issue them.

    Secret <role>-certificates        read by that role's account and by the controllers
      annotation fastness.dev/door-names    the names and addresses that callers dial, written by the doors of the role
      tls.crt, tls.key                      what the door shows to machines and people
      ca.crt                                the generations of the doors' authority that count
      internal.crt, internal.key            what gate, broker and config server show each other
      internal-ca.crt                       the generations of the internal authority that count

No door reads the key of an authority: whoever takes over a gate has the certificates of gates and can get no other ones, whatever
names it asks for. Replicas of a role share its Secret, so the names are those of all of them.

`renewed` is the decision of the issuer, without I/O; `DoorCertificates` follows the Secret for one door, which goes on with the
last good state while the controllers are away.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from fastness.crypto.errors import CryptoError
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate, Credential, split_pem
from fastness.keys.authorities import ACCOUNTS_HINT, SECRETS, Lineage, found_secret, named
from fastness.keys.doors import DoorsAuthority
from fastness.keys.errors import BadDoorNames
from fastness.keys.internal import InternalAuthority, is_due
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, metadata
from fastness.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.observe import logs
from fastness.protocol.door import DoorRole, role_named
from fastness.runtime.clock import Clock
from fastness.runtime.tasks import news_or_time

NAMES: Final = "fastness.dev/door-names"
# The annotation is the door's to write: a bound on what one that was taken over can have a certificate speak for.
MOST_NAMES: Final = 64
WAIT_SECONDS: Final = 30.0
INTERNAL_ROLES: Final = (DoorRole.GATE, DoorRole.BROKER, DoorRole.CONFIG_SERVER)
TRIES: Final = 8
PAUSE_SECONDS: Final = 0.02
# No wildcards: a door speaks for the names that it is dialled by (RFC 1123 §2.1; with the underscore of container networks).
_DNS_NAME: Final = re.compile(r"(?=.{1,253}\Z)[0-9A-Za-z]([-._0-9A-Za-z]*[0-9A-Za-z])?\Z")
_AS: Final = WriteOptions(manager="doors")
_log = logs.logger("rotation")


def secret_name(role: DoorRole) -> str:
    """The Secret with the certificates of a role."""
    return f"{role}-certificates"


@dataclass(frozen=True, slots=True)
class Generations:
    """The certificates of an authority that count now, without any key."""

    trusted: tuple[Certificate, ...]

    @property
    def bundle(self) -> str:
        """All of them, as PEM."""
        return b"".join(entry.pem for entry in self.trusted).decode()

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """What tells two sets apart."""
        return tuple(str(entry.fingerprint) for entry in self.trusted)


@dataclass(frozen=True, slots=True)
class RoleCertificates:
    """What the doors of one role show, and whom they believe."""

    serving: Credential
    doors: Generations
    inner: Credential | None = None
    internal: Generations = Generations(())


def canonical(name: str) -> str | None:
    """A DNS name or an address as certificates have it; None when it is neither."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name if _DNS_NAME.match(name) else None


def names_in(secret: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that the doors of a role ask for; what is no name, or too much, is left out."""
    names = annotations_of(secret).get(NAMES, "").split()
    # The annotation is a door's to write: a door that was taken over gets no wildcard and no certificate of a thousand names.
    return tuple(dict.fromkeys(name for name in map(canonical, names) if name is not None))[:MOST_NAMES]


def read(secret: Mapping[str, Any]) -> RoleCertificates | None:
    """The certificates in a Secret; None when there are none yet, or when they cannot be understood."""
    try:
        data = {name: base64.b64decode(value, validate=True) for name, value in (secret.get("data") or {}).items()}
        inner = _credential(data, "internal") if "internal.crt" in data else None
        internal = tuple(split_pem(data["internal-ca.crt"])) if "internal-ca.crt" in data else ()
        serving, doors = _credential(data, "tls"), tuple(split_pem(data["ca.crt"]))
    except (KeyError, ValueError, binascii.Error, CryptoError):
        return None
    return RoleCertificates(serving, Generations(doors), inner, Generations(internal))


def content(certificates: RoleCertificates) -> dict[str, str]:
    """The data of the Secret that holds these certificates."""
    parts = {
        "tls.crt": certificates.serving.certificate.pem,
        "tls.key": certificates.serving.key_pem.reveal(),
        "ca.crt": certificates.doors.bundle.encode(),
    }
    if certificates.inner is not None:
        parts |= {
            "internal.crt": certificates.inner.certificate.pem,
            "internal.key": certificates.inner.key_pem.reveal(),
            "internal-ca.crt": certificates.internal.bundle.encode(),
        }
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def renewed(
    role: DoorRole,
    names: Sequence[str],
    held: RoleCertificates | None,
    doors: Lineage,
    internal: Lineage,
    now: datetime,
) -> RoleCertificates:
    """What a role should hold now; equal to what it holds when nothing is due."""
    serving = held.serving if held is not None else None
    if serving is None or not _counts(serving, role, names, doors, now):
        serving = DoorsAuthority(doors).serving(role, names, now)
    if role not in INTERNAL_ROLES:
        return RoleCertificates(serving, Generations(doors.trusted))
    inner = held.inner if held is not None else None
    serves = role is DoorRole.CONFIG_SERVER
    if inner is None or not _counts(inner, role, names if serves else (), internal, now):
        authority = InternalAuthority(internal)
        inner = authority.serving(names, now) if serves else authority.client(role, now)
    return RoleCertificates(serving, Generations(doors.trusted), inner, Generations(internal.trusted))


def _counts(credential: Credential, role: DoorRole, names: Sequence[str], issuer: Lineage, now: datetime) -> bool:
    """Whether a credential can be shown for a while: dates, role, names, and the authority that issues now."""
    certificate = credential.certificate
    return (
        not is_due(credential, now)
        # The Secret may be written by its door: a certificate of another role, put there, must not be kept as good (decision 29).
        and role_named(certificate.uris) is role
        and set(names) <= set(certificate.hosts)
        # By the one that issues now: after a promotion every door gets a new one, so that the predecessor can be forgotten.
        and certificate.is_signed_by(issuer.issuing.certificate)
    )


def _credential(data: Mapping[str, bytes], name: str) -> Credential:
    return Credential(Certificate.from_pem(data[f"{name}.crt"]), PrivateKey.from_pem(SecretBytes(data[f"{name}.key"])))


def _own_name(name: str) -> str:
    plain = canonical(name)
    if plain is None:
        raise BadDoorNames(f"{name!r} is neither an address nor a DNS name", "Give a door the names that callers dial.")
    return plain


class DoorCertificates:
    """The certificates of one role as a door of it sees them now: what the Secret says, or the last good state."""

    def __init__(
        self, role: DoorRole, cluster: Cluster, informer: Informer, clock: Clock, names: Sequence[str]
    ) -> None:
        self.role = role
        self.informer = informer
        self._cluster = cluster
        self._clock = clock
        self._names = tuple(map(_own_name, names))
        self._version = ""
        self._held: RoleCertificates | None = None

    @classmethod
    async def open(
        cls, role: DoorRole, cluster: Cluster, informers: Informers, clock: Clock, names: Sequence[str]
    ) -> Self:
        """Ask for certificates that speak for these names and wait for them; raises BadDoorNames, ApiError."""
        informer = informers.of(SECRETS, named(secret_name(role)))
        await informer.synced()
        certificates = cls(role, cluster, informer, clock, names)
        await certificates.ask()
        await certificates._issued()
        return certificates

    @property
    def name(self) -> str:
        """The Secret that holds them."""
        return secret_name(self.role)

    @property
    def current(self) -> RoleCertificates:
        """What the door shows and believes now."""
        held = self._look()
        if held is None:
            raise RuntimeError("certificates are asked for after `open` has waited for them")
        return held

    async def ask(self) -> None:
        """See that the Secret asks for the names of this door; raises BadDoorNames, ApiError."""
        secret = self.informer.get(NAMESPACE, self.name)
        for turn in range(TRIES):
            if secret is not None and set(self._names) <= set(names_in(secret)):
                return
            if turn:
                await self._clock.sleep(PAUSE_SECONDS * 2**turn)
            secret = await found_secret(self._cluster, self.name)
            if await self._asked(secret):
                return
        raise Conflict(f"the Secret {NAMESPACE}/{self.name} is being changed by others")

    async def _asked(self, secret: JsonObject | None) -> bool:
        """Write the names of this door beside those of its replicas; no when another one was faster."""
        names = sorted({*names_in(secret or {}), *self._names})
        if len(names) > MOST_NAMES:
            raise BadDoorNames(
                f"the doors of role {self.role} ask for {len(names)} names, and a certificate has {MOST_NAMES} at most",
                f"Take old names out of the annotation {NAMES} of the Secret {NAMESPACE}/{self.name}.",
            )
        notes = {NAMES: " ".join(names)}
        try:
            if secret is None:
                meta = {"name": self.name, "namespace": NAMESPACE, "annotations": notes}
                body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta}
                await self._cluster.create(SECRETS, body, _AS)
            else:
                patch = {"metadata": {"resourceVersion": metadata(secret)["resourceVersion"], "annotations": notes}}
                await self._cluster.patch(SECRETS, self.name, patch, PatchType.MERGE, NAMESPACE, _AS)
        except (AlreadyExists, Conflict, NotFound):
            return False
        except Forbidden as error:
            problem = f"the Secret {NAMESPACE}/{self.name} cannot be written: {error.message}. {ACCOUNTS_HINT}"
            raise Forbidden(problem) from error
        return True

    async def _issued(self) -> None:
        """Wait until the controllers have issued what was asked for."""
        news = asyncio.Event()
        end = self.informer.subscribe(lambda _old, _new: news.set())
        try:
            while True:
                news.clear()
                held = self._look()
                if held is not None and set(self._names) <= set(held.serving.certificate.hosts):
                    return
                if not await news_or_time(news, self._clock, WAIT_SECONDS):
                    _log.warning("certificates.waiting", role=str(self.role), secret=f"{NAMESPACE}/{self.name}")
        finally:
            end()

    def _look(self) -> RoleCertificates | None:
        secret = self.informer.get(NAMESPACE, self.name)
        version = str(metadata(secret or {}).get("resourceVersion") or "")
        if secret is not None and version != self._version:
            self._version = version
            # A Secret that was emptied changes nothing: a door that serves must not stop because somebody deleted its
            # certificate.
            self._held = read(secret) or self._held
        return self._held
