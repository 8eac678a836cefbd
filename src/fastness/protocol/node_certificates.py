"""What the certificates of a node are called, and for which hosts they may speak: agents ask for them, controllers decide."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER: Final = "kubernetes.io/kubelet-serving"
SIGNERS: Final = (CLIENT_SIGNER, SERVING_SIGNER)
NODE_USER: Final = "system:node:"
NODE_GROUP: Final = "system:nodes"
LONGEST: Final = timedelta(hours=1)
"""How long a certificate of a node lives at most, and so how long it outlives trust where no authorizer of ours is asked."""


def is_own_host(host: str, node: str) -> bool:
    """Whether a name is that of a node, or an address can be that of one machine in a network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == node or host.startswith(f"{node}.")
    # Every machine has these addresses: a serving certificate for one of them would speak for whoever is asked there.
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local)


def addresses_of(node: Mapping[str, Any]) -> frozenset[str]:
    """The names and addresses that a Node tells of itself."""
    entries: Sequence[Mapping[str, Any]] = (node.get("status") or {}).get("addresses") or ()
    return frozenset(str(entry.get("address")) for entry in entries if entry.get("address"))
