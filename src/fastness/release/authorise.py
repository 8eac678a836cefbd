"""The one place where it is decided who may have what, and the one place where a Grant is made.

    outcome = await policies.decide(authorise(caller, path, rules, policies.current, bindings, revoked=False, now=now))
    match outcome:
        case Grant(): ...       # opens a ResourceSource (`release.source`)
        case Denial(): ...      # a door turns it into its own answer

Gate, broker and config server ask here, for every resource and every basis. In order, the cheap before the dear:

    trust has not ended → the basis opens this kind of resource → disks or all else → the path is the caller's → policies
        → the proof counts here

    machine/<uid>/disk-<volume>             an unlock session of that machine, which opens nothing else
    default/<id>/root                       that machine, where its pool's disks are opened by the Clevis pin (decision 69)
    machine/<uid>/<tag>                     that machine
    pool/<name>/<tag>                       attested members of the pool
    tenant/<name>/<tag>                     attested members of the tenant
    default/attestation-status/status       whoever attested
    anything else                           whom a ResourceBinding names, if it proved what the binding requires

* Deny is the default, and each denial has a stable code.
* A path (`protocol.kbs_path`) is parsed once, and nothing downstream sees another spelling. A reserved word at the front belongs
  to the rule above for good: no binding opens another machine's, pool's or tenant's place.
* Policies only take away from what is allowed here. They are questions that the decision yields (`attestation.policy.query`), so
  it stays a function of its arguments.
* A Grant is for one resource and one key; it cannot be widened, only asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from fastness.attestation.evidence.phases import Phase
from fastness.attestation.policy.claims import MANDATORY, proves_host
from fastness.attestation.policy.query import Decision
from fastness.attestation.policy.resource_policy import Access, ResourcePolicies, Unassessed
from fastness.attestation.verdict.conclude import EXCEEDED
from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.trusted_execution.subject import GRANTING, Basis, Grant, ProvenCaller, Subject, is_endorsed
from fastness.kube.admission import Denied
from fastness.protocol.enrolment import TPM
from fastness.protocol.kbs_path import (
    STATUS,
    ResourcePath,
    covers,
    disk_of,
    is_pin_key,
    is_pool_config,
    is_pool_trust,
)
from fastness.release.ear import phase_in

# Words of ours in a name space that guests share with Trustee's `default`: nobody's binding may begin with one of them.
_RESERVED: Final = ("machine", "pool", "tenant")


class Remedy(Enum):
    """What may help a caller who was denied."""

    NOTHING = "nothing"
    TIME = "time"
    PROOF = "proof"


@dataclass(frozen=True, slots=True)
class Denial:
    """Why there is no Grant. The code is stable, the reason may be told to the caller, the hint is for the operator."""

    code: str
    reason: str
    hint: str = ""
    remedy: Remedy = Remedy.NOTHING


@dataclass(frozen=True, slots=True)
class ClusterRules:
    """What the cluster demands of every grant; without arguments, what a real cluster demands that enforces."""

    simulated: bool = False
    enforcing: bool = True
    first_use: bool = False
    # Whether the broker hands out copies of configurations, and may ask for them therefore.
    copies: bool = False
    # The pools that the cluster names with their models, and whether all others attest.
    pools: Mapping[str, TrustModel] = field(default_factory=dict)
    attests: bool = True
    # The names under which stubs are served without a ticket, and the pools of each.
    stubs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # The pools whose roots the Clevis pin opens.
    clevis: frozenset[str] = frozenset()

    def is_attested(self, pool: str) -> bool:
        """Whether machines of a pool get nothing without a proof."""
        default = TrustModel.CONFIDENTIAL_CLUSTER if self.attests else TrustModel.NONE
        return self.pools.get(pool, default) is TrustModel.CONFIDENTIAL_CLUSTER


def authorise(
    caller: ProvenCaller,
    path: ResourcePath,
    rules: ClusterRules,
    policies: ResourcePolicies | None,
    bindings: Iterable[Mapping[str, Any]] = (),
    *,
    revoked: bool,
    now: datetime,
    query: Mapping[str, str] | None = None,
    break_glass: bool = False,
) -> Decision[Grant | Denial]:
    """Leave for a caller to have a resource, or why not.

    `policies` is None at the config server: gate and broker, which alone speak with machines that attested, have asked them.
    `break_glass` says that an override of two approvers opens this door: the gate's, for a configuration, and no door to keys.
    """
    # Trust first: a machine that is no longer trusted hears that, and learns nothing of which paths there are.
    denial = _ended(caller.basis, revoked=revoked) or _basis_denial(caller, path, rules)
    denial = denial or _disk_denial(path, caller.subject, rules, phase_in(caller.claims))
    if denial is not None:
        return denial
    # The owner before any policy: a policy that allows everything must not open another machine's place (pitfall 4).
    denial = _path_denial(path, caller.subject, bindings)
    if denial is not None:
        return denial
    if caller.basis is Basis.VERDICT and policies is not None:
        # A machine that two approvers let in is affirmed by nobody, so the built-in policy refuses it. At a door where the
        # override counts that one is not asked; what a policy of a user refuses, or has not answered, counts at every door.
        access = yield from policies.allowing(path.segments, caller.claims, query or {}, built_in=not break_glass)
        denial = _policy_denial(access)
        if denial is not None:
            return denial
    denial = _proof_denial(caller, rules, now)
    if denial is not None:
        return denial
    # The only line that makes one: whoever looks for a way around this function looks for `GRANTING`.
    return Grant(_id(caller, str(path)), caller, str(path), GRANTING)


def _ended(basis: Basis, *, revoked: bool) -> Denial | None:
    if not revoked:
        return None
    who = "the machine of this node" if basis is Basis.NODE_CERTIFICATE else "this machine"
    return Denial("revoked", f"{who} is no longer trusted", "See its Machine, and the Distrusts of the cluster.")


def _basis_denial(caller: ProvenCaller, path: ResourcePath, rules: ClusterRules) -> Denial | None:
    """Why a basis opens no resource of this kind: without a verdict there are configurations, and nothing else."""
    basis = caller.basis
    # Anything else is somebody who may be honest and proved nothing: a ticket is text in user-data, a certificate says which node
    # and not what it runs.
    if basis is Basis.VERDICT:
        return None
    # A node that runs shows its certificate for whom it believes; a ticket is for machines that boot, and copies hold no trust:
    # they would outlive an authority that was taken out.
    if not is_pool_config(path) and not (is_pool_trust(path) and basis is Basis.NODE_CERTIFICATE):
        return Denial("attestation-required", "this is given to machines that attested", "Let the machine attest.")
    if basis is Basis.COPY and not rules.copies:
        # A broker that was taken over must not collect the configurations of all pools while it has no use for them.
        return Denial(
            "token-required", "copies are not how configurations are delivered: forward a token",
            "Set delivery.via to Broker and delivery.sync to what makes copies, if copies are meant.", Remedy.PROOF,
        )  # fmt: skip
    # Whatever a ticket is for, and whatever a node writes about itself, a pool that attests is opened by a proof alone.
    if basis is Basis.TICKET and rules.is_attested(path.type):
        return Denial("attestation-required", "machines of this pool come through the gate, attested")
    if basis is Basis.STUB and path.type not in rules.stubs.get(caller.subject.name, ()):
        return Denial("not-for-stubs", "nothing is served under this name for that pool", "See spec.join.legacyStubs.")
    if basis is Basis.NODE_CERTIFICATE and rules.is_attested(path.type):
        return Denial("attestation-required", "machines of this pool fetch from gate or broker, attested")
    return None


def _disk_denial(path: ResourcePath, subject: Subject, rules: ClusterRules, phase: str) -> Denial | None:
    """Why a session is not of the kind that a path is opened by: keys of disks in the initrd, everything else afterwards."""
    disk = disk_of(path)
    if is_pin_key(path) and not subject.is_unlock and subject.pool in rules.clevis:
        return _pin_denial(path, subject, phase)
    # Whatever its uid: root on a running machine has its ordinary session, and must not read the key of its own disk with it.
    if disk is not None and not subject.is_unlock:
        return Denial("unlock-required", "keys of disks are given to machines that boot, in their initrd alone")
    if disk is None and subject.is_unlock:
        return Denial("unlock-only", "an unlock session opens disks of its machine, and nothing else")
    if disk is not None and disk[0] != subject.machine:
        return Denial("other-machine", "this belongs to another machine")
    return None


def _pin_denial(path: ResourcePath, subject: Subject, phase: str) -> Denial | None:
    """Why an ordinary session does not open the root of a machine of a pool that uses the Clevis pin.

    The pin sends no member of ours, so nothing but the key that signed the quote says whose session it is.
    """
    if path.type not in (subject.id, subject.machine):
        return Denial("other-machine", "this belongs to another machine")
    # Without a TPM the identity is a key on a disk, and the pin has none to show.
    if subject.tee != TPM:
        return Denial("unlock-required", "the Clevis pin opens disks of machines with a TPM alone")
    # An image that measures no phases never shows this one, and its root gets the key again: that is what the pin gives less.
    if phase == Phase.SYSTEM:
        return Denial("initrd-left", "the machine has left its initrd: keys of disks are given before that alone")
    return None


def _path_denial(path: ResourcePath, subject: Subject, bindings: Iterable[Mapping[str, Any]]) -> Denial | None:
    """Why a path is not the subject's; `bindings` are ResourceBinding objects."""
    if disk_of(path) is not None:
        return None  # decided by whose disk it is; no binding opens it to anybody else
    if path.repository in _RESERVED:
        own = {"machine": subject.machine, "pool": subject.pool, "tenant": subject.tenant}[path.repository]
        # An empty name is nobody's: a machine without a tenant is not a member of the tenant "".
        if own and path.type == own:
            return None
        return Denial(f"other-{path.repository}", f"this belongs to another {path.repository}")
    if path == STATUS:
        return None
    bound = [binding for binding in bindings if _binds(binding, path, subject)]
    # Any of them, because each binding is somebody's whole wish; two that both bind are not meant to be added up.
    if any(_satisfied(binding, subject.tee) for binding in bound):
        return None
    if bound:
        reason = f"the resource asks for more than evidence of {subject.tee or 'no kind'}"
        return Denial("evidence-too-weak", reason, "See spec.requires of its ResourceBinding.")
    return Denial(
        "not-bound", "no ResourceBinding lets this machine read the resource", "Write a ResourceBinding if it shall."
    )


