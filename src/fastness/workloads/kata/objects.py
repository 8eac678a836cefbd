"""The objects that an installation makes, as manifests.

Each comes as an `Ensure`, which says what of it is ours: a limit that somebody sets on the pool, a label that somebody adds
to a class, stay. Names are those of the manual (`kinds.kata.names`), because people look for them.

One of them is a copy: the dashboard of sandboxed containers, where the console looks for dashboards.

    ConfigMap in the operator's namespace ─ copy, with the console's label ─ ConfigMap in the console's namespace

* The source comes with the operator's release. Without it, or without the console's namespace, there is nothing to copy and
  nobody misses it; neither is made here.
* The copy follows its source: what somebody writes into it is undone, and it goes when the source or the KataConfig goes.
* Only a copy that says of itself that it is ours is touched. A dashboard that somebody put there under the same name stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.kinds.kata import GROUP, VERSION, names
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import is_being_deleted, labels_of, metadata, object_name
from fastness.workloads.kata.classes import ClassSpec
from fastness.workloads.kata.eligibility import NodeRequirements
from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.inputs import Action, Ensure, Inputs, Object, Ref, Remove

AGENT_IMAGE: Final = "fastness-agent"
MONITOR_IMAGE: Final = "kata-monitor"
MONITOR_PORT: Final = 8090
IGNITION: Final = "3.2.0"
_LEAVING: Final = (
    InstallState.WAITING_TO_UNINSTALL, InstallState.UNINSTALLING, InstallState.WAITING_FOR_REBOOT,
    InstallState.FAILED_TO_UNINSTALL,
)  # fmt: skip
DASHBOARD_SOURCE: Final = Ref("ConfigMap", names.DASHBOARD, names.NAMESPACE)
DASHBOARD_COPY: Final = Ref("ConfigMap", names.DASHBOARD, names.DASHBOARD_NAMESPACE)
_OUR_COPY: Final = {names.DASHBOARD_LABEL: "true", "app.kubernetes.io/managed-by": "fastness"}
ALL_TAINTS: Final = [{"operator": "Exists"}]
NODE_NAME: Final[JsonObject] = {
    "name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
}  # fmt: skip


def owner_of(config: Object) -> JsonObject:
    """The KataConfig as the controlling owner of what is made for it."""
    meta = metadata(config)
    return {
        "apiVersion": f"{GROUP}/{VERSION}", "kind": "KataConfig", "name": meta.get("name"), "uid": meta.get("uid"),
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def extension_config(config: Object, pool: str, extension: str) -> Ensure:
    """The MachineConfig that adds the packages."""
    return machine_config(config, pool, names.EXTENSION_CONFIG, {"extensions": [extension]})


def image_config(config: Object, pool: str, layered: Object | None) -> Ensure:
    """The MachineConfig that boots an image with the packages in it; raises Refused when nobody said which."""
    data = (layered or {}).get("data") or {}
    image = str(data.get("osImageURL") or "")
    if not image:
        raise Refused(
            "LayeredImageMissing", f"ConfigMap {names.LAYERED_IMAGE} does not say osImageURL",
            f"create it in {names.NAMESPACE}, or set layeredImageDeployment to false", again=20.0,
        )  # fmt: skip
    arguments = str(data.get("kernelArguments") or "").split()
    more = {"osImageURL": image, **({"kernelArguments": arguments} if arguments else {})}
    return machine_config(config, pool, names.IMAGE_CONFIG, more)


def machine_config(config: Object, pool: str, name: str, more: JsonObject) -> Ensure:
    """A MachineConfig of the pool; `more` are the fields of its spec."""
    labels = {mco.ROLE_LABEL: pool, "app": object_name(config).name}
    obj: JsonObject = {
        "apiVersion": mco.API_VERSION, "kind": "MachineConfig", "metadata": {"name": name, "labels": labels},
        "spec": {"config": {"ignition": {"version": IGNITION}}, **more},
    }  # fmt: skip
    return Ensure(obj, tuple(("spec", field) for field in obj["spec"]))


def kata_pool() -> Ensure:
    """The pool of nodes with the runtime: workers with something more. How many go at a time is its owner's choice."""
    roles = [{"key": mco.ROLE_LABEL, "operator": "In", "values": [names.POOL, mco.WORKER]}]
    obj: JsonObject = {
        "apiVersion": mco.API_VERSION, "kind": "MachineConfigPool",
        "metadata": {"name": names.POOL, "labels": {f"{mco.POOL_LABEL_PREFIX}{names.POOL}": ""}},
        "spec": {
            "machineConfigSelector": {"matchExpressions": roles},
            "nodeSelector": {"matchLabels": {names.ROLE_LABEL: ""}},
        },
    }  # fmt: skip
    return Ensure(obj, (("spec", "machineConfigSelector"), ("spec", "nodeSelector")))


