"""What the base of a pool is made from: typed, and complete or not made at all.

    inputs, missing = read_inputs(pool, controller, trust, sources)

Facts about the cluster are fields of the ControllerConfig; what one chooses are annotations, on the pool or for all pools on the
ControllerConfig (`names.CONTAINER_RUNTIME` and its neighbours). A custom pool that chooses nothing has what workers have.

Nothing is guessed: a node that is made with a wrong address of the cluster's DNS joins, looks well, and its pods fail. What is
missing, or cannot be what it says, is a `MissingInput` with the name of the field and what to do, and becomes the pool's message.

Values go into shell environments, unit files and TOML. They are checked here for what would leave their line.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.controller_config import SINGLETON
from fastness.kinds.objects import annotations_of, object_name

Object = Mapping[str, Any]
CLUSTER_DOMAIN: Final = "cluster.local"
PAUSE_KEY: Final = "infraImageKey"
_CONTROLLER: Final = f"ControllerConfig {SINGLETON}"
_FAMILIES: Final = ("IPv4", "IPv6", "DualStack", "DualStackIPv6Primary")
_EXTERNAL_CLOUDS: Final = frozenset(
    ("AlibabaCloud", "AWS", "Azure", "GCP", "IBMCloud", "KubeVirt", "Nutanix", "OpenStack", "PowerVS", "VSphere")
)
# Platforms where nobody but the machine itself says which of its addresses is the node's: the cluster's own are moved by hand.
ON_PREMISES: Final = frozenset(("BareMetal", "Nutanix", "OpenStack", "Ovirt", "VSphere"))
# The longest reference that an image has: registry, path, tag and digest.
_IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,446}", re.ASCII)
_ONE_LINE: Final = re.compile(r"[!-~]{1,4096}", re.ASCII)
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_SET_DNS: Final = (
    f"""kubectl patch controllerconfig {SINGLETON} --type merge -p '{{"spec":{{"clusterDNSIP":"ADDRESS"}}}}'"""
)


class Runtime(StrEnum):
    """What runs containers."""

    CRIO = "crio"
    CONTAINERD = "containerd"


class Distribution(StrEnum):
    """Whose conventions a node follows: paths, labels and flags of its kubelet."""

    KUBERNETES = "kubernetes"
    OPENSHIFT = "openshift"


@dataclass(frozen=True, slots=True)
class Proxy:
    """The proxy that programs of a machine use."""

    http: str = ""
    https: str = ""
    none_for: str = ""

    def __bool__(self) -> bool:
        return bool(self.http or self.https)


@dataclass(frozen=True, slots=True)
class NodeSources:
    """What no field of the ControllerConfig holds: the content of the pull secret, and the authority of the API server (PEM)."""

    pull_secret: str = field(default="", repr=False)
    api_ca: str = ""


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """Everything that the base of a pool depends on.

    `attested`: no machine of the pool gets a certificate without a proof. `trust` says whether its image carries the agent.
    """

    role: str = names.WORKER
    runtime: Runtime = Runtime.CRIO
    distribution: Distribution = Distribution.KUBERNETES
    trust: TrustModel = TrustModel.NONE
    attested: bool = False
    cluster_dns: str = ""
    cluster_domain: str = CLUSTER_DOMAIN
    platform: str = "None"
    cloud_controller: bool = False
    ip_families: str = "IPv4"
    api_server: str = ""
    kubelet_ca: str = ""
    trust_bundle: str = ""
    proxy: Proxy = Proxy()
    cloud_conf: str = ""
    pause_image: str = ""
    config_server: str = ""
    sources: NodeSources = NodeSources()

    @property
    def confidential(self) -> bool:
        """Whether the machine is a confidential VM, whose image is measured and carries the agent."""
        return self.trust is TrustModel.CONFIDENTIAL_CLUSTER

    @property
    def control_plane(self) -> bool:
        """Whether the pool is one of the control plane."""
        return self.role in (names.MASTER, names.ARBITER)

    @property
    def openshift(self) -> bool:
        """Whether nodes follow OpenShift's conventions."""
        return self.distribution is Distribution.OPENSHIFT

    @property
    def crio(self) -> bool:
        """Whether CRI-O runs containers."""
        return self.runtime is Runtime.CRIO

    @property
    def finds_address(self) -> bool:
        """Whether the machine must find out by itself which of its addresses is the node's."""
        return self.platform in ON_PREMISES or self.platform not in _EXTERNAL_CLOUDS

    @property
    def cloud_provider(self) -> str:
        """The value of the kubelet's flag: `external` where a cloud controller initialises nodes."""
        return "external" if self.platform in _EXTERNAL_CLOUDS or self.cloud_controller else ""


