"""Bootstrap tokens of joining machines: Secrets of type `bootstrap.kubernetes.io/token` in kube-system, as kubeadm makes them.

A token is `<id>.<secret>`, six and sixteen letters or digits. The Secret `bootstrap-token-<id>` says whether it counts: its
secret, until when, and that it may authenticate. It is read on every request, so a token ends with its Secret.

* Whoever holds one is `system:bootstrap:<id>` in the group `system:bootstrappers`, and in further groups below that prefix.
* Every doubt (another type, a damaged date, a group elsewhere) ends in a refusal.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fastness.apiserver.auth.errors import MalformedCredential, TokenExpired
from fastness.apiserver.auth.tokens import TokenLookups
from fastness.crypto.digests import same
from fastness.kinds.objects import is_being_deleted
from fastness.kube.access.user import AUTHENTICATED, User

NAMESPACE: Final = "kube-system"
TYPE: Final = "bootstrap.kubernetes.io/token"
BOOTSTRAPPERS: Final = "system:bootstrappers"
_TOKEN: Final = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})\Z", re.ASCII)
_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\Z", re.ASCII)


def is_join_token(token: str) -> bool:
    """Whether a bearer token has the form of a bootstrap token."""
    return _TOKEN.match(token) is not None


class BootstrapTokenAuthenticator:
    """Knows holders of bootstrap tokens."""

    def __init__(self, lookups: TokenLookups) -> None:
        self._lookups = lookups

    def authenticate(self, token: str, now: datetime) -> User:
        """Who holds a token; raises CredentialRefused."""
        # Form first: it is the only thing that goes into the name of the Secret that is looked up.
        parts = _TOKEN.match(token)
        if parts is None:
            raise MalformedCredential("this is not a bootstrap token")
        identity, secret = parts.groups()
        stored = self._lookups.find("secrets", NAMESPACE, f"bootstrap-token-{identity}")
        if stored is None or is_being_deleted(stored) or stored.get("type") != TYPE:
            raise MalformedCredential("the token is not known")
        data = _data(stored)
        # In constant time: 16 characters could be guessed one after the other if the time told how many match.
        if data.get("token-id") != identity or not same(data.get("token-secret", "").encode(), secret.encode()):
            raise MalformedCredential("the token is not known")
        if data.get("usage-bootstrap-authentication") != "true":
            raise MalformedCredential("the token is not for authentication")
        _check_date(data.get("expiration", ""), now)
        groups = [group for group in data.get("auth-extra-groups", "").split(",") if group]
        # Whoever may write Secrets in kube-system must not be able to make a token for system:masters.
        if not all(map(_GROUP.match, groups)):
            raise MalformedCredential("the token names groups that it may not name")
        return User(f"system:bootstrap:{identity}", (*sorted({BOOTSTRAPPERS, *groups}), AUTHENTICATED))


def _check_date(text: str, now: datetime) -> None:
    if not text:
        return
    try:
        end = datetime.fromisoformat(text)
    except ValueError as error:
        raise TokenExpired("the end of the token cannot be read") from error
    if now >= (end if end.tzinfo else end.replace(tzinfo=UTC)):
        raise TokenExpired(f"the token ended at {text}")


def _data(secret: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {
            name: base64.b64decode(value, validate=True).decode() for name, value in (secret.get("data") or {}).items()
        }
    except (binascii.Error, TypeError, ValueError):
        return {}
