"""Who may become a node: the decision about a kubelet's request for a certificate.

    asked = read_asked(csr)                       # what a CertificateSigningRequest of a kubelet asks for, and who asks
    decide(asked, known, now)  →  Approve | Deny(reason, message) | Wait(reason, message) | NotOurs

A machine joins with a bootstrap token that the broker released to it, and to nobody else, after attestation. Such a token names
its Machine and the public key that the machine is going to use, so a token that was stolen joins nothing. Later certificates are
asked for with the one before.

* Only a machine whose proof is live gets a certificate, only for the node name that enrolment gave it, only with its own key.
* What it proved, and what its token was released for, is of the evidence type and the endorsement that it enrolled with.
* The key was named in an attested session of the machine (`protocol.node_keys`), first or renewal, client or serving, and has no
  certificate yet: with the node's credential alone nobody renews it, and each renewal rests on a proof of its own. A key that was
  replaced since is an alarm.
* A request asks for exactly what a kubelet asks for: subject, usages, lifetime, and for serving the names and addresses of its
  own Node. An address that another Node shows too is nobody's: nodes tell their own addresses.
* What is wrong for good is denied. What may pass (the proof grew old, the Node is not there yet) waits and is looked at again.
* Requests of others, for nodes that are no Machine's, are left to whoever looks after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.machine.machine import misbound, proved_as_enrolled
from fastness.attestation.machine.proof_age import proof_of
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.access.kubelet_requests import Deny, KubeletRequest, malformed
from fastness.protocol.node_certificates import CLIENT_SIGNER, NODE_GROUP, NODE_USER, SERVING_SIGNER, is_own_host
from fastness.protocol.node_keys import CLIENT, REUSED, SERVING, KeyUse, key_use

Object = Mapping[str, Any]
BOOTSTRAP_GROUP: Final = "system:bootstrappers:fastness"
_KEY_OF: Final = {CLIENT_SIGNER: CLIENT, SERVING_SIGNER: SERVING}
_APPROVING_ROLES: Final = tuple(
    f"system:certificates.k8s.io:certificatesigningrequests:{kind}" for kind in ("nodeclient", "selfnodeclient")
)


@dataclass(frozen=True, slots=True)
class JoinToken:
    """A bootstrap token of ours, without its secret: of which subject, for which key, until when."""

    id: str
    machine: str
    key: str
    expires: datetime
    tee: str
    endorsement: str


@dataclass(frozen=True, slots=True)
class Known:
    """What the cluster knows when a request is decided.

    `machine` is the Machine of the token, or else of the node that is asked for. `addresses` are what the Node tells of itself,
    None without a Node; `shared` are those that were asked for and that another Node tells too. `certified` is another request
    that was approved for the same key.
    """

    interval: timedelta
    simulated: bool = False
    first_use: bool = False
    token: JoinToken | None = None
    machine: Machine | None = None
    distrusted: str = ""
    addresses: frozenset[str] | None = None
    shared: frozenset[str] = frozenset()
    certified: str = ""


@dataclass(frozen=True, slots=True)
class Approve:
    """The machine may have the certificate."""

    machine: Machine


@dataclass(frozen=True, slots=True)
class Wait:
    """Not now; what is missing may come."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Somebody else decides."""


Decision = Approve | Deny | Wait | NotOurs


def decide(request: KubeletRequest, facts: Known, now: datetime) -> Decision:
    """Whether a kubelet gets the certificate that it asks for."""
    # By id and by group: a token that kubeadm made for somebody else has a name of the same form.
    ours = bool(request.token_id) and BOOTSTRAP_GROUP in request.groups
    # Nobody's machine and nobody's token: other nodes of the cluster have approvers of their own, and a denial is for good.
    if not ours and facts.machine is None:
        return NotOurs()
    decision = (
        malformed(request)
        or _requester(request, facts, now)
        or _machine(request, facts, now)
        or serving_names(request, facts.addresses, facts.shared)
    )
    if decision is not None:
        return decision
    assert facts.machine is not None  # noqa: S101  # _requester and _machine looked
    return Approve(facts.machine)


def _requester(request: KubeletRequest, facts: Known, now: datetime) -> Deny | None:
    """What is wrong with who asks."""
    if request.token_id and BOOTSTRAP_GROUP in request.groups:
        return _bootstrap(request, facts, now)
    # Both, as the node authorizer has them: the API server puts them there out of a certificate that it verified.
    if request.username == f"{NODE_USER}{request.node}" and NODE_GROUP in request.groups:
        return None
    return Deny(
        "NotTheMachine",
        f"the node {request.node} belongs to a machine that attests: it asks with a token of the broker or its own certificate",
    )


