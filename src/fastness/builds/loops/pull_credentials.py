"""The credential with which proven nodes of a pool pull its image: read where an administrator wrote it, put where doors read it.

    Secret in the operator's namespace, named by annotation ─▶ its login for one registry ─▶ an entry of one Secret at home

* It is read again and again: a Secret that somebody changed is a rotation, which reaches nodes beside their configs and
  builds nothing.
* What cannot be used changes nothing: nodes keep what they have, and the MachineOSConfig says what is wrong (`Buildable`).
* Without the annotation, and with the MachineOSConfig, the entry goes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.builds.checks import (
    NODE_PULL,
    PUSH,
    pool_of,
    pull_problems,
    pull_secret_name,
    push_spec,
    registry_credentials,
    secret_name,
)
from fastness.builds.loops.statuses import CONFIGS
from fastness.formats import oci
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kinds.fastness_dev.trust_model import enforces
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration.names import OPERATOR_NAMESPACE
from fastness.kinds.objects import ObjectName, is_being_deleted
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.built import config_for
from fastness.machineconfig.trust.image_pull import NAME, narrowed
from fastness.observe.logs import logger

SECRETS: Final = SECRET.resource
HOME: Final = Scope(NAMESPACE, fields=f"metadata.name={NAME}")
_AS: Final = WriteOptions(manager="image-pull-credentials")
_log = logger("builds")


def _of_config(config: Object) -> Iterable[ObjectName]:
    return (ObjectName("", pool_of(config)),)


class PullCredentials:
    """Keeps what proven nodes pull with."""

    name = "image-pull-credentials"
    writes: Sequence[Resource] = (SECRETS,)

    def __init__(self, cluster: Cluster, informers: Informers, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIGS, keys=_of_config), Source(SECRETS, keys=self._all, scope=HOME),
            Source(CONFIDENTIAL_CLUSTER.resource, keys=self._all),
        )  # fmt: skip
        self._cluster = cluster
        self._configs = informers.of(CONFIGS)
        self._home = informers.of(SECRETS, HOME)
        self._confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
        self._again = timing.streams_retry

    def _all(self, _obj: Object) -> Iterable[ObjectName]:
        """Every pool that has an image, or a credential that it may not need any more."""
        pools = {pool_of(config) for config in self._configs.list()} | self._entries().keys()
        return [ObjectName("", pool) for pool in sorted(pools)]

    def _entries(self) -> dict[str, str]:
        return dict((self._home.get(NAMESPACE, NAME) or {}).get("data") or {})

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the entry of one pool to what its MachineOSConfig asks for."""
        config = config_for(key.name, self._configs.list())
        if config is None or is_being_deleted(config) or not pull_secret_name(config):
            await self._put(key.name, None)
            return Done()
        credential = await self._credential(dict(config))
        if credential:
            await self._put(key.name, base64.b64encode(credential.encode()).decode())
        return Done(again_after=self._again)

    async def _credential(self, config: JsonObject) -> str:
        """The login that a MachineOSConfig names; empty where it cannot be used."""
        secrets = {
            NODE_PULL: await self._secret(pull_secret_name(config)), PUSH: await self._secret(secret_name(config, PUSH)),
        }  # fmt: skip
        proven = enforces(self._confidential.get("", CLUSTER), pool_of(config))
        secret = secrets[NODE_PULL]
        if secret is None or any(pull_problems(config, secrets, enforcing=proven)):
            return ""
        return narrowed(registry_credentials(secret), oci.reference(push_spec(config)))

    async def _secret(self, name: str) -> JsonObject | None:
        try:
            return await self._cluster.get(SECRETS, name, OPERATOR_NAMESPACE) if name else None
        except NotFound:
            return None

    async def _put(self, pool: str, value: str | None) -> None:
        if self._entries().get(pool) == value:
            return
        patch = {"data": {pool: value}}
        try:
            await self._cluster.patch(SECRETS, NAME, patch, PatchType.MERGE, NAMESPACE, _AS)
        except NotFound:
            meta = {"name": NAME, "namespace": NAMESPACE}
            whole = {
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "Opaque",
                "metadata": meta,
                "data": {pool: value or ""},
            }
            with suppress(AlreadyExists):
                await self._cluster.create(SECRETS, whole, _AS)
        _log.info("build.pull_credential", pool=pool, given=value is not None)
