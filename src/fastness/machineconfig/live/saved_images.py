"""Images of registries, saved into one directory (OCI image layout), in an order that is kept.

    saved = SavedImages(directory)
    await saved.fetch(image, access, name="01")      every part compared with its digest; parts that are there already are kept
    saved.write_index()                              from now on other programs read it: skopeo, podman, bootc

Nothing of an image is run or unpacked. An image has bounds: how many layers, how many bytes.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from fastness.formats import json, oci
from fastness.formats.errors import FormatError
from fastness.machineconfig.live.registry_session import Refused, Session, opened, trust_in
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams.access import Place, RegistryAccess
from fastness.runtime.errors import FastnessError

MOST_LAYERS: Final = 500
MOST_BYTES: Final = 32 * 1024 * 1024 * 1024


class NotSaved(FastnessError):
    """An image cannot be fetched."""

    code = "image-not-saved"
    hint = "Give --authfile, --ca or --insecure-registry if the registry asks for it; an image that is gone cannot be fetched."


class SavedImages:
    """A directory with images."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._entries: list[dict[str, Any]] = []

    async def fetch(
        self, image: str, access: RegistryAccess, name: str, insecure: frozenset[str] = frozenset()
    ) -> None:
        """Save an image under a name of the index; raises NotSaved."""
        reasons = []
        try:
            trust, reference = trust_in(access.trust), oci.reference(image)
            if not reference.digest:
                raise NotSaved(f"{image} is no image by digest")
            for place in access.places(reference):
                try:
                    asked_plainly = place.reference.registry in insecure
                    async with opened(place._replace(insecure=place.insecure or asked_plainly), trust) as session:
                        await self._save(session, place, name)
                        return
                except (Refused, FormatError) as error:
                    reasons.append(f"{place.reference.registry}: {error}")
                except httpx.HTTPError as error:
                    reasons.append(f"{place.reference.registry} cannot be asked: {str(error) or type(error).__name__}")
        except (ssl.SSLError, BadStreams, FormatError) as error:
            reasons.append(str(error))
        raise NotSaved(f"{image} cannot be fetched: {'; '.join(reasons) or 'nobody may be asked'}")

    async def _save(self, session: Session, place: Place, name: str) -> None:
        body = await session.manifest_bytes()
        manifest = oci.manifest(body)
        if isinstance(manifest, oci.Index) or manifest.size > MOST_BYTES or len(manifest.layers) > MOST_LAYERS:
            raise Refused(f"the image is a list, or larger than {MOST_BYTES} bytes in {MOST_LAYERS} layers")
        for part in (manifest.config, *manifest.layers):
            path = self._blob(part.digest)
            if not path.exists():
                # Beside its place until it was compared: what broke off must not pass for the part the next time.
                await session.save(part, path.with_suffix(".part"))
                path.with_suffix(".part").rename(path)
        digest = place.reference.digest
        self._blob(digest).write_bytes(body)
        media_type = str(json.decode(body).get("mediaType") or "application/vnd.oci.image.manifest.v1+json")
        notes = {"org.opencontainers.image.ref.name": name}
        self._entries.append({"mediaType": media_type, "digest": digest, "size": len(body), "annotations": notes})

    def write_index(self, beside: Mapping[str, Any]) -> None:
        """Make the directory an image layout; `beside` is written to sequence.json. Raises OSError."""
        index = {"schemaVersion": 2, "manifests": self._entries}
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._directory / "oci-layout").write_bytes(json.encode({"imageLayoutVersion": "1.0.0"}))
        (self._directory / "index.json").write_bytes(json.encode(index))
        (self._directory / "sequence.json").write_bytes(json.encode(beside))

    def _blob(self, digest: str) -> Path:
        algorithm, _, hexadecimal = digest.partition(":")
        place = self._directory / "blobs" / algorithm
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place / hexadecimal
