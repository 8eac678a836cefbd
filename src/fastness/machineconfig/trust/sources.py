"""Where whom-to-believe comes from: ConfigMaps and Secrets, each with its field and what is wrong with it.

| ConfigMap, unless it says otherwise | field of the ControllerConfig |
| --- | --- |
| openshift-config-managed/kube-apiserver-client-ca, openshift-config/initial-kube-apiserver-server-ca before bootstrap | |
| completed, kube-system/extension-apiserver-authentication where there is neither | kubeAPIServerServingCAData |
| openshift-config/user-ca-bundle, then the one that the Proxy names | additionalTrustBundle |
| openshift-config-managed/image-registry-ca | imageRegistryBundleData |
| the one that Image `cluster` names as additionalTrustedCA | imageRegistryBundleUserData |
| openshift-config-managed/kube-cloud-config | cloudProviderConfig, cloudProviderCAData |
| ServiceAccount machine-os-puller: its pull secrets, with the global one | internalRegistryPullSecret |

A source that cannot be used leaves its field as it is: a typing error in a ConfigMap must not take from running nodes what they
believe. It is told by object, key and certificate; what a user CA of registries lacks is only a remark, as whoever named the
ConfigMap may be about to make it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.machineconfig.trust.bundles import BadBundle, checked, decoded
from fastness.protocol.node_trust import MAX_BUNDLE, MAX_REGISTRIES, is_registry_host

Object = Mapping[str, Any]
BUNDLE_KEY: Final = "ca-bundle.crt"
CONFIG, MANAGED = "openshift-config", "openshift-config-managed"
OPERATOR: Final = "openshift-machine-config-operator"
PULLER: Final = "machine-os-puller"
DOCKER_CONFIG: Final = "kubernetes.io/dockerconfigjson"
MAX_CLOUD: Final = 64 * 1024
_DOCKER_KEYS: Final = {DOCKER_CONFIG: ".dockerconfigjson", "kubernetes.io/dockercfg": ".dockercfg"}
_MEND: Final = "write PEM certificates there, as text or as base64 of it"


@dataclass(frozen=True, slots=True)
class TrustSources:
    """The objects, each None where there is none; of those that others name, under which name they were looked for."""

    client_ca: Object | None = None
    openshift_client_ca: Object | None = None
    initial_server_ca: Object | None = None
    bootstrap: Object | None = None
    user_ca: Object | None = None
    proxy_ca: Object | None = None
    proxy_ca_name: str = ""
    image_registry_ca: Object | None = None
    registry_user_ca: Object | None = None
    registry_user_ca_name: str = ""
    cloud_config: Object | None = None
    puller_secrets: tuple[Object, ...] = ()
    pull_secret: Object | None = None


_RENDERED: Final = frozenset(("additionalTrustBundle", "cloudProviderConfig"))


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """Why the source of a field cannot be used: where it stands, what is wrong, and what to do."""

    field: str
    place: str
    reason: str
    way_out: str

    @property
    def is_rendered(self) -> bool:
        """Whether configs of machines have the field in them; all others reach nodes beside their configs."""
        return self.field in _RENDERED

    def __str__(self) -> str:
        return f"{self.place} {self.reason}: {self.way_out}"


@dataclass(slots=True)
class SourcedTrust:
    """Fields with their values and where those were read; fields to be left as they are; what is wrong, and what is odd."""

    values: dict[str, tuple[Any, str]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    problems: list[SourceProblem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def put(self, name: str, value: Any, origin: str) -> None:
        """A field has a value."""
        self.values[name] = (value, origin)

    def refuse(self, name: str, place: str, reason: str, way_out: str = _MEND) -> None:
        """The source of a field cannot be used."""
        self.held.add(name)
        self.problems.append(SourceProblem(name, place, reason, way_out))


def sourced_trust(sources: TrustSources) -> SourcedTrust:
    """Everything that the objects say."""
    trust = SourcedTrust()
    for read in (_kubelet_ca, _user_bundle, _registry_bundles, _cloud, _internal_pull_secret):
        read(sources, trust)
    return trust


def _kubelet_ca(sources: TrustSources, trust: SourcedTrust) -> None:
    # Before that, the API server of the installer asks kubelets, with a certificate of another authority.
    source: Object | None
    if sources.initial_server_ca is not None and _data(sources.bootstrap).get("status") != "complete":
        source, key, place = sources.initial_server_ca, BUNDLE_KEY, f"{CONFIG}/initial-kube-apiserver-server-ca"
    elif sources.openshift_client_ca is not None:
        source, key, place = sources.openshift_client_ca, BUNDLE_KEY, f"{MANAGED}/kube-apiserver-client-ca"
    else:
        source, key, place = sources.client_ca, "client-ca-file", "kube-system/extension-apiserver-authentication"
    text = _data(source).get(key) or ""
    if text:
        _certificates("kubeAPIServerServingCAData", f"ConfigMap {place}", text, trust)


def _certificates(name: str, place: str, text: str, trust: SourcedTrust) -> None:
    try:
        trust.put(name, encoded(checked(text)), place)
    except BadBundle as error:
        trust.refuse(name, place, str(error))


def _user_bundle(sources: TrustSources, trust: SourcedTrust) -> None:
    name, bundles = "additionalTrustBundle", list[str]()
    texts = [(f"ConfigMap {CONFIG}/user-ca-bundle", _data(sources.user_ca).get(BUNDLE_KEY) or "")]
    if sources.proxy_ca_name:
        place = f"ConfigMap {CONFIG}/{sources.proxy_ca_name}"
        text = _data(sources.proxy_ca).get(BUNDLE_KEY) or ""
        if not text:
            lacks = "is not there" if sources.proxy_ca is None else f"has nothing in {BUNDLE_KEY}"
            way = "make it, or take spec.trustedCA out of the Proxy"
            trust.refuse(name, place, f"{lacks}, and the Proxy names it", way)
        texts.append((place, text))
    for place, text in texts:
        try:
            bundles += [checked(text)] if text else []
        except BadBundle as error:
            trust.refuse(name, place, str(error))
    if bundles and name not in trust.held:
        trust.put(name, encoded("".join(dict.fromkeys(bundles))), f"ConfigMaps in {CONFIG}")


def _registry_bundles(sources: TrustSources, trust: SourcedTrust) -> None:
    if sources.image_registry_ca is not None:
        place = f"ConfigMap {MANAGED}/image-registry-ca"
        _by_host("imageRegistryBundleData", place, sources.image_registry_ca, trust)
    if not sources.registry_user_ca_name:
        return
    name, place = "imageRegistryBundleUserData", f"ConfigMap {CONFIG}/{sources.registry_user_ca_name}"
    if sources.registry_user_ca is None:
        trust.held.add(name)
        trust.remarks.append(f"{place} is not there, and Image cluster names it: nodes keep what they have")
        return
    _by_host(name, place, sources.registry_user_ca, trust)


def _by_host(name: str, place: str, config_map: Object, trust: SourcedTrust) -> None:
    """Bundles by the host that they are for; one that is bad keeps the whole field as it is."""
    entries = _data(config_map)
    if len(entries) > MAX_REGISTRIES:
        trust.refuse(name, place, f"speaks of {len(entries)} registries; {MAX_REGISTRIES} is the most", "remove some")
        return
    bundles: list[dict[str, str]] = []
    for key, text in sorted(entries.items()):
        if reason := bad_host(key):
            trust.refuse(name, f"{place}, key {key[:80]!r}", reason, "name it host or host..port")
            continue
        try:
            bundles += [{"file": key, "data": encoded(checked(text))}] if text.strip() else []
        except BadBundle as error:
            trust.refuse(name, f"{place}, key {key!r}", str(error))
    # Bundles lie in one object with all else that is known of the cluster, which an API server limits as a whole.
    if sum(len(bundle["data"]) for bundle in bundles) > MAX_BUNDLE:
        trust.refuse(name, place, f"holds more than {MAX_BUNDLE} characters of certificates", "remove some")
    if name not in trust.held and bundles:
        trust.put(name, bundles, place)


def host_of(key: str) -> str:
    """The registry that a key of a ConfigMap means: keys cannot have a colon, so two dots stand for it."""
    return key.replace("..", ":")


def bad_host(key: str) -> str:
    """Why a key names no registry; empty when it does. It becomes a directory of every node."""
    host = host_of(key)
    if is_registry_host(host):
        return ""
    if "/" in host:
        return "has a slash, and would lead out of the directory of registries"
    return "is no host of a registry"


def _cloud(sources: TrustSources, trust: SourcedTrust) -> None:
    place, data = f"ConfigMap {MANAGED}/kube-cloud-config", _data(sources.cloud_config)
    if text := data.get("cloud.conf"):
        if len(text) > MAX_CLOUD or "\0" in text:
            why = f"has more than {MAX_CLOUD} characters, or some that are no text"
            trust.refuse("cloudProviderConfig", f"{place}, key 'cloud.conf'", why, "write less")
        else:
            trust.put("cloudProviderConfig", text, place)
    if text := data.get("ca-bundle.pem"):
        _certificates("cloudProviderCAData", f"{place}, key 'ca-bundle.pem'", text, trust)


def _internal_pull_secret(sources: TrustSources, trust: SourcedTrust) -> None:
    """Credentials for the registry in the cluster, with those for all others: tools read one file alone."""
    name, auths = "internalRegistryPullSecret", dict[str, Any]()
    if not sources.puller_secrets:
        return
    # The global one is told by itself where it is missing or bad, so here it only adds what it has.
    with_global = [*([sources.pull_secret] if sources.pull_secret is not None else []), *sources.puller_secrets]
    for secret in with_global:
        entries = credentials(secret)
        if entries is None and secret is not sources.pull_secret:
            meta = secret.get("metadata") or {}
            place = f"Secret {meta.get('namespace')}/{meta.get('name')}"
            trust.refuse(
                name, place, "holds no credentials for registries", f"look at ServiceAccount {OPERATOR}/{PULLER}"
            )
        auths |= entries or {}
    if name not in trust.held:
        text = json.canonical({"auths": auths}).decode()
        trust.put(name, encoded(text), f"ServiceAccount {OPERATOR}/{PULLER}")


def credentials(secret: Object) -> dict[str, Any] | None:
    """What a pull secret holds, by registry; None when it is none, or cannot be read."""
    key = _DOCKER_KEYS.get(str(secret.get("type")), "")
    try:
        content = base64.b64decode(_data(secret).get(key) or "", validate=True)
        value = json.decode(content) if len(content) <= MAX_BUNDLE else None
    except (binascii.Error, ValueError, JsonError):
        return None
    auths = value.get("auths") if isinstance(value, dict) and key == _DOCKER_KEYS[DOCKER_CONFIG] else value
    return auths if isinstance(auths, dict) else None


def all_bundles(spec: Object) -> Iterator[tuple[str, str]]:
    """The bundles of registries in a ControllerConfig, as keys and texts: the cluster's before the user's."""
    for name in ("imageRegistryBundleData", "imageRegistryBundleUserData"):
        entries = spec.get(name)
        for entry in entries if isinstance(entries, list) else ():
            yield str(entry.get("file") or ""), decoded(str(entry.get("data") or ""))


def _data(obj: Object | None) -> Mapping[str, str]:
    value = (obj or {}).get("data")
    return {str(key): str(text) for key, text in value.items()} if isinstance(value, Mapping) else {}


def encoded(text: str) -> str:
    """Text as a field of bytes holds it."""
    return base64.b64encode(text.encode()).decode()
