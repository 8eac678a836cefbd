"""Who is asking and what may they: the API door's view of `apiserver/auth`.

Nobody is anonymous here: a request without a credential is 401 on every route that is not open. Impersonation is resolved before
anything else looks at the user.
"""

from __future__ import annotations

from fastness.apiserver.auth import Authenticator, Authorizer, ServiceAccountTokens, issue_token
from fastness.apiserver.auth.reviews import Reviews
from fastness.apiserver.catalog import Served
from fastness.apiserver.engine import EmbeddedApi
from fastness.formats import json
from fastness.http import Request
from fastness.kinds.kind import JsonObject
from fastness.kube.access import Attributes, Decision, User
from fastness.kube.errors import Unauthorized
from fastness.observe import metrics
from fastness.runtime.clock import Clock, Entropy


class Guard:
    """Authenticates, authorizes, answers reviews, issues tokens."""

    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        tokens: ServiceAccountTokens,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._tokens = tokens
        self._reviews = Reviews(authorizer, authenticator)
        self._clock = clock
        self._entropy = entropy

    def identify(self, request: Request) -> User:
        """The user that the request acts as; raises Unauthorized, Forbidden, BadRequest."""
        try:
            user = self._authenticator.authenticate(request.peer, request.header(b"authorization"), self._clock.now())
        except Unauthorized:
            metrics.AUTHENTICATION.inc("refused")
            raise
        if user is None:
            metrics.AUTHENTICATION.inc("missing")
            raise Unauthorized("Unauthorized")
        # Only now: whoever merely tried a credential gets no place at a listener that others flood.
        request.recognised()
        if not _impersonates(request):
            return user
        return self._authorizer.impersonated(user, request.header_items())

    def impersonator(self, request: Request) -> str:
        """Who is behind an identified request that acts as somebody else; empty for one that does not."""
        if not _impersonates(request):
            return ""
        user = self._authenticator.authenticate(request.peer, request.header(b"authorization"), self._clock.now())
        return user.name if user is not None else ""

    def authorize(self, attrs: Attributes) -> Decision:
        """Whether the request is allowed, and why."""
        return self._authorizer.decide(attrs)

    def review(self, served: Served, user: User, namespace: str, body: JsonObject) -> JsonObject:
        """The answered review; raises Invalid, NotFound."""
        answer = self._reviews.answer(served.kind.group, served.kind.plural, body, user, namespace, self._clock.now())
        return {**answer, "apiVersion": served.kind.api_version, "kind": served.kind.kind}

    def token_request(
        self, api: EmbeddedApi, user: User, served: Served, namespace: str, name: str, body: JsonObject
    ) -> JsonObject:
        """A token for a service account; raises NotFound, Invalid, Forbidden."""
        account = json.decode(api.get(served, namespace, name))
        return issue_token(body, account, self._clock.now(), self._tokens, self._entropy, user)


def _impersonates(request: Request) -> bool:
    return any(name.startswith(b"impersonate-") for name, _ in request.scope["headers"])
