"""Where a running machine gets the rendered config that its node was told to go to, and whom it shall believe beside that.

    attested     a token of this boot ─ live? ─ no ─ attest again ─▶ gate or broker, ?rendered=<…> ─▶ signature, name ─▶ config
    unattested   the config server, with the certificate of the node ─▶ signature, name ─▶ config
                 or the embedded API, with the same credential: it knows pools, which RBAC of a Kubernetes does not (rendered.py)

A machine that proves itself takes the way of its first boot again: a live grant, an entry on the record, a signature of the
cluster over exactly these bytes under exactly this name, for this machine and this request. It never believes the API about the
content of a config: whoever holds its node's credential, or the API itself, cannot slip it another one. The config server signs
for nodes that never attest, too, so what stands between them and it cannot either.

* What was asked for is a rendered config by its name, and a rendered config belongs to one pool, which its name says. The pool in
  the token is the broker's word, and nothing is compared with that.
* The target of a machine with overlays has their digest, `<name>@<digest>`: what it gets is merged, signed under both, and names
  them itself. Nodes that never attest have no overlays: what those are for is proved.
* A token lives ten minutes and proofs repeat every fifteen, so there is often none: then the machine attests on demand.
* Doors that cannot answer now are asked again by the agent's loop, as an API that cannot; a refusal is told on the node.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.enrol import Doors
from fastness.agent.boot.fetch import check_delivered, from_broker, from_config_server, from_gate, own_thumbprint
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.agent.errors import AgentError, BadConfig
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.kube.errors import Unavailable
from fastness.machineconfig.overlay.merged import overlay_in
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.protocol.config_proof import BadConfigProof, Served, ServedToNode, check
from fastness.protocol.delivered import Delivered, Question
from fastness.protocol.kbs_path import ResourcePath, is_pool_trust, pool_config, pool_trust
from fastness.protocol.node_trust import NodeTrust, NodeTrustError, parse_node_trust
from fastness.runtime.clock import Clock, Entropy

NONCE_BYTES: Final = 24
# A token that ends on the way costs a refusal and another round.
MARGIN: Final = timedelta(seconds=30)
ROUNDS: Final = 3
_NODE_HINT: Final = "See the Node's annotations, and the trust model of its pool: attested machines need --identity."
_TRUST_HINT: Final = "Give the agent the trust.json of now: fastness image trust."
OTHER: Final = {"delivered-by-broker": "Broker", "delivered-by-gate": "Gate"}


class ConfigRefused(AgentError):
    """The machine was told to go to a config that it does not get; the message says who refused and why."""

    code = "config-refused"
    hint = "On the control plane: fastness attest explain with the name of this machine."


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A node as the config server knows it, and whom it believes: what `tls` shows, and the keys that sign configs."""

    node: str
    certificate: str
    tls: ssl.SSLContext
    keys: Mapping[str, Ed25519Verifier]


class NodeConfigs:
    """The config server, for a node that never attested and shows its certificate."""

    def __init__(self, url: str, identity: Callable[[], NodeIdentity], clock: Clock, entropy: Entropy) -> None:
        """Ask the config server at `url`; `identity` gives whom to believe and what to show, as they are now."""
        self._url = url
        self._identity = identity
        self._clock = clock
        self._entropy = entropy

    async def fetch(self, name: str, overlay: str = "") -> JsonObject:
        """The rendered config of this name, signed for this node; raises ConfigRefused, BadConfig, Unavailable."""
        if overlay:
            raise ConfigRefused(f"{name}: overlays are for machines that prove themselves", _NODE_HINT)
        return _parsed(name, await self._asked(name, pool_config(rendered_pool(name)), name))

    async def trust(self, pool: str, named: str = "") -> NodeTrust:
        """Whom this node shall believe now, signed for it; raises ConfigRefused, BadConfig, Unavailable."""
        return _trusted(await self._asked("the node's trust", pool_trust(pool)))

    async def _asked(self, what: str, path: ResourcePath, rendered: str = "") -> bytes:
        own = self._identity()
        question = Question(_text(self._entropy.token(NONCE_BYTES)), rendered=rendered)
        try:
            delivered = await from_config_server(self._url, own.tls, path.type, question, path.tag)
        except DoorRefused as error:
            if error.passing:
                raise Unavailable(f"{what}: {error.message}") from error
            raise ConfigRefused(f"{what}: {error.message}", _NODE_HINT) from error
        served = ServedToNode(
            delivered.config, path.type, own.node, own.certificate, question.nonce, rendered, is_pool_trust(path)
        )
        try:
            check(delivered.signature, served, own.keys, self._clock.now())
        except BadConfigProof as error:
            raise ConfigRefused(f"{what}: {error.detail}", _TRUST_HINT) from error
        return delivered.config


