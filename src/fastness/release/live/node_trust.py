"""What nodes have beside their configuration, as the config server hands it out: a ResourceSource, which only a Grant opens.

One document for the whole cluster (`machineconfig.trust`), made of the ControllerConfig and kept until one of its two sources
changes; and for each pool whose images need a credential of their own the same with that credential, which machines get that have
proved that they are of the pool. It is handed out as it is now and under no older name: whoever may write a Node chooses nothing.
While something in the ControllerConfig cannot be read, running machines wait (503) and keep what they have; machines that boot
get what can be read.
"""

from __future__ import annotations

from typing import Final

from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.cluster import NAME as CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Scope
from fastness.machineconfig.trust.image_pull import NAME, credential_of, with_credential
from fastness.machineconfig.trust.node_trust import API_AUTHORITY, node_trust
from fastness.observe import logs
from fastness.protocol.kbs_path import ResourcePath, is_pool_trust
from fastness.protocol.node_trust import NodeTrust
from fastness.release.configs import Config
from fastness.release.source import Query, require_for

_AUTHORITY: Final = Scope(API_AUTHORITY[0], fields=f"metadata.name={API_AUTHORITY[1]}")
_CREDENTIALS: Final = Scope(NAMESPACE, fields=f"metadata.name={NAME}")
_log = logs.logger("configserver")


class TrustDocuments:
    """The document of now."""

    def __init__(
        self, controllers: Informer, authorities: Informer, credentials: Informer, confidential: Informer
    ) -> None:
        self._controllers = controllers
        self._authorities = authorities
        self._sources: tuple[JsonObject | None, JsonObject | None] = (None, None)
        self._trust = NodeTrust()
        self._problems: list[str] = []
        self._credentials = credentials
        self._confidential = confidential
        self._of_pools: dict[str, NodeTrust] = {}

    @classmethod
    async def following(cls, informers: Informers) -> TrustDocuments:
        """With caches that know what is there; raises ApiError."""
        sources = (
            informers.of(CONTROLLER_CONFIG.resource), informers.of(CONFIG_MAP.resource, _AUTHORITY),
            informers.of(SECRET.resource, _CREDENTIALS), informers.of(CONFIDENTIAL_CLUSTER.resource),
        )  # fmt: skip
        for informer in sources:
            await informer.synced()
        return cls(*sources)

    def current(self, pool: str = "") -> NodeTrust:
        """What can be read of it now; of a pool, with what its proven machines alone get."""
        trust = self._of_everybody()
        if not pool:
            return trust
        secret, cluster = self._credentials.get(NAMESPACE, NAME), self._confidential.get("", CLUSTER)
        own = with_credential(trust, credential_of(secret, cluster, pool))
        kept = self._of_pools.get(pool, trust)
        # Compared by identity, as below.
        self._of_pools[pool] = kept if kept.name == own.name else own
        return self._of_pools[pool]

    def _of_everybody(self) -> NodeTrust:
        sources = (self._controllers.get("", SINGLETON), self._authorities.get(*API_AUTHORITY))
        # An informer never changes an object, it puts another in its place.
        if any(new is not old for new, old in zip(sources, self._sources, strict=True)):
            self._sources = sources
            trust, self._problems = node_trust(*sources)
            # The status of a ControllerConfig changes all the time; whoever keeps bytes made of this compares by identity.
            self._trust = trust if trust.name != self._trust.name else self._trust
            if self._problems:
                _log.warning("configserver.unavailable", code="trust-unclear", error="; ".join(self._problems[:5]))
        return self._trust

    def serves(self, path: ResourcePath) -> bool:
        """Whether a path is what nodes have beside their configuration."""
        return is_pool_trust(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Config:
        """The document; raises Refusal."""
        require_for(grant, path)
        trust = self.current(path.type) if grant.basis is Basis.VERDICT else self.current()
        if self._problems or not trust.kubelet_ca:
            raise Refusal(503, "trust-unclear", "the ControllerConfig does not say whom nodes shall believe")
        return Config(trust.body, b'"%b"' % trust.name.encode(), trust.name)
