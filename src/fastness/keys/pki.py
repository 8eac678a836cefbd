"""The keys of the API: its authority, its serving certificate, its administrator, its token key.

Everything lives in one directory, is made on the first start and renewed when less than a third of its life is left:

    ca.pem               the authority that issues now (10 y)      ca-next.pem   its successor, already trusted
    ca-old.crt           its predecessor, still trusted             ca.crt        all that clients should trust
    serving.pem          what the API shows (90 d)                  admin.pem     a client in system:masters (1 y)
    service-account.pem  signs tokens of service accounts

* A `.pem` holds key and certificate together (0600), so that a crash cannot leave a pair that does not match.
* An authority changes with overlap: with a third of its life left a successor is made and handed out in `ca.crt`, with a sixth
  left the successor begins to issue, and the predecessor is trusted until it expires.
* Nothing here keeps time: `renew(now)` is called at the start and now and then, and says what changed.

A kubeconfig made of them has everything inline, no paths, so that the file can be copied to another machine. It holds a private
key or a token: whoever writes it uses `key_files.write_private`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from fastness.crypto.csr import certify, read_request
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import CryptoError
from fastness.crypto.jws import SigningKey, TokenKeys
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.crypto.x509 import Certificate, CertificateAuthority, Credential, split_pem, verify_client, verify_server
from fastness.keys.errors import DamagedKeyFile
from fastness.keys.key_files import read_private, write_private, write_public
from fastness.kinds.kind import JsonObject

CA_LIFETIME: Final = timedelta(days=3650)
SERVING_LIFETIME: Final = timedelta(days=90)
ADMIN_LIFETIME: Final = timedelta(days=365)
NODE_LIFETIME: Final = timedelta(hours=1)
ADMIN_NAME: Final = "fastness-admin"
ADMIN_GROUP: Final = "system:masters"
CA_NAME: Final = "fastness api"


@dataclass(slots=True)
class ApiPki:
    """The keys of one API server; open it with `ApiPki.open`."""

    directory: Path
    hosts: tuple[str, ...]
    authority: CertificateAuthority
    serving: Credential
    admin: Credential
    token_keys: TokenKeys
    next_authority: CertificateAuthority | None
    old_authorities: list[Certificate]
    _entropy: RandomBytes = field(repr=False)

    @classmethod
    def open(cls, directory: Path, hosts: Sequence[str], now: datetime, entropy: RandomBytes) -> ApiPki:
        """Load what is there, make what is missing, renew what is due; raises TrustError, CryptoError."""
        authority = _load_authority(directory / "ca.pem", entropy)
        if authority is None:
            authority = _new_authority(directory / "ca.pem", now, entropy)
        pki = cls(
            directory=directory,
            hosts=tuple(hosts),
            authority=authority,
            serving=_load_or(directory / "serving.pem", lambda: authority.issue_server(hosts, SERVING_LIFETIME, now)),
            admin=_load_or(directory / "admin.pem", lambda: _issue_admin(authority, now)),
            token_keys=TokenKeys([_token_key(directory / "service-account.pem", entropy)]),
            next_authority=_load_authority(directory / "ca-next.pem", entropy),
            old_authorities=_load_bundle(directory / "ca-old.crt"),
            _entropy=entropy,
        )
        if pki.next_authority and pki.next_authority.certificate.fingerprint == authority.certificate.fingerprint:
            pki.next_authority = None  # a crash came between the two steps of a promotion
        pki.renew(now)
        return pki

    @property
    def client_authorities(self) -> list[Certificate]:
        """The authorities whose client certificates are accepted, the issuing one first."""
        upcoming = [self.next_authority.certificate] if self.next_authority else []
        return [self.authority.certificate, *upcoming, *self.old_authorities]

    @property
    def bundle(self) -> bytes:
        """What clients should trust, as PEM."""
        return b"".join(certificate.pem for certificate in self.client_authorities)

    @property
    def serving_file(self) -> Path:
        """Key and certificate of the listener, for an SSL context."""
        return self.directory / "serving.pem"

    def expiries(self) -> dict[str, datetime]:
        """When each certificate ends, for metrics and alerts."""
        return {
            "ca": self.authority.certificate.not_after,
            "serving": self.serving.certificate.not_after,
            "admin": self.admin.certificate.not_after,
        }

    def renew(self, now: datetime) -> set[str]:
        """Renew what is due; the names of what changed: `ca`, `serving`, `admin`."""
        changed = {"ca"} if self._renew_authority(now) else set()
        if self._serving_is_due(now):
            self.serving = self.authority.issue_server(self.hosts, SERVING_LIFETIME, now)
            _save(self.serving_file, self.serving)
            changed.add("serving")
        if _due(self.admin.certificate, now) or not _accepted(self.admin.certificate, self.client_authorities, now):
            self.admin = _issue_admin(self.authority, now)
            _save(self.directory / "admin.pem", self.admin)
            changed.add("admin")
        if changed or not (self.directory / "ca.crt").exists():
            write_public(self.directory / "ca.crt", self.bundle)
        return changed

    def issue_node(self, name: str, now: datetime, lifetime: timedelta = NODE_LIFETIME) -> Credential:
        """A client certificate for a node; whoever calls has seen it attested."""
        return self.authority.issue_client(f"system:node:{name}", ["system:nodes"], lifetime, now)

    def sign_for_node(self, request: bytes, *, client: bool, lifetime: timedelta, now: datetime) -> Certificate:
        """A certificate for an approved request of a kubelet, an hour at most; raises BadSigningRequest, CertificateExpired."""
        # There is no revocation list: an hour is how long a node that lost its trust can still show a certificate.
        lifetime = min(lifetime, NODE_LIFETIME)
        return certify(self.authority, read_request(request), client=client, lifetime=lifetime, now=now)

    def _renew_authority(self, now: datetime) -> bool:
        before = [certificate.fingerprint for certificate in self.client_authorities], self.authority
        if self.next_authority is None and _due(self.authority.certificate, now):
            self.next_authority = _new_authority(self.directory / "ca-next.pem", now, self._entropy)
        if self.next_authority is not None and _left(self.authority.certificate, now) < 1 / 6:
            self._promote(self.next_authority)
        self.old_authorities = [entry for entry in self.old_authorities if entry.not_after > now]
        return before != ([certificate.fingerprint for certificate in self.client_authorities], self.authority)

    def _promote(self, successor: CertificateAuthority) -> None:
        self.old_authorities = [self.authority.certificate, *self.old_authorities]
        # In this order a crash repeats a step and loses none: the predecessor stays trusted before it stops to issue.
        write_public(self.directory / "ca-old.crt", b"".join(entry.pem for entry in self.old_authorities))
        _save(self.directory / "ca.pem", Credential(successor.certificate, successor.key))
        (self.directory / "ca-next.pem").unlink(missing_ok=True)
        self.authority, self.next_authority = successor, None

    def _serving_is_due(self, now: datetime) -> bool:
        certificate = self.serving.certificate
        if _due(certificate, now) or not set(self.hosts) <= set(certificate.hosts):
            return True
        try:
            verify_server(certificate, [self.authority.certificate], self.hosts[0], now)
        except CryptoError:
            return True
        return False


def _left(certificate: Certificate, now: datetime) -> float:
    """The share of its life that a certificate still has."""
    return (certificate.not_after - now) / (certificate.not_after - certificate.not_before)


def _due(certificate: Certificate, now: datetime) -> bool:
    return _left(certificate, now) < 1 / 3


def _accepted(certificate: Certificate, authorities: Sequence[Certificate], now: datetime) -> bool:
    try:
        verify_client(certificate, authorities, at=now)
    except CryptoError:
        return False
    return True


def _issue_admin(authority: CertificateAuthority, now: datetime) -> Credential:
    return authority.issue_client(ADMIN_NAME, [ADMIN_GROUP], ADMIN_LIFETIME, now)


def _new_authority(path: Path, now: datetime, entropy: RandomBytes) -> CertificateAuthority:
    # The year and month in the name tell two generations apart in a browser or in `openssl x509`.
    authority = CertificateAuthority.create(f"{CA_NAME} {now:%Y-%m}", now, entropy, CA_LIFETIME)
    _save(path, Credential(authority.certificate, authority.key))
    return authority


def _load_authority(path: Path, entropy: RandomBytes) -> CertificateAuthority | None:
    credential = _load(path)
    return None if credential is None else CertificateAuthority(credential.certificate, credential.key, entropy)


def _load_or(path: Path, issue: Callable[[], Credential]) -> Credential:
    credential = _load(path)
    if credential is None:
        credential = issue()
        _save(path, credential)
    return credential


def _load(path: Path) -> Credential | None:
    content = read_private(path)
    if content is None:
        return None
    try:
        key, certificate = PrivateKey.from_pem(content), Certificate.from_pem(content.reveal())
    except CryptoError as error:
        raise _damaged(path, error.message) from error
    # A pair from two backups would start, and fail every handshake with a message about neither.
    if not certificate.belongs_to(key):
        raise _damaged(path, "the key does not belong to the certificate")
    return Credential(certificate, key)


def _save(path: Path, credential: Credential) -> None:
    write_private(path, SecretBytes(credential.key_pem.reveal() + credential.certificate.pem))


def _load_bundle(path: Path) -> list[Certificate]:
    if not path.exists():
        return []
    try:
        return split_pem(path.read_bytes())
    except CryptoError as error:
        raise _damaged(path, error.message) from error


def _token_key(path: Path, entropy: RandomBytes) -> SigningKey:
    content = read_private(path)
    if content is None:
        key = SigningKey.generate(entropy)
        write_private(path, key.private.to_pem())
        return key
    try:
        return SigningKey.from_pem(content)
    except CryptoError as error:
        raise _damaged(path, error.message) from error


def _damaged(path: Path, why: str) -> DamagedKeyFile:
    hint = f"Restore {path} from a backup; if you delete it, a new one is made and old credentials end."
    return DamagedKeyFile(f"{path} cannot be used: {why}", hint)


def kubeconfig(
    server: str, ca_pem: bytes, identity: Credential | SecretText, *, name: str = "fastness", namespace: str = ""
) -> JsonObject:
    """A kubeconfig with one cluster, one user and one context, all called `name`."""
    context: JsonObject = {"cluster": name, "user": name}
    if namespace:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(ca_pem)}}],
        "users": [{"name": name, "user": _user(identity)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
        "preferences": {},
    }


def _user(identity: Credential | SecretText) -> JsonObject:
    if isinstance(identity, SecretText):
        return {"token": identity.reveal()}
    return {
        "client-certificate-data": _base64(identity.certificate.pem),
        "client-key-data": _base64(identity.key_pem.reveal()),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
