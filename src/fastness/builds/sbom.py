"""What is in an image, as a bill of materials that scanners read: CycloneDX 1.5, in JSON.

    document = bill_of_materials("registry.example/os/worker@sha256:…", [Component("bash", "5.2.15-2", "amd64", "deb")])

The same image and the same packages are the same bytes: nothing of it is a time or a random number. It lists what the database
of the image's package manager says; files that no package brought are in none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from fastness.formats import json

MEDIA_TYPE: Final = "application/vnd.cyclonedx+json"
DEB, RPM = "deb", "rpm"


class Component(NamedTuple):
    """One package; `kind` is that of its manager, `distribution` the ID of os-release, empty where nothing says it."""

    name: str
    version: str
    architecture: str = ""
    kind: str = DEB
    distribution: str = ""

    @property
    def purl(self) -> str:
        """Its package URL; an epoch of rpm is a qualifier there, one of dpkg a part of the version."""
        epoch, colon, rest = self.version.partition(":")
        version, epoch = (rest, epoch) if colon and self.kind == RPM else (self.version, "")
        words = [
            f"{key}={quote(value, safe='')}" for key, value in (("arch", self.architecture), ("epoch", epoch)) if value
        ]
        vendor = f"{quote(self.distribution.lower(), safe='')}/" if self.distribution else ""
        qualifiers = f"?{'&'.join(words)}" if words else ""
        return f"pkg:{self.kind}/{vendor}{quote(self.name, safe='')}@{quote(version, safe='~')}{qualifiers}"


def bill_of_materials(image: str, components: Iterable[Component]) -> bytes:
    """The document of an image by digest; a package that is listed twice is in it once."""
    repository, _, digest = image.partition("@")
    listed = sorted({each.purl: each for each in components}.items())
    return json.canonical({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, image)}",
        "metadata": {"component": {
            "type": "container", "bom-ref": image, "name": repository, "version": digest,
            "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
        }},
        "components": [
            {"type": "library", "bom-ref": purl, "name": each.name, "version": each.version, "purl": purl}
            for purl, each in listed
        ],
    })  # fmt: skip
