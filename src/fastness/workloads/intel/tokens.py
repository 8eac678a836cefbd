"""Tokens of the caching service (PCCS), and Intel's API key.

Whoever has the user token can ask for certificates of platforms; whoever has the admin token can replace them. The service itself
knows only their SHA-512. The samples that everybody copies are known to everybody, so they are refused, and so is whatever could
be guessed; without a token a random one is made.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from fastness.crypto.digests import Algorithm, digest
from fastness.crypto.secret import SecretText
from fastness.runtime.errors import FastnessError

LEAST: Final = 16
MOST: Final = 256
LEAST_DISTINCT: Final = 8
RANDOM_BYTES: Final = 32
SAMPLES: Final = frozenset(
    {"mytoken", "changeme", "password", "secret", "token", "admin", "user", "intel", "pccs", "test", "example"}
)
_PRINTABLE: Final = re.compile(r"[!-~]+\Z", re.ASCII)
_GAP: Final = re.compile(r"<[^>]*>")
_KEY: Final = re.compile(r"[0-9A-Za-z_-]{16,128}\Z", re.ASCII)


class WeakToken(FastnessError):
    """A token or key that must not be used; the message never holds it."""

    code = "weak-token"
    hint = "Leave it out: a random one is made. Or make one: openssl rand -base64 32"


def require_strong(token: SecretText, name: str, other: SecretText | None = None) -> None:
    """Refuse a token that could be guessed, or that is used twice; raises WeakToken."""
    text = token.reveal()
    if _GAP.search(text):
        raise WeakToken(f"the {name} token is the gap of a template")
    if not _PRINTABLE.match(text):
        raise WeakToken(
            f"the {name} token is empty, or has spaces or characters that do not survive an environment variable"
        )
    if text.lower().strip("0123456789!-_.") in SAMPLES:
        raise WeakToken(f"the {name} token is a sample that everybody knows")
    if not LEAST <= len(text) <= MOST:
        raise WeakToken(f"the {name} token has {len(text)} characters; it needs {LEAST} to {MOST}")
    if len(set(text)) < LEAST_DISTINCT:
        raise WeakToken(f"the {name} token has only {len(set(text))} different characters; it needs {LEAST_DISTINCT}")
    if other is not None and token == other:
        raise WeakToken("the user token and the admin token are the same: every host could replace certificates")


def require_key(key: SecretText) -> None:
    """Refuse what cannot be a key of Intel's service; raises WeakToken."""
    if not _KEY.match(key.reveal()):
        error = WeakToken("the API key is not one of Intel's: it has letters and digits only, usually 32")
        error.hint = "Subscribe to the Provisioning Certification Service at Intel's portal, and copy the key."
        raise error


def random_token(random: bytes) -> SecretText:
    """A token out of random bytes."""
    return SecretText(base64.urlsafe_b64encode(random).decode().rstrip("="))


def token_hash(token: SecretText) -> str:
    """What the service keeps of a token: SHA-512 in lower-case hex, without a newline."""
    return digest(token.reveal().encode(), Algorithm.SHA512).value.hex()
