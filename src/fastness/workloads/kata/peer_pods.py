"""Pods that run as virtual machines beside their node: what `enablePeerPods` brings.

    asked ─ two files on every node ─ (installed) adaptor, class `kata-remote` ─ not asked ─ class, when no pod uses it ─ the rest

* The files come as machine configs, or from the pods of the installer's DaemonSet: the mode decides.
* How to reach the cloud is its owner's to say: `peer-pods-cm` and `peer-pods-secret` are read, never made and never removed.
  Until both are there the adaptor is not made, and the status says what is missing.
* One key of theirs is ours: the gate `confidential` decides whether machines are confidential, in `peer-pods-cm` for those
  that run and in the ConfigMap of the image for those that are built. The adaptor is told in its own template too, so that a
  change of the gate replaces it.
* As long as the class is there, pods may use it, so everything that they need stays.
"""

from __future__ import annotations

from typing import Final

from fastness.formats.data_url import encode
from fastness.kinds.kata import names, runtime
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, metadata
from fastness.workloads.kata.eligibility import NodeRequirements
from fastness.workloads.kata.inputs import Ensure, Inputs, Object, Ref, ref_of
from fastness.workloads.kata.mode import FeatureGates, UpdateStrategy
from fastness.workloads.kata.objects import (
    ALL_TAINTS,
    IGNITION,
    NODE_NAME,
    account,
    constraints,
    daemon_set,
    host_path,
    machine_config,
)
from fastness.workloads.kata.status import KataCondition

ADAPTOR_IMAGE: Final = "cloud-api-adaptor"
CONFIG_NAMES: Final = (names.REMOTE_CONFIG, names.REMOTE_RUNTIME_CONFIG)
SETTINGS: Final = Ref("ConfigMap", names.PEER_PODS_MAP, names.NAMESPACE)
CREDENTIALS: Final = Ref("Secret", names.PEER_PODS_SECRET, names.NAMESPACE)
CLASS: Final = Ref("RuntimeClass", names.REMOTE_CLASS)
PROVIDER: Final = "CLOUD_PROVIDER"
DISABLE_CVM: Final = "DISABLECVM"
CONFIDENTIAL: Final = "CONFIDENTIAL_COMPUTE_ENABLED"


def are_enabled(config: Object | None) -> bool:
    """Whether a KataConfig asks for peer pods."""
    return ((config or {}).get("spec") or {}).get("enablePeerPods") is True


def on_nodes(inputs: Inputs) -> bool:
    """Whether nodes must be able to run them: they are asked for, or a class of ours is still there."""
    runtime_class = inputs.objects.get(CLASS) or {}
    return are_enabled(inputs.config) or names.CLASS_FINALIZER in (metadata(runtime_class).get("finalizers") or ())


def configs(config: Object, pool: str) -> list[Ensure]:
    """The machine configs that bring the two files."""
    return [
        machine_config(config, pool, name, {"config": _ignition(path)})
        for name, path in zip(CONFIG_NAMES, (names.REMOTE_FILE, names.REMOTE_RUNTIME_FILE), strict=True)
    ]


def _ignition(path: str) -> JsonObject:
    contents = {"source": encode(runtime.REMOTE_FILES[path], "text/plain;charset=utf-8")}
    file = {"path": path, "mode": runtime.REMOTE_MODE, "overwrite": True, "contents": contents}
    return {"ignition": {"version": IGNITION}, "storage": {"files": [file]}}


def gated(inputs: Inputs) -> list[Ensure]:
    """What the gate `confidential` sets in the ConfigMaps of peer pods that are there."""
    if not are_enabled(inputs.config):
        return []
    image = Ref("ConfigMap", f"{_provider(inputs)}-{names.PEER_PODS_IMAGE_MAP}", names.NAMESPACE)
    built = "yes" if inputs.gates.confidential else "no"
    settings = [(SETTINGS, DISABLE_CVM, _disable(inputs.gates)), (image, CONFIDENTIAL, built)]
    return [_set(ref, key, value) for ref, key, value in settings if _is_open(inputs.objects.get(ref))]


