"""From what a connection shows to a `User`.

Certificate first, then the bearer token; the first that verifies wins, as in Kubernetes. When something was shown and nothing
verifies, the answer is 401 and the reason stays in the error's cause.
"""

from __future__ import annotations

from datetime import datetime

from fastness.apiserver.auth.certificates import ClientCertificates
from fastness.apiserver.auth.errors import CredentialRefused, MalformedCredential
from fastness.apiserver.auth.joining import BootstrapTokenAuthenticator, is_join_token
from fastness.apiserver.auth.tokens import ServiceAccountTokens
from fastness.crypto.errors import CryptoError
from fastness.kube.access.user import User
from fastness.kube.errors import Unauthorized


class Authenticator:
    """All the ways to prove who is asking."""

    def __init__(self, certificates: ClientCertificates, tokens: ServiceAccountTokens) -> None:
        self.certificates = certificates
        self.tokens = tokens
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
        return self.tokens.authenticate(token, now)

    def identify(self, token: str, now: datetime) -> tuple[User, tuple[str, ...]]:
        """Whose token this is, and for which audiences; raises CryptoError, CredentialRefused."""
        if is_join_token(token):
            return self.joining.authenticate(token, now), self.tokens.audiences
        verified = self.tokens.verify(token, now)
        return verified.user, verified.audiences