def runtime_config(level: str, pool: str) -> Ensure:
    """The log level of the container runtime on the nodes of the pool."""
    obj: JsonObject = {
        "apiVersion": mco.API_VERSION, "kind": "ContainerRuntimeConfig", "metadata": {"name": names.RUNTIME_CONFIG},
        "spec": {
            "machineConfigPoolSelector": {"matchLabels": {f"{mco.POOL_LABEL_PREFIX}{pool}": ""}},
            "containerRuntimeConfig": {"logLevel": level},
        },
    }  # fmt: skip
    return Ensure(obj, (("spec", "machineConfigPoolSelector"), ("spec", "containerRuntimeConfig", "logLevel")))


def runtime_class(config: Object, spec: ClassSpec, requirements: NodeRequirements) -> Ensure:
    """A runtime class, held until no pod uses it."""
    obj: JsonObject = {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
        "metadata": {"name": spec.name, "finalizers": [names.CLASS_FINALIZER], "ownerReferences": [owner_of(config)]},
        "handler": spec.handler,
        "overhead": {"podFixed": dict(spec.overhead)},
        "scheduling": {"nodeSelector": spec.selector(requirements)},
    }  # fmt: skip
    return Ensure(obj, (("overhead",), ("scheduling", "nodeSelector")))


def installers(role_label: str, level: str, pull_secret: Object | None, *, peer_pods: bool = False) -> list[Ensure]:
    """What installs where no machine configs are: an account that may, the pull secret, two DaemonSets.

    A node is in one of them at a time: its state label says in which.
    """
    arriving: list[JsonObject] = [
        {"key": role_label, "operator": "Exists"},
        {"key": names.STATE_LABEL, "operator": "NotIn", "values": [*_LEAVING, InstallState.UNINSTALLED]},
    ]
    leaving: list[JsonObject] = [{"key": names.STATE_LABEL, "operator": "In", "values": [*_LEAVING]}]
    env = _variables(role_label, level, peer_pods=peer_pods)
    return [
        account(names.INSTALLER_ACCOUNT),
        *_rights(names.INSTALLER_ACCOUNT),
        constraints(names.INSTALLER_SCC, names.INSTALLER_ACCOUNT, privileged=True),
        *([_secret(pull_secret)] if pull_secret is not None else ()),
        _installer(names.INSTALLER, "install", arriving, env),
        _installer(names.UNINSTALLER, "uninstall", leaving, env),
    ]


def monitors(role_label: str) -> list[Ensure]:
    """What reports on running sandboxes."""
    container = {
        "name": "monitor", "image": MONITOR_IMAGE,
        "ports": [{"name": "metrics", "containerPort": MONITOR_PORT, "protocol": "TCP"}],
        "securityContext": {
            "runAsUser": 1001, "runAsGroup": 1001, "allowPrivilegeEscalation": False,
            "seLinuxOptions": {"type": "osc_monitor.process"},
        },
        "volumeMounts": [{"name": "crio", "mountPath": "/run/crio"}, {"name": "sandboxes", "mountPath": "/run/vc/sbs"}],
    }  # fmt: skip
    pod = {
        "serviceAccountName": names.MONITOR_ACCOUNT, "nodeSelector": {role_label: ""}, "tolerations": ALL_TAINTS,
        "containers": [container],
        "volumes": [host_path("crio", "/run/crio"), host_path("sandboxes", "/run/vc/sbs")],
    }  # fmt: skip
    return [
        account(names.MONITOR_ACCOUNT),
        constraints(names.MONITOR_SCC, names.MONITOR_ACCOUNT, privileged=False),
        daemon_set(names.MONITOR, pod),
    ]


def _variables(role_label: str, level: str, *, peer_pods: bool) -> list[JsonObject]:
    """The environment of the pods of the installers."""
    variables: list[JsonObject] = [
        NODE_NAME,
        {"name": "NODE_LABEL", "value": role_label},
        {"name": "LOG_LEVEL", "value": level},
    ]
    return [*variables, {"name": names.PEER_PODS_VARIABLE, "value": "true"}] if peer_pods else variables