def _bootstrap(csr: KubeletRequest, facts: Known, now: datetime) -> Deny | None:
    token = facts.token
    # The API server believes a serving certificate for every address in it: a token that leaked must not get one.
    if csr.signer == SERVING_SIGNER:
        return Deny("NotTheNode", "a serving certificate is asked for with the node's own client certificate")
    # Read at the API at this moment: a token that the controllers took back, because trust ended, is gone here at once.
    if token is None or now >= token.expires:
        return Deny("TokenEnded", "the bootstrap token has ended or was taken back: ask the broker for another")
    if facts.machine is None or facts.machine.metadata.uid != token.machine:
        return Deny("NoMachine", "the machine of the bootstrap token is gone")
    if (facts.machine.status.tee, facts.machine.status.endorsed_by) != (token.tee, token.endorsement):
        return Deny(
            "OtherSubject", "the broker released the bootstrap token to a machine of another type or endorsement"
        )
    # The token was released for one key, named in the attested session: copied, it is of no use to anybody else.
    if csr.request is None or str(csr.request.key) != token.key:
        return Deny("OtherKey", "the broker released the bootstrap token for another key")
    return None


def _machine(request: KubeletRequest, facts: Known, now: datetime) -> Deny | Wait | None:
    """What is wrong with the machine, or with its proof."""
    machine = facts.machine
    if machine is None:
        return Deny("NoMachine", "no machine may become this node")
    # The name follows from the machine's key, so one machine can never come as another one's node.
    if machine.status.node_name != request.node:
        return Deny("OtherNode", f"this machine may become the node {machine.status.node_name} and no other")
    # The cluster may have been simulated when the machine enrolled: what it is now decides.
    if machine.status.simulated and not facts.simulated:
        return Deny("Simulated", "a simulated machine joins simulated clusters only")
    if facts.distrusted:
        return Deny("Distrusted", facts.distrusted)
    if machine.metadata.deletion_timestamp:
        return Deny("Deleted", "the machine is being deleted")
    if membership_of(machine) in (Membership.REVOKED, Membership.QUARANTINED):
        return Deny(str(membership_of(machine)), "the machine is no longer trusted")
    unbound = misbound(machine, machine.status.tee, first_use=facts.first_use)
    if unbound is not None:
        return Deny("NotEndorsed", unbound.detail)
    # Before the age of the proof: a key that nobody named is denied for good, an old proof only waits.
    unnamed = _key(request, facts, machine)
    if unnamed is not None:
        return unnamed
    proof = proof_of(machine, now, facts.interval)
    if proof.good and not proved_as_enrolled(machine):
        return Wait("OtherSubject", "what the machine proved is of another type or endorsement than it enrolled with")
    # Waits, because a machine that attests late is the common case; denied, it could never ask with this key again.
    return None if proof.good else Wait(proof.reason, f"the proof of the machine is not live: {proof.message}")


def _key(request: KubeletRequest, facts: Known, machine: Machine) -> Deny | None:
    """What is wrong with the key."""
    purpose = _KEY_OF[request.signer]
    match key_use(machine, purpose, request.key):
        case KeyUse.UNNAMED:
            text = f"no attested session of the machine named this {purpose} key: its agent renews, its kubelet must not rotate"
            return Deny("KeyNotNamed", text)
        case KeyUse.REPLACED:
            # A request that waited while the machine went on to another key is old, and nobody's attack.
            current = machine.status.node_keys.client if purpose == CLIENT else machine.status.node_keys.serving
            late = current is None or request.created > current.named
            return Deny("ReplacedKey", REUSED if late else "the machine has named another key since", alarm=late)
        case KeyUse.CURRENT:
            pass
    # One key, one certificate: each renewal needs a key that was named in a new proof (decision 43).
    if facts.certified:
        return Deny("KeyUsed", f"this key has its certificate, by {facts.certified}: the next one is for a new key")
    return None


def serving_names(csr: KubeletRequest, addresses: frozenset[str] | None, shared: frozenset[str]) -> Deny | Wait | None:
    """What is wrong with the names that a certificate shall speak for; `addresses` and `shared` are as in `Known`."""
    if csr.signer == CLIENT_SIGNER:
        return None
    # The API server dials kubelets by address, and believes a certificate for it: one for another node's address reads that
    # node's pods.
    foreign = [host for host in csr.hosts if not is_own_host(host, csr.node)]
    if foreign:
        return Deny("ForeignNames", f"these are not the node's own: {', '.join(foreign[:5])}")
    if addresses is None:
        return Wait("NoNode", "the Node does not exist yet")
    # Waits and is not denied: the Node may show them a moment later.
    unknown = [name for name in csr.hosts if name != csr.node and name not in addresses]
    if unknown:
        return Wait("UnknownAddresses", f"the Node does not show these: {', '.join(unknown[:5])}")
    # Nodes tell their own addresses: one that claims another's would get a certificate for it.
    if shared:
        return Deny("SharedAddresses", f"other Nodes show these too: {', '.join(sorted(shared)[:5])}")
    return None


def other_approvers(bindings: Iterable[Object]) -> list[str]:
    """The ClusterRoleBindings by which Kubernetes itself approves requests of kubelets, whatever their machines proved."""
    # Kubernetes' own approver needs no proof: with one of these bound, a stolen token becomes a node although we deny it.
    approving = (binding for binding in bindings if (binding.get("roleRef") or {}).get("name") in _APPROVING_ROLES)
    return sorted(object_name(binding).name for binding in approving if binding.get("subjects"))
