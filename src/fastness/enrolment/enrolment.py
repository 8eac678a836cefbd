"""Enrolment without I/O: a machine asks with its key, proves that it holds it, and becomes a newcomer.

    begun = begin(request, invitation, terms, now, secret, entropy)     # what to seal, what to ask of the machine
    newcomer = prove(begun.enrolment, completion, terms, now)           # who it is, proved

The first message names a key and who vouches for it. The answer holds something that only that key, in that TPM, can give back;
what must be remembered until then travels with the machine, sealed by the door, so any replica can take the second message and
nothing is stored for strangers.

* A TPM gets a credential that is sealed to its endorsement key and to the name of its attestation key (TPM2_MakeCredential):
  opening it proves that both live in one TPM. The key must be restricted, made in that TPM and unable to leave it.
* A guest key signs a challenge. That proves the key and nothing about the machine: its evidence will have to.
* An endorsement key without a certificate counts only where trust on first use is switched on, and is marked for good.
* The state holds a digest of the secret, never the secret: the machine can read what it carries.
* Every refusal is an `EnrolmentRefused` with a stable code; the door gives codes their HTTP status.

`enrolment.live.enrolments` counts the ticket and writes the objects; `attestation.machine.machine` says how they look.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastness.attestation.evidence.checks import Check, Findings
from fastness.attestation.evidence.roots import DEFAULT_EVIDENCE, accepted_evidence
from fastness.attestation.machine.machine import Newcomer
from fastness.crypto.digests import same, sha256
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.silicon.credential import EndorsementKey, make_credential
from fastness.crypto.silicon.pins import TPM_ROOTS
from fastness.crypto.silicon.verify import AttestationKey, p256_raw
from fastness.crypto.x509 import Certificate
from fastness.enrolment.endorsement import judge_endorsement
from fastness.formats import json
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import JsonError
from fastness.formats.evidence.tpm.public import TpmPublic, parse_public
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.protocol.enrolment import Completion, GuestRequest, Request, TpmRequest, signed_message, text

# A TPM needs seconds to open a credential; the state travels with a stranger, so it does not count for long.
LIFETIME: Final = timedelta(minutes=2)
# Never longer than what a credential may hold: a TPM takes at most the digest of its endorsement key's name algorithm, SHA-256.
SECRET_BYTES: Final = 32
# SubjectPublicKeyInfo of a P-256 key up to the point itself.
_P256_PREFIX: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")


class EnrolmentRefused(Exception):
    """No. `code` is stable, `detail` may be told to the machine, `checks` say what was looked at.

    `ticket` is the name and uid of the JoinTicket that was shown; empty when none was good enough to have a name.
    """

    def __init__(self, code: str, detail: str, checks: Sequence[Check] = ()) -> None:
        super().__init__(detail)
        self.code, self.detail, self.checks = code, detail, tuple(checks)
        self.ticket = ("", "")


@dataclass(frozen=True, slots=True)
class Invitation:
    """The join ticket that was shown and found good."""

    ticket: str
    uid: str
    pool: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What the cluster asks of machines that join."""

    model: TrustModel
    evidence: tuple[str, ...] = DEFAULT_EVIDENCE
    first_use: bool = False
    manual: bool = False
    roots: frozenset[str] = frozenset()
    simulated_roots: frozenset[str] = frozenset()
    authorities: tuple[Certificate, ...] = ()

    @classmethod
    def of(
        cls,
        cluster: Mapping[str, Any] | None,
        pool: str,
        simulated_roots: Collection[str] = (),
        authorities: Iterable[Certificate] = (),
    ) -> Terms:
        """The terms of a pool; roots of simulated vendors count only in a simulated cluster.

        `authorities` are certificates that may stand in a chain beside those that the machine sends.
        """
        spec = view(cluster or {}, ConfidentialCluster).spec
        # A root that was added for processors vouches for no TPM.
        extra = [root.sha256 for root in spec.attestation.extra_roots if root.used_for == "tpm"]
        return cls(
            model=trust_model(cluster, pool),
            evidence=accepted_evidence(cluster, pool),
            first_use=spec.join.trust_on_first_use,
            manual=spec.join.approval == "Manual",
            roots=frozenset([*TPM_ROOTS.values(), *extra]),
            # The keys of simulated makers are in the open, so outside of a simulation anybody could endorse a TPM with them
            # (pitfall 27).
            simulated_roots=frozenset(simulated_roots if spec.simulated else ()),
            authorities=tuple(authorities),
        )


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What must be remembered between the two messages; readable by the machine, sealed by the door."""

    ticket: str
    ticket_uid: str
    pool: str
    tee: str
    thumbprint: str
    public: str
    expires: int
    proof: str
    endorsement: str = ""
    root: str = ""
    first_use: bool = False
    simulated: bool = False

    def encode(self) -> bytes:
        """The state as bytes."""
        return json.canonical(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Enrolment:
        """A state that `encode` made; raises EnrolmentRefused for one of another version."""
        try:
            value = json.decode(data)
        except JsonError as error:
            raise EnrolmentRefused("enrolment-invalid", "begin again") from error
        # Ours, and sealed; but perhaps of the release before: a member that is missing must not become its default.
        if not isinstance(value, dict) or value.keys() != {entry.name for entry in fields(cls)}:
            raise EnrolmentRefused("enrolment-invalid", "begin again")
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Begun:
    """The state to seal, what to answer beside it, and what was looked at."""

    enrolment: Enrolment
    question: JsonObject
    checks: tuple[Check, ...] = field(default=())


def thumbprint_of(request: Request) -> str:
    """Thumbprint of the key that asks; raises EnrolmentRefused."""
    return str(_identity(_public_area(request) if isinstance(request, TpmRequest) else request).thumbprint)


def begin(
    request: Request,
    invitation: Invitation,
    terms: Terms,
    now: datetime,
    secret: SecretBytes,
    entropy: RandomBytes,
) -> Begun:
    """Judge the first message and say what the machine must prove; raises EnrolmentRefused."""
    _welcome(request.tee, request.pool, invitation, terms)
    if isinstance(request, TpmRequest):
        return _begin_tpm(request, invitation, terms, now, secret, entropy)
    key = _identity(request)
    # In the clear, unlike a credential: a signature over it proves the key, and there is no hardware yet that could keep a
    # secret.
    challenge = secret.reveal()
    enrolment = _state(invitation, request.tee, key, now, proof=text(challenge))
    return Begun(enrolment, {"challenge": text(challenge)})


def prove(enrolment: Enrolment, completion: Completion, terms: Terms, now: datetime) -> Newcomer:
    """The machine that the second message proves; raises EnrolmentRefused."""
    # The time is inside of the seal: the machine carries the state, and cannot make it younger.
    if now.timestamp() >= enrolment.expires:
        raise EnrolmentRefused("enrolment-expired", "it took too long: begin again")
    _welcome(enrolment.tee, enrolment.pool, Invitation(enrolment.ticket, enrolment.ticket_uid, enrolment.pool), terms)
    # Terms are asked again: between the two messages an operator may have taken back what the first one rested on.
    if enrolment.first_use and not terms.first_use:
        raise EnrolmentRefused("first-use-not-allowed", "trust on first use was switched off")
    if enrolment.root and enrolment.root.removeprefix("sha256:") not in terms.roots | terms.simulated_roots:
        raise EnrolmentRefused("endorsement-refused", "the root of this TPM's maker is not trusted any more")
    public = base64.b64decode(enrolment.public)
    if enrolment.tee == "tpm":
        # Only the TPM that holds both keys could open the credential: this is what a key on its own word lacks (pitfall 6).
        # Keylime once let the step be passed by (CVE-2023-38201).
        if not same(str(sha256(completion.activated)), enrolment.proof):
            raise EnrolmentRefused("activation-failed", "the credential was not opened by this key's TPM")
    elif not p256_raw(public[-64:], completion.signature, signed_message(base64.b64decode(enrolment.proof))):
        raise EnrolmentRefused("signature-invalid", "the challenge was not signed by this key")
    return Newcomer(
        enrolment.thumbprint, public, enrolment.tee, enrolment.pool, enrolment.ticket, not terms.manual,
        enrolment.endorsement, enrolment.root, enrolment.first_use, enrolment.simulated, ticket_uid=enrolment.ticket_uid,
    )  # fmt: skip


def _welcome(tee: str, pool: str, invitation: Invitation, terms: Terms) -> None:
    # The ticket decides the pool. What the machine says is compared, so that a wrong image shows here and not later.
    if pool and pool != invitation.pool:
        raise EnrolmentRefused("wrong-pool", "this ticket is for another pool")
    if terms.model is TrustModel.NONE:
        raise EnrolmentRefused("pool-not-attested", "machines of this pool do not attest: ask the config server")
    # At enrolment already: a machine whose evidence will never count must not use up a ticket.
    if tee not in terms.evidence:
        raise EnrolmentRefused("evidence-not-accepted", f"this pool does not accept evidence of type {tee}")


def _begin_tpm(
    request: TpmRequest, invitation: Invitation, terms: Terms, now: datetime, secret: SecretBytes, entropy: RandomBytes
) -> Begun:
    area, findings = _public_area(request), Findings()
    key = _identity(area)
    endorsement, root = _endorsement(request, area, terms, now, findings)
    try:
        blob = make_credential(endorsement, area.name, secret, entropy)
    except CryptoError as error:
        raise EnrolmentRefused("endorsement-refused", str(error), findings.checks) from error
    enrolment = _state(
        invitation, request.tee, key, now, proof=str(sha256(secret.reveal())), endorsement=str(endorsement.thumbprint),
        root=f"sha256:{root}" if root else "", first_use=not root, simulated=root in terms.simulated_roots,
    )  # fmt: skip
    credential = {"credential": text(blob.credential), "secret": text(blob.secret)}
    return Begun(enrolment, {"credential": credential}, tuple(findings.checks))


def _endorsement(
    request: TpmRequest, area: TpmPublic, terms: Terms, now: datetime, findings: Findings
) -> tuple[EndorsementKey, str]:
    """The endorsement key and the root that vouches for it, empty on first use; raises EnrolmentRefused."""
    if not request.ek_certificates:
        return _first_use(request, area, terms, now, findings), ""
    try:
        sent = [entry for der in request.ek_certificates for entry in load_certificates(der)]
    except CryptoError as error:
        raise EnrolmentRefused("bad-certificate", "a certificate of ek_certificates cannot be read") from error
    roots = terms.roots | terms.simulated_roots
    endorsement = judge_endorsement(findings, [*sent, *terms.authorities], area, roots, now)
    if endorsement is None:
        raise EnrolmentRefused("endorsement-refused", _why(findings), findings.checks)
    return endorsement.key, endorsement.root


def _first_use(request: TpmRequest, area: TpmPublic, terms: Terms, now: datetime, findings: Findings) -> EndorsementKey:
    """The endorsement key of a TPM without a certificate, where the cluster takes those; raises EnrolmentRefused."""
    if not terms.first_use:
        raise EnrolmentRefused(
            "first-use-not-allowed", "this TPM has no endorsement certificate, and trust on first use is off"
        )
    if not request.ek_public:
        raise EnrolmentRefused(
            "endorsement-missing", "send ek_certificates, or ek_public of a TPM without a certificate"
        )
    # The attestation key is judged as strictly as ever: trust on first use is about who made the TPM, not about what its key may
    # do.
    judge_endorsement(findings, (), area, (), now)
    unfit = [check for check in findings.checks if check.refuses and check.code != "endorsement-missing"]
    if unfit:
        raise EnrolmentRefused("endorsement-refused", f"{unfit[0].code}: {unfit[0].hint}", findings.checks)
    try:
        return EndorsementKey(parse_public(request.ek_public).spki)
    except (EvidenceError, CryptoError) as error:
        raise EnrolmentRefused("bad-key", "ek_public is not an endorsement key") from error


def _public_area(request: TpmRequest) -> TpmPublic:
    try:
        return parse_public(request.ak_public)
    except EvidenceError as error:
        raise EnrolmentRefused("bad-key", f"ak_public cannot be read: {error}") from error


def _identity(source: TpmPublic | GuestRequest) -> AttestationKey:
    # Canonical bytes from either form: one key must have one thumbprint, or it would be two machines.
    spki = source.spki if isinstance(source, TpmPublic) else _P256_PREFIX + source.key
    try:
        return AttestationKey(spki)
    except CryptoError as error:
        raise EnrolmentRefused("bad-key", str(error)) from error


def _state(invitation: Invitation, tee: str, key: AttestationKey, now: datetime, **more: Any) -> Enrolment:
    expires = int((now.astimezone(UTC) + LIFETIME).timestamp())
    return Enrolment(
        invitation.ticket, invitation.uid, invitation.pool, tee, str(key.thumbprint), text(key.der), expires, **more
    )


def _why(findings: Findings) -> str:
    check = next((check for check in findings.checks if check.refuses), None)
    return f"{check.code}: {check.hint or check.seen}" if check else "the endorsement certificate was refused"
