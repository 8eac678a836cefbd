"""Judging an endorsement: does a maker of TPMs vouch for this TPM, and can its attestation key be believed.

A machine brings the certificate of its endorsement key and the public area of its attestation key. Both are only paper: the
maker's signature says that such a TPM exists, the attributes say what the TPM would enforce. That the attestation key lives
in that very TPM is proved afterwards, by a credential that only it can open (`fastness.crypto.silicon.credential`).

* The chain ends in a pinned root of a maker, or in one that the operator added; intermediates come from the machine or the store.
* The certificate must be one of an endorsement key, not of something else that the same maker signed.
* The attestation key must be restricted, sign only, and never have been outside of its TPM.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.attestation.evidence.checks import Findings
from fastness.crypto.errors import BadCertificate, BadKey, UntrustedCertificate
from fastness.crypto.silicon.chains import (
    Links,
    MissingIssuer,
    chain_to_pin,
    issuer_name,
    outside_validity,
    subject_name,
)
from fastness.crypto.silicon.credential import EndorsementKey
from fastness.crypto.silicon.ek_certificate import EkFacts, read_facts
from fastness.crypto.silicon.verify import AttestationKey
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.tpm.public import Attributes, TpmPublic

_TCG: Final = "TCG EK Credential Profile"
_LIBRARY: Final = "TPM 2.0 Library"
# Not ECDAA and the like: those sign for a group, and the thumbprint of one machine would say nothing.
_SIGNING: Final = frozenset({"RSASSA", "RSAPSS", "ECDSA"})
_HASHES: Final = frozenset({"sha256", "sha384", "sha512"})


@dataclass(frozen=True, slots=True)
class Endorsement:
    """A TPM that its maker vouches for, and the attestation key that claims to live in it."""

    certificate: Certificate
    key: EndorsementKey
    attestation_key: AttestationKey
    ak_name: bytes
    root: str
    manufacturer: str
    model: str
    version: str


def judge_endorsement(
    findings: Findings, certificates: Sequence[Certificate], ak: TpmPublic, roots: Collection[str], at: datetime
) -> Endorsement | None:
    """Judge an endorsement certificate (the first) with those that may lead to a root, and an attestation key.

    None when anything refuses; the findings say what.
    """
    before = len(findings.checks)
    attestation_key = _attestation_key(findings, ak)
    if not certificates:
        findings.skip(
            "endorsement-certificate",
            "endorsement-missing",
            "the TPM has no certificate",
            hint="Read it out of the TPM, or let the operator allow trust on first use.",
            proof=True,
        )
        return None
    # The first one and no other: a machine that sends several cannot have the key of one and the chain of another.
    facts, key = _certificate(findings, certificates[0])
    root = _chain(findings, certificates, roots, at)
    refused = any(check.refuses for check in findings.checks[before:])
    if refused or facts is None or key is None or attestation_key is None:
        return None
    return Endorsement(
        certificates[0], key, attestation_key, ak.name, root, facts.manufacturer, facts.model, facts.version
    )


def _attestation_key(findings: Findings, ak: TpmPublic) -> AttestationKey | None:
    problems = [f"not {name}" for name in ak.lacks]
    # `restricted` on a key that decrypts makes a storage key; what an attestation key promises is about signing alone.
    if ak.attributes & Attributes.DECRYPT:
        problems.append("decrypt")
    findings.expect(
        "attestation-key-attributes",
        not problems and ak.is_attestation_key,
        "attestation-key-attributes",
        seen=", ".join(problems) or "restricted, sign, fixedTPM, fixedParent, sensitiveDataOrigin",
        expected="restricted, sign, fixedTPM, fixedParent, sensitiveDataOrigin, not decrypt",
        source=_LIBRARY,
        hint="Such a key can sign what the TPM did not write, or be copied. Make an attestation key (tpm2_createak).",
        proof=True,
    )
    scheme, algorithm = ak.parameters.scheme, ak.parameters.hash
    findings.expect(
        "attestation-key-scheme",
        # Fixed in the key itself: with an open scheme whoever uses the TPM would choose SHA-1 for a quote.
        scheme in _SIGNING and algorithm is not None and algorithm.name in _HASHES,
        "attestation-key-scheme",
        seen=f"{scheme or 'none'} {algorithm.name if algorithm else ''}".strip(),
        expected="RSASSA, RSAPSS or ECDSA with SHA-256 or stronger",
        source=_LIBRARY,
        hint="Make the attestation key with SHA-256.",
        proof=True,
    )
    try:
        return AttestationKey(ak.spki)
    except BadKey as error:
        findings.fail("attestation-key", error.code, error.message, hint=error.hint, proof=True)
        return None


def _certificate(findings: Findings, certificate: Certificate) -> tuple[EkFacts | None, EndorsementKey | None]:
    try:
        facts, key = read_facts(certificate), EndorsementKey.of(certificate)
    except (BadCertificate, BadKey) as error:
        findings.fail("endorsement-certificate", error.code, error.message, hint=error.hint, proof=True)
        return None, None
    wrong = []
    # With an authority's key in the place of a TPM's, whoever has that authority could endorse itself.
    if facts.authority:
        wrong.append("it is an authority")
    if not facts.speaks_of_a_tpm:
        wrong.append("it was not issued for an endorsement key")
    # The key must be able to open a credential (keyEncipherment or keyAgreement); one that only signs is not where the maker's
    # promise lies.
    if not facts.unlocks:
        wrong.append("its key may not protect other keys")
    # RFC 5280 §4.2: a critical extension that is not understood must make the reader refuse the certificate.
    if facts.strange:
        wrong.append(f"it has critical extensions that are not understood: {', '.join(facts.strange)}")
    findings.expect(
        "endorsement-certificate",
        not wrong,
        "endorsement-purpose",
        seen="; ".join(wrong) or f"{key.kind} of {facts.manufacturer or 'an unnamed maker'} {facts.model}".rstrip(),
        expected="the certificate of an endorsement key",
        source=_TCG,
        hint="Send the certificate from the TPM's own memory (NV index 0x01c00002 or 0x01c0000a).",
        proof=True,
    )
    return facts, key


def _chain(findings: Findings, certificates: Sequence[Certificate], roots: Collection[str], at: datetime) -> str:
    try:
        # The machine may bring intermediates and nothing more: where the chain ends is decided by the pins.
        chain = chain_to_pin(certificates[0], certificates[1:], roots, Links.TPM)
    except MissingIssuer as error:
        findings.skip("endorsement-chain", error.code, error.message, hint=error.hint, proof=True)
        return ""
    except UntrustedCertificate as error:
        findings.fail("endorsement-chain", error.code, error.message, hint=error.hint, proof=True)
        return ""
    root = chain[-1]
    findings.expect(
        "endorsement-chain",
        True,
        "",
        seen=" ← ".join(issuer_name(entry) for entry in chain[:-1]) or subject_name(root),
        expected=f"{subject_name(root)} {root.fingerprint}",
        source="the pinned roots and extraRoots",
        proof=True,
    )
    wrong = outside_validity(chain, at)
    findings.expect(
        # Makers give decades, and a TPM cannot be given a new certificate: an end that has passed is for a person to decide
        # about.
        "endorsement-dates",
        not wrong,
        "certificate-dates",
        seen="; ".join(wrong) or f"until {min(entry.not_after for entry in chain):%Y-%m-%dT%H:%M:%SZ}",
        expected=f"valid at {at:%Y-%m-%dT%H:%M:%SZ}",
        source="the maker",
        hint="Check the clock; a TPM whose certificate has ended must be replaced or trusted by the operator.",
    )
    return root.fingerprint.hex
