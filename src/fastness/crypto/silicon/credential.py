"""TPM2_MakeCredential in software: a secret that only one TPM opens, and only for one of its keys.

    blob = make_credential(EndorsementKey.of(certificate), ak.name, secret, entropy)

The endorsement certificate says whose TPM it is, the attestation key says what it is called. Sealing a secret to both, and
getting it back, proves that they live in the same TPM (TPM 2.0 Library, part 1, "Credential Protection").

* The seed is wrapped for the endorsement key: RSA-OAEP with the label IDENTITY, or an ephemeral point and KDFe.
* Keys for encryption and integrity follow from the seed by KDFa; the name of the attestation key goes into both.
* Hash and cipher are those of the endorsement key's template, which follows from its type and size.
* `open_credential` is the TPM's half, for software TPMs; a real one never shows the key that it needs.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final, NamedTuple

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from fastness.crypto.digests import Digest, same, sha256
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey, BrokenSeal
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate

# Labels of the library end in a zero byte, which is hashed with them (TPM 2.0 Library, part 1, annex B.4).
_IDENTITY: Final = b"IDENTITY\0"
_DRAWS: Final = 128
_ZEROS: Final = bytes(16)
EndorsementPrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class _Template(NamedTuple):
    """Name algorithm and strength of the cipher of an endorsement key."""

    hash: str
    cipher_bits: int

    @property
    def algorithm(self) -> hashes.HashAlgorithm:
        return hashes.SHA256() if self.hash == "sha256" else hashes.SHA384()


# The default templates of the EK Credential Profile. A TPM makes the key anew from its template, so hash and cipher follow from
# the kind of the key and are never taken from what the machine sends.
_TEMPLATES: Final = {
    "RSA-2048": _Template("sha256", 128),
    "RSA-3072": _Template("sha384", 256),
    "EC secp256r1": _Template("sha256", 128),
    "EC secp384r1": _Template("sha384", 256),
}
_ORDERS: Final = {
    "secp256r1": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "secp384r1": 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
}


@dataclass(frozen=True, slots=True)
class CredentialBlob:
    """TPM2B_ID_OBJECT and TPM2B_ENCRYPTED_SECRET, as TPM2_ActivateCredential takes them."""

    credential: bytes
    secret: bytes


class EndorsementKey:
    """The public half of a TPM's endorsement key."""

    __slots__ = ("der", "handle", "kind")

    def __init__(self, spki: bytes) -> None:
        """Read SubjectPublicKeyInfo as DER or PEM; raises BadKey."""
        pem = spki.lstrip().startswith(b"-----BEGIN")
        try:
            key = (serialization.load_pem_public_key if pem else serialization.load_der_public_key)(spki)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadKey("the endorsement key cannot be read", "Read the certificate out of the TPM again.") from error
        if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
            raise BadKey("the endorsement key is neither RSA nor on a NIST curve")
        self.kind = _kind(key)
        if self.kind not in _TEMPLATES:
            raise BadKey(f"an endorsement key of the kind {self.kind} has no template", f"Use {', '.join(_TEMPLATES)}.")
        self.handle: rsa.RSAPublicKey | ec.EllipticCurvePublicKey = key
        self.der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)

    @classmethod
    def of(cls, certificate: Certificate) -> EndorsementKey:
        """The key that a certificate speaks for; raises BadKey."""
        try:
            key = certificate.handle.public_key()
        except (ValueError, UnsupportedAlgorithm) as error:
            raise BadKey("the key of the endorsement certificate cannot be read") from error
        return cls(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))

    @property
    def thumbprint(self) -> Digest:
        """SHA-256 of the key in its canonical form."""
        return sha256(self.der)


def make_credential(
    endorsement: EndorsementKey, ak_name: bytes, secret: SecretBytes, entropy: RandomBytes
) -> CredentialBlob:
    """Seal a secret for the TPM of an endorsement key and the key of that name; raises BadKey."""
    template, value = _TEMPLATES[endorsement.kind], secret.reveal()
    size = hashlib.new(template.hash).digest_size
    # As long as the hash of the key's name at most: TPM2_ActivateCredential has room for a digest and refuses more.
    if not 1 <= len(value) <= size:
        raise BadKey(f"a credential has 1 to {size} bytes", "Seal a key and send what it encrypts beside it.")
    if isinstance(endorsement.handle, rsa.RSAPublicKey):
        seed = entropy.token(size)
        wrapped = endorsement.handle.encrypt(seed, _oaep(template))
    else:
        seed, wrapped = _agree(endorsement.handle, template, entropy)
    body = _cipher(template, seed, ak_name).encryptor().update(_sized(value))
    return CredentialBlob(_sized(_sized(_seal(template, seed, body, ak_name)) + body), _sized(wrapped))


