"""The credential with which proven nodes of a pool pull the image that was built for it.

    Secret that a MachineOSConfig names ─ narrowed(…) ─▶ one entry of the Secret NAME, by pool ─ credential_of(…) ─▶ NodeTrust

* An administrator's Secret may hold logins of many registries. What leaves it is the login of the one registry that the pool's
  images are in, under that name and no other.
* Only pools that enforce attestation have such a credential. In others a node shows a certificate that proves nothing about what
  it booted, and it pulls with the pull secret of the cluster, as every node does.
* All of them lie in one Secret at home, which the controllers fill and the config server reads: it never reads the namespace
  where credentials to push are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from fastness.formats import json, oci
from fastness.kinds.fastness_dev.trust_model import enforces
from fastness.protocol.node_trust import MAX_BUNDLE, NodeTrust

Object = Mapping[str, Any]
NAME: Final = "image-pull-credentials"
"""The Secret at home."""


def narrowed(content: bytes, target: oci.Reference) -> str:
    """The login of one registry out of a pull secret, as a pull secret; empty where it has none; raises OciError."""
    login = oci.credentials(content, target)
    if login is None:
        return ""
    auth = base64.b64encode(":".join(login).encode()).decode()
    return json.canonical({"auths": {target.registry: {"auth": auth}}}).decode()


def credential_of(secret: Object | None, cluster: Object | None, pool: str) -> str:
    """What the Secret at home has for a pool; empty for a pool that does not enforce attestation, whatever stands there."""
    if not enforces(cluster, pool):
        return ""
    try:
        text = base64.b64decode(str(((secret or {}).get("data") or {}).get(pool) or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return text if len(text) <= MAX_BUNDLE and "\0" not in text else ""


def with_credential(trust: NodeTrust, credential: str) -> NodeTrust:
    """What nodes of a pool get: what everybody gets, and the credential of the pool."""
    return replace(trust, image_pull_secret=credential) if credential else trust
