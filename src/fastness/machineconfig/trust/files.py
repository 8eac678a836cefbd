"""From the document to files of a machine: paths, modes, and what is left of what was there before.

* A file whose source became empty stays, with nothing but a newline in it: programs that name it would not start without it. One
  that never was is not made.
* The directory of a registry that is spoken of no more goes, if it was made from such a document: what an administrator or an
  image put there is theirs.
* Everything that was written is remembered (`Memory`), in a file that comes with the first configuration, so that a machine
  knows from its first boot on which directories are whose, and after a power cut what it was about to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.machineconfiguration import names
from fastness.protocol.node_trust import (
    MAX_TRUST,
    NodeTrust,
    NodeTrustError,
    is_registry_host,
    parse_node_trust,
    terminated,
)

REGISTRIES: Final = "/etc/docker/certs.d"
CLOUD_CA: Final = "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"
INTERNAL_PULL_SECRET: Final = "/etc/mco/internal-registry-pull-secret.json"
IMAGE_PULL_SECRET: Final = "/etc/fastness/image-pull-secret.json"
KUBECONFIGS: Final = ("/etc/kubernetes/kubeconfig", "/var/lib/kubelet/kubeconfig")
PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644
_LIMITS: Final = json.JsonLimits(max_bytes=2 * MAX_TRUST, max_depth=4)


class TrustFile(NamedTuple):
    """A file of a machine; `mode` is for one that is not there yet."""

    content: bytes
    mode: int = _PUBLIC


@dataclass(frozen=True, slots=True)
class Memory:
    """What a machine wrote, or is about to write while `pending`; registries that it made directories for.

    `restart` says that the kubelet was stopped, or that it has to start anew: "", "due", or "deferred" until it fails.
    """

    trust: NodeTrust
    hosts: tuple[str, ...] = ()
    pending: bool = False
    restart: str = ""

    def encode(self) -> bytes:
        """As it lies on the disk."""
        value = {"hosts": list(self.hosts), "pending": self.pending, "restart": self.restart}
        return json.encode({"trust": json.decode(self.trust.body), **value})


def remembered(trust: NodeTrust) -> Memory:
    """What a machine remembers that has everything of a document."""
    return Memory(trust, tuple(trust.registries))


def parse_memory(data: bytes) -> Memory | None:
    """What lies on the disk; None for what nobody of us wrote, which counts as nothing remembered."""
    try:
        value: Any = json.decode(data, _LIMITS)
        hosts = tuple(host for host in value["hosts"] if isinstance(host, str) and is_registry_host(host))
        trust = parse_node_trust(json.encode(value["trust"]))
        return Memory(trust, hosts, value["pending"] is True, str(value["restart"]))
    except (JsonError, NodeTrustError, KeyError, TypeError):
        return None


def registry_file(host: str) -> str:
    """Where the runtime looks for the authority of a registry, at every pull."""
    return f"{REGISTRIES}/{host}/ca.crt"


def trust_files(trust: NodeTrust) -> dict[str, TrustFile]:
    """The files of a document, without kubeconfigs, which are changed and not written; empty ones stand for a lone newline."""
    files = {
        names.KUBELET_CA: TrustFile(_lines(trust.kubelet_ca)), CLOUD_CA: TrustFile(_lines(trust.cloud_ca)),
        INTERNAL_PULL_SECRET: TrustFile(_lines(trust.pull_secret), PRIVATE),
        IMAGE_PULL_SECRET: TrustFile(_lines(trust.image_pull_secret), PRIVATE),
    }  # fmt: skip
    return {**files, **{registry_file(host): TrustFile(_lines(text)) for host, text in trust.registries.items()}}


def first_files(trust: NodeTrust) -> Mapping[str, TrustFile]:
    """What a new machine gets with its first configuration: files that have something in them, and the memory of them."""
    files = {path: file for path, file in trust_files(trust).items() if file.content.strip()}
    return {**files, names.NODE_TRUST_FILE: TrustFile(remembered(trust).encode(), PRIVATE)}


def _lines(text: str) -> bytes:
    return terminated(text).encode()
