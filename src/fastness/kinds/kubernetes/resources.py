"""Where native kinds are found that machines and clients name.

The same as `core.NODE.resource` and the like, spelled out: a machine asks for these few and carries no table of what a real API
server knows (`types.json`). A test compares them with the table.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import Resource

NODES: Final = Resource("", "v1", "nodes", "Node", False)
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap", True)
PODS: Final = Resource("", "v1", "pods", "Pod", True)
EVENTS: Final = Resource("", "v1", "events", "Event", True)
SIGNING_REQUESTS: Final = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False
)
