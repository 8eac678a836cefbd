"""How strict the cluster was when the controllers last put that on the record.

    Secret  fastness-system/guard-state      what was seen last, and how it was before a lowering that nobody confirmed

A change is seen by comparing, also after a time in which nobody looked and also when the object is gone. A status or an
annotation can be written by whoever writes the object, so the memory lies beside the keys of the control plane: who can write
there needs no lowering.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

NAME: Final = "guard-state"
STATE: Final = "state.json"
_AS: Final = WriteOptions(manager="confidential-cluster")


@dataclass(frozen=True, slots=True)
class GuardState:
    """The ConfidentialCluster as it was seen last; without a uid there was none.

    `unguarded` is its spec before a lowering that no edge let through, for as long as it is weaker than that; None otherwise.
    """

    uid: str = ""
    generation: int = 0
    spec: JsonObject | None = None
    unguarded: JsonObject | None = None
    words: str = ""

    def seeing(self, cluster: JsonObject | None) -> GuardState:
        """The same after another look."""
        meta = metadata(cluster or {})
        uid, generation = str(meta.get("uid") or ""), int(meta.get("generation") or 0)
        return replace(
            self, uid=uid, generation=generation, spec=None if cluster is None else cluster.get("spec") or {}
        )

    @property
    def cluster(self) -> JsonObject:
        """The object that was seen, as far as comparisons need it."""
        return {"metadata": {"uid": self.uid, "generation": self.generation}, "spec": self.spec or {}}


async def read_guard(cluster: Cluster) -> GuardState | None:
    """What was seen last; None at the very first look, and when it cannot be read. Raises ApiError."""
    try:
        secret = await cluster.get(SECRETS, NAME, NAMESPACE)
    except NotFound:
        return None
    try:
        state: Any = json.decode(base64.b64decode((secret.get("data") or {}).get(STATE, ""), validate=True))
        return GuardState(**state)
    # As at the very first look, which takes the present for the beginning; whoever can damage this Secret holds the keys beside
    # it too.
    except (JsonError, binascii.Error, TypeError):
        return None


async def write_guard(cluster: Cluster, state: GuardState) -> None:
    """Remember a look; raises ApiError."""
    members = {name: getattr(state, name) for name in GuardState.__slots__}
    data = {STATE: base64.b64encode(json.encode(members)).decode()}
    meta = {"name": NAME, "namespace": NAMESPACE}
    try:
        await cluster.patch(SECRETS, NAME, {"data": data}, PatchType.MERGE, NAMESPACE, _AS)
    except NotFound:
        with suppress(AlreadyExists):
            body = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": meta, "data": data}
            await cluster.create(SECRETS, body, _AS)
