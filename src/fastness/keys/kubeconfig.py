"""The kubeconfig document: how kubectl finds the API and proves who it is.

Everything is inline (no paths), so that the file can be copied to another machine. It holds a private key or a token: whoever
writes it uses `keyfiles.write_private`.
"""

from __future__ import annotations

import base64

from fastness.crypto.secret import SecretText
from fastness.crypto.x509 import Credential
from fastness.kinds.kind import JsonObject


def kubeconfig(
    server: str, ca_pem: bytes, identity: Credential | SecretText, *, name: str = "fastness", namespace: str = ""
) -> JsonObject:
    """A kubeconfig with one cluster, one user and one context, all called `name`."""
    context: JsonObject = {"cluster": name, "user": name}
    if namespace:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(ca_pem)}}],
        "users": [{"name": name, "user": _user(identity)}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
        "preferences": {},
    }


def _user(identity: Credential | SecretText) -> JsonObject:
    if isinstance(identity, SecretText):
        return {"token": identity.reveal()}
    return {
        "client-certificate-data": _base64(identity.certificate.pem),
        "client-key-data": _base64(identity.key_pem.reveal()),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
