"""The one way out for rendered configs of nodes that never attested, and for what these have beside them.

    node certificate → Grant (`live.day_two_nodes`) → in touch → config → record → Grant again, in touch? → signature → bytes

* Nobody proved what such a node runs, so its release rests on the certificate alone, and the record says so: an entry `release`
  with the node, the digest of the certificate and the config is durable before the first byte leaves.
* Writing it takes time. Node and Machine are read once more after it: a config that was taken back in between does not leave, nor
  any to a machine that was put into quarantine, and an entry `withheld` says why.
* What leaves is signed for this node, this certificate, this request and this name. An agent checks all of them, so neither a
  proxy that ends TLS nor whoever holds the certificate of the door slips it another config, or an older one.
* Final refusals of nodes are on the record too, each once a minute.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.http import Request
from fastness.http.freshness import Touch
from fastness.http.refusals import Refusal
from fastness.kinds.trusted_execution.subject import Basis, Grant
from fastness.observe import metrics
from fastness.protocol.config_proof import ServedToNode
from fastness.protocol.kbs_path import ResourcePath, is_pool_trust
from fastness.record.entry import Record, RecordEntry
from fastness.release.configs import NONCE, Config, PlainConfigs
from fastness.release.live.day_two_nodes import NodeCaller, NodeCallers
from fastness.release.live.refusal_log import RefusalLog
from fastness.release.live.releases import demand, withheld_entry, written
from fastness.release.live.signed_configs import ConfigSigner
from fastness.runtime.clock import Clock

MAX_NONCE: Final = 128


class NodeReleases:
    """Lets nodes have their own rendered configs, on the record and signed."""

    def __init__(
        self,
        callers: NodeCallers,
        configs: PlainConfigs,
        trust: PlainConfigs,
        signer: ConfigSigner,
        record: Record,
        touch: Touch,
        clock: Clock,
    ) -> None:
        self._callers = callers
        self._configs = configs
        self._trust = trust
        self._signer = signer
        self._record = record
        self._refusals = RefusalLog(record, clock)
        self._touch = touch
        self._clock = clock

    def recognise(self, request: Request, rendered: str) -> NodeRequest:
        """The node whose certificate a request shows, and what it asks for; raises Refusal."""
        if request.peer is None:
            raise Refusal(401, "certificate-required", "show the certificate of the node")
        # The caller's own number is signed with the answer: an old answer that somebody kept does not have it.
        nonce = nonce_of(request)
        caller = self._callers.recognise(request.peer)
        request.recognised()
        return NodeRequest(self, caller, rendered, nonce)

    async def release(self, caller: NodeCaller, path: ResourcePath, rendered: str, nonce: str) -> Config:
        """The rendered config for a node, or what is beside it, signed for its request; raises Refusal, RecordError."""
        resource = str(path)[:256]
        try:
            grant = await self._grant(caller, path, rendered)
        except Refusal as refusal:
            await self._refusals.final(caller.user, resource, refusal, detail={"certificate": caller.certificate})
            raise
        source = self._trust if is_pool_trust(path) else self._configs
        config = await source.read(grant, path, {"rendered": rendered})
        entry = _entry(caller, resource, config)
        await written(self._record, entry)
        try:
            await self._grant(caller, path, rendered)
        except Refusal as refusal:
            await written(self._record, withheld_entry(entry, refusal))
            raise
        metrics.RELEASES.inc(str(grant.basis))
        served = ServedToNode(
            config.body, path.type, caller.node, caller.certificate, nonce, rendered, is_pool_trust(path)
        )
        return config._replace(signature=self._signer.sign(served, self._clock.now()))

    async def _grant(self, caller: NodeCaller, path: ResourcePath, rendered: str) -> Grant:
        """Leave for the node to have the config now, as the API says, where this door can know; raises Refusal."""
        grant = await self._callers.grant(caller, path, rendered)
        demand(self._touch)
        return grant


class NodeRequest(NamedTuple):
    """A node that showed its certificate, the rendered config that it names if it does, and the number of its request."""

    releases: NodeReleases
    caller: NodeCaller
    rendered: str
    nonce: str

    async def release(self, path: ResourcePath) -> Config:
        """The resource of this path, if it is the node's; raises Refusal, RecordError."""
        return await self.releases.release(self.caller, path, self.rendered, self.nonce)


def nonce_of(request: Request) -> str:
    """The number of the caller's own request, which is signed; raises Refusal."""
    nonce = request.header(NONCE)
    if len(nonce) > MAX_NONCE:
        raise Refusal(400, "bad-nonce", f"a nonce has at most {MAX_NONCE} characters")
    return nonce


def _entry(caller: NodeCaller, resource: str, config: Config) -> RecordEntry:
    """What the record says of a release: the same release of the same certificate has the same id."""
    key = json.canonical([caller.node, caller.certificate, resource, config.name])
    facts = {"basis": str(Basis.NODE_CERTIFICATE), "certificate": caller.certificate, **config.described()}
    return RecordEntry("release", caller.user, resource, grant=sha256(key).hex[:32], detail=facts)
