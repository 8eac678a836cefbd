"""The authority inside of a kubeconfig, and whether the kubelet must start anew for it.

A kubelet reads its kubeconfig when it starts. A new authority of the API server is put into the file, and the kubelet is stopped
before and started afterwards. Authorities that only the API server's own host, a recovery of it or its load balancer show are no
reason to restart every kubelet of a cluster at once: the file has them, and whoever fails for lack of them is started anew then.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

from fastness.crypto.errors import CryptoError
from fastness.formats.errors import YamlError
from fastness.formats.yaml import load_documents
from fastness.machineconfig.trust.bundles import blocks

# The signers of OpenShift's API server whose certificates a kubelet that speaks with the internal name never sees.
DEFERRED: Final = (
    "kube-apiserver-localhost-signer", "openshift-kube-apiserver-operator_localhost-recovery-serving-signer",
    "localhost-recovery-serving-signer", "kube-apiserver-lb-signer",
)  # fmt: skip
_MEMBER: Final = "certificate-authority-data"


def authority_in(text: str) -> str:
    """The certificates that a kubeconfig believes the API server by; empty where they are not inside of it, or it is none."""
    return "".join(_text(value) for value in dict.fromkeys(_authorities(text)))


def with_authority(text: str, bundle: str) -> str:
    """The kubeconfig with another authority inside, everything else as it stands; unchanged where none is inside."""
    coming = base64.b64encode(bundle.encode()).decode()
    changed = text
    for value in dict.fromkeys(_authorities(text)):
        changed = changed.replace(value, coming)
    return changed


def may_wait(before: str, after: str) -> bool:
    """Whether all that is new in an authority are signers for whom no kubelet has to start anew."""
    old = {_compact(block) for block in blocks(before)}
    coming = [block for block in blocks(after) if _compact(block) not in old]
    return bool(coming) and all(_signer(block).startswith(DEFERRED) for block in coming)


def _signer(block: str) -> str:
    from fastness.crypto.x509 import Certificate  # as in `bundles`

    try:
        return Certificate.from_pem(block.encode()).subject.common_name
    except (CryptoError, UnicodeEncodeError):
        return ""


def _compact(block: str) -> str:
    return "".join(block.split())


def _authorities(text: str) -> Iterator[str]:
    try:
        documents = load_documents(text.encode())
        clusters = documents[0].value.get("clusters") if documents else ()
        for entry in clusters or ():
            value = (entry.get("cluster") or {}).get(_MEMBER)
            if isinstance(value, str) and value:
                yield value
    except (YamlError, AttributeError, TypeError, UnicodeEncodeError):
        return


def _text(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
