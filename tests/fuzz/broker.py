"""What strangers send to the key broker, as fuzz targets."""

from __future__ import annotations

import json
from typing import Final

from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.protocol import kbs
from fastness.protocol.kbs_path import parse_uri
from fastness.protocol.sealed import VaultSecret, parse_sealed
from fastness.workloads.sealed_secrets import envelope, seal
from tests.fuzz.driver import Target
from tests.virtual import SeededEntropy

_ENTROPY = SeededEntropy(3)
_KEY = PrivateKey.generate(_ENTROPY)
_JWK = public_jwk(_KEY)
_NONCE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
_ATTESTATIONS = (
    kbs.KbsAttestation(_NONCE, _JWK, {"quote": "AAAA", "cc_eventlog": "AAAA"}),
    kbs.KbsAttestation(_NONCE, _JWK, {"tpm_quote": {"message": "AA"}}, '{"nvidia": {}}', ("toml", 'version = "0.1.0"')),
)
_SEALED = (
    seal(VaultSecret("kbs", "kbs:///default/db/password"), "kbs:///default/sealing/pub", _KEY),
    seal(envelope(SecretBytes(b"data"), "kbs:///a/b/c", SecretBytes(b"w" * 32), _ENTROPY), "key.pub", _KEY),
)


TARGETS: Final = (
    Target(
        "kbs-request",
        kbs.parse_request,
        (
            kbs.request_message("tpm"),
            json.dumps({"version": "0.4.0", "tee": "snp", "extra-params": {"a": [1]}}).encode(),
        ),
        (b'"tee"', b'"version"', b'"extra-params"', b"0.4.0", b"{", b"}", b"null", b"[["),
    ),
    Target(
        "kbs-attestation",
        kbs.parse_attestation,
        tuple(map(kbs.attestation_message, _ATTESTATIONS)),
        (
            b'"nonce"',
            b'"tee-pubkey"',
            b'"init-data"',
            b'"kty"',
            b'"RSA"',
            b'"P-521"',
            b"null",
            b"{}",
            b"[]",
            b"\\u0000",
        ),
    ),
    Target(
        "sealed-secret",
        lambda data: parse_sealed(data.decode("latin-1")),
        tuple(text.encode() for text in _SEALED),
        (b".", b"sealed.", b"e30", b"fakejwsheader", b"fakesignature", b"_-", b"="),
    ),
    Target(
        "kbs-uri",
        lambda data: parse_uri(data.decode("latin-1")),
        (b"kbs:///default/db/password", b"kbs+pkcs11://broker:8080/a/b/c"),
        (b"/", b"..", b"kbs", b"+", b"://", b"%2e", b"[::1]"),
    ),
)
