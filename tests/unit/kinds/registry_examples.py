"""Examples of the kinds about registries, mirrors and signatures."""

from __future__ import annotations

import base64
from typing import Any

from fastness.kinds.kind import JsonObject

CONFIG = "config.openshift.io/v1"
KEY = base64.b64encode(b"-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n").decode()


def _object(api_version: str, kind: str, spec: JsonObject, **meta: Any) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "site", **meta}, "spec": spec}


SIGNED: JsonObject = {
    "scopes": ["quay.example.com/team", "*.example.org"],
    "policy": {
        "rootOfTrust": {"policyType": "PublicKey", "publicKey": {"keyData": KEY, "rekorKeyData": KEY}},
        "signedIdentity": {
            "matchPolicy": "RemapIdentity",
            "remapIdentity": {"prefix": "mirror.example.com/team", "signedPrefix": "quay.example.com/team"},
        },
    },
}
_MIRRORED = [
    {"source": "quay.example.com/team", "mirrors": ["mirror.example.com:5000/team"]},
    {"source": "*.example.org", "mirrors": ["mirror.example.com"], "mirrorSourcePolicy": "NeverContactSource"},
]
_SOURCES = {
    "insecureRegistries": ["mirror.example.com:5000"],
    "blockedRegistries": ["*.example.net"],
    "containerRuntimeSearchRegistries": ["quay.example.com"],
}

REGISTRIES: dict[str, JsonObject] = {
    "images.config.openshift.io": _object(
        CONFIG,
        "Image",
        {"additionalTrustedCA": {"name": "registry-cas"}, "registrySources": _SOURCES},
        name="cluster",
    ),
    "imagedigestmirrorsets.config.openshift.io": _object(
        CONFIG, "ImageDigestMirrorSet", {"imageDigestMirrors": _MIRRORED}
    ),
    "imagetagmirrorsets.config.openshift.io": _object(CONFIG, "ImageTagMirrorSet", {"imageTagMirrors": _MIRRORED}),
    "imagecontentsourcepolicies.operator.openshift.io": _object(
        "operator.openshift.io/v1alpha1",
        "ImageContentSourcePolicy",
        {"repositoryDigestMirrors": [{"source": "quay.example.com/team", "mirrors": ["mirror.example.com/team"]}]},
    ),
    "clusterimagepolicies.config.openshift.io": _object(CONFIG, "ClusterImagePolicy", SIGNED),
    "imagepolicies.config.openshift.io": _object(CONFIG, "ImagePolicy", SIGNED, namespace="default"),
}