@dataclass(frozen=True, slots=True)
class MissingInput:
    """A value that is not there or not usable: where it belongs, why it is needed, and what to do."""

    field: str
    reason: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.field} {self.reason} ({self.way_out})"


def read_inputs(
    pool: Object,
    controller: Object | None,
    trust: TrustModel = TrustModel.NONE,
    sources: NodeSources | None = None,
    *,
    attested: bool = False,
    workers: Object | None = None,
) -> tuple[NodeInputs, list[MissingInput]]:
    """The inputs of a pool, as far as they can be read, and what keeps its base from being made.

    Without `sources` only objects are judged: whoever renders does not read the Secrets that go into a base. `workers` is the
    worker pool, whose choices a custom pool takes over where it has none of its own.
    """
    name = object_name(pool).name
    built_in = name in names.BUILT_IN_POOLS
    choosing = [pool, *([workers] if workers is not None and not built_in else []), controller or {}]
    missing: list[MissingInput] = []
    inputs = NodeInputs(
        role=name if built_in else names.WORKER,
        runtime=_chosen(names.CONTAINER_RUNTIME, Runtime, choosing, missing),
        distribution=_chosen(names.DISTRIBUTION, Distribution, choosing, missing),
        trust=trust, attested=attested, sources=sources or NodeSources(),
        pause_image=_annotated(names.PAUSE_IMAGE, choosing), config_server=_annotated(names.CONFIG_SERVER, choosing),
    )  # fmt: skip
    inputs = _facts(inputs, (controller or {}).get("spec") or {}, missing)
    checks = _CHECKS if sources is None else (*_CHECKS, _sources)
    return inputs, [*missing, *(absent for check in checks for absent in check(inputs))]


def choices(inputs: NodeInputs) -> tuple[object, ...]:
    """What may differ between pools of one role: a pool that differs from the workers needs a base of its own."""
    return (
        inputs.role, inputs.runtime, inputs.distribution, inputs.trust, inputs.attested, inputs.pause_image,
        inputs.config_server,
    )  # fmt: skip


def _annotated(key: str, choosing: list[Object]) -> str:
    return next((value for obj in choosing if (value := annotations_of(obj).get(key))), "")


def _chosen(key: str, kind: Callable[[str], Any], choosing: list[Object], missing: list[MissingInput]) -> Any:
    options = [str(option) for option in kind]  # type: ignore[attr-defined]
    value = _annotated(key, choosing)
    if value not in options:
        why = f"is {value!r}" if value else "is missing"
        way = f"annotate the pool, or {_CONTROLLER} for all pools, with {key}={' or '.join(options)}"
        missing.append(MissingInput(f"annotation {key}", why, way))
        return kind(options[0])
    return kind(value)


def _facts(inputs: NodeInputs, spec: Object, missing: list[MissingInput]) -> NodeInputs:
    """The same with what the fields of a ControllerConfig say."""
    status = _object(_object(spec, "infra"), "status")
    of_platform = _object(status, "platformStatus")
    images, proxy = _object(spec, "images"), _object(spec, "proxy")
    external = _object(_object(of_platform, "external"), "cloudControllerManager")
    return replace(
        inputs,
        cluster_dns=str(spec.get("clusterDNSIP") or ""),
        platform=str(of_platform.get("type") or status.get("platform") or spec.get("platform") or "None"),
        cloud_controller=external.get("state") == "External",
        ip_families=str(spec.get("ipFamilies") or "IPv4"),
        api_server=str(status.get("apiServerInternalURI") or ""),
        kubelet_ca=_decoded(spec, "kubeAPIServerServingCAData", missing),
        trust_bundle=_decoded(spec, "additionalTrustBundle", missing),
        proxy=Proxy(*(str(proxy.get(name) or "") for name in ("httpProxy", "httpsProxy", "noProxy"))),
        cloud_conf=str(spec.get("cloudProviderConfig") or ""),
        pause_image=inputs.pause_image or str(images.get(PAUSE_KEY) or ""),
    )


def _object(parent: Object, name: str) -> Object:
    # `infra` and `proxy` are embedded objects of another kind: nothing has checked their shape.
    value = parent.get(name)
    return value if isinstance(value, Mapping) else {}


