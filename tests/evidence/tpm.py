"""Quotes and event logs that are wrong on purpose: any key, scheme, hash, selection and digest, put together and signed."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from functools import cache

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from fastness.sim.tee.writers.eventlog import NUMBERS, SIZES, Measured, write_log
from fastness.sim.tee.writers.tpm2 import attest, selection, sized

__all__ = ["SIZES", "selection", "sized"]
_HASHES = {"sha1": hashes.SHA1(), "sha256": hashes.SHA256(), "sha384": hashes.SHA384()}
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(size: int = 2048, number: int = 0) -> rsa.RSAPrivateKey:
    """An RSA key, the same for each number."""
    return rsa.generate_private_key(65537, size)


@cache
def ec_key(number: int = 0) -> ec.EllipticCurvePrivateKey:
    """A P-256 key, the same for each number."""
    return ec.generate_private_key(ec.SECP256R1())


def public(key: Key) -> bytes:
    """SubjectPublicKeyInfo."""
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def message(
    digest: bytes,
    selections: Sequence[bytes],
    nonce: bytes = b"",
    *,
    magic: int = 0xFF544347,
    kind: int = 0x8018,
    safe: int = 1,
) -> bytes:
    """TPMS_ATTEST."""
    clock = struct.pack(">QIIB", 1000, 2, 3, safe)
    return attest(
        b"\x00\x0b" + bytes(32), nonce, clock, selections, digest, firmware=0x20260101, magic=magic, kind=kind
    )


def sign(key: Key, data: bytes, scheme: str = "RSASSA", bank: str = "sha256") -> bytes:
    """TPMT_SIGNATURE."""
    algorithm = _HASHES[bank]
    number = {"RSASSA": 0x0014, "RSAPSS": 0x0016, "ECDSA": 0x0018}[scheme]
    head = struct.pack(">HH", number, NUMBERS[bank])
    if isinstance(key, ec.EllipticCurvePrivateKey):
        r, s = decode_dss_signature(key.sign(data, ec.ECDSA(algorithm)))
        return head + sized(r.to_bytes(32, "big")) + sized(s.to_bytes(32, "big"))
    pad: padding.AsymmetricPadding = padding.PKCS1v15()
    if scheme == "RSAPSS":
        pad = padding.PSS(padding.MGF1(algorithm), padding.PSS.MAX_LENGTH)
    return head + sized(key.sign(data, pad, algorithm))


def values(*, bank: str = "sha256", registers: Sequence[int] = range(24)) -> dict[int, bytes]:
    """Distinct register values."""
    return {index: hashlib.new(bank, bytes([index])).digest() for index in registers}


def digest_of(pcrs: Mapping[int, bytes], bank: str = "sha256") -> bytes:
    """What a TPM signs about register values."""
    return hashlib.new(bank, b"".join(value for _, value in sorted(pcrs.items()))).digest()


def envelope(quote: bytes, signature: bytes, pcrs: Mapping[int, bytes], key: Key | None, bank: str = "sha256") -> bytes:
    """The JSON that agents send."""
    whole = bank == "sha256" and sorted(pcrs) == list(range(24))
    pcr_values: object = {"bank": bank, "values": {str(index): value.hex() for index, value in pcrs.items()}}
    if whole:
        pcr_values = [value.hex() for _, value in sorted(pcrs.items())]
    inner = {"message": _b64(quote), "signature": _b64(signature), "pcrs": pcr_values}
    return json.dumps({"tpm_quote": inner, **({"ak_public": _b64(public(key))} if key else {})}).encode()


def quoted(
    pcrs: Mapping[int, bytes],
    *,
    key: Key | None = None,
    scheme: str = "RSASSA",
    bank: str = "sha256",
    nonce: bytes = b"",
    selected: Sequence[int] | None = None,
    hash_name: str = "sha256",
) -> bytes:
    """A whole envelope: a quote over these values, signed."""
    signer = key or rsa_key()
    chosen = sorted(pcrs) if selected is None else selected
    data = message(digest_of(pcrs, hash_name), [selection(bank, chosen)], nonce)
    return envelope(data, sign(signer, data, scheme, hash_name), pcrs, signer, bank)


def event_log(
    events: Sequence[tuple[int, int, bytes]], banks: Sequence[str] = ("sha256",), filling: bytes = b""
) -> bytes:
    """A crypto-agile log whose digests cover the data: (register, type, data) each."""
    return write_log([Measured(register, kind, data, data) for register, kind, data in events], banks) + filling


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
