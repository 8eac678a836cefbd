"""Doing what the state machine says, one patch of our own fields at a time.

* What is gone already, or there already, is what was wanted.
* A kind that the cluster does not serve (security constraints, on a plain Kubernetes) cannot be made and is not missed.
* Nodes are marked some at a time: they share commits and waits.
* Finalizers are written with the version that was seen, so that nobody else's is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.kata.config import FINALIZER
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.objects import labels_of, metadata, object_name
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, WriteOptions
from fastness.observe.logs import logger
from fastness.workloads.kata.inputs import Action, Ensure, Hold, LetGo, Mark, Object, Ref, Remember, Remove, at
from fastness.workloads.loops.kata.look import HOME, KATA_CONFIGS, NAMESPACES, informer_scope

ABREAST: Final = 32
AS: Final = WriteOptions(manager="kata-config")
_log = logger("kata")


class Act:
    """Carries out the actions of a plan."""

    def __init__(self, cluster: Cluster, informers: Informers) -> None:
        self._cluster = cluster
        self._informers = informers

    async def do(self, config: Object, actions: Sequence[Action]) -> None:
        """Carry out actions in their order, consecutive marks of nodes side by side; raises ApiError."""
        for marking, group in groupby(actions, key=lambda action: isinstance(action, Mark)):
            some = list(group)
            for first in range(0, len(some), ABREAST if marking else 1):
                await asyncio.gather(
                    *(self._carry_out(config, action) for action in some[first : first + (ABREAST if marking else 1)])
                )

    async def _carry_out(self, config: Object, action: Action) -> None:
        match action:
            case Mark():
                await self._mark(action)
            case Hold():
                await self._hold(config, action)
            case Ensure():
                await self._ensure(action)
            case Remove():
                await self._remove(action.ref)
            case LetGo():
                await self._let_go(action)
            case Remember():
                await self._remember(action)

    async def _mark(self, mark: Mark) -> None:
        meta: JsonObject = {}
        if mark.labels:
            meta["labels"] = dict(mark.labels)
        if mark.notes:
            meta["annotations"] = dict(mark.notes)
        try:
            await self._cluster.patch(NODE.resource, mark.node, {"metadata": meta}, PatchType.MERGE, options=AS)
        except NotFound:
            return  # it vanished, and with it what was to be done

    async def _hold(self, config: Object, hold: Hold) -> None:
        meta = metadata(config)
        held = [finalizer for finalizer in meta.get("finalizers") or () if finalizer != FINALIZER]
        patch = {
            "metadata": {
                "resourceVersion": meta.get("resourceVersion"),
                "finalizers": [*held, FINALIZER],
                "annotations": {names.MODE_IN_USE: hold.mode},
            }
        }
        await self._cluster.patch(KATA_CONFIGS, object_name(config).name, patch, PatchType.MERGE, options=AS)

    async def _ensure(self, ensure: Ensure) -> None:
        resource, scope = informer_scope(ensure.ref)
        present = self._informers.of(resource, scope).get(ensure.ref.namespace, ensure.ref.name)
        try:
            if present is None:
                await self._cluster.create(resource, ensure.obj, AS)
                return
            patch = changes(present, ensure)
            await self._cluster.patch(resource, ensure.ref.name, patch, PatchType.JSON, ensure.ref.namespace, AS)
        except AlreadyExists:
            return
        except NotFound as error:
            _log.info("kata.unserved", kind=ensure.ref.kind, name=ensure.ref.name, error=error)

    async def _remove(self, ref: Ref) -> None:
        resource, scope = informer_scope(ref)
        present = self._informers.of(resource, scope).get(ref.namespace, ref.name)
        # By uid: an object that somebody made anew meanwhile under this name is not the one that was to go.
        uid = str(metadata(present or {}).get("uid") or "")
        try:
            await self._cluster.delete(resource, ref.name, ref.namespace, DeleteOptions(uid=uid))
        except NotFound:
            return

    async def _let_go(self, action: LetGo) -> None:
        resource = KATA_CONFIGS if action.ref.kind == "KataConfig" else informer_scope(action.ref)[0]
        try:
            # From the API and with its version: a finalizer that somebody added since the last look must stay.
            obj = await self._cluster.get(resource, action.ref.name, action.ref.namespace)
            left = [entry for entry in obj["metadata"].get("finalizers") or () if entry != action.finalizer]
            patch = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"], "finalizers": left or None}}
            await self._cluster.patch(resource, action.ref.name, patch, PatchType.MERGE, action.ref.namespace, AS)
        except NotFound:
            return

    async def _remember(self, action: Remember) -> None:
        note = {"metadata": {"annotations": {names.OPERATOR_SEEN: action.version}}}
        await self._cluster.patch(NAMESPACES, HOME, note, PatchType.MERGE, options=AS)


def changes(present: Object, ensure: Ensure) -> list[JsonObject]:
    """The patch that brings the fields of an object that are ours to what they should be."""
    patch: list[JsonObject] = []
    labels = labels_of(ensure.obj)
    if not labels.items() <= labels_of(present).items():
        patch.append({"op": "add", "path": "/metadata/labels", "value": {**labels_of(present), **labels}})
    for path in ensure.owned:
        # The longest part of the path that is there gets the rest as one value.
        depth = next(n for n in range(len(path)) if n == len(path) - 1 or at(present, path[: n + 1]) is None)
        patch.append(
            {"op": "add", "path": "/" + "/".join(path[: depth + 1]), "value": _rest(ensure.obj, path, depth + 1)}
        )
    return patch


def _rest(obj: Object, path: Sequence[str], depth: int) -> Any:
    value = at(obj, path)
    for key in reversed(path[depth:]):
        value = {key: value}
    return value
