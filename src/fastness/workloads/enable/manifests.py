"""The objects that the manual has people write by hand, from namespaces to the KataConfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.workloads.enable.inputs import EnableRequest

MARKETPLACE: Final = "openshift-marketplace"
OSC, NFD, TRUSTEE, NVIDIA = names.NAMESPACE, "openshift-nfd", "trustee-operator-system", "nvidia-gpu-operator"
NFD_VERSION: Final = "4.21"
_EXISTS: Final = {"op": "Exists"}
_MODULE: Final = "kernel.loadedmodule"


def namespace(name: str) -> JsonObject:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def operator(place: str, package: str, group: str, source: str = "redhat-operators", csv: str = "") -> list[JsonObject]:
    """What installs an operator into a namespace of its own."""
    spec = {
        "channel": "stable", "installPlanApproval": "Automatic", "name": package, "source": source,
        "sourceNamespace": MARKETPLACE, **({"startingCSV": csv} if csv else {}),
    }  # fmt: skip
    return [
        namespace(place),
        {
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": group, "namespace": place},
            "spec": {"targetNamespaces": [place]},
        },
        {
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": package, "namespace": place}, "spec": spec,
        },
    ]  # fmt: skip


def discovery(version: str) -> JsonObject:
    """What starts the discovery of node features."""
    image = f"registry.redhat.io/openshift4/ose-node-feature-discovery-rhel9:v{version}"
    spec = {
        "operand": {"image": image, "imagePullPolicy": "Always", "servicePort": 12000}, "workerConfig": {"configData": ""},
    }  # fmt: skip
    meta = {"name": "nfd-instance", "namespace": NFD}
    return {"apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureDiscovery", "metadata": meta, "spec": spec}


def hardware_rule() -> JsonObject:
    """The rules by which nodes are labelled for Kata and for their TEE."""
    virtual = [_virtual(flag, module) for flag, module in (("VMX", "kvm_intel"), ("SVM", "kvm_amd"))]
    rules = [
        {"name": "runtime.kata", "labels": {names.BASE_LABEL: "true"}, "matchAny": virtual},
        _rule("amd.sev-snp", names.SNP_LABEL, {"sev-snp.amd.com/esids": "@cpu.security.sev.encrypted_state_ids"},
              _feature("cpu.cpuid", SVM=_EXISTS), _feature("cpu.security", **{"sev.snp.enabled": _EXISTS})),
        _rule("intel.sgx", "intel.feature.node.kubernetes.io/sgx", {"sgx.intel.com/epc": "@cpu.security.sgx.epc"},
              _feature("cpu.cpuid", SGX=_EXISTS, SGXLC=_EXISTS), _feature("cpu.security", **{"sgx.enabled": {"op": "IsTrue"}}),
              _feature("kernel.config", X86_SGX=_EXISTS)),
        _rule("intel.tdx", names.TDX_LABEL, {"tdx.intel.com/keys": "@cpu.security.tdx.total_keys"},
              _feature("cpu.cpuid", VMX=_EXISTS), _feature("cpu.security", **{"tdx.enabled": _EXISTS})),
    ]  # fmt: skip
    return _rules("consolidated-hardware-features", rules)


def _virtual(flag: str, module: str) -> JsonObject:
    """One vendor's way to virtual machines: the CPU and its module."""
    cpu, kernel = (
        _feature("cpu.cpuid", SSE42=_EXISTS, **{flag: _EXISTS}),
        _feature(_MODULE, kvm=_EXISTS, **{module: _EXISTS}),
    )
    return {"matchFeatures": [cpu, kernel]}


def gpu_rule() -> JsonObject:
    """The rules by which nodes are labelled for NVIDIA's kernel modules."""
    modules = {"gdrdrv": "gdrcopy", "nvidia_fs": "gds", "nvidia_peermem": "peermem"}
    return _rules("nvidia-kernel-modules", [
        _rule(f"kernel-module-{module}", f"nvidia.com/{word}.capable", {}, _feature(_MODULE, **{module: _EXISTS}))
        for module, word in modules.items()
    ])  # fmt: skip


def _rules(name: str, rules: list[JsonObject]) -> JsonObject:
    meta = {"name": name}
    return {
        "apiVersion": "nfd.openshift.io/v1alpha1",
        "kind": "NodeFeatureRule",
        "metadata": meta,
        "spec": {"rules": rules},
    }


def _rule(name: str, label: str, resources: Mapping[str, str], *features: JsonObject) -> JsonObject:
    more = {"extendedResources": dict(resources)} if resources else {}
    return {"name": name, "labels": {label: "true"}, **more, "matchFeatures": list(features)}


def _feature(name: str, **expressions: Any) -> JsonObject:
    return {"feature": name, "matchExpressions": expressions}


def feature_gates(mode: str) -> JsonObject:
    """The ConfigMap that switches confidential containers on."""
    meta = {"name": names.FEATURE_GATES, "namespace": OSC}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"confidential": "true", "deploymentMode": mode},
    }


def kata_config(request: EnableRequest) -> JsonObject:
    """The KataConfig; only nodes that discovery found able get the runtime."""
    spec: JsonObject = {"enablePeerPods": False, "checkNodeEligibility": True, "logLevel": "info"}
    if request.selector:
        spec["kataConfigPoolSelector"] = {"matchLabels": dict(request.selector)}
    meta = {"name": request.kata_name}
    return {"apiVersion": "kataconfiguration.openshift.io/v1", "kind": "KataConfig", "metadata": meta, "spec": spec}


def trustee_config() -> JsonObject:
    """The attestation service: restricted, because anything else hands out secrets without asking."""
    return {
        "apiVersion": "confidentialcontainers.org/v1alpha1", "kind": "TrusteeConfig",
        "metadata": {"name": "trusteeconfig", "namespace": TRUSTEE},
        "spec": {"profileType": "Restricted", "kbsServiceType": "ClusterIP"},
    }  # fmt: skip