def open_credential(endorsement: EndorsementPrivateKey, ak_name: bytes, blob: CredentialBlob) -> SecretBytes:
    """What a TPM does with its endorsement key for the key of that name; raises BrokenSeal, BadKey."""
    kind = _kind(endorsement.public_key())
    if kind not in _TEMPLATES:
        raise BadKey(f"an endorsement key of the kind {kind} has no template")
    template = _TEMPLATES[kind]
    try:
        seed = _recover(endorsement, template, _whole(blob.secret))
    except ValueError as error:
        raise BrokenSeal("the credential was made for another TPM") from error
    seal, body = _piece(_whole(blob.credential))
    # Integrity before decryption, over the name of the key too: a credential that was made for another key opens nothing.
    if not same(seal, _seal(template, seed, body, ak_name)):
        raise BrokenSeal("the credential was made for another TPM or another key, or was changed")
    return SecretBytes(_whole(_cipher(template, seed, ak_name).decryptor().update(body)))


def kdfa(hash_name: str, key: bytes, label: bytes, context: bytes, bits: int) -> bytes:
    """Key derivation with HMAC in counter mode (TPM 2.0 Library, part 1, §11.4.10.2); the label without its zero."""
    out, counter = b"", 0
    while len(out) * 8 < bits:
        counter += 1
        data = counter.to_bytes(4, "big") + label + b"\0" + context + bits.to_bytes(4, "big")
        out += hmac.digest(key, data, hash_name)
    return out[: bits // 8]


def kdfe(hash_name: str, z: bytes, label: bytes, party_u: bytes, party_v: bytes, bits: int) -> bytes:
    """Key derivation from a shared point (part 1, §11.4.10.3); the label without its zero."""
    out, counter = b"", 0
    while len(out) * 8 < bits:
        counter += 1
        out += hashlib.new(hash_name, counter.to_bytes(4, "big") + z + label + b"\0" + party_u + party_v).digest()
    return out[: bits // 8]


def _kind(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> str:
    return f"RSA-{key.key_size}" if isinstance(key, rsa.RSAPublicKey) else f"EC {key.curve.name}"


def _oaep(template: _Template) -> padding.OAEP:
    return padding.OAEP(padding.MGF1(template.algorithm), template.algorithm, _IDENTITY)


def _agree(theirs: ec.EllipticCurvePublicKey, template: _Template, entropy: RandomBytes) -> tuple[bytes, bytes]:
    """A fresh point, and the seed that both sides can compute."""
    size = (theirs.key_size + 7) // 8
    for _ in range(_DRAWS):
        scalar = int.from_bytes(entropy.token(size), "big")
        # By rejection, as for our own keys: a reduced draw would be biased.
        if 0 < scalar < _ORDERS[theirs.curve.name]:
            break
    else:
        raise BadKey("the entropy source gives no usable key", "Check the random generator of this machine.")
    ours = ec.derive_private_key(scalar, theirs.curve)
    point = ours.public_key().public_numbers()
    x, y = point.x.to_bytes(size, "big"), point.y.to_bytes(size, "big")
    return _shared(ours, theirs, template, x, _x(theirs)), _sized(x) + _sized(y)


def _recover(endorsement: EndorsementPrivateKey, template: _Template, wrapped: bytes) -> bytes:
    if isinstance(endorsement, rsa.RSAPrivateKey):
        return endorsement.decrypt(wrapped, _oaep(template))
    x, rest = _piece(wrapped)
    y = _whole(rest)
    size = (endorsement.key_size + 7) // 8
    point = b"\x04" + x.rjust(size, b"\0") + y.rjust(size, b"\0")
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(endorsement.curve, point)
    return _shared(endorsement, theirs, template, _x(theirs), _x(endorsement.public_key()))


def _shared(
    ours: ec.EllipticCurvePrivateKey, theirs: ec.EllipticCurvePublicKey, template: _Template, u: bytes, v: bytes
) -> bytes:
    bits = hashlib.new(template.hash).digest_size * 8
    return kdfe(template.hash, ours.exchange(ec.ECDH(), theirs), b"IDENTITY", u, v, bits)


def _x(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_numbers().x.to_bytes((key.key_size + 7) // 8, "big")


def _cipher(template: _Template, seed: bytes, name: bytes) -> Cipher[CFB]:
    key = kdfa(template.hash, seed, b"STORAGE", name, template.cipher_bits)
    # The zero vector is the TPM's: each seed encrypts once.
    return Cipher(algorithms.AES(key), CFB(_ZEROS))


def _seal(template: _Template, seed: bytes, body: bytes, name: bytes) -> bytes:
    key = kdfa(template.hash, seed, b"INTEGRITY", b"", hashlib.new(template.hash).digest_size * 8)
    return hmac.digest(key, body + name, template.hash)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def _piece(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:2], "big")
    if len(data) < 2 + size or len(data) < 2:
        raise BrokenSeal("the credential is cut off")
    return data[2 : 2 + size], data[2 + size :]


def _whole(data: bytes) -> bytes:
    piece, rest = _piece(data)
    if rest:
        raise BrokenSeal("the credential has bytes that do not belong to it")
    return piece
