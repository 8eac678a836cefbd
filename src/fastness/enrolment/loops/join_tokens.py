"""Bootstrap tokens of joining machines: let in, published, taken back.

    fastness-joins/join-<id> ─ understood, its machine trusted ─▶ kube-system/bootstrap-token-<id> ─▶ marked as published
                             └ ended, or its machine is not     ─▶ both go

The broker asks, in a namespace of its own (`enrolment.live.bootstrap_tokens`); it has no right in kube-system, where Secrets
of others are. What a token may do is decided here: one group, authentication only, for minutes. An id that somebody else has
there is left to its owner, and the broker is told to take another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.enrolment.kubelet_certificates import BOOTSTRAP_GROUP
from fastness.enrolment.live import bootstrap_tokens as bootstrap
from fastness.enrolment.live.bootstrap_tokens import PUBLISHED, TAKEN, asked_token, join_token, mark_of, published
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.rbac import CLUSTER_ROLE_BINDING
from fastness.kinds.objects import ObjectName, annotations_of, metadata, object_name, view
from fastness.kinds.trusted_execution.machine import MACHINE, SENT, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock

BINDINGS: Final = CLUSTER_ROLE_BINDING.resource
BINDING: Final = "fastness:node-bootstrapper"
TOKENS: Final = Scope(bootstrap.NAMESPACE, labels=f"{bootstrap.LABEL}=true")
ASKED: Final = Scope(bootstrap.ASKED_NAMESPACE)
AGAIN_SECONDS: Final = 1.0
BY_MACHINE: Final = "joins/machine"
_AS: Final = WriteOptions(manager="joins")
_EVERY: Final = ObjectName("", "")


def _machine_name(secret: Object) -> Iterable[str]:
    name = annotations_of(secret).get(bootstrap.MACHINE_NAME)
    return (name,) if name else ()


def _and_what_asks_for_it(secret: Object) -> Iterable[ObjectName]:
    """A token, and the request that would make it again if somebody deleted it."""
    name = object_name(secret).name
    request_name = name.replace(bootstrap.PREFIX, bootstrap.ASKED_PREFIX, 1)
    return (object_name(secret), ObjectName(bootstrap.ASKED_NAMESPACE, request_name))


_INDEXES: Final = {BY_MACHINE: _machine_name}


class BootstrapTokenController:
    """Lets machines ask with bootstrap tokens, publishes those of the broker, and takes them back."""

    name = "join-tokens"
    writes: Sequence[Resource] = (SECRETS, BINDINGS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(SECRETS, keys=_and_what_asks_for_it, scope=TOKENS, indexes=_INDEXES),
            Source(SECRETS, scope=ASKED, indexes=_INDEXES),
            Source(MACHINE.resource, keys=self._of_machine, unread=SENT),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=lambda _: (_EVERY,)),
        )
        self._cluster = cluster
        self._clock = clock
        self._caches = [informers.of(SECRETS, scope, indexers=_INDEXES) for scope in (TOKENS, ASKED)]
        self._clusters = informers.of(CONFIDENTIAL_CLUSTER.resource)

    def _of_machine(self, machine: Object) -> Iterable[ObjectName]:
        name = object_name(machine).name
        return [object_name(secret) for cache in self._caches for secret in cache.by_index(BY_MACHINE, name)]

    async def reconcile(self, key: ObjectName) -> Done:
        """One token or request, or what all of them need."""
        if key == _EVERY:
            return await self._allow()
        try:
            secret = await self._cluster.get(SECRETS, key.name, key.namespace)
        except NotFound:
            return GONE
        return await (self._publish(secret) if key.namespace == bootstrap.ASKED_NAMESPACE else self._keep(secret))

    async def _allow(self) -> Done:
        """Let holders of our tokens ask for certificates, in a cluster that wants attestation."""
        if mode_of(self._clusters.get("", NAME)) is Mode.DISABLED:
            return Done()
        try:
            await self._cluster.get(BINDINGS, BINDING)
        except NotFound:
            try:
                await self._cluster.create(BINDINGS, bootstrapper_binding(BINDING, BOOTSTRAP_GROUP), _AS)
            except AlreadyExists:
                return Done()
        return Done()

    async def _keep(self, secret: JsonObject) -> Done:
        """Delete a token that has ended, or whose machine is gone or not trusted; else come back when it ends."""
        token = join_token(secret)
        if token is None:
            return Done()
        left = (token.expires - self._clock.now()).total_seconds()
        if left > 0 and await self._trusted(secret, token.machine):
            return Done(again_after=left)
        return await self._delete(secret)

    async def _publish(self, join_request: JsonObject) -> Done:
        """Have the API accept the token that the broker asks for, and say so; delete what asks for nothing good."""
        token = asked_token(join_request)
        # Made anew from what was understood, never copied: members that the broker might add (groups, usages) go nowhere.
        made = published(join_request, token) if token is not None else None
        if token is None or made is None:
            return await self._delete(join_request)
        left = (token.expires - self._clock.now()).total_seconds()
        # A broker that was taken over must not make a token that outlives its own standing.
        longest = (bootstrap.LIFETIME + bootstrap.GOOD_FOR).total_seconds()
        if not 0 < left <= longest or not await self._trusted(join_request, token.machine):
            return await self._delete(join_request)
        try:
            notes = {PUBLISHED: mark_of(join_request)} if await self._written(made, token.machine) else {TAKEN: "true"}
            await self._note(join_request, notes)
        except (AlreadyExists, Conflict, NotFound):
            return Done(again_after=AGAIN_SECONDS)
        return Done(again_after=left)

    async def _written(self, made: JsonObject, machine: str) -> bool:
        """Write a token where the API looks for it; no when the id is somebody else's. Raises AlreadyExists, Conflict."""
        name = object_name(made).name
        try:
            held = await self._cluster.get(SECRETS, name, bootstrap.NAMESPACE)
        except NotFound:
            await self._cluster.create(SECRETS, made, _AS)
            return True
        token = join_token(held)
        # kube-system belongs to others too: a token of kubeadm under this id is left alone, and the broker takes another id.
        if token is None or token.machine != machine:
            return False
        if held.get("data") != made["data"] or annotations_of(held) != annotations_of(made):
            meta = {**made["metadata"], "resourceVersion": metadata(held)["resourceVersion"]}
            patch = {"metadata": meta, "data": made["data"]}
            await self._cluster.patch(SECRETS, name, patch, PatchType.MERGE, bootstrap.NAMESPACE, _AS)
        return True

    async def _note(self, join_request: JsonObject, notes: dict[str, str]) -> None:
        if notes.items() <= annotations_of(join_request).items():
            return
        patch = {"metadata": {"resourceVersion": metadata(join_request)["resourceVersion"], "annotations": notes}}
        await self._cluster.patch(SECRETS, object_name(join_request).name, patch, PatchType.MERGE, ASKED.namespace, _AS)

    async def _delete(self, secret: JsonObject) -> Done:
        meta, place = metadata(secret), object_name(secret)
        # What was looked at and nothing newer: between look and deletion the broker may have written a good one under the same
        # name.
        options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
        try:
            await self._cluster.delete(SECRETS, place.name, place.namespace, options)
        except (NotFound, Conflict):
            return Done(again_after=AGAIN_SECONDS)
        return GONE

    async def _trusted(self, secret: JsonObject, uid: str) -> bool:
        name = next(iter(_machine_name(secret)), "")
        try:
            machine = view(await self._cluster.get(MACHINE.resource, name, NAMESPACE), Machine) if name else None
        except NotFound:
            return False
        # The uid, because a Machine that was deleted and enrolled again has the same name and is another subject.
        return machine is not None and machine.metadata.uid == uid and membership_of(machine) is Membership.APPROVED


def bootstrapper_binding(name: str, holders: str) -> JsonObject:
    """What lets a group of holders of our tokens ask for certificates, and look at their requests."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1", "kind": BINDINGS.kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:node-bootstrapper"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": holders}],
    }  # fmt: skip