def _binds(binding: Mapping[str, Any], path: ResourcePath, subject: Subject) -> bool:
    spec = binding.get("spec") or {}
    subjects = spec.get("subjects") or {}
    named = (
        (subject.machine, subjects.get("machines")),
        (subject.pool, subjects.get("pools")),
        (subject.tenant, subjects.get("tenants")),
    )
    # Named by subject before the path is looked at: a binding with an empty list of subjects is for nobody, not for all.
    if not any(own and own in (listed or ()) for own, listed in named):
        return False
    return covers(str(spec.get("resource") or ""), path.segments)


def _satisfied(binding: Mapping[str, Any], tee: str) -> bool:
    """Whether a kind of evidence is what a binding requires; who proved nothing satisfies no demand."""
    requires = (binding.get("spec") or {}).get("requires") or {}
    accepted = requires.get("evidence")
    if accepted and tee not in accepted:
        return False
    # A bare TPM is evidence of a boot, and says nothing about who can read the memory.
    return not requires.get("tee") or (tee in MANDATORY and proves_host(tee))


def _policy_denial(access: Access) -> Denial | None:
    if isinstance(access, Denied):
        return Denial("policy-denied", "the policy for this resource does not allow it", access.message)
    if isinstance(access, Unassessed):
        return Denial(EXCEEDED, "a policy for this resource gave no answer in time", access.reason, Remedy.TIME)
    return None


