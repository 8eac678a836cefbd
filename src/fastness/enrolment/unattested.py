"""Who may become a node without a proof: requests with the token of a pool that does not attest, and of nodes that came by one.

    decide(request, circumstances, now)  →  Admit(pool) | Deny(reason, message) | Wait(reason, message) | NotOurs

A machine of such a pool boots with a join ticket, and its configuration carries a bootstrap token. Nobody knows what it runs, so
the token is all that there is, and it is worth as little as possible:

* It is for one pool, for an hour, and for the first node name and the first key that it is used with. Nobody asks with it again:
  whoever copied it comes too late, or the machine does, which everybody sees.
* The name is one that no Node, no Machine and no other token has, nor could a Machine get it later: a machine that attests is
  never impersonated by one that does not.
* The node renews by itself: for its own name, while its Node is the one that came of the token, and while its pool does not
  enforce attestation. What it serves under is decided as for nodes that attest.
* Requests with other credentials for other nodes are left to whoever looks after them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastness.enrolment.kubelet_certificates import NotOurs, Wait, serving_names
from fastness.kube.access.kubelet_requests import Deny, KubeletRequest, malformed
from fastness.protocol.machine_names import machine_of_node
from fastness.protocol.node_certificates import NODE_GROUP, NODE_USER, SERVING_SIGNER

POOL_GROUP: Final = "system:bootstrappers:fastness:pools"
# From the answer of the config server to the kubelet's first request: an image may be pulled and booted in between.
LIFETIME: Final = timedelta(hours=1)
# RFC 1123 §2.1, as the API server checks names of Nodes.
_NODE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class PoolToken:
    """A bootstrap token of a pool, without its secret. `ticket` or `stub` is what it was given for.

    `node` and `key` are those of the first request that it was used for, empty until then.
    """

    id: str
    pool: str
    expires: datetime
    ticket: str = ""
    stub: str = ""
    node: str = ""
    key: str = ""

    @property
    def spent(self) -> bool:
        """Whether it was used."""
        return bool(self.node)


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A node that came by the token of a pool. `uid` is that of its Node, empty until the Node is there.

    `ends` is when its last client certificate ends, or the wait for the first one.
    """

    node: str
    pool: str
    token: str
    key: str
    ends: datetime
    ticket: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the cluster says when a request is decided.

    `joined` is the node that is asked for, `asker` the one that asks; each None when it did not come by a token of a pool.
    `node_uid` is that of the Node of the name that is asked for, `machine` the Machine of that name. `attesting` are those pools
    of the token or the node that attest. `addresses` and `shared` are as in `kubelet_certificates.Known`.
    """

    token: PoolToken | None = None
    joined: JoinedNode | None = None
    asker: JoinedNode | None = None
    node_uid: str = ""
    machine: str = ""
    pool_exists: bool = True
    attesting: tuple[str, ...] = ()
    addresses: frozenset[str] | None = None
    shared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Admit:
    """The node may have the certificate, as a node of this pool."""

    pool: str


Decision = Admit | Deny | Wait | NotOurs


def is_by_token(request: KubeletRequest) -> bool:
    """Whether a request was made with the token of a pool."""
    # By the group as well: it is written by our controllers, and a token of kubeadm has an id of the same form.
    return bool(request.token_id) and POOL_GROUP in request.groups


def decide(request: KubeletRequest, facts: Circumstances, now: datetime) -> Decision:
    """Whether a kubelet of a pool that does not attest gets the certificate that it asks for."""
    by_token = is_by_token(request)
    if not by_token and facts.joined is None and facts.asker is None:
        return NotOurs()
    decision = malformed(request) or (_first(request, facts, now) if by_token else _renewal(request, facts))
    if decision is not None:
        return decision
    if by_token:
        assert facts.token is not None  # noqa: S101  # _first looked
        return Admit(facts.token.pool)
    assert facts.joined is not None  # noqa: S101  # _renewal looked
    return serving_names(request, facts.addresses, facts.shared) or Admit(facts.joined.pool)


def _first(request: KubeletRequest, facts: Circumstances, now: datetime) -> Deny | Wait | None:
    """What is wrong with a request by a token."""
    token = facts.token
    # The API server believes a serving certificate for every address in it: a token must not get one.
    if request.signer == SERVING_SIGNER:
        return Deny("NotTheNode", "a serving certificate is asked for with the node's own client certificate")
    if token is None or now >= token.expires:
        return Deny("TokenEnded", "the bootstrap token has ended or was taken back: boot the machine anew")
    if token.spent and (token.node, token.key) != (request.node, request.key):
        other = "another key" if token.node == request.node else f"the node {token.node}"
        return Deny(
            "TokenSpent", f"the bootstrap token was used for {other}: it is for one node and one key", alarm=True
        )
    if not facts.pool_exists:
        return Deny("NoPool", f"the pool {token.pool} of the bootstrap token is gone")
    if facts.attesting:
        return Deny(
            "PoolAttests", f"machines of the pool {token.pool} prove themselves to join: this token joins nothing"
        )
    return _name(request, facts, token)


def _name(request: KubeletRequest, facts: Circumstances, token: PoolToken) -> Deny | Wait | None:
    """What is wrong with the node name that a token shall be used for."""
    if len(request.node) > _LONGEST_NAME or not _NODE_NAME.match(request.node):
        return Deny("BadSubject", "this is not a name that a node can have")
    # Also those that nobody has yet: a machine that enrols later must find its name free.
    if facts.machine or machine_of_node(request.node):
        return Deny("NameOfMachine", f"{request.node} is a name of machines that attest", alarm=True)
    if facts.joined is not None and facts.joined.token != token.id:
        # Somebody deleted the Node, and what is written about it follows in a moment.
        if facts.joined.uid and not facts.node_uid:
            return Wait("NameHeld", f"the machine that was {request.node} before is being forgotten")
        return Deny(
            "NameTaken", f"another machine came as {request.node}: delete its Node first, if it is gone", alarm=True
        )
    if facts.node_uid:
        return Deny("NameTaken", f"the node {request.node} exists: delete it first, if its machine is gone", alarm=True)
    return None


def _renewal(request: KubeletRequest, facts: Circumstances) -> Deny | Wait | None:
    """What is wrong with a request of, or for, a node that came by a token."""
    # Both, as the node authorizer has them: the API server puts them there out of a certificate that it verified.
    if request.username != f"{NODE_USER}{request.node}" or NODE_GROUP not in request.groups or facts.joined is None:
        return Deny("NotTheNode", "a node of this pool asks for its own certificates, with its own", alarm=True)
    if facts.attesting:
        pools = ", ".join(facts.attesting)
        return Deny("PoolAttests", f"the pool {pools} enforces attestation, and this node never proved anything")
    if not facts.node_uid:
        return Wait("NoNode", "the Node does not exist yet")
    # A Node that was deleted took its machine out; one that registered again by itself does not bring it back.
    if facts.joined.uid and facts.joined.uid != facts.node_uid:
        return Deny("NodeReplaced", "the Node that came of the token was deleted: boot the machine anew")
    return None
