"""Where an image is asked for, and with which credentials: mirrors, registries without TLS, the pull secret.

The control plane asks registries as the nodes do: mirrors first, the source last and not at all where a mirror set says never,
without TLS only where the Image of the cluster calls a registry insecure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastness.formats import oci
from fastness.formats.errors import FormatError
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.render.registries.objects import PullBy
from fastness.machineconfig.render.registries.scopes import around, below, inside
from fastness.machineconfig.render.registries.settings import RegistrySettings

Object = Mapping[str, Any]


class Place(NamedTuple):
    """One registry that is asked for an image."""

    reference: oci.Reference
    insecure: bool
    login: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How registries are asked; without settings about registries, under their own names and with TLS.

    `credentials` is the content of a pull secret, `trust` are certificates beside those of the system, in PEM.
    """

    settings: RegistrySettings | None = None
    credentials: bytes = b""
    trust: str = ""

    def places(self, image: oci.Reference) -> Iterator[Place]:
        """Everybody who is asked for an image, in order; raises BadStreams for credentials that cannot be read."""
        scope = f"{image.registry}/{image.repository}"
        sets = self.settings.mirrored if self.settings is not None else ()
        # As nodes do: a mirror of digests is not asked what a tag means, since it may be behind and nothing would show it.
        by = PullBy.DIGEST if image.digest else PullBy.TAG
        mirrored = {each.source: each for each in sets if each.by is by}
        source = next((mirrored[outer] for outer in around(scope) if outer in mirrored), None)
        if source is not None:
            for mirror in source.mirrors:
                registry, _, path = f"{mirror}{below(scope, source.source)}".partition("/")
                yield self.place(oci.Reference(registry, path, image.tag, image.digest))
        if source is None or not source.never_contact_source:
            yield self.place(image)

    def place(self, image: oci.Reference) -> Place:
        """The registry that an image is named after, mirrors aside; raises BadStreams for credentials that cannot be read."""
        scope = f"{image.registry}/{image.repository}"
        insecure = self.settings is not None and inside(scope, self.settings.lists.insecure)
        try:
            login = oci.credentials(self.credentials, image) if self.credentials else None
        except FormatError as error:
            raise BadStreams(f"the pull secret cannot be read: {error}") from error
        return Place(image, insecure, login)


def pull_secret(secret: Object | None) -> bytes:
    """The credentials in a Secret; nothing where there is none."""
    try:
        return base64.b64decode(str(((secret or {}).get("data") or {}).get(".dockerconfigjson") or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""
