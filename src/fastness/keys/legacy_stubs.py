"""Certificates under which the gate answers stubs of an older installer: one for each name, of that installer's own authority.

    Secret legacy-stubs-ca             imported by an administrator: tls.crt, tls.key of the installer's authority
    Secret gate-legacy-certificates    <server name>.crt, <server name>.key; issued by the controllers, read by the gate

Such a stub believes its installer's authority and nobody else. Its key stays with the controllers: a gate that was taken over has
certificates for these names, and can get no others.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import CryptoError
from fastness.crypto.imported_authority import ImportedAuthority
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import Certificate, Credential

IMPORTED: Final = "legacy-stubs-ca"
ISSUED: Final = "gate-legacy-certificates"
LIFETIME: Final = timedelta(days=30)


def imported_authority(secret: Mapping[str, Any] | None) -> ImportedAuthority | None:
    """The authority that was imported, None when none was; raises CryptoError."""
    data = (secret or {}).get("data") or {}
    if not data.get("tls.crt") or not data.get("tls.key"):
        return None
    return ImportedAuthority.load(_bytes(data, "tls.crt"), SecretBytes(_bytes(data, "tls.key")))


def credentials(secret: Mapping[str, Any] | None) -> dict[str, Credential]:
    """The certificates that were issued, by their names; what cannot be read is left out."""
    data = (secret or {}).get("data") or {}
    issued: dict[str, Credential] = {}
    for entry in data:
        if entry.endswith(".crt"):
            name = entry.removesuffix(".crt")
            try:
                key = PrivateKey.from_pem(SecretBytes(_bytes(data, f"{name}.key")))
                issued[name] = Credential(Certificate.from_pem(_bytes(data, entry)), key)
            except CryptoError:
                continue
    return issued


def due(
    names: Iterable[str],
    held: Mapping[str, Credential],
    authority: ImportedAuthority,
    now: datetime,
    entropy: RandomBytes,
) -> dict[str, Credential]:
    """The certificates that there should be: those that are good for a while yet, and new ones; raises CryptoError."""
    good = {
        name: credential
        for name, credential in held.items()
        if authority.issued(credential.certificate) and credential.certificate.not_after - now > LIFETIME / 3
    }
    return {name: good.get(name) or authority.issue_server(name, LIFETIME, now, entropy) for name in names}


def content(issued: Mapping[str, Credential]) -> dict[str, str]:
    """The data of the Secret that holds these certificates."""
    parts = {f"{name}.crt": credential.certificate.pem for name, credential in issued.items()}
    parts |= {f"{name}.key": credential.key_pem.reveal() for name, credential in issued.items()}
    return {name: base64.b64encode(part).decode() for name, part in parts.items()}


def _bytes(data: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(data.get(name) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""
