"""Strategies of native kinds: the table, and the functions that fill in what Kubernetes fills in.

Only what users and controllers can observe is here; the defaults that the kubelet and the scheduler need are left to real
Kubernetes. Rows are data wherever a kind has nothing peculiar.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from fastness.cluster.embedded.catalog.definitions import default_crd
from fastness.cluster.embedded.strategies.strategy import Preparation, Strategy
from fastness.cluster.errors import Cause
from fastness.formats import names
from fastness.model.kind import JsonObject

MAX_DATA = 1024 * 1024
NAMESPACE_FINALIZER = "kubernetes"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
NAME_LABEL = "kubernetes.io/metadata.name"


def _namespace_created(obj: JsonObject, _about: Preparation) -> None:
    finalizers = list((obj.get("spec") or {}).get("finalizers") or ())
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers.append(NAMESPACE_FINALIZER)
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": finalizers}
    obj["status"] = {"phase": "Active"}
    _label_namespace(obj)


def _namespace_updated(obj: JsonObject, old: Mapping[str, Any]) -> None:
    obj["spec"] = old.get("spec", {})
    obj["status"] = old.get("status", {})
    _label_namespace(obj)


def _label_namespace(obj: JsonObject) -> None:
    meta = obj["metadata"]
    if meta.get("name"):
        obj["metadata"] = {**meta, "labels": {**(meta.get("labels") or {}), NAME_LABEL: meta["name"]}}


def _merge_string_data(obj: JsonObject) -> None:
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _secret_created(obj: JsonObject, _about: Preparation) -> None:
    _merge_string_data(obj)
    obj.setdefault("type", "Opaque")


def _secret_updated(obj: JsonObject, old: Mapping[str, Any]) -> None:
    _merge_string_data(obj)
    obj.setdefault("type", old.get("type", "Opaque"))


def _check_secret(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    causes, size = [], 0
    for key, value in (obj.get("data") or {}).items():
        causes += _data_key(key)
        try:
            size += len(base64.b64decode(value or "", validate=True))
        except (binascii.Error, ValueError):
            causes.append(Cause(f"data[{key}]", "FieldValueInvalid", "Invalid value: not base64"))
    if size > MAX_DATA:
        causes.append(Cause("data", "FieldValueTooLong", f"Too long: may not be more than {MAX_DATA} bytes"))
    if old is not None and obj.get("type") != old.get("type"):
        causes.append(Cause("type", "FieldValueInvalid", f"Invalid value: {obj.get('type')!r}: field is immutable"))
    return causes + _check_immutable(obj, old, ("data",))


def _data_key(key: str) -> list[Cause]:
    good = 0 < len(key) <= 253 and all(char.isalnum() or char in "-_." for char in key) and key.isascii()
    if good and key not in (".", "..") and not key.startswith(".."):
        return []
    return [
        Cause(f"data[{key[:60]}]", "FieldValueInvalid", f"Invalid value: {key[:60]!r}: a key has A-Z a-z 0-9 - _ .")
    ]


def _check_immutable(obj: Mapping[str, Any], old: Mapping[str, Any] | None, fields: tuple[str, ...]) -> list[Cause]:
    if old is None or not old.get("immutable"):
        return []
    changed = [name for name in fields if obj.get(name) != old.get(name)]
    changed += [] if obj.get("immutable") else ["immutable"]
    return [
        Cause(name, "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set") for name in changed
    ]


def _check_config_map(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    causes, size = [], 0
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in (*data, *binary):
        causes += _data_key(key)
    for key in data.keys() & binary.keys():
        causes.append(
            Cause(f"data[{key}]", "FieldValueInvalid", "Invalid value: duplicate of key present in binaryData")
        )
    size = sum(len(value) for value in (*data.values(), *binary.values()) if isinstance(value, str))
    if size > MAX_DATA:
        causes.append(Cause("", "FieldValueTooLong", f"Too long: may not be more than {MAX_DATA} bytes"))
    return causes + _check_immutable(obj, old, ("data", "binaryData"))


def _status_reset(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {}


def _scalable_created(obj: JsonObject, about: Preparation) -> None:
    _status_reset(obj, about)
    spec = obj.get("spec")
    if isinstance(spec, dict):
        obj["spec"] = {"replicas": 1, **spec}


def _pod_created(obj: JsonObject, _about: Preparation) -> None:
    spec = {
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler", "enableServiceLinks": True, "securityContext": {},
        **(obj.get("spec") or {}),
    }  # fmt: skip
    obj["spec"] = spec
    obj["status"] = {"phase": "Pending", "qosClass": _qos(spec)}


def _qos(spec: Mapping[str, Any]) -> str:
    """Guaranteed when every container limits cpu and memory to what it requests, BestEffort when none asks for anything."""
    asked = [container.get("resources") or {} for container in spec.get("containers") or ()]
    if not any(resources.get("requests") or resources.get("limits") for resources in asked):
        return "BestEffort"
    for resources in asked:
        limits = resources.get("limits") or {}
        requests = {**limits, **(resources.get("requests") or {})}
        if not {"cpu", "memory"} <= limits.keys() or any(requests[name] != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _check_pod(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("containers"):
        return [Cause("spec.containers", "FieldValueRequired", "Required value: a pod has at least one container")]
    causes = [
        Cause(f"spec.containers[{index}].image", "FieldValueRequired", "Required value: what the container runs")
        for index, container in enumerate(spec["containers"])
        if not container.get("image")
    ]
    if old is not None:
        before = old.get("spec") or {}
        frozen = [name for name in spec.keys() | before.keys() if name not in _POD_MUTABLE]
        if any(spec.get(name) != before.get(name) for name in frozen):
            text = "Forbidden: of a pod's spec only images, tolerations and deadlines may change"
            causes.append(Cause("spec", "FieldValueForbidden", text))
    return causes


_POD_MUTABLE = frozenset({
    "containers", "initContainers", "activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName",
    "schedulingGates",
})  # fmt: skip


def _budget_created(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}


def _check_budget(obj: Mapping[str, Any], _old: Mapping[str, Any] | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        return [Cause("spec", "FieldValueInvalid", "Invalid value: minAvailable and maxUnavailable exclude each other")]
    return []


def _csr_created(obj: JsonObject, about: Preparation) -> None:
    spec = {**(obj.get("spec") or {}), "username": about.username, "groups": list(about.groups)}
    obj["spec"] = {**spec, **({"uid": about.uid} if about.uid else {})}
    obj["status"] = {}


def _csr_updated(obj: JsonObject, old: Mapping[str, Any]) -> None:
    obj["spec"] = old.get("spec", {})


def _crd_created(obj: JsonObject, _about: Preparation) -> None:
    obj.update(default_crd(obj))
    obj["status"] = {}
    meta = obj["metadata"]
    finalizers = [*(meta.get("finalizers") or ())]
    if CRD_FINALIZER not in finalizers:
        obj["metadata"] = {**meta, "finalizers": [*finalizers, CRD_FINALIZER]}


def _crd_updated(obj: JsonObject, _old: Mapping[str, Any]) -> None:
    obj.update(default_crd(obj))


def _check_role_ref(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    causes = []
    ref = obj.get("roleRef") or {}
    if not ref.get("name"):
        causes.append(Cause("roleRef.name", "FieldValueRequired", "Required value: the role that is bound"))
    if old is not None and ref != old.get("roleRef"):
        causes.append(
            Cause("roleRef", "FieldValueInvalid", "Invalid value: cannot change roleRef; delete and create anew")
        )
    for index, subject in enumerate(obj.get("subjects") or ()):
        if subject.get("kind") not in ("User", "Group", "ServiceAccount"):
            causes.append(
                Cause(
                    f"subjects[{index}].kind",
                    "FieldValueNotSupported",
                    "Unsupported value: User, Group or ServiceAccount",
                )
            )
    return causes


def _check_event(obj: Mapping[str, Any], _old: Mapping[str, Any] | None) -> list[Cause]:
    involved = obj.get("involvedObject") or {}
    namespace = obj["metadata"].get("namespace")
    if (involved.get("namespace") or "default") != namespace:
        text = f"Invalid value: {involved.get('namespace', '')!r}: does not match the event's namespace"
        return [Cause("involvedObject.namespace", "FieldValueInvalid", text)]
    return []


_COUNTED = Strategy(generation=True, on_create=_scalable_created)
_WITH_STATUS = Strategy(generation=True, on_create=_status_reset)
_BINDING = Strategy(name_rule=names.path_segment, check=_check_role_ref)
_ROLE = Strategy(name_rule=names.path_segment)
_GENERATION = Strategy(generation=True)
_RETURNED = Strategy(returns_deleted=True)

NATIVE: Mapping[tuple[str, str], Strategy] = {
    ("", "namespaces"): Strategy(
        name_rule=names.dns1123_label, on_create=_namespace_created, on_update=_namespace_updated
    ),
    ("", "secrets"): Strategy(on_create=_secret_created, on_update=_secret_updated, check=_check_secret),
    ("", "configmaps"): Strategy(check=_check_config_map),
    ("", "pods"): Strategy(generation=True, on_create=_pod_created, check=_check_pod, returns_deleted=True),
    ("", "nodes"): Strategy(status_keeps_metadata=False),
    ("", "serviceaccounts"): _RETURNED,
    ("", "services"): Strategy(name_rule=names.dns1035_label, returns_deleted=True),
    ("", "persistentvolumeclaims"): Strategy(on_create=_status_reset, returns_deleted=True),
    ("", "persistentvolumes"): Strategy(on_create=_status_reset, returns_deleted=True),
    ("", "podtemplates"): _RETURNED,
    ("", "resourcequotas"): Strategy(on_create=_status_reset, returns_deleted=True),
    ("", "events"): Strategy(check=_check_event),
    ("", "replicationcontrollers"): _COUNTED,
    ("apps", "deployments"): _COUNTED,
    ("apps", "replicasets"): _COUNTED,
    ("apps", "statefulsets"): _COUNTED,
    ("apps", "daemonsets"): _WITH_STATUS,
    ("batch", "jobs"): _WITH_STATUS,
    ("batch", "cronjobs"): _WITH_STATUS,
    ("policy", "poddisruptionbudgets"): Strategy(generation=True, on_create=_budget_created, check=_check_budget),
    ("networking.k8s.io", "networkpolicies"): _GENERATION,
    ("networking.k8s.io", "ingresses"): _WITH_STATUS,
    ("networking.k8s.io", "ingressclasses"): _GENERATION,
    ("scheduling.k8s.io", "priorityclasses"): _GENERATION,
    ("storage.k8s.io", "storageclasses"): _RETURNED,
    ("discovery.k8s.io", "endpointslices"): _GENERATION,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _GENERATION,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _GENERATION,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _WITH_STATUS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _GENERATION,
    ("certificates.k8s.io", "certificatesigningrequests"): Strategy(on_create=_csr_created, on_update=_csr_updated),
    ("apiextensions.k8s.io", "customresourcedefinitions"): Strategy(
        generation=True, on_create=_crd_created, on_update=_crd_updated, bare_finalizers=True
    ),
    ("rbac.authorization.k8s.io", "roles"): _ROLE,
    ("rbac.authorization.k8s.io", "clusterroles"): _ROLE,
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
}
