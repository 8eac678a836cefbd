"""What is in an image, as CycloneDX 1.6: every package of Debian and of Python with version, hash of its archive and licence.

The document follows from the image: two builds of one image have the same one, its serial number included.
"""

from __future__ import annotations

import platform
import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tools.release.layer import EPOCH, Component
from tools.release.layout import Built, encode

FORMAT: Final = "CycloneDX"
SPEC: Final = "1.6"
_SPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/")
_ID: Final = r"\(*[A-Za-z0-9.+-]+\)*"
_EXPRESSION: Final = re.compile(rf"{_ID}( (AND|OR|WITH) {_ID})*")


def bill(image: Built) -> bytes:
    """The document of an image."""
    components = sorted(
        (component for layer in image.layers for component in layer.components),
        key=lambda each: (each.source, each.name),
    )
    subject = {
        "type": "container", "name": image.name, "version": image.tag, "bom-ref": image.digest,
        "purl": f"pkg:oci/{image.name}@{image.digest.replace(':', '%3A')}?tag={image.tag}",
        "hashes": [{"alg": "SHA-256", "content": image.digest.removeprefix("sha256:")}],
    }  # fmt: skip
    document = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC}.schema.json",
        "bomFormat": FORMAT, "specVersion": SPEC, "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, image.digest)}",
        "metadata": {
            "timestamp": datetime.fromtimestamp(EPOCH, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "component": subject,
        },
        "components": [described(component) for component in components],
        "dependencies": [{"ref": image.digest, "dependsOn": [reference(component) for component in components]}],
    }  # fmt: skip
    return encode(document) + b"\n"


def described(component: Component) -> dict[str, Any]:
    """One package, as the format has it."""
    text: dict[str, Any] = {
        "type": "library", "bom-ref": reference(component), "name": component.name, "version": component.version,
        "purl": reference(component), "hashes": [{"alg": "SHA-256", "content": component.sha256}],
    }  # fmt: skip
    named = _licences(component.source, component.licences)
    return {**text, **({"licenses": named} if named else {})}


def reference(component: Component) -> str:
    """The package URL of a package; of Debian's with the architecture of the image."""
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    return f"{component.purl}&arch={architecture}" if component.source == "deb" else component.purl


def _licences(source: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Of Python an expression of SPDX where the wheel states one; else by name, for Debian's names are its own."""
    if source == "pypi" and len(names) == 1 and _EXPRESSION.fullmatch(names[0]):
        return [{"expression": names[0]}]
    return [{"license": {"name": name}} for name in names]
