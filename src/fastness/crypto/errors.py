"""What can be wrong with keys, certificates, envelopes and tokens.

    CryptoError                     code, hint
    ├── BadKey                      a key cannot be read, or is of another kind
    ├── BadCertificate              a certificate cannot be read
    ├── BadSigningRequest           a request for a certificate cannot be read, or asks for what nobody gives
    ├── UntrustedCertificate        it reads, and does not verify
    │   ├── CertificateExpired
    │   ├── CertificateNotYetValid
    │   └── WrongPurpose            verified, but not for this use
    ├── BrokenSeal                  an envelope was changed, cut, or belongs to another context
    ├── UnknownSealKey              an envelope names a key that is not in the ring
    ├── SealKeyExhausted            a key has sealed as much as it may
    ├── BadDigest                   not `algorithm:hex`, or of the wrong length
    └── BadSignature                a token is malformed, forged, or signed with another algorithm

Messages never quote key material or token text.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class CryptoError(FastnessError):
    """Base of the package: a stable `code` and a `hint` for the operator."""

    code = "crypto"
    hint = "See the message."


class BadKey(CryptoError):
    """A key cannot be read, or is of another kind than this use needs."""

    code = "bad-key"
    hint = "Restore the key from a backup, or let it be created anew."


class BadCertificate(CryptoError):
    """A certificate cannot be read."""

    code = "bad-certificate"
    hint = "Check that the file holds one PEM certificate and is not cut off."


class BadSigningRequest(CryptoError):
    """A request for a certificate cannot be read, or asks for more than it may."""

    code = "bad-signing-request"
    hint = "Make the request as a kubelet does: CN, O, and for serving subjectAltName."


class UntrustedCertificate(CryptoError):
    """No chain leads from the certificate to an authority that is trusted here."""

    code = "untrusted-certificate"
    hint = "Use a credential that this cluster issued; its authority may have been replaced since."


class CertificateExpired(UntrustedCertificate):
    """The certificate was valid once."""

    code = "certificate-expired"
    hint = "Renew the credential; check the clock if it was just issued."


class CertificateNotYetValid(UntrustedCertificate):
    """The certificate becomes valid later."""

    code = "certificate-not-yet-valid"
    hint = "Check the clocks of this server and of the issuer."


class WrongPurpose(UntrustedCertificate):
    """The certificate is genuine but was issued for another use."""

    code = "wrong-purpose"
    hint = "Use a client certificate (extended key usage clientAuth)."


class BrokenSeal(CryptoError, ValueError):
    """An envelope was changed, cut off, or opened in another context than it was sealed in."""

    code = "broken-seal"
    hint = "The stored data is damaged or was moved: restore it from a backup."


class UnknownSealKey(CryptoError, ValueError):
    """An envelope names a key that the ring does not hold."""

    code = "unknown-seal-key"
    hint = "Put the vault key that sealed this data back into the key file."


class SealKeyExhausted(CryptoError):
    """A key has sealed as many envelopes as random nonces allow."""

    code = "seal-key-exhausted"
    hint = "Begin a new vault key with `fastness vault rotate`; everything is sealed anew."


class BadDigest(CryptoError):
    """A text is not `algorithm:hex` of a known algorithm, or has the wrong length."""

    code = "bad-digest"
    hint = "Write a digest as sha256:<64 hex digits>."


class BadSignature(CryptoError):
    """A token is malformed, forged, or signed in a way that is not accepted."""

    code = "bad-signature"
    hint = "Ask for a new token."
