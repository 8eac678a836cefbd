"""Small objects about registries."""

from __future__ import annotations

import base64
from typing import Any

from fastness.formats import toml
from fastness.machineconfig.render.registries.files import crio_files
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.registries.settings import RegistrySettings, registry_settings

JsonObject = dict[str, Any]
KEY = base64.b64encode(b"-----BEGIN PUBLIC KEY-----\nkey\n-----END PUBLIC KEY-----\n").decode()
OTHER_KEY = base64.b64encode(b"-----BEGIN PUBLIC KEY-----\nother\n-----END PUBLIC KEY-----\n").decode()
ACCEPT = {"type": "insecureAcceptAnything"}
REJECT = {"type": "reject"}
CONFIG = "config.openshift.io/v1"


def image(**lists: list[str]) -> JsonObject:
    """The Image `cluster`; `search` stands for containerRuntimeSearchRegistries, others for what they begin."""
    words = {"search": "containerRuntimeSearchRegistries"}
    sources = {words.get(name, f"{name}Registries"): value for name, value in lists.items()}
    meta = {"name": "cluster", "uid": "image-uid"}
    return {"apiVersion": CONFIG, "kind": "Image", "metadata": meta, "spec": {"registrySources": sources}}


def _mirror_set(kind: str, field: str, name: str, lists: dict[str, list[str]], policy: str) -> JsonObject:
    more = {"mirrorSourcePolicy": policy} if policy else {}
    entries = [{"source": source, "mirrors": mirrors, **more} for source, mirrors in lists.items()]
    return {"apiVersion": CONFIG, "kind": kind, "metadata": {"name": name}, "spec": {field: entries}}


def idms(name: str, lists: dict[str, list[str]], policy: str = "") -> JsonObject:
    """An ImageDigestMirrorSet with mirrors by source."""
    return _mirror_set("ImageDigestMirrorSet", "imageDigestMirrors", name, lists, policy)


def itms(name: str, lists: dict[str, list[str]], policy: str = "") -> JsonObject:
    """An ImageTagMirrorSet with mirrors by source."""
    return _mirror_set("ImageTagMirrorSet", "imageTagMirrors", name, lists, policy)


def icsp(name: str, lists: dict[str, list[str]]) -> JsonObject:
    """An ImageContentSourcePolicy with mirrors by source."""
    made = _mirror_set("ImageContentSourcePolicy", "repositoryDigestMirrors", name, lists, "")
    return {**made, "apiVersion": "operator.openshift.io/v1alpha1"}


def trusted(key: str = KEY) -> JsonObject:
    """A root of trust."""
    return {"policyType": "PublicKey", "publicKey": {"keyData": key}}


def signed(name: str, *scopes: str, namespace: str = "", root: JsonObject | None = None, **policy: Any) -> JsonObject:
    """A ClusterImagePolicy, or an ImagePolicy where a namespace is named."""
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    spec = {"scopes": list(scopes), "policy": {"rootOfTrust": trusted() if root is None else root, **policy}}
    kind = "ImagePolicy" if namespace else "ClusterImagePolicy"
    return {"apiVersion": CONFIG, "kind": kind, "metadata": meta, "spec": spec}


def release(reference: str) -> JsonObject:
    """The ClusterVersion of a release image."""
    meta = {"name": "version"}
    return {"kind": "ClusterVersion", "metadata": meta, "status": {"desired": {"image": reference}}}


def objects(of_image: JsonObject | None = None, *others: JsonObject, payload: str = "") -> RegistryObjects:
    """Objects by their kinds, with an Image that says nothing where none is given."""
    by_kind: dict[str, list[JsonObject]] = {}
    for other in others:
        by_kind.setdefault(other["kind"], []).append(other)
    return RegistryObjects(
        image=image() if of_image is None else of_image,
        cluster_version=release(payload) if payload else None,
        content_sources=by_kind.get("ImageContentSourcePolicy", ()),
        digest_mirrors=by_kind.get("ImageDigestMirrorSet", ()),
        tag_mirrors=by_kind.get("ImageTagMirrorSet", ()),
        cluster_policies=by_kind.get("ClusterImagePolicy", ()),
        policies=by_kind.get("ImagePolicy", ()),
    )


def settings(of_image: JsonObject | None = None, *others: JsonObject, payload: str = "") -> RegistrySettings:
    """What such objects come to; raises BadRegistries."""
    result = registry_settings(objects(of_image, *others, payload=payload))
    assert result is not None
    return result


def written(of_image: JsonObject | None = None, *others: JsonObject, payload: str = "") -> dict[str, str]:
    """The files for CRI-O, by path."""
    return dict(crio_files(settings(of_image, *others, payload=payload)))


def entries(of_image: JsonObject | None = None, *others: JsonObject, payload: str = "") -> dict[str, JsonObject]:
    """The entries of registries.conf as they read back from the file, by scope."""
    text = written(of_image, *others, payload=payload)["/etc/containers/registries.conf"]
    document = toml.parse(text)
    return {entry.get("prefix") or entry["location"]: entry for entry in document.get("registry") or ()}


def mirror(location: str, by: str = "digest-only", **more: Any) -> JsonObject:
    """A mirror as registries.conf has it."""
    return {"location": location, "pull-from-mirror": by, **more}