# Every patch of an immutable ConfigMap is refused; `problem` reports it instead.
def _is_open(config_map: Object | None) -> bool:
    return config_map is not None and config_map.get("immutable") is not True and not is_being_deleted(config_map)


def _set(ref: Ref, key: str, value: str) -> Ensure:
    obj: JsonObject = {
        "apiVersion": "v1", "kind": ref.kind, "metadata": {"name": ref.name, "namespace": ref.namespace}, "data": {key: value},
    }  # fmt: skip
    return Ensure(obj, (("data", key),))


def adaptor(inputs: Inputs, requirements: NodeRequirements) -> list[Ensure]:
    """What makes the virtual machines, once its owner said where and as whom."""
    if not are_enabled(inputs.config) or not inputs.namespace or problem(inputs) is not None:
        return []
    return _adaptor(inputs.gates, requirements.role_label)


def surplus(inputs: Inputs) -> list[Ref]:
    """What is there of the adaptor and is not needed any more."""
    return [] if on_nodes(inputs) else [ref for ref in remains() if ref in inputs.objects]


def remains() -> list[Ref]:
    """What an uninstallation removes; what the owner made stays."""
    return [ref_of(ensure.obj) for ensure in reversed(_adaptor(FeatureGates(), ""))]


def problem(inputs: Inputs) -> KataCondition | None:
    """What keeps the adaptor from being made."""
    if not are_enabled(inputs.config):
        return None
    settings = inputs.objects.get(SETTINGS)
    where = f"in namespace {names.NAMESPACE}"
    if settings is None:
        return KataCondition(
            False, "ConfigMissing", f"ConfigMap {SETTINGS.name} is missing: create it {where}, with {PROVIDER}"
        )
    if not _provider(inputs):
        return KataCondition(False, "ProviderMissing", f"ConfigMap {SETTINGS.name} {where} does not say {PROVIDER}")
    if settings.get("immutable") is True and (settings.get("data") or {}).get(DISABLE_CVM) != _disable(inputs.gates):
        message = f"ConfigMap {SETTINGS.name} {where} is immutable and its {DISABLE_CVM} is not what the gate confidential says"
        return KataCondition(False, "ConfigImmutable", message)
    if CREDENTIALS not in inputs.objects:
        message = (
            f"Secret {CREDENTIALS.name} is missing: create it {where}, with the credentials of {_provider(inputs)}"
        )
        return KataCondition(False, "SecretMissing", message)
    return None


def _provider(inputs: Inputs) -> str:
    data = (inputs.objects.get(SETTINGS) or {}).get("data") or {}
    return str(data.get(PROVIDER) or "").strip().lower()[:63]


def _disable(gates: FeatureGates) -> str:
    return "false" if gates.confidential else "true"


def _adaptor(gates: FeatureGates, role_label: str) -> list[Ensure]:
    container = {
        "name": "adaptor", "image": ADAPTOR_IMAGE,
        "env": [NODE_NAME, {"name": DISABLE_CVM, "value": _disable(gates)}],
        "envFrom": [{"configMapRef": {"name": SETTINGS.name}}, {"secretRef": {"name": CREDENTIALS.name}}],
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "socket", "mountPath": runtime.SOCKET_DIRECTORY}],
    }  # fmt: skip
    socket = host_path("socket", runtime.SOCKET_DIRECTORY)
    socket["hostPath"]["type"] = "DirectoryOrCreate"
    pod = {
        "serviceAccountName": names.ADAPTOR, "hostNetwork": True, "nodeSelector": {role_label: ""}, "tolerations": ALL_TAINTS,
        "containers": [container], "volumes": [socket],
    }  # fmt: skip
    plain = daemon_set(names.ADAPTOR, pod)
    if gates.adaptor_update is UpdateStrategy.ON_DELETE:
        plain.obj["spec"]["updateStrategy"] = {"type": str(UpdateStrategy.ON_DELETE)}
    made = Ensure(plain.obj, (*plain.owned, ("spec", "updateStrategy")), exact=False)
    return [
        account(names.ADAPTOR),
        constraints(names.ADAPTOR, names.ADAPTOR, privileged=True, host_network=True),
        made,
    ]
