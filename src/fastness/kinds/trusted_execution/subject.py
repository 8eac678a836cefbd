"""Who was proved, and what may therefore leave.

A Subject is (evidence type, key, endorsement): which kind of evidence the machine enrolled for, the key that is its identity, and
how it was shown that this key lives where it says. A Grant is the only thing that opens a door: it names the subject, what it may
have, the key that the answer is sealed to, the verdict it rests on, and when it ends.

    type       key            endorsement
    tpm        AK             ek-certificate: a maker vouches for the TPM, which opened a credential for this key
                              trust-on-first-use: the same without a maker, where the cluster allows that
    snp, tdx   guest key      evidence: enrolment proves nothing but the key; every attestation has to show it again

* AKs and guest keys are two namespaces. A guest key may be any software key, so one that is found as an AK would sign quotes of a
  TPM that does not exist. Whoever looks for a key says which kind of key, and compares the type and the endorsement again.
* A Grant cannot be made by hand: `grant.granted` holds the one call of the constructor, and refuses a verdict that is not good.
* `basis` says why it exists; an enforcing cluster accepts `verdict` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from fastness.kinds.kind import JsonObject


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

    @property
    def endorsed(self) -> tuple[str, str]:
        """Its evidence type and its endorsement."""
        return self.tee, self.endorsement

    @property
    def first_use(self) -> bool:
        """Whether nobody vouched for the TPM of this machine."""
        return self.endorsement == Endorsement.FIRST_USE


class Basis(StrEnum):
    """What a grant rests on."""

    VERDICT = "verdict"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to hand one resource to one machine, sealed to one key, until a time."""

    id: str
    subject: Subject
    resource: str
    recipient: JsonObject
    verdict: str
    basis: Basis
    expires: datetime

    def described(self) -> dict[str, str]:
        """What the record tells beside the subject's key: what the release rests on."""
        facts = {"basis": str(self.basis), "tee": self.subject.tee, "endorsement": self.subject.endorsement}
        return {name: value for name, value in facts.items() if value}

    def live(self, now: datetime) -> bool:
        """Whether it still counts."""
        return now < self.expires
