"""The signature over a configuration: one key, one kind, one end; every other header is refused."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.protocol.config_proof import BadConfigProof, Copied, Served, check, signed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Ed25519Signer(SecretBytes(bytes(32)))
KEYS = {KEY.verifier.id: KEY.verifier}
SERVED = Served(b"body", "worker", "uid", "n" * 24, key=f"sha256:{'a' * 64}")
PROOF = signed(SERVED, KEY, NOW + timedelta(minutes=5))


def refused(proof: str, served: Served | Copied = SERVED, now: datetime = NOW) -> str:
    with pytest.raises(BadConfigProof) as error:
        check(proof, served, KEYS, now)
    return error.value.code


def reheaded(header: Any) -> str:
    encoded = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    return f"{encoded}..{PROOF.rpartition('.')[2]}"


HEADER: dict[str, Any] = json.loads(base64.urlsafe_b64decode(PROOF.partition(".")[0] + "=="))


def test_a_configuration_counts_until_its_end_and_not_at_it() -> None:
    check(PROOF, SERVED, KEYS, NOW)
    check(PROOF, SERVED, KEYS, NOW + timedelta(minutes=5, seconds=-1))
    assert refused(PROOF, now=NOW + timedelta(minutes=5))


@pytest.mark.parametrize(
    "header",
    [
        [], "text", {}, {**HEADER, "crit": ["x"]}, {name: value for name, value in HEADER.items() if name != "exp"},
        {**HEADER, "alg": "none"}, {**HEADER, "typ": "other"}, {**HEADER, "exp": True}, {**HEADER, "exp": 1e12},
        {**HEADER, "exp": "9999999999"},
    ],
    ids=lambda header: str(header)[:60],
)  # fmt: skip
def test_a_header_of_another_shape_is_not_read_further(header: Any) -> None:
    assert refused(reheaded(header)) == "signature-unreadable"


def test_a_key_that_the_image_does_not_know_signs_nothing() -> None:
    stranger = Ed25519Signer(SecretBytes(b"\1" * 32))
    assert refused(signed(SERVED, stranger, NOW + timedelta(minutes=5))) == "signature-key"
    assert refused(reheaded({**HEADER, "kid": stranger.verifier.id})) == "signature-key"


def test_the_signature_of_a_copy_is_none_for_a_machine() -> None:
    copied = Copied(b"body", "worker", "rendered-worker-1")
    assert refused(signed(copied, KEY, NOW + timedelta(hours=1))) == "signature-unreadable"
    assert refused(PROOF, copied) == "signature-unreadable"
