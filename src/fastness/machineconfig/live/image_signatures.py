"""The signatures beside an image, where cosign puts them; who made them is asked elsewhere (`images/signatures.py`)."""

from __future__ import annotations

import httpx

from fastness.formats import cosign, oci
from fastness.machineconfig.live.registry_session import Refused, Session


async def read_signatures(session: Session) -> list[cosign.Signature]:
    """The signatures under the tag of a session; none where there is no such tag; raises FormatError, Refused, HTTPError."""
    try:
        manifest = await session.tagged()
    except Refused as refusal:
        if refusal.status == httpx.codes.NOT_FOUND:
            return []
        raise
    return [
        cosign.Signature(await session.blob(_small(part), cosign.MAX_DOCUMENT), signature)
        for part, signature in cosign.parts(manifest)
    ]


def _small(part: oci.Descriptor) -> oci.Descriptor:
    if part.size > cosign.MAX_DOCUMENT:
        raise cosign.SignatureError("signatures", f"a signed document has more than {cosign.MAX_DOCUMENT} bytes")
    return part
