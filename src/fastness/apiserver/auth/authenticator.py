"""From what a connection shows to a `User`.

Certificate first, then the bearer token, of a service account or of a person whom an identity provider knows; the first that
verifies wins, as in Kubernetes. When something was shown and nothing
verifies, the answer is 401 and the reason stays in the error's cause.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.apiserver.auth.certificates import ClientCertificates
from fastness.apiserver.auth.errors import CredentialRefused, MalformedCredential
from fastness.apiserver.auth.joining import BootstrapTokenAuthenticator, is_join_token
from fastness.apiserver.auth.tokens import ServiceAccountTokens
from fastness.crypto.digests import fingerprint
from fastness.crypto.errors import CryptoError
from fastness.keys.errors import NotOurPerson
from fastness.keys.people import IssuerFollower, Person
from fastness.kube.access.user import AUTHENTICATED, User
from fastness.kube.errors import Unauthorized
from fastness.runtime.cache import ExpiringCache

MOST_PEOPLE: Final = 10_000


class Authenticator:
    """All the ways to prove who is asking."""

    def __init__(
        self, certificates: ClientCertificates, tokens: ServiceAccountTokens, people: IssuerFollower | None = None
    ) -> None:
        self.certificates = certificates
        self.tokens = tokens
        self.people = people
        self._persons: ExpiringCache[Person] = ExpiringCache(MOST_PEOPLE)
        self.joining = BootstrapTokenAuthenticator(tokens.lookups)

    def authenticate(self, peer_cert_der: bytes | None, authorization: str | None, now: datetime) -> User | None:
        """Who is asking; None when nothing was shown; raises Unauthorized when what was shown does not verify."""
        if peer_cert_der is None and not authorization:
            return None
        problem: Exception | None = None
        # The order of kube-apiserver's union authenticator: kubectl with both in its kubeconfig must be the same user here and
        # there.
        if peer_cert_der is not None:
            try:
                return self.certificates.authenticate(peer_cert_der, now)
            except (CryptoError, CredentialRefused) as error:
                problem = error
        if authorization:
            try:
                return self._bearer(authorization, now)
            except (CryptoError, CredentialRefused) as error:
                problem = error
        # One word for every failure: which check failed would tell whoever guesses how far they came.
        raise Unauthorized("Unauthorized") from problem

    def _bearer(self, authorization: str, now: datetime) -> User:
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        # RFC 9110, 11.1: the scheme is case-insensitive. RFC 6750, 2.1: a token is ASCII.
        if scheme.lower() != "bearer" or not token or not token.isascii():
            raise MalformedCredential("the Authorization header holds no bearer token")
        if is_join_token(token):
            return self.joining.authenticate(token, now)
        try:
            return self.tokens.authenticate(token, now)
        except (CryptoError, CredentialRefused):
            if self.people is None:
                raise
        return self._person(token, now)

    def identify(self, token: str, now: datetime) -> tuple[User, tuple[str, ...]]:
        """Whose token this is, and for which audiences; raises CryptoError, CredentialRefused."""
        if is_join_token(token):
            return self.joining.authenticate(token, now), self.tokens.audiences
        try:
            verified = self.tokens.verify(token, now)
        except (CryptoError, CredentialRefused):
            if self.people is None:
                raise
            return self._person(token, now), self.tokens.audiences
        return verified.user, verified.audiences

    def _person(self, token: str, now: datetime) -> User:
        """Whom the identity provider's token names; raises CryptoError, CredentialRefused."""
        assert self.people is not None  # noqa: S101  # by the callers
        # With the keys that it was verified with: when the issuer takes one back, what it signed is asked about again.
        key = fingerprint(f"{self.people.generation} {token}".encode())
        person = self._persons.get(key, now)
        if person is None:
            try:
                person = self.people.verify(token, now)
            except NotOurPerson as error:
                raise MalformedCredential(str(error)) from error
            self._persons.put(key, person, person.since, person.until)
        return User(person.name, (*person.groups, AUTHENTICATED))
