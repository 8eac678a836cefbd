"""What can be read of a cluster, and what of it the ControllerConfig is told.

    facts(objects)                what other objects say about the cluster, each with where it stands
    restated(controller, facts)   the patch that writes them down, and what there is to tell; None when nothing changes
    contents(controller, objects) what no field holds: the pull secret, the authority of the API server

A value that a person wrote is never overwritten. The annotation `fastness.dev/read-from` remembers for each field where it was
read and what it was then: a field whose value is another one is a person's, and its entry goes. What follows a source that may go
away (a proxy, certificates, the pull secret) goes with it; addresses and authorities stay, because a node without them is none.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError, YamlError
from fastness.formats.yaml import load_documents
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kinds.openshift.config import is_installers
from fastness.machineconfig.render.base.node_inputs import Distribution, MissingInput, NodeSources, Runtime
from fastness.machineconfig.trust.sources import DOCKER_CONFIG, SourcedTrust, TrustSources, sourced_trust

Object = Mapping[str, Any]
MAX_DOCKER_CONFIG: Final = 512 * 1024
PULL_SECRET: Final = ("openshift-config", "pull-secret")
_DOCKER_KEY: Final = ".dockerconfigjson"
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_FOLLOWING: Final = frozenset({
    "proxy", "additionalTrustBundle", "pullSecret", "imageRegistryBundleData", "imageRegistryBundleUserData",
    "cloudProviderConfig", "cloudProviderCAData", "internalRegistryPullSecret",
})  # fmt: skip
"""Fields that are emptied when their source is gone."""


@dataclass(frozen=True)
class ClusterObjects:
    """The objects that say something about the cluster, each None where there is none.

    `pull_secret` is the one that the ControllerConfig refers to; `trust` has those that say whom machines believe; `unreadable`
    says of objects why they could not be read.
    """

    dns_service: Object | None = None
    root_ca: Object | None = None
    cluster_info: Object | None = None
    infrastructure: Object | None = None
    cluster_version: Object | None = None
    dns: Object | None = None
    network: Object | None = None
    proxy: Object | None = None
    pull_secret: Object | None = None
    trust: TrustSources = field(default_factory=TrustSources)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sourced(self) -> SourcedTrust:
        """Whom machines believe, as far as it can be read."""
        return sourced_trust(self.trust)

    @property
    def openshift(self) -> bool:
        """Whether an installer of OpenShift made this cluster."""
        others = (self.cluster_version, self.network, self.dns)
        return is_installers(self.infrastructure) or any(obj is not None for obj in others)


@dataclass(frozen=True, slots=True)
class ClusterFact:
    """A value for a field of the ControllerConfig, and where it was read."""

    field: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Restated:
    """What a ControllerConfig is told: a merge patch, and a sentence about each new value."""

    patch: JsonObject
    news: tuple[str, ...]


def facts(objects: ClusterObjects) -> list[ClusterFact]:
    """Everything that the objects of a cluster say about it."""
    trusted = (ClusterFact(name, value, origin) for name, (value, origin) in objects.sourced.values.items())
    return [*_network(objects), *_platform(objects), *_user(objects), *trusted]


def _network(objects: ClusterObjects) -> Iterator[ClusterFact]:
    services = [str(block) for block in _part(objects.network, "status").get("serviceNetwork") or ()]
    blocks = [block for text in services if (block := _block(text)) is not None]
    if blocks:
        # By convention: the tenth address of the first block that services have.
        yield ClusterFact("clusterDNSIP", str(blocks[0][10]), "Network cluster: status.serviceNetwork")
        yield ClusterFact("ipFamilies", _families([block.version for block in blocks]), "Network cluster")
        return
    address = str(_part(objects.dns_service, "spec").get("clusterIP") or "")
    if address and address != "None":
        origin = "Service kube-system/kube-dns"
        yield ClusterFact("clusterDNSIP", address, origin)
        yield ClusterFact("ipFamilies", "IPv6" if ":" in address else "IPv4", origin)


def _block(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        block = ipaddress.ip_network(text)
    except ValueError:
        return None
    return block if block.num_addresses > 10 else None


def _families(versions: list[int]) -> str:
    if len(set(versions)) == 1:
        return f"IPv{versions[0]}"
    return "DualStack" if versions[0] == 4 else "DualStackIPv6Primary"


def _platform(objects: ClusterObjects) -> Iterator[ClusterFact]:
    if objects.infrastructure is not None:
        copied = _embedded(
            "Infrastructure", _part(objects.infrastructure, "spec"), _part(objects.infrastructure, "status")
        )
        yield ClusterFact("infra", copied, "Infrastructure cluster")
    elif server := _server(objects.cluster_info):
        status = {"apiServerInternalURI": server, "platform": "None", "platformStatus": {"type": "None"}}
        yield ClusterFact("infra", _embedded("Infrastructure", {}, status), "ConfigMap kube-public/cluster-info")
    if objects.dns is not None:
        yield ClusterFact("dns", _embedded("DNS", _part(objects.dns, "spec"), {}), "DNS cluster")


def _embedded(kind: str, spec: Object, status: Object) -> JsonObject:
    """A copy of a cluster's object as the ControllerConfig carries it: whole, or the API refuses it."""
    named = {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": "cluster"}}
    return {**named, "spec": dict(spec), **({"status": dict(status)} if status else {})}


def _server(cluster_info: Object | None) -> str:
    """The address of the API server as kubeadm publishes it for machines that want to join."""
    try:
        [(config, _), *_] = load_documents(str(_part(cluster_info, "data").get("kubeconfig") or "").encode())
        return str(config["clusters"][0]["cluster"]["server"])
    except (YamlError, ValueError, KeyError, IndexError, TypeError):
        return ""


def _user(objects: ClusterObjects) -> Iterator[ClusterFact]:
    settings = _part(objects.proxy, "status")
    proxy = {name: str(settings[name]) for name in ("httpProxy", "httpsProxy", "noProxy") if settings.get(name)}
    if proxy.get("httpProxy") or proxy.get("httpsProxy"):
        yield ClusterFact("proxy", proxy, "Proxy cluster: status")
    if objects.pull_secret is not None:
        namespace, name = PULL_SECRET
        reference = {"apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": name}
        if _part(objects.pull_secret, "metadata").get("namespace") == namespace:
            yield ClusterFact("pullSecret", reference, f"Secret {namespace}/{name}")


def restated(controller: Object, read_facts: list[ClusterFact], objects: ClusterObjects) -> Restated | None:
    """What to write into a ControllerConfig; None when it says everything already."""
    spec, origins = controller.get("spec") or {}, read_from(controller)
    patch: JsonObject = {}
    after, news = dict(origins), list[str]()
    for fact in read_facts:
        present, ours = spec.get(fact.field), origins.get(fact.field)
        if present not in (None, "", {}) and (ours is None or ours[1] != _digest(present)):
            after.pop(fact.field, None)  # a person's
            continue
        after[fact.field] = (fact.origin, _digest(fact.value))
        if present != fact.value:
            patch[fact.field] = fact.value
            news.append(f"spec.{fact.field} from {fact.origin}")
    named = {fact.field for fact in read_facts}
    # A source that is there and cannot be used is no source that is gone: machines keep what they believe until it is mended.
    for name in _FOLLOWING & origins.keys() - named - objects.sourced.held:
        after.pop(name)
        if spec.get(name) is not None and origins[name][1] == _digest(spec[name]):
            patch[name] = None
            news.append(f"spec.{name} emptied: {origins[name][0]} is gone")
    notes = _choices(controller, objects, news)
    if after != origins:
        value = {name: {"from": origin, "digest": digest} for name, (origin, digest) in sorted(after.items())}
        notes[names.READ_FROM] = json.encode(value).decode()
    if not patch and not notes:
        return None
    meta = {"metadata": {"annotations": notes}} if notes else {}
    return Restated({**meta, **({"spec": patch} if patch else {})}, tuple(news))


def _choices(controller: Object, objects: ClusterObjects, news: list[str]) -> JsonObject:
    """What a cluster is taken for, where nobody says it; written down once, because a second look must not rebuild every node."""
    present, notes = annotations_of(controller), JsonObject()
    origin = "objects of config.openshift.io" if objects.openshift else "the absence of objects of config.openshift.io"
    chosen = (
        (names.DISTRIBUTION, Distribution.OPENSHIFT if objects.openshift else Distribution.KUBERNETES),
        (names.CONTAINER_RUNTIME, Runtime.CRIO if objects.openshift else Runtime.CONTAINERD),
    )
    for key, value in chosen:
        if key not in present:
            notes[key] = str(value)
            news.append(f"{key}={value} from {origin}")
    return notes


def read_from(controller: Object) -> dict[str, tuple[str, str]]:
    """Which fields of a ControllerConfig were read, where, and what they said then."""
    try:
        value = json.decode(annotations_of(controller).get(names.READ_FROM, "{}").encode())
    except JsonError:
        return {}
    entries = value.items() if isinstance(value, dict) else ()
    return {
        str(name): (str(entry.get("from")), str(entry.get("digest")))
        for name, entry in entries
        if isinstance(entry, dict)
    }


def contents(controller: Object, objects: ClusterObjects) -> tuple[NodeSources, list[MissingInput]]:
    """What the base of machines needs and no field holds, and what is wrong with it."""
    reference = (controller.get("spec") or {}).get("pullSecret")
    wrong = [
        MissingInput(place, f"cannot be read: {why}", "grant that to the controllers, or name another object")
        for place, why in objects.unreadable.items()
    ]
    # A bad bundle of one registry is no reason to keep every pool from its next config: no config has it in it.
    wrong += [
        MissingInput(problem.place, problem.reason, problem.way_out)
        for problem in objects.sourced.problems
        if problem.is_rendered
    ]
    secret = ""
    if isinstance(reference, Mapping) and reference.get("name") and not objects.unreadable:
        secret, problem = _docker_config(reference, objects.pull_secret)
        wrong += [problem] if problem else []
    return NodeSources(pull_secret=secret, api_ca=_bundle(objects.root_ca, "ca.crt")), wrong


def _docker_config(reference: Object, secret: Object | None) -> tuple[str, MissingInput | None]:
    place = f"Secret {reference.get('namespace') or PULL_SECRET[0]}/{reference['name']}"
    way = "create it with kubectl create secret docker-registry, or take spec.pullSecret out of the ControllerConfig"
    if secret is None:
        return "", MissingInput(place, "is not there, and spec.pullSecret of the ControllerConfig names it", way)
    if secret.get("type") != DOCKER_CONFIG:
        return "", MissingInput(place, f"is of type {secret.get('type')}, not {DOCKER_CONFIG}", way)
    try:
        content = base64.b64decode(str(_part(secret, "data").get(_DOCKER_KEY) or ""), validate=True)
        value = json.decode(content)
    except (ValueError, JsonError):
        value, content = None, b""
    if not isinstance(value, dict) or not isinstance(value.get("auths"), dict) or len(content) > MAX_DOCKER_CONFIG:
        return "", MissingInput(place, f"has no credentials in {_DOCKER_KEY}", way)
    return content.decode(), None


def _part(obj: Object | None, name: str) -> Object:
    value = (obj or {}).get(name)
    return value if isinstance(value, Mapping) else {}


def _bundle(config_map: Object | None, key: str) -> str:
    """The certificates under a key, which may be base64; empty when there are none."""
    text = str(_part(config_map, "data").get(key) or "")
    if text and _CERTIFICATE not in text:
        try:
            text = base64.b64decode(text, validate=True).decode()
        except ValueError:
            return ""
    return text if _CERTIFICATE in text else ""


def _digest(value: Any) -> str:
    return hashlib.sha256(json.canonical(value)).hexdigest()[:16]