def _decoded(spec: Object, name: str, missing: list[MissingInput]) -> str:
    """The certificates in a field of bytes; empty when there are none."""
    value = spec.get(name) or ""
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError, TypeError):
        text = ""
    if value and _CERTIFICATE not in text:
        way = "write the base64 of PEM certificates there, or take the field away"
        missing.append(MissingInput(f"{_CONTROLLER}: spec.{name}", "holds no certificate", way))
        return ""
    return text


def _dns(inputs: NodeInputs) -> Iterator[MissingInput]:
    try:
        ipaddress.ip_address(inputs.cluster_dns)
    except ValueError:
        why = f"is {inputs.cluster_dns!r}, which is no address" if inputs.cluster_dns else "is missing"
        way = f"pods look up names there; set it to the cluster IP of the DNS service: {_SET_DNS}"
        yield MissingInput(f"{_CONTROLLER}: spec.clusterDNSIP", why, way)


def _kubelet_ca(inputs: NodeInputs) -> Iterator[MissingInput]:
    if not inputs.kubelet_ca:
        way = (
            "it is what the kubelet believes the API server by; write there the base64 of the authority of its clients"
        )
        yield MissingInput(f"{_CONTROLLER}: spec.kubeAPIServerServingCAData", "is missing", way)


def api_server_of(controller: Object | None) -> str:
    """The URL by which machines reach the API server, as a ControllerConfig has it; empty when it is none."""
    url = str(_object(_object(_object(controller or {}, "spec"), "infra"), "status").get("apiServerInternalURI") or "")
    return url if _is_https(url) else ""


def _is_https(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" and bool(parts.hostname) and _ONE_LINE.fullmatch(url) is not None


def _api_server(inputs: NodeInputs) -> Iterator[MissingInput]:
    if not (inputs.openshift or inputs.attested):
        return
    place = f"{_CONTROLLER}: spec.infra.status.apiServerInternalURI"
    if not _is_https(inputs.api_server):
        why = f"is {inputs.api_server[:80]!r}, which is no https URL" if inputs.api_server else "is missing"
        yield MissingInput(place, why, "write there the URL by which machines reach the API server")


def _sources(inputs: NodeInputs) -> Iterator[MissingInput]:
    if inputs.attested and not inputs.sources.api_ca:
        why = "is missing: machines of this pool would join whom they cannot believe"
        way = "Kubernetes publishes it by itself; look whether kube-controller-manager runs"
        yield MissingInput("ConfigMap kube-system/kube-root-ca.crt", why, way)


def _distribution(inputs: NodeInputs) -> Iterator[MissingInput]:
    if inputs.openshift and not inputs.crio:
        way = f"annotate it with {names.CONTAINER_RUNTIME}=crio, or with {names.DISTRIBUTION}=kubernetes"
        yield MissingInput(
            f"annotation {names.CONTAINER_RUNTIME}", "is containerd, and OpenShift's nodes have CRI-O", way
        )
    if inputs.openshift and not inputs.pause_image:
        yield MissingInput(f"{_CONTROLLER}: spec.images.{PAUSE_KEY}", "is missing", "name the pod image of the release")


def _texts(inputs: NodeInputs) -> Iterator[MissingInput]:
    if inputs.pause_image and not _IMAGE.fullmatch(inputs.pause_image):
        place = f"annotation {names.PAUSE_IMAGE} or spec.images.{PAUSE_KEY}"
        yield MissingInput(place, f"is {inputs.pause_image[:80]!r}", "name an image")
    if inputs.ip_families not in _FAMILIES:
        why = f"is {inputs.ip_families[:40]!r}"
        yield MissingInput(f"{_CONTROLLER}: spec.ipFamilies", why, f"use one of {', '.join(_FAMILIES)}")
    for name, value in zip(("httpProxy", "httpsProxy", "noProxy"), _proxy_values(inputs.proxy), strict=True):
        # They become lines of an environment file, which services and shells read.
        if value and (not _ONE_LINE.fullmatch(value) or set(value) & set("\"'\\$`")):
            why = "has blanks, quotes or other characters that an environment file cannot carry"
            yield MissingInput(f"{_CONTROLLER}: spec.proxy.{name}", why, "write it without them")
    url = inputs.config_server
    if url and (not _ONE_LINE.fullmatch(url) or urlsplit(url).scheme != "https" or set(url) & set("\"'\\$%")):
        yield MissingInput(f"annotation {names.CONFIG_SERVER}", f"is {url[:80]!r}", "write https://host:port")


def _proxy_values(proxy: Proxy) -> tuple[str, str, str]:
    return proxy.http, proxy.https, proxy.none_for


_CHECKS: Final = (_dns, _kubelet_ca, _api_server, _distribution, _texts)