class AttestedConfigs:
    """Gate or broker, for a machine that proves itself."""

    def __init__(
        self,
        attester: Attester,
        doors: Callable[[], Doors],
        trust: Callable[[], ImageTrust],
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._attester = attester
        self._doors = doors
        self._trust = trust
        self._clock = clock
        self._entropy = entropy
        self._broker: BrokerClient | None = None
        self._ahead = timedelta()
        self._via = ""

    async def fetch(self, name: str, overlay: str = "") -> JsonObject:
        """The rendered config of this name with these overlays, signed for this machine.

        Raises ConfigRefused, BadConfig, Unavailable, DriverError.
        """
        target = names.target_of(name, overlay)
        return _parsed(target, await self._asked(target, pool_config(rendered_pool(name)), target))

    async def trust(self, pool: str, named: str = "") -> NodeTrust:
        """Whom this machine shall believe now, signed for it; raises ConfigRefused, BadConfig, Unavailable, DriverError."""
        return _trusted(await self._asked("the node's trust", pool_trust(pool)))

    async def _asked(self, name: str, path: ResourcePath, rendered: str = "") -> bytes:
        for _ in range(ROUNDS):
            try:
                return await self._once(path, rendered)
            except DoorRefused as error:
                if error.reason in OTHER:
                    self._via = OTHER[error.reason]
                elif error.status == 401:
                    self._broker = None  # the token grew old on the way, or the doors have new keys: a new one helps
                elif error.passing:
                    raise Unavailable(f"{name}: {error.message}") from error
                else:
                    raise ConfigRefused(f"{name}: {error.message}", error.hint) from error
        raise Unavailable(f"{name}: the doors ask for another attestation again and again")

    async def prove(self) -> None:
        """Prove the machine now, whatever token it holds; raises ConfigRefused, Unavailable, DriverError."""
        self._broker = None
        try:
            await (await self._attested(self._doors().broker, self._trust(), "")).close()
        except DoorRefused as error:
            if error.passing or error.status == 401:
                raise Unavailable(f"a proof after a move: {error.message}") from error
            raise ConfigRefused(f"a proof after a move: {error.message}", error.hint) from error

    async def _once(self, path: ResourcePath, rendered: str) -> bytes:
        question = Question(_text(self._entropy.token(NONCE_BYTES)), rendered=rendered)
        doors, trust = self._doors(), self._trust()
        broker = await self._attested(doors.broker, trust, path.type)
        async with broker:
            if (self._via or doors.via) == "Broker":
                delivered = await from_broker(broker, path.type, question, path.tag)
            else:
                delivered = await from_gate(doors.gate, trust.tls, broker, path.type, question, self._now, path.tag)
        key = await own_thumbprint(self._attester)
        served = Served(delivered.config, path.type, broker.machine, question.nonce, rendered, key, is_pool_trust(path))
        self._check(delivered, served, trust)
        return delivered.config

    async def _attested(self, url: str, trust: ImageTrust, pool: str) -> BrokerClient:
        """A conversation whose token is still good for a while; raises DoorRefused, DriverError.

        A token from before the machine was moved to this pool is dead: another proof helps.
        """
        held = self._broker
        live = held is not None and held.expires is not None and self._now() + MARGIN < held.expires
        if held is not None and live and held.pool == pool:
            held.go_to(url)
            return held
        fresh = BrokerClient(url, trust.tls, self._attester, self._entropy)
        try:
            await fresh.attest()
        # Also when it is cancelled: a connection that stays open would hold one of the few lanes of a door.
        except BaseException:
            await fresh.close()
            raise
        self._ahead = fresh.issued - self._clock.now() if fresh.issued else timedelta()
        self._broker = fresh
        return fresh

    def _check(self, delivered: Delivered, served: Served, trust: ImageTrust) -> None:
        try:
            check_delivered(delivered, served, trust.keys, self._now())
        except BadConfigProof as error:
            what = served.rendered or "the node's trust"
            raise ConfigRefused(
                f"{what}: {error.detail}", "Build the image again with the trust.json of now."
            ) from error

    def _now(self) -> datetime:
        """The time by the clock of the doors."""
        return self._clock.now() + self._ahead


def _parsed(name: str, body: bytes) -> JsonObject:
    """What a door gave under a name; raises BadConfig."""
    try:
        config = json.decode(body)
    except JsonError as error:
        raise BadConfig(f"{name} is not JSON: {error.message}") from error
    # The signature is over bytes and a name; that the bytes call themselves so is what `currentConfig` will rest on.
    if not isinstance(config, dict) or names.target_of(object_name(config).name, overlay_in(config)) != name:
        raise BadConfig(f"{name}: the door gave another config")
    return config


def _trusted(body: bytes) -> NodeTrust:
    """What a door gave beside the config; raises BadConfig."""
    try:
        return parse_node_trust(body)
    except NodeTrustError as error:
        raise BadConfig(f"the node's trust cannot be understood: {error}", error.hint) from error


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
