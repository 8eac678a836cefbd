"""What a node has beside its rendered config: whom it believes, and the credentials of the cluster's own registry.

    {"kubeletCA": …, "cloudCA": …, "apiServerCA": …, "registries": {"<host>[:<port>]": …}, "internalPullSecret": …,
     "imagePullSecret": …}

Certificates are renewed while machines run and pools are paused, so they are not part of a rendered config, whose every change is
a rollout. One document holds all of it. It says what something is, never where it goes: paths are the machine's own, and the only
text that becomes part of one, the host of a registry, has a grammar without slashes.

* Total and strict: a value or `NodeTrustError`; other members and repeated ones are refused, and every size has a bound.
* An empty text is a source that has nothing, or nothing any more.
* `imagePullSecret`, the credential for the pool's own images, is left out where there is none: agents that do not know the member
  read every document but those, and refuse those aloud.
* The name follows from the content, so that equal documents are one, whoever made them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.formats.errors import FormatError, JsonError

PREFIX: Final = "trust-"
MAX_REGISTRIES: Final = 256
MAX_BUNDLE: Final = 512 * 1024
MAX_TRUST: Final = 4 * 1024 * 1024
MAX_HOST: Final = 253
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?\Z", re.ASCII)
_LIMITS: Final = json.JsonLimits(max_bytes=MAX_TRUST, max_depth=3)
_TEXTS: Final = {
    "kubeletCA": "kubelet_ca", "cloudCA": "cloud_ca", "apiServerCA": "api_ca", "internalPullSecret": "pull_secret",
}  # fmt: skip


IMAGE_PULL: Final = "imagePullSecret"


class NodeTrustError(FormatError):
    """A document that says something else than whom a node believes."""

    def __init__(self, code: str, message: str, path: str = "", hint: str = "") -> None:
        super().__init__(code, message, path, hint or "Use an agent and a config server of the same release.")


@dataclass(frozen=True)
class NodeTrust:
    """Whom a node believes: certificates as PEM, those of registries by host; and the pull secret of the cluster's registry."""

    kubelet_ca: str = ""
    cloud_ca: str = ""
    api_ca: str = ""
    registries: Mapping[str, str] = field(default_factory=dict)
    pull_secret: str = field(default="", repr=False)
    image_pull_secret: str = field(default="", repr=False)

    @cached_property
    def body(self) -> bytes:
        """The document; equal ones have equal bytes."""
        texts = {member: getattr(self, attribute) for member, attribute in _TEXTS.items()}
        own = {IMAGE_PULL: self.image_pull_secret} if self.image_pull_secret else {}
        return json.canonical({**texts, **own, "registries": dict(self.registries)})

    @cached_property
    def name(self) -> str:
        """The name of exactly this document."""
        return f"{PREFIX}{sha256(self.body).hex[:32]}"


def parse_node_trust(data: bytes) -> NodeTrust:
    """Read a document; raises NodeTrustError."""
    try:
        value, repeated = json.decode_reporting_duplicates(data, _LIMITS)
    except JsonError as error:
        raise NodeTrustError(error.code, f"the document is not JSON: {error.message}") from error
    if not isinstance(value, dict) or value.keys() - {IMAGE_PULL} != {*_TEXTS, "registries"} or repeated:
        members = ", ".join((*_TEXTS, "registries"))
        raise NodeTrustError("bad-node-trust", f"the document is an object of {members}, each once, and {IMAGE_PULL}")
    texts = {attribute: _text(member, value[member]) for member, attribute in _TEXTS.items()}
    own = _text(IMAGE_PULL, value.get(IMAGE_PULL, ""))
    return NodeTrust(**texts, registries=_registries(value["registries"]), image_pull_secret=own)


def _registries(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or len(value) > MAX_REGISTRIES:
        raise NodeTrustError(
            "bad-registries", f"registries is an object of at most {MAX_REGISTRIES} hosts", "registries"
        )
    for host in value:
        if not is_registry_host(host):
            raise NodeTrustError("bad-registry-host", f"{host[:80]!r} is no host of a registry", "registries")
    return {host: _text(f"registries.{host}", text) for host, text in value.items()}


def _text(path: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_BUNDLE or "\0" in value:
        raise NodeTrustError("bad-bundle", f"it is text of at most {MAX_BUNDLE} characters", path)
    return value


def is_registry_host(text: str) -> bool:
    """Whether a text is `host` or `host:port`: the name of a directory, so nothing in it may climb or descend."""
    return len(text) <= MAX_HOST and _HOST.match(text) is not None


def terminated(text: str) -> str:
    """A text that ends in a newline: some readers of certificates drop a last line without one."""
    return text if text.endswith("\n") else f"{text}\n"