def _installer(name: str, verb: str, where: Sequence[JsonObject], env: Sequence[JsonObject]) -> Ensure:
    container = {
        "name": f"kata-{verb}", "image": AGENT_IMAGE, "command": ["fastness-agent", "kata", verb], "env": list(env),
        "securityContext": {"privileged": True}, "volumeMounts": [{"name": "host", "mountPath": "/host"}],
    }  # fmt: skip
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": list(where)}],
        }},
    }  # fmt: skip
    pod = {
        "serviceAccountName": names.INSTALLER_ACCOUNT, "hostPID": True, "affinity": affinity, "tolerations": ALL_TAINTS,
        "containers": [container], "volumes": [host_path("host", "/")],
    }  # fmt: skip
    return daemon_set(name, pod)


def daemon_set(name: str, pod: JsonObject) -> Ensure:
    """A DaemonSet in the operator's namespace whose pods are replaced one at a time."""
    labels = {"name": name}
    obj: JsonObject = {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": names.NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }  # fmt: skip
    # A server fills defaults into templates of pods: what it added is no difference.
    return Ensure(obj, (("spec", "template"),), exact=False)


def account(name: str) -> Ensure:
    """An account in the operator's namespace."""
    meta = {"name": name, "namespace": names.NAMESPACE}
    return Ensure({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}, ())


def _rights(account: str) -> list[Ensure]:
    """What the account may do: follow nodes and move their labels."""
    group, subject = (
        "rbac.authorization.k8s.io",
        {"kind": "ServiceAccount", "name": account, "namespace": names.NAMESPACE},
    )
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]}]
    meta, reference = {"name": account}, {"apiGroup": group, "kind": "ClusterRole", "name": account}
    role: JsonObject = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    binding: JsonObject = {
        "apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": meta, "roleRef": reference, "subjects": [subject],
    }  # fmt: skip
    return [Ensure(role, (("rules",),)), Ensure(binding, (("subjects",),))]


def constraints(name: str, account: str, *, privileged: bool, host_network: bool = False) -> Ensure:
    """What the pods of an account may do to their node."""
    any_kind = {"type": "RunAsAny"}
    obj: JsonObject = {
        "apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": {"name": name},
        "allowPrivilegedContainer": privileged, "allowHostPID": privileged and not host_network,
        "allowHostDirVolumePlugin": True, "allowHostIPC": False, "allowHostNetwork": host_network, "allowHostPorts": host_network,
        "readOnlyRootFilesystem": False,
        "runAsUser": any_kind, "seLinuxContext": any_kind, "fsGroup": any_kind, "supplementalGroups": any_kind,
        "volumes": ["hostPath", "projected", "secret"],
        "users": [f"system:serviceaccount:{names.NAMESPACE}:{account}"],
    }  # fmt: skip
    return Ensure(obj, (("allowPrivilegedContainer",), ("users",)))


def _secret(cluster_secret: Object) -> Ensure:
    obj: JsonObject = {
        "apiVersion": "v1", "kind": "Secret", "type": cluster_secret.get("type") or "Opaque",
        "metadata": {"name": names.PULL_SECRET, "namespace": names.NAMESPACE},
        "data": dict(cluster_secret.get("data") or {}),
    }  # fmt: skip
    return Ensure(obj, (("data",),))


def host_path(name: str, path: str) -> JsonObject:
    """A directory of the node as a volume."""
    return {"name": name, "hostPath": {"path": path, "type": ""}}


def dashboard(inputs: Inputs) -> list[Action]:
    """What brings the copy in step with its source."""
    source, copy = inputs.objects.get(DASHBOARD_SOURCE), inputs.objects.get(DASHBOARD_COPY)
    if source is None or is_being_deleted(source):
        return without_dashboard(inputs)
    if copy is None:
        return [_copy(source, {})] if inputs.console else []
    ensure = _copy(source, copy)
    return [ensure] if _is_ours(copy) and not is_being_deleted(copy) and ensure.differs(copy) else []


def without_dashboard(inputs: Inputs) -> list[Action]:
    """What takes the copy away."""
    copy = inputs.objects.get(DASHBOARD_COPY)
    return [Remove(DASHBOARD_COPY)] if copy is not None and _is_ours(copy) and not is_being_deleted(copy) else []


def _is_ours(copy: Object) -> bool:
    return _OUR_COPY.items() <= labels_of(copy).items()


def _copy(source: Object, present: Object) -> Ensure:
    # A field that the source no longer has is ours too: it must not stay in the copy. A server keeps no empty ones.
    fields = [name for name in ("data", "binaryData") if source.get(name) or present.get(name)]
    meta = {"name": DASHBOARD_COPY.name, "namespace": DASHBOARD_COPY.namespace, "labels": dict(_OUR_COPY)}
    content = {name: dict(source.get(name) or {}) for name in fields}
    obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **content}
    return Ensure(obj, tuple((name,) for name in fields))
