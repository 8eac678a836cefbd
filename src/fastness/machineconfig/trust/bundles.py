"""Bundles of certificates: read one by one, so that a bad one is told by its place.

A bundle is what people paste together, and one damaged certificate in it makes programs on a machine believe nobody, or
somebody else. So each is read here, before the bundle goes anywhere. A value of a ConfigMap may be base64 of the text.

What reads certificates is imported where one is read: it takes 11 MiB, and an agent reads none that the controllers have read.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.protocol.node_trust import MAX_BUNDLE, terminated

BEGIN: Final = "-----BEGIN CERTIFICATE-----"
END: Final = "-----END CERTIFICATE-----"
_BLOCK: Final = re.compile(f"{BEGIN}.*?{END}", re.DOTALL)


class BadBundle(Exception):
    """What is wrong with a bundle, as the rest of a sentence about where it stands."""


def decoded(text: str) -> str:
    """The text of a value that may be base64 of it."""
    if BEGIN in text:
        return text
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, ValueError):
        return text


def blocks(text: str) -> list[str]:
    """The certificates of a bundle as they stand there, without what people write between them."""
    return _BLOCK.findall(text)


def whole(text: str) -> str:
    """A bundle of certificates that nobody has read, ending in a newline; raises BadBundle where one is not whole."""
    bundle = decoded(text)
    # Before anything is parsed: whoever may write a ConfigMap must not make the controllers read for minutes.
    if len(bundle) > MAX_BUNDLE:
        raise BadBundle(f"has {len(bundle)} characters; a bundle has at most {MAX_BUNDLE}")
    parts = blocks(bundle)
    if not parts:
        raise BadBundle("holds no certificate")
    if bundle.count(BEGIN) != len(parts) or bundle.count(END) != len(parts):
        raise BadBundle(f"has a certificate that is not whole, after {len(parts)} that are")
    return terminated(bundle)


def checked(text: str) -> str:
    """A bundle, ending in a newline; raises BadBundle with the place of the first certificate that cannot be read."""
    from fastness.crypto.x509 import Certificate

    bundle = whole(text)
    parts = blocks(bundle)
    for number, part in enumerate(parts, 1):
        try:
            Certificate.from_pem(part.encode())
        except (CryptoError, UnicodeEncodeError) as error:
            raise BadBundle(f"has a certificate that cannot be read: number {number} of {len(parts)}") from error
    return bundle


def merged(texts: Iterable[str]) -> str:
    """Several bundles as one, each certificate once and in the order in which it came."""
    unique = dict.fromkeys(part for text in texts for part in blocks(text))
    return "".join(f"{part}\n" for part in unique)
