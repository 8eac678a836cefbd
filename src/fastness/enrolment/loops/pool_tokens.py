"""Bootstrap tokens of pools that do not attest: published, counted, taken back.

    fastness-pool-joins/ask-<id> ─ understood, allowed, not too many ─▶ kube-system/bootstrap-token-<id> ─▶ answered: published
                                 └ else                               ─▶ answered: why not; swept a minute later
    kube-system/bootstrap-token-<id> ─ ended; unused, and its ticket or pool gone; used, and its Node there ─▶ goes

The config server asks, in a namespace of its own (`enrolment.live.pool_tokens`). What a token may do is decided here: one group,
authentication only, for an hour, for a pool that does not attest. How many a pool has that nobody used is bounded: whoever stole
a ticket can keep others waiting for an hour, and everybody reads about it on the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from fastness.enrolment.live import pool_tokens as tokens
from fastness.enrolment.live.bootstrap_tokens import NAMESPACE as PUBLIC
from fastness.enrolment.live.pool_tokens import ANSWER, asked_token, pool_token, published
from fastness.enrolment.loops.join_tokens import AGAIN_SECONDS, BINDINGS, bootstrapper_binding
from fastness.enrolment.unattested import LIFETIME, POOL_GROUP, PoolToken
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.trust_model import TrustModel, legacy_stubs, trust_model
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, metadata, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import NOTHING
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.places import POOL_JOINS
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock

BINDING: Final = "fastness:pool-bootstrapper"
PUBLISHED_TOKENS: Final = Scope(PUBLIC, labels=f"{tokens.LABEL}=true")
ASKING: Final = Scope(POOL_JOINS)
MOST_UNUSED: Final = 256
"""How many machines of a pool may be between their configuration and their first request at once."""
SWEEP_SECONDS: Final = 60.0
TOO_MANY: Final = "TooManyBootstrapTokens"
BY_POOL, BY_TICKET, BY_NODE = "pool-tokens/pool", "pool-tokens/ticket", "pool-tokens/node"
_AS: Final = WriteOptions(manager="pool-tokens")
_TICKETS: Final = JOIN_TICKET.resource
_POOLS: Final = MACHINE_CONFIG_POOL.resource


def _of_pool(secret: Object) -> Iterable[str]:
    """The pool of a token that nobody used."""
    token = pool_token(secret)
    return (token.pool,) if token is not None and not token.spent else ()


def _of_ticket(secret: Object) -> Iterable[str]:
    token = pool_token(secret)
    return (token.ticket,) if token is not None and token.ticket else ()


def _of_node(secret: Object) -> Iterable[str]:
    token = pool_token(secret)
    return (token.node,) if token is not None and token.node else ()


_INDEXES: Final = {BY_POOL: _of_pool, BY_TICKET: _of_ticket, BY_NODE: _of_node}


class PoolTokenController:
    """Publishes the tokens that the config server asks for, and takes them back."""

    name = "pool-tokens"
    writes: Sequence[Resource] = (SECRETS, BINDINGS, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(SECRETS, scope=PUBLISHED_TOKENS, indexes=_INDEXES),
            Source(SECRETS, scope=ASKING),
            Source(_TICKETS, keys=lambda ticket: self._indexed(BY_TICKET, object_name(ticket).name)),
            Source(NODE.resource, keys=lambda node: self._indexed(BY_NODE, object_name(node).name), reads=NOTHING),
            Source(_POOLS, keys=lambda pool: self._indexed(BY_POOL, object_name(pool).name)),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=lambda _: map(object_name, self._published.list())),
        )
        self._cluster = cluster
        self._clock = clock
        self._published = informers.of(SECRETS, PUBLISHED_TOKENS, indexers=_INDEXES)
        self._recorder = Recorder(cluster, self.name, clock)

    def _indexed(self, index: str, value: str) -> list[ObjectName]:
        return [object_name(secret) for secret in self._published.by_index(index, value)]

    async def reconcile(self, key: ObjectName) -> Done:
        """One token, or what asks for one."""
        try:
            secret = await self._cluster.get(SECRETS, key.name, key.namespace)
        except NotFound:
            return GONE
        return await (self._answer(secret) if key.namespace == POOL_JOINS else self._look(secret))

    async def _look(self, secret: JsonObject) -> Done:
        """Delete a token that has ended, or that nobody may use; else come back when it ends."""
        token = pool_token(secret)
        if token is None:
            return Done()
        left = (token.expires - self._clock.now()).total_seconds()
        # Its node has the certificate: what the kubelet reads from now on, it reads with that.
        over = await self._has_node(token.node) if token.spent else not await self._is_allowed(token)
        return await self._delete(secret) if left <= 0 or over else Done(again_after=left)

    async def _answer(self, asking: JsonObject) -> Done:
        """Have the API accept the token that is asked for, or say why not; sweep what was answered."""
        if ANSWER in annotations_of(asking):
            left = SWEEP_SECONDS - self._age(asking)
            return Done(again_after=left) if left > 0 else await self._delete(asking)
        token = asked_token(asking)
        # Made anew from what was understood, never copied: members that the config server might add go nowhere.
        made = published(asking, token) if token is not None else None
        left = (token.expires - self._clock.now()).total_seconds() if token is not None else 0.0
        if token is None or made is None or not 0 < left <= LIFETIME.total_seconds():
            return await self._delete(asking)
        try:
            await self._note(asking, await self._published_as(made, token))
        except (AlreadyExists, Conflict, NotFound):
            return Done(again_after=AGAIN_SECONDS)
        return Done(again_after=SWEEP_SECONDS)

    def _age(self, asking: JsonObject) -> float:
        made = datetime.fromisoformat(metadata(asking)["creationTimestamp"])
        return (self._clock.now() - made).total_seconds()

    async def _published_as(self, made: JsonObject, token: PoolToken) -> str:
        """Write a token where the API looks for it, and what to answer; raises AlreadyExists."""
        if not await self._is_allowed(token):
            return tokens.NOT_ALLOWED
        name = object_name(made).name
        unused = [
            secret for secret in self._published.by_index(BY_POOL, token.pool) if object_name(secret).name != name
        ]
        if len(unused) >= MOST_UNUSED:
            await self._warn(token.pool)
            return tokens.TOO_MANY
        await self._allow()
        try:
            await self._cluster.create(SECRETS, made, _AS)
        except AlreadyExists:
            # Ours, when the note about it could not be written the last time; else a token of somebody else has the id.
            held = await self._cluster.get(SECRETS, name, PUBLIC)
            return tokens.PUBLISHED if held.get("data") == made["data"] else tokens.TAKEN
        return tokens.PUBLISHED

    async def _is_allowed(self, token: PoolToken) -> bool:
        """Whether machines may come to the pool of a token by what it was given for, as the API says now."""
        try:
            await self._cluster.get(_POOLS, token.pool)
            ticket = await self._cluster.get(_TICKETS, token.ticket) if token.ticket else None
        except NotFound:
            return False
        confidential = await self._confidential()
        if trust_model(confidential, token.pool) is TrustModel.CONFIDENTIAL_CLUSTER:
            return False
        if ticket is not None:
            return bool(ticket["spec"]["pool"] == token.pool)
        return token.pool in legacy_stubs(confidential).get(token.stub, ())

    async def _confidential(self) -> JsonObject | None:
        try:
            return await self._cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
        except NotFound:
            return None

    async def _has_node(self, node: str) -> bool:
        try:
            await self._cluster.get(NODE.resource, node)
        except NotFound:
            return False
        return True

    async def _allow(self) -> None:
        """Let holders of these tokens ask for certificates."""
        try:
            await self._cluster.get(BINDINGS, BINDING)
        except NotFound:
            try:
                await self._cluster.create(BINDINGS, bootstrapper_binding(BINDING, POOL_GROUP), _AS)
            except AlreadyExists:
                return

    async def _warn(self, pool: str) -> None:
        about = {"apiVersion": MACHINE_CONFIG_POOL.api_version, "kind": _POOLS.kind, "metadata": {"name": pool}}
        message = (
            f"{MOST_UNUSED} bootstrap tokens of this pool are unused: machines wait for theirs. Unless so many boot just now,"
            " somebody has a ticket of the pool: delete its JoinTicket, which takes back its tokens"
        )
        await self._recorder.warning(about, TOO_MANY, message)

    async def _note(self, asking: JsonObject, answer: str) -> None:
        meta = {"resourceVersion": metadata(asking)["resourceVersion"], "annotations": {ANSWER: answer}}
        name = object_name(asking).name
        await self._cluster.patch(SECRETS, name, {"metadata": meta}, PatchType.MERGE, POOL_JOINS, _AS)

    async def _delete(self, secret: JsonObject) -> Done:
        meta, place = metadata(secret), object_name(secret)
        # What was looked at and nothing newer: it may have been used in between.
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        try:
            await self._cluster.delete(SECRETS, place.name, place.namespace, options)
        except (NotFound, Conflict):
            return Done(again_after=AGAIN_SECONDS)
        return GONE
