"""What a machine of a pool without attestation joins by: a kubeconfig in its configuration, with a token made for it alone.

    query = {"accept": …, "kubeconfig": credentials.kubeconfig()}      # the configuration with a place for the token
    body = await credentials.filled(body, pool, ticket="name")         # with a token in that place

The configuration is made once and kept, as every other; only the place of the token is filled for each machine. The token is
real, and good for one node (`enrolment.unattested`); the place is of its form and opens nothing.

* The address of the API server is what the ControllerConfig says, its authority what Kubernetes publishes in every namespace.
  While one of them is not known, no configuration leaves: a machine with half of one would never join, and nobody would know.
* No token for HEAD, nor for whoever has the configuration already: what reaches nobody would only count against the pool.
"""

from __future__ import annotations

from typing import Final

from fastness.enrolment.live.pool_tokens import PoolTokens
from fastness.http.refusals import Refusal
from fastness.keys.errors import TokenContended
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kube.informers import Informers
from fastness.kube.places import ROOT_CA
from fastness.kube.port import Cluster, Scope
from fastness.machineconfig.render.base.kubelet import token_kubeconfig
from fastness.machineconfig.render.base.node_inputs import api_server_of
from fastness.observe import logs, metrics
from fastness.runtime.clock import Clock, Entropy

PLACE: Final = "000000.0000000000000000"
"""Where the token stands in a configuration that is kept; as long as one, so that nothing else changes."""
_ROOT_CA: Final = Scope(NAMESPACE, fields=f"metadata.name={ROOT_CA}")
_log = logs.logger("configserver")


class JoinCredentials:
    """Kubeconfigs with tokens of pools that do not attest."""

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> None:
        self._tokens = PoolTokens(cluster, clock, entropy)
        self._controllers = informers.of(CONTROLLER_CONFIG.resource)
        self._authorities = informers.of(CONFIG_MAP.resource, _ROOT_CA)

    async def synced(self) -> None:
        """Wait until what the cluster says of its API server was read."""
        await self._controllers.synced()
        await self._authorities.synced()

    def kubeconfig(self) -> str:
        """How to ask this cluster for a certificate, with a place for the token; raises Refusal."""
        server = api_server_of(self._controllers.get("", SINGLETON))
        published = self._authorities.get(NAMESPACE, ROOT_CA) or {}
        authority = str((published.get("data") or {}).get("ca.crt") or "")
        if not server or not authority:
            lacking = (
                "spec.infra.status.apiServerInternalURI of the ControllerConfig"
                if not server
                else f"{NAMESPACE}/{ROOT_CA}"
            )
            _log.warning(
                "configserver.lacks", what=lacking, hint="Without it no machine of a pool without attestation joins."
            )
            raise Refusal(503, "api-server-unknown", "nobody said yet how machines reach the API server")
        return token_kubeconfig(server, authority, PLACE)

    async def filled(self, body: bytes, pool: str, *, ticket: str = "", stub: str = "") -> bytes:
        """A configuration with a token of the pool in its place; raises Refusal, ApiError."""
        before, place, after = body.partition(PLACE.encode())
        # Whoever writes MachineConfigs could write the place too, and have the token of others land in their file.
        if not place or PLACE.encode() in after:
            raise Refusal(503, "no-place-for-token", "the configuration has no single place for a token")
        try:
            token = await self._tokens.issue(pool, ticket=ticket, stub=stub)
        except TokenContended as contended:
            metrics.POOL_TOKENS.inc("refused")
            _log.warning("configserver.token_refused", pool=pool, error=contended, hint=contended.hint)
            raise Refusal(503, contended.code, contended.message) from contended
        metrics.POOL_TOKENS.inc("issued")
        return b"".join((before, token.reveal().encode(), after))
