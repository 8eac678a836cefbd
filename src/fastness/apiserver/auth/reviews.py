"""The review kinds of the API: questions that are answered and not stored.

One table from (group, resource) to the function that answers. The HTTP layer and the in-process adapter call `answer`; what a
body gets wrong becomes an `Invalid` with the fields, in the words of a real server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from fastness.apiserver.auth.authenticator import Authenticator
from fastness.apiserver.auth.authorizer import Authorizer
from fastness.apiserver.auth.errors import CredentialRefused
from fastness.crypto.errors import CryptoError
from fastness.kinds.kind import JsonObject
from fastness.kube.access import reviews
from fastness.kube.access.errors import EmptyReview, InvalidReview
from fastness.kube.access.rules import quoted
from fastness.kube.access.user import User
from fastness.kube.errors import BadRequest, Cause, Invalid, NotFound

Body = Mapping[str, Any]
_AUTHORIZATION: Final = "authorization.k8s.io"
_AUTHENTICATION: Final = "authentication.k8s.io"
_INVALID_TOKEN: Final = "invalid bearer token"


class Reviews:
    """Answers reviews for one server."""

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._table: dict[tuple[str, str], Callable[[Body, User, str, datetime], JsonObject]] = {
            (_AUTHORIZATION, "subjectaccessreviews"): self._subject_access,
            (_AUTHORIZATION, "localsubjectaccessreviews"): self._local_subject_access,
            (_AUTHORIZATION, "selfsubjectaccessreviews"): self._self_access,
            (_AUTHORIZATION, "selfsubjectrulesreviews"): self._self_rules,
            (_AUTHENTICATION, "selfsubjectreviews"): self._self,
            (_AUTHENTICATION, "tokenreviews"): self._token,
        }

    def answers(self, group: str, resource: str) -> bool:
        """Whether this resource is a review."""
        return (group, resource) in self._table

    def answer(self, group: str, resource: str, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        """The body with its status; raises Invalid, BadRequest, NotFound."""
        function = self._table.get((group, resource))
        if function is None:
            raise NotFound("the server could not find the requested resource", group=group, kind=resource)
        try:
            return function(body, user, namespace, now)
        except EmptyReview as error:
            raise BadRequest(error.message) from error
        except InvalidReview as error:
            causes = [Cause(field, "FieldValueInvalid", problem) for field, problem in error.causes]
            # Without a kind before the group: that is how a real server names a review.
            raise Invalid(f'.{group} "" is invalid: {error.message}', group=group, causes=causes) from error

    def _subject_access(self, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        return reviews.review_subject_access(body, self._authorizer.decide)

    def _local_subject_access(self, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        return reviews.review_local_subject_access(body, namespace, self._authorizer.decide)

    def _self_access(self, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        return reviews.review_self_access(body, user, self._authorizer.decide)

    def _self_rules(self, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        return reviews.review_self_rules(body, user, self._authorizer.policy())

    def _self(self, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        return reviews.review_self(body, user)

    def _token(self, body: Body, user: User, namespace: str, now: datetime) -> JsonObject:
        return review_token(body, self._authenticator, now)


def review_token(body: Body, authenticator: Authenticator, now: datetime) -> JsonObject:
    """Answer a TokenReview: whose token it is, for the audiences asked about or those of this API."""
    spec = body.get("spec")
    token = spec.get("token") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(token, str) or not token:
        raise EmptyReview("token is required for TokenReview in authentication", "spec.token")
    requested = spec.get("audiences") or []
    if not isinstance(requested, list) or not all(isinstance(item, str) for item in requested):
        raise InvalidReview(("spec.audiences", "Invalid value: must be a list of strings"))
    try:
        owner, issued_for = authenticator.identify(token, now)
    except (CryptoError, CredentialRefused):
        return {**body, "status": {"user": {}, "error": _INVALID_TOKEN}}
    # An empty list means the audiences of the API server itself (TokenReviewSpec): a token for somebody else must not pass by
    # it.
    targets = requested or list(authenticator.tokens.audiences)
    audiences = [item for item in issued_for if item in targets]
    if not audiences:
        problem = f"token audiences {quoted(issued_for)} is invalid for the target audiences {quoted(targets)}"
        return {**body, "status": {"user": {}, "error": f"[{_INVALID_TOKEN}, {problem}]"}}
    return {**body, "status": {"authenticated": True, "user": reviews.user_info(owner), "audiences": audiences}}
