"""KubeletConfig: settings of the kubelet, turned into files of a machine.

The kubelet reads one configuration file, so the cluster's own settings and the user's are merged into it, the user's winning,
except for what the cluster depends on: those fields are refused, all of them at once. The log level and the reserve for the
system go where the unit reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastness.formats import data_url, json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.errors import BadSettings
from fastness.protocol.ignition_spec import CURRENT

Object = Mapping[str, Any]
CONFIG_FILE: Final = "/etc/kubernetes/kubelet.conf"
SIZING_FILE: Final = "/etc/node-sizing-enabled.env"
LOG_DROPIN: Final = "20-logging.conf"
MAX_LOG_LEVEL: Final = 10
_FORBIDDEN: Final = ("cgroupDriver", "clusterDNS", "clusterDomain", "featureGates", "failSwapOn")
_CONTROL_PLANE: Final = (names.MASTER, names.ARBITER)
_INTERMEDIATE: Final = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
_PROFILES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "Old": ("VersionTLS10", (*_INTERMEDIATE, "TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_256_GCM_SHA384")),
    "Intermediate": ("VersionTLS12", _INTERMEDIATE),
    "Modern": ("VersionTLS13", _INTERMEDIATE[:3]),
}


def base_settings(controller: Object | None) -> JsonObject:
    """What the cluster sets for every kubelet."""
    spec = (controller or {}).get("spec") or {}
    settings: JsonObject = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": names.KUBELET_CA}},
        "cgroupDriver": "systemd",
        "clusterDomain": "cluster.local",
        "containerLogMaxSize": "50Mi",
        "failSwapOn": True,
        "maxPods": 250,
        "rotateCertificates": True,
        "serverTLSBootstrap": True,
        "staticPodPath": "/etc/kubernetes/manifests",
    }
    if spec.get("clusterDNSIP"):
        settings["clusterDNS"] = [spec["clusterDNSIP"]]
    return settings


def kubelet_spec(kubelet: Object, pool: str, controller: Object | None = None) -> JsonObject:
    """The spec of the MachineConfig that a KubeletConfig generates for a pool; raises BadSettings."""
    wrong = list(_wrong(kubelet, pool))
    if wrong:
        raise BadSettings("; ".join(wrong), "remove these fields from the KubeletConfig")
    spec = kubelet.get("spec") or {}
    settings = _merged(base_settings(controller), spec.get("kubeletConfig") or {})
    settings.update(_tls(spec.get("tlsSecurityProfile") or {}))
    document: JsonObject = {
        "ignition": {"version": CURRENT},
        "storage": {"files": [config_file(CONFIG_FILE, json.canonical(settings).decode() + "\n")]},
    }
    if spec.get("autoSizingReserved") is not None:
        text = f"NODE_SIZING_ENABLED={'true' if spec['autoSizingReserved'] else 'false'}\n"
        document["storage"]["files"].append(config_file(SIZING_FILE, text))
    if spec.get("logLevel") is not None:
        contents = f'[Service]\nEnvironment="KUBELET_LOG_LEVEL={spec["logLevel"]}"\n'
        dropins = [{"name": LOG_DROPIN, "contents": contents}]
        document["systemd"] = {"units": [{"name": "kubelet.service", "dropins": dropins}]}
    return {"config": document}


def config_file(path: str, text: str, mode: int = 0o644) -> JsonObject:
    """A file entry of an Ignition document."""
    source = data_url.encode(text.encode(), "text/plain;charset=utf-8")
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": source}}


def _wrong(kubelet: Object, pool: str) -> Iterator[str]:
    spec = kubelet.get("spec") or {}
    settings = spec.get("kubeletConfig") or {}
    if not isinstance(settings, Mapping):
        yield "spec.kubeletConfig must be an object"
        return
    for name in _FORBIDDEN:
        if name in settings:
            yield f"spec.kubeletConfig.{name} is set by the cluster"
    if (settings.get("memorySwap") or {}).get("swapBehavior"):
        yield "spec.kubeletConfig.memorySwap.swapBehavior is set by the cluster"
    if spec.get("autoSizingReserved") and settings.get("systemReserved"):
        yield "spec.kubeletConfig.systemReserved contradicts spec.autoSizingReserved"
    reserved, cgroup = settings.get("systemReservedCgroup"), settings.get("systemCgroups")
    if reserved and cgroup and reserved != cgroup:
        yield "spec.kubeletConfig.systemReservedCgroup and systemCgroups must be the same"
    if "staticPodPath" in settings and (pool in _CONTROL_PLANE or settings["staticPodPath"] != ""):
        yield "spec.kubeletConfig.staticPodPath can only be emptied, and not in a control-plane pool"
    level = spec.get("logLevel")
    if level is not None and (not isinstance(level, int) or not 0 <= level <= MAX_LOG_LEVEL):
        yield f"spec.logLevel must be between 0 and {MAX_LOG_LEVEL}"
    if (spec.get("tlsSecurityProfile") or {}).get("type", "Intermediate") not in {*_PROFILES, "Custom", ""}:
        yield f"spec.tlsSecurityProfile.type must be one of {', '.join(_PROFILES)}, Custom"


def _tls(profile: Object) -> JsonObject:
    kind = profile.get("type")
    if not kind:
        return {}
    if kind == "Custom":
        custom = profile.get("custom") or {}
        return {
            "tlsMinVersion": custom.get("minTLSVersion") or "VersionTLS12",
            "tlsCipherSuites": list(custom.get("ciphers") or ()),
        }
    version, ciphers = _PROFILES[kind]
    return {"tlsMinVersion": version, "tlsCipherSuites": list(ciphers)}


def _merged(base: JsonObject, over: Object) -> JsonObject:
    """Objects merge member by member, everything else is replaced; null takes a member away."""
    merged = dict(base)
    for name, value in over.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(name), dict):
            merged[name] = _merged(merged[name], value)
        else:
            merged[name] = value
    return merged
