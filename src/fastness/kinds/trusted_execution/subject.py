"""Who was proved, and what may therefore leave.

A Subject is (evidence type, key, endorsement): which kind of evidence the machine enrolled for, the key that is its identity, and
how it was shown that this key lives where it says. A ProvenCaller is a subject at a door, with what its right rests on. A Grant
is the only thing that opens a resource: it names the caller, the one resource, and when it ends.

    type       key            endorsement
    tpm        AK             ek-certificate: a maker vouches for the TPM, which opened a credential for this key
                              trust-on-first-use: the same without a maker, where the cluster allows that
    snp, tdx   guest key      evidence: enrolment proves nothing but the key; every attestation has to show it again

* AKs and guest keys are two namespaces. A guest key may be any software key, so one that is found as an AK would sign quotes of a
  TPM that does not exist. Whoever looks for a key says which kind of key, and compares the type and the endorsement again.
* A Grant cannot be made by hand or copied with other contents (`dataclasses.replace`): its constructor wants `GRANTING`, which
  `release.authorise` alone may import. A test reads the imports and the calls of the whole tree.
* A subject of an unlock session has `unlock:<uid>` in place of a thumbprint: it has the disk keys of that Machine, and nothing
  else (`is_unlock`).
* `basis` says what a caller's right rests on; machines of a pool that attests get something for a verdict alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from fastness.kinds.kind import JsonObject

UNLOCK: Final = "unlock:"


class KeyKind(StrEnum):
    """What a key is, and so the namespace that it is looked up and named in."""

    AK = "ak"
    GUEST = "guest-key"


class Endorsement(StrEnum):
    """How it was shown that a key lives where it says."""

    EK_CERTIFICATE = "ek-certificate"
    FIRST_USE = "trust-on-first-use"
    EVIDENCE = "evidence"


_ENDORSED: Final[Mapping[str, frozenset[str]]] = {
    "tpm": frozenset({Endorsement.EK_CERTIFICATE, Endorsement.FIRST_USE}),
    "snp": frozenset({Endorsement.EVIDENCE}),
    "tdx": frozenset({Endorsement.EVIDENCE}),
}


def key_kind(tee: str) -> KeyKind:
    """The kind of key that is the identity of machines with this evidence."""
    return KeyKind.AK if tee == "tpm" else KeyKind.GUEST


def is_endorsed(tee: str, endorsement: str) -> bool:
    """Whether a subject of this type can rest on this endorsement; never for a type or an endorsement that is unknown."""
    return endorsement in _ENDORSED.get(tee, ())


@dataclass(frozen=True, slots=True)
class Subject:
    """A machine that enrolled, by the key that is its identity; what was proved in an older epoch counts no more."""

    machine: str
    name: str
    thumbprint: str
    pool: str
    tenant: str = ""
    simulated: bool = False
    epoch: int = 0
    tee: str = ""
    endorsement: str = ""
    # `spec.id` of the Machine: the name of its disk key for the Clevis pin, which is told it before there is a Machine.
    id: str = ""

    @property
    def endorsed(self) -> tuple[str, str]:
        """Its evidence type and its endorsement."""
        return self.tee, self.endorsement

    @property
    def is_unlock(self) -> bool:
        """Whether this is a machine in its initrd, which has no identity yet and gets keys of its disks alone."""
        return self.thumbprint.startswith(UNLOCK)

    @property
    def first_use(self) -> bool:
        """Whether nobody vouched for the TPM of this machine."""
        return self.endorsement == Endorsement.FIRST_USE


class Basis(StrEnum):
    """What the right of a caller rests on."""

    VERDICT = "verdict"
    # A join ticket, at the gate of a cluster that only watches attestation.
    AUDIT = "audit"
    # A join ticket, for the first boot of a machine of a pool without attestation.
    TICKET = "ticket"
    # The name that a stub of an older installer asks for, where such stubs are switched on.
    STUB = "legacy-stub"
    # The certificate of a node that never attested, from the second day on.
    NODE_CERTIFICATE = "node-certificate"
    # The broker itself, which keeps copies of configurations and asks for leave again before a machine gets one.
    COPY = "broker-copy"


@dataclass(frozen=True, slots=True)
class ProvenCaller:
    """Somebody at a door who proved who it is, until `expires`.

    `recipient` is the key that answers are sealed to, `claims` are those of its token, and `credential` is what it showed: a door
    that asks another one in its name shows that.
    """

    subject: Subject
    verdict: str
    recipient: JsonObject
    expires: datetime
    basis: Basis = Basis.VERDICT
    issued: datetime | None = None
    claims: Mapping[str, Any] = field(default_factory=dict)
    credential: str = field(default="", repr=False)


GRANTING: Final = object()


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to hand one resource to one caller, until its proof ends. `id` names it in the record."""

    id: str
    caller: ProvenCaller
    resource: str
    authority: InitVar[object]

    def __post_init__(self, authority: object) -> None:
        if authority is not GRANTING:
            raise TypeError("a Grant is made by release.authorise alone")

    @property
    def subject(self) -> Subject:
        """Who may have the resource."""
        return self.caller.subject

    @property
    def recipient(self) -> JsonObject:
        """The key that the answer is sealed to."""
        return self.caller.recipient

    @property
    def verdict(self) -> str:
        """The verdict that it rests on; empty where it rests on something else."""
        return self.caller.verdict

    @property
    def basis(self) -> Basis:
        """What it rests on."""
        return self.caller.basis

    def described(self) -> dict[str, str]:
        """What the record tells beside the subject's key: what the release rests on."""
        facts = {"basis": str(self.basis), "tee": self.subject.tee, "endorsement": self.subject.endorsement}
        return {name: value for name, value in facts.items() if value}

    def live(self, now: datetime) -> bool:
        """Whether it still counts."""
        return now < self.caller.expires
