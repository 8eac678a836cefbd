"""What a machine believes before anybody told it anything: the file that its measured image carries.

    /usr/lib/fastness/trust.json
    {"ca": <PEM of the doors' authorities>, "configKeys": [<JWK, Ed25519>, …], "origin"?: "https://host:port"}

User-data says where the cluster is; it is written by whoever runs the hypervisor and is believed in nothing else. A server counts
when its certificate leads to `ca`, a configuration when one of `configKeys` signed it. `origin` ties an image to one address.

Strict: a member that is not in this table is an error, because whoever wrote it expected it to matter.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastness.agent.errors import AgentError
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.crypto.errors import BadKey
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.protocol.door import is_origin

PLACE: Final = Path("/usr/lib/fastness/trust.json")
MAX_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 16
_MEMBERS: Final = frozenset({"ca", "configKeys", "origin"})
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_BYTES, max_depth=4)


class BadTrust(AgentError):
    """The image does not say whom to believe."""

    code = "bad-image-trust"
    hint = "Build the image with a trust.json of this cluster: the doors' CA and the public config-signing keys."


@dataclass(frozen=True, slots=True)
class ImageTrust:
    """Whom the image believes: doors by their certificates, configurations by their signatures."""

    tls: ssl.SSLContext
    keys: Mapping[str, Ed25519Verifier]
    origin: str = ""

    @classmethod
    def load(cls, path: Path = PLACE) -> ImageTrust:
        """Read the file; raises BadTrust."""
        try:
            with path.open("rb") as file:
                return cls.parse(file.read(MAX_BYTES + 1))
        except OSError as error:
            raise BadTrust(f"{path} cannot be read: {error.strerror}") from error

    @classmethod
    def parse(cls, data: bytes) -> ImageTrust:
        """Read its bytes; raises BadTrust."""
        try:
            value, repeated = json.decode_reporting_duplicates(data, _LIMITS)
        except JsonError as error:
            raise BadTrust(f"the trust of the image is not JSON: {error.message}") from error
        # A repeated member is read by one parser as the first and by another as the last: nobody should have to know which.
        if not isinstance(value, dict) or repeated or not {"ca", "configKeys"} <= value.keys() <= _MEMBERS:
            raise BadTrust(f"the trust of the image is an object of {', '.join(sorted(_MEMBERS))}, each once")
        origin = value.get("origin", "")
        if origin != "" and not is_origin(origin):
            raise BadTrust("origin is an https URL without a path")
        return cls(_context(value["ca"]), _keys(value["configKeys"]), str(origin).rstrip("/"))

    def believes(self, server: str) -> bool:
        """Whether user-data may send a machine with this image to that server."""
        # Without an origin any server may be named, because TLS still asks it for a certificate under the image's own authority.
        return is_origin(server) and self.origin in ("", server.rstrip("/"))


def _context(pem: Any) -> ssl.SSLContext:
    """TLS that believes these authorities and no others."""
    # Not `create_default_context`: with the system's roots any public authority could vouch for a name that the host resolves.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # RFC 8996: TLS 1.0 and 1.1 must not be used.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=pem if isinstance(pem, str) and pem.isascii() else "")
    except (ssl.SSLError, ValueError) as error:
        raise BadTrust("ca holds no certificates in PEM") from error
    return context


def _keys(value: Any) -> dict[str, Ed25519Verifier]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_KEYS:
        raise BadTrust(f"configKeys is a list of 1 to {MAX_KEYS} keys")
    try:
        keys = [Ed25519Verifier.from_jwk(key if isinstance(key, dict) else {}) for key in value]
    except BadKey as error:
        raise BadTrust(f"configKeys: {error.message}") from error
    return {key.id: key for key in keys}
