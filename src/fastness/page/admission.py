"""Who comes, what they may, and the cluster as they may change it: one question with two ways to answer.

    GuardDoor    an embedded API: its own authenticator and authorizer, in process
    ReviewDoor   any Kubernetes: TokenReview says who, SubjectAccessReview what; writes go out with the token of the login itself

* Nothing here decides. The page has no rights of its own to lend: on Kubernetes it may read what it shows and ask reviews, and a
  decision is written with the credential of whoever takes it.
* Views ask for many rights at once and cannot wait between two, so a `ReviewDoor` asks for all that a visit may need before it,
  and keeps the answers for a few seconds. A right that is taken away ends within that time.
* Rights on single objects count for the machine that a page is about.
* What cannot be answered is not allowed: an API that does not answer reviews is an error, never a yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from fastness.crypto.digests import sha256
from fastness.crypto.secret import SecretText
from fastness.http import Request
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.native import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from fastness.kube.access import Attributes, Decision, User
from fastness.kube.errors import ApiError, Unauthorized, Unavailable
from fastness.kube.port import WRITE, Cluster, WriteOptions
from fastness.page.sessions import Credential
from fastness.page.view_scope import MACHINES, SEEN, Authorizer, Guard
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

# A review for every right at every click would be the page's main load on the API; a right that is taken away ends this much
# later.
KEPT_FOR: Final = timedelta(seconds=10)
MOST_KEPT: Final = 500
AT_ONCE: Final = 8
TOKEN_REVIEWS: Final = TOKEN_REVIEW.resource
ACCESS_REVIEWS: Final = SUBJECT_ACCESS_REVIEW.resource
Acting = Callable[[], AbstractAsyncContextManager[Cluster]]
Question = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who came: who, with which rights, and the cluster as they write to it."""

    user: User
    rights: Authorizer
    acting: Acting


class Asking(Protocol):
    """The API, as far as reviews need it."""

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """The body with its answer; raises ApiError."""


class Doorkeeper(Protocol):
    """Who lets people in."""

    async def admit(self, credential: Credential, name: str = "") -> Admitted | None:
        """Who a credential is, on the way to the machine of this name; None for one that does not count. Raises ApiError."""


class GuardDoor:
    """The embedded API's own gatekeeper."""

    def __init__(self, guard: Guard, writers: Callable[[User], Cluster]) -> None:
        self._guard = guard
        self._writers = writers

    async def admit(self, credential: Credential, name: str = "") -> Admitted | None:
        """Show the credential to the authenticator, as a request would."""
        token = credential.token.reveal()
        headers = [(b"authorization", b"Bearer " + token.encode("ascii", "replace"))] if token else []
        asgi_scope = {"method": "GET", "raw_path": b"/", "query_string": b"", "headers": headers}
        try:
            user = self._guard.identify(Request({**asgi_scope, "fastness.peer": credential.certificate}, _nothing))
        except Unauthorized:
            return None
        return Admitted(user, self._guard, lambda: nullcontext(self._writers(user)))


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What reviews said about one user."""

    allowed: frozenset[Question]

    def authorize(self, attrs: Attributes) -> Decision:
        """Whether it was allowed for this object, or for all of them."""
        questions = {(attrs.verb, attrs.group, attrs.resource, name) for name in (attrs.name, "")}
        return Decision(bool(questions & self.allowed))


class ReviewDoor:
    """A Kubernetes API server; `connected` opens the cluster with a token."""

    def __init__(
        self, cluster: Asking, connected: Callable[[SecretText], AbstractAsyncContextManager[Cluster]], clock: Clock
    ) -> None:
        self._cluster = cluster
        self._connected = connected
        self._clock = clock
        self._users = BoundedCache[str, tuple[User | None, datetime]](MOST_KEPT)
        self._rights = BoundedCache[tuple[str, str], tuple[frozenset[Question], datetime]](MOST_KEPT)

    async def admit(self, credential: Credential, name: str = "") -> Admitted | None:
        """Ask who the token is and what that user may; answers count for ten seconds."""
        if not credential.token.reveal():
            return None
        # Tokens are kept by their hash: a dump of the caches shows none.
        mark = str(sha256(credential.token.reveal().encode("utf-8", "replace")))
        user = await self._user(mark, credential.token)
        if user is None:
            return None
        allowed = await self._allowed(mark, user, "")
        if name:
            allowed |= await self._allowed(mark, user, name)
        return Admitted(user, Reviewed(allowed), lambda: self._connected(credential.token))

    async def _user(self, mark: str, token: SecretText) -> User | None:
        answer = self._users.get(mark)
        if answer is not None and self._clock.now() < answer[1]:
            return answer[0]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token.reveal()}}
        status = (await self._cluster.create(TOKEN_REVIEWS, body)).get("status") or {}
        user = _user_of(status.get("user") or {}) if status.get("authenticated") else None
        self._users.put(mark, (user, self._clock.now() + KEPT_FOR))
        return user

    async def _allowed(self, mark: str, user: User, name: str) -> frozenset[Question]:
        remembered = self._rights.get((mark, name))
        if remembered is not None and self._clock.now() < remembered[1]:
            return remembered[0]
        room = asyncio.Semaphore(AT_ONCE)

        async def ask(verb: str, resource: Resource) -> Question | None:
            async with room:
                answer = await self._cluster.create(ACCESS_REVIEWS, _access(user, verb, resource, name))
            # `is True`: whatever else an answer holds, text or a number, is no yes.
            allowed = (answer.get("status") or {}).get("allowed") is True
            return (verb, resource.group, resource.plural, name) if allowed else None

        questions = [("get", MACHINES), ("patch", MACHINES)]
        if not name:
            questions = [*((verb, resource) for resource in SEEN for verb in ("list", "get")), ("patch", MACHINES)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(verb, resource)) for verb, resource in questions]
        except ExceptionGroup as failed:
            # Not `except*`: what is raised there comes out wrapped in a group, depending on the release of Python.
            refused, rest = failed.split(ApiError)
            if refused is None or rest is not None:
                raise
            raise Unavailable(f"the API does not say what you may: {refused.exceptions[0]}") from refused
        rights = frozenset(answer for task in tasks if (answer := task.result()) is not None)
        self._rights.put((mark, name), (rights, self._clock.now() + KEPT_FOR))
        return rights


def _user_of(user: Mapping[str, Any]) -> User:
    extra = {str(key): tuple(map(str, values)) for key, values in (user.get("extra") or {}).items()}
    return User(
        str(user.get("username", "")), tuple(map(str, user.get("groups") or ())), str(user.get("uid", "")), extra
    )


def _access(user: User, verb: str, resource: Resource, name: str) -> JsonObject:
    attributes = {
        "verb": verb, "group": resource.group, "version": resource.version, "resource": resource.plural,
        **({"namespace": NAMESPACE} if resource.namespaced else {}), **({"name": name} if name else {}),
    }  # fmt: skip
    spec: JsonObject = {"user": user.name, "groups": list(user.groups), "resourceAttributes": attributes}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


async def _nothing() -> Mapping[str, Any]:
    return {"type": "http.disconnect"}
