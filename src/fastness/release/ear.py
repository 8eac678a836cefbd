"""EAR tokens: what was proved about a machine, as claims (EAT Attestation Results, draft-ietf-rats-ear; EAT is RFC 9711).

    sub        thumbprint of the machine's identity key         cnf        the key of this boot, bound in the evidence
    eat_nonce  the challenge that was answered                   submods    cpu0: status, trust vector, policy, claims
    fastness   machine, name, pool, tenant, simulated, verdict, tee, endorsement, epoch, id, properties, reattest

The shape is the one that policies of Trustee read. Event logs and the list of checks stay out: they are long, and the evidence
and the Verdict are kept.
`proven_caller` reads the claims of a token that verified, so that every door decides on the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from fastness import __version__
from fastness.attestation.policy.claims import TrustVector, without_events
from fastness.crypto.errors import BadKey
from fastness.crypto.jwk import public_key
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import ProvenCaller, Subject, is_endorsed

PROFILE: Final = "tag:github.com,2024:confidential-containers/Trustee"
EVIDENCE: Final = "ear.veraison.annotated-evidence"
_LEFT_OUT: Final = ("appraisal", "runtime_data_claims")


@dataclass(frozen=True, slots=True)
class Proved:
    """What an appraisal found, as far as a token tells it."""

    subject: Subject
    verdict: str
    tee_pubkey: JsonObject
    nonce: str
    policy: str = ""
    vector: Mapping[str, int] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    reattest: int = 0


def ear_claims(
    proved: Proved, *, issuer: str, audiences: Sequence[str], jti: str, issued: datetime, expires: datetime
) -> JsonObject:
    """The claims of a token."""
    subject = proved.subject
    return {
        "eat_profile": PROFILE, "iss": issuer, "aud": list(audiences), "jti": jti, "sub": subject.thumbprint,
        "iat": int(issued.timestamp()), "nbf": int(issued.timestamp()), "exp": int(expires.timestamp()),
        "eat_nonce": proved.nonce,
        # The key that the evidence was bound to (RFC 7800): stolen, the token is of no use without it.
        "cnf": {"jwk": dict(proved.tee_pubkey), "jkt": public_key(proved.tee_pubkey).thumbprint},
        "ear.verifier-id": {"developer": "https://fastness.dev", "build": f"fastness {__version__}"},
        # The name that policies written for Trustee look under; another one would make every such policy refuse.
        "submods": {"cpu0": _submodule(proved)},
        "fastness": {
            "machine": subject.machine, "name": subject.name, "pool": subject.pool, "tenant": subject.tenant,
            "simulated": subject.simulated, "verdict": proved.verdict, "tee": subject.tee,
            "endorsement": subject.endorsement, "epoch": subject.epoch, "id": subject.id, "properties": dict(proved.properties),
            **({"reattest": proved.reattest} if proved.reattest else {}),
        },
    }  # fmt: skip


def _submodule(proved: Proved) -> JsonObject:
    vector = TrustVector.of(dict(proved.vector))
    runtime = {"nonce": proved.nonce, "tee-pubkey": dict(proved.tee_pubkey)}
    # The event log is what the sender says; what counts of it has become claims, after its registers were replayed (pitfall 18).
    claims = {name: value for name, value in without_events(proved.claims).items() if name not in _LEFT_OUT}
    return {
        "ear.status": str(vector.status),
        "ear.trustworthiness-vector": dict(vector.claims),
        "ear.appraisal-policy-id": proved.policy,
        EVIDENCE: {**claims, "runtime_data_claims": runtime},
    }


def subject_in(claims: Mapping[str, Any]) -> Subject | None:
    """The machine that claims of ours name; None when they do not have the shape that `ear_claims` gives them."""
    ours, thumbprint = claims.get("fastness"), claims.get("sub")
    if not isinstance(ours, dict) or not isinstance(thumbprint, str):
        return None
    names = [ours.get(name) for name in ("machine", "name", "pool", "tenant", "tee", "endorsement")]
    # A token of the release before has none, and opens no disk by it.
    names.append(ours.get("id", ""))
    simulated, epoch = ours.get("simulated"), ours.get("epoch", 0)
    # A claim of another type is no caller at all: `"false"` would count as simulated, and True as an epoch of one.
    if not all(isinstance(name, str) for name in names) or not isinstance(simulated, bool) or type(epoch) is not int:
        return None
    machine, name, pool, tenant, tee, endorsement, identity = map(str, names)
    # Ours and signed, but perhaps by a release that took less for an endorsement.
    if not is_endorsed(tee, endorsement):
        return None
    return Subject(machine, name, thumbprint, pool, tenant, simulated, epoch, tee, endorsement, identity)


def phase_in(claims: Mapping[str, Any]) -> str:
    """The boot phase that the evidence behind a token showed; empty where it showed none."""
    place: Any = claims
    for name in ("submods", "cpu0", EVIDENCE, "tpm", "phase"):
        place = place.get(name) if isinstance(place, Mapping) else None
    return place if isinstance(place, str) else ""


def proven_caller(claims: Mapping[str, Any]) -> ProvenCaller | None:
    """What claims of ours say about a caller; None when they do not have the shape that `ear_claims` gives them."""
    subject, confirmation = subject_in(claims), claims.get("cnf")
    if subject is None or not isinstance(confirmation, dict):
        return None
    verdict, recipient = claims["fastness"].get("verdict"), confirmation.get("jwk")
    times = [claims.get(name) for name in ("iat", "exp")]
    if not isinstance(verdict, str) or not isinstance(recipient, dict) or any(type(time) is not int for time in times):
        return None
    try:
        # Here and not when something is sealed: a key on no curve must end the request before a grant is on the record.
        public_key(recipient)
    except BadKey:
        return None
    issued, expires = (datetime.fromtimestamp(int(time or 0), UTC) for time in times)
    return ProvenCaller(subject, verdict, recipient, expires, issued=issued, claims=claims)
