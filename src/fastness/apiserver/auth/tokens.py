"""Tokens of service accounts: who they name, and whether they still count.

A token is a signed statement about a service account, perhaps bound to a pod, a secret or a node. Signature, issuer, dates and
audience are checked once and remembered; what can change any time (the account, or what the token is bound to, is deleted or
made anew) is asked on every request, through `TokenLookups.live_uid`, which therefore has to be cheap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from fastness.apiserver.auth.certificates import CREDENTIAL_ID
from fastness.apiserver.auth.errors import MalformedCredential, TokenExpired, TokenRevoked, WrongAudience
from fastness.crypto.digests import fingerprint
from fastness.crypto.jws import TokenKeys
from fastness.kube.access.user import AUTHENTICATED, User, service_account_groups, service_account_name
from fastness.runtime.cache import ExpiringCache

CACHE_CAPACITY: Final = 10_000
CLAIM: Final = "kubernetes.io"
BINDINGS: Final = (("pod", "pods"), ("secret", "secrets"), ("node", "nodes"))
_MAX_TIME: Final = 253_402_300_799  # the last second of the year 9999, beyond which datetime ends


class TokenLookups(Protocol):
    """What tokens must know of the store; resources are plural names of the core group."""

    def live_uid(self, resource: str, namespace: str, name: str) -> str | None:
        """The uid of an object that exists and is not being deleted; asked on every request."""

    def find(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The object itself; asked when a token is issued."""


class Bound(NamedTuple):
    """An object that must still exist, with this uid, for the token to count."""

    resource: str
    namespace: str
    name: str
    uid: str


class Verified(NamedTuple):
    """What a good token says."""

    user: User
    audiences: tuple[str, ...]
    bound: tuple[Bound, ...]
    since: datetime
    until: datetime


class ServiceAccountTokens:
    """Verifies tokens; `keys.signer` signs new ones (see `issuing.py`)."""

    def __init__(self, keys: TokenKeys, issuer: str, audiences: Sequence[str], lookups: TokenLookups) -> None:
        self.keys = keys
        self.issuer = issuer
        self.audiences = tuple(audiences)
        self.lookups = lookups
        self._verified: ExpiringCache[Verified] = ExpiringCache(CACHE_CAPACITY)

    def replace(self, keys: TokenKeys) -> None:
        """Accept tokens of these keys from now on: rotation without a restart."""
        self.keys = keys
        self._verified.clear()

    def authenticate(self, token: str, now: datetime) -> User:
        """The service account that the token names; raises CryptoError, CredentialRefused."""
        verified = self.verify(token, now)
        if not any(audience in self.audiences for audience in verified.audiences):
            raise WrongAudience("the token was issued for another audience")
        return verified.user

    def verify(self, token: str, now: datetime) -> Verified:
        """What the token says, whoever it was issued for; raises CryptoError, CredentialRefused."""
        key = fingerprint(token.encode())
        verified = self._verified.get(key, now)
        if verified is None:
            verified = self._read(self.keys.verify(token))
            if not verified.since <= now < verified.until:
                raise TokenExpired(f"the token is valid from {verified.since} until {verified.until}")
            self._verified.put(key, verified, verified.since, verified.until)
        # Asked every time, also of a token in the cache: deleting the account, pod or node ends it at once. The uid is compared
        # because a new object of the same name is not the one that the token was given to.
        for bound in verified.bound:
            if self.lookups.live_uid(bound.resource, bound.namespace, bound.name) != bound.uid:
                raise TokenRevoked(f"{bound.resource} {bound.name} is gone or was made anew")
        return verified

    def _read(self, claims: Mapping[str, Any]) -> Verified:
        if claims.get("iss") != self.issuer:
            raise MalformedCredential("the token was issued by somebody else")
        about = claims.get(CLAIM)
        if not isinstance(about, dict):
            raise MalformedCredential("the token does not speak of a service account")
        namespace = about.get("namespace")
        account = _reference(about.get("serviceaccount"))
        if not isinstance(namespace, str) or not namespace or account is None:
            raise MalformedCredential("the token does not name its service account")
        name, uid = account
        # Subject and claim are both ours; where they differ, a reader of `sub` and a reader of the claim would see two users.
        if claims.get("sub") != service_account_name(namespace, name):
            raise MalformedCredential("the subject of the token is not its service account")
        bound = [Bound("serviceaccounts", namespace, name, uid), *_bindings(about, namespace)]
        user = User(
            service_account_name(namespace, name),
            (*service_account_groups(namespace), AUTHENTICATED),
            uid,
            _extra(claims, about),
        )
        # RFC 7519, 4.1.5 and 4.1.6: valid from `nbf` on, and never before it was issued.
        since = max(_moment(claims, "nbf"), _moment(claims, "iat"))
        return Verified(user, _audiences(claims), tuple(bound), since, _moment(claims, "exp"))


def _bindings(about: Mapping[str, Any], namespace: str) -> list[Bound]:
    """What the token is bound to; the node of a bound pod is only told, since the pod's own uid decides."""
    bound = []
    for claim, resource in BINDINGS:
        if claim not in about or (claim == "node" and "pod" in about):
            continue
        reference = _reference(about[claim])
        if reference is None:
            raise MalformedCredential(f"the token names a {claim} without name and uid")
        bound.append(Bound(resource, "" if claim == "node" else namespace, *reference))
    return bound


def _extra(claims: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {}
    if isinstance(claims.get("jti"), str):
        extra[CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
    for claim in ("pod", "node"):
        reference = _reference(about.get(claim))
        if reference is not None:
            extra[f"authentication.kubernetes.io/{claim}-name"] = (reference[0],)
            extra[f"authentication.kubernetes.io/{claim}-uid"] = (reference[1],)
    return extra


def _reference(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return None
    name, uid = value.get("name"), value.get("uid")
    return (name, uid) if isinstance(name, str) and isinstance(uid, str) and name and uid else None


def _audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    value = claims.get("aud")
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, str) for entry in entries):
        raise MalformedCredential("the token has no audience")
    return tuple(entries)


def _moment(claims: Mapping[str, Any], name: str) -> datetime:
    value = claims.get(name)
    # NumericDate (RFC 7519, 2) may have a fraction; ours never has. A bool is an int in Python, and `exp: true` would be 1970.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_TIME:
        raise MalformedCredential(f"the token has no usable {name}")
    return datetime.fromtimestamp(value, UTC)
