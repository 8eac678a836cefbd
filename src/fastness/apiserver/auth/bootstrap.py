"""Static tokens, for the first administrator.

Only the SHA-256 of a token is kept. Every known token is compared, in constant time each, so that neither the content nor the
number of matching characters shows in the time of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastness.crypto.digests import Digest, fingerprint, same, sha256
from fastness.crypto.secret import SecretText
from fastness.kube.access.user import AUTHENTICATED, User

MIN_TOKEN_CHARS = 20


class BootstrapTokens:
    """Users by the hash of their token."""

    def __init__(self, users: Iterable[tuple[Digest, User]] = ()) -> None:
        self._users = [
            (digest.value, user if AUTHENTICATED in user.groups else _authenticated(user)) for digest, user in users
        ]

    def authenticate(self, token: str) -> User | None:
        """The user whose token this is."""
        given = fingerprint(token.encode())
        owner = None
        for digest, user in self._users:
            if same(digest, given):
                owner = user
        return owner


def hashed(token: SecretText) -> Digest:
    """What is kept of a token; raises ValueError for one that could be guessed."""
    if len(token.reveal()) < MIN_TOKEN_CHARS:
        raise ValueError(f"a static token has at least {MIN_TOKEN_CHARS} characters")
    return sha256(token.reveal().encode())


def _authenticated(user: User) -> User:
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)