def _proof_denial(caller: ProvenCaller, rules: ClusterRules, now: datetime) -> Denial | None:
    """Why what a caller proved does not count, or no longer, or not in this kind of cluster."""
    subject = caller.subject
    # After the policies, which may take seconds in another process: a proof that ended meanwhile must not open anything.
    if now >= caller.expires:
        reason = "the proof of this machine has expired: attest again"
        return Denial("verdict-expired", reason, "Let the machine attest again.", Remedy.PROOF)
    # Anybody can make a simulated TEE say anything: its keys are in the open.
    if subject.simulated and not rules.simulated:
        return Denial("simulated", "evidence of a simulated TEE counts only in a simulated cluster")
    if caller.basis is Basis.AUDIT and rules.enforcing:
        return Denial("audit-basis", "a grant of audit mode counts for nothing while the cluster enforces")
    if caller.basis is not Basis.VERDICT:
        return None
    if not caller.verdict:
        return Denial("no-verdict", "there is no verdict that this release could rest on")
    # A token outlives a change of the rules. A key that no longer counts as endorsed opens nothing from then on.
    if not is_endorsed(subject.tee, subject.endorsement):
        return Denial(
            "not-endorsed", "nothing shows that the key of this machine lives where it says: enrol again",
            "Enrol the machine again.",
        )  # fmt: skip
    if subject.first_use and not rules.first_use:
        return Denial(
            "first-use-not-allowed", "nobody vouches for the TPM of this machine, and trust on first use is off",
            "See spec.join.trustOnFirstUse of the ConfidentialCluster.",
        )  # fmt: skip
    return None


def _id(caller: ProvenCaller, resource: str) -> str:
    """The same release has the same id at every door, so a record shows repetitions as such.

    Releases without a verdict that are on the record at all are named there by what they rest on, and need none.
    """
    if caller.basis not in (Basis.VERDICT, Basis.AUDIT):
        return ""
    subject = caller.subject
    # Key, type and endorsement: a machine that was enrolled again is another subject (decision 22), and its releases are others.
    who = (subject.machine, subject.tee, subject.endorsement)
    key = (resource, who, caller.verdict, tuple(caller.recipient.items()), caller.expires)
    try:
        return _remembered(*key)
    except TypeError:  # A key may have members that cannot be remembered by, such as a list of operations.
        return _named(*key)


def _named(
    resource: str,
    who: tuple[str, str, str],
    verdict: str,
    recipient: tuple[tuple[str, Any], ...],
    expires: datetime,
) -> str:
    machine, tee, endorsement = who
    named = {
        "resource": resource, "machine": machine, "tee": tee, "endorsement": endorsement, "verdict": verdict,
        "recipient": dict(recipient), "expires": expires.isoformat(),
    }  # fmt: skip
    return f"grant-{sha256(json.canonical(named)).hex[:32]}"


_remembered: Final = lru_cache(maxsize=4096)(_named)
