"""Strategies of native kinds: the table, and the functions that fill in what Kubernetes fills in.

Only what users and controllers can observe is here; the defaults that the kubelet and the scheduler need are left to real
Kubernetes. Rows are data wherever a kind has nothing peculiar.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from fastness.apiserver.catalog.definitions import default_crd
from fastness.apiserver.strategies import defaults, rules, workloads
from fastness.apiserver.strategies.strategy import Preparation, Strategy
from fastness.formats import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import Cause

MAX_DATA = 1024 * 1024
NAMESPACE_FINALIZER = "kubernetes"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def _namespace_created(obj: JsonObject, _about: Preparation) -> None:
    finalizers = list((obj.get("spec") or {}).get("finalizers") or ())
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers.append(NAMESPACE_FINALIZER)
    obj["spec"] = {**(obj.get("spec") or {}), "finalizers": finalizers}
    obj["status"] = {"phase": "Active"}


def _namespace_updated(obj: JsonObject, old: Mapping[str, Any]) -> None:
    obj["spec"] = old.get("spec", {})
    obj["status"] = old.get("status", {})


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
    return [*causes, *rules.secret_type(obj), *_check_immutable(obj, old, ("data",))]


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
        causes.append(Cause("[]", "FieldValueTooLong", f"Too long: may not be more than {MAX_DATA} bytes"))
    return causes + _check_immutable(obj, old, ("data", "binaryData"))


def _status_reset(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {}


def _replicas_reset(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {"replicas": 0}


def _stateful_reset(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {"replicas": 0, "availableReplicas": 0}


def _daemons_reset(obj: JsonObject, _about: Preparation) -> None:
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    obj["status"] = dict.fromkeys(counts, 0)


def _job_created(obj: JsonObject, _about: Preparation) -> None:
    """A job finds its pods by its own identity, unless it brought a selector."""
    obj["status"] = {}
    spec = obj.get("spec")
    if not isinstance(spec, dict) or spec.get("manualSelector") or not isinstance(spec.get("template"), dict):
        return
    meta, template = obj["metadata"], spec["template"]
    identity = {"controller-uid": meta["uid"], "job-name": meta.get("name", "")}
    labels = {**{f"batch.kubernetes.io/{key}": value for key, value in identity.items()}, **identity}
    template_meta = template.get("metadata") or {}
    marked = {**template, "metadata": {**template_meta, "labels": {**(template_meta.get("labels") or {}), **labels}}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}}
    obj["spec"] = {**spec, "selector": selector, "template": marked}
    if not meta.get("labels"):
        obj["metadata"] = {**meta, "labels": dict(marked["metadata"]["labels"])}


def _claim_created(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {"phase": "Pending"}


def _volume_created(obj: JsonObject, about: Preparation) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(about.now)}


def _service_created(obj: JsonObject, _about: Preparation) -> None:
    obj["status"] = {"loadBalancer": {}}


def _pod_created(obj: JsonObject, _about: Preparation) -> None:
    spec = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", **(obj.get("spec") or {})}
    spec["tolerations"] = _tolerations(spec.get("tolerations") or [])
    obj["spec"] = spec
    obj["status"] = {"phase": "Pending", "qosClass": _qos(spec)}


def _tolerations(stated: list[JsonObject]) -> list[JsonObject]:
    """With five minutes of patience for a node that is gone, unless the pod says otherwise."""
    tolerated = {entry.get("key") for entry in stated if entry.get("effect") in (None, "", "NoExecute")}
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if key not in tolerated and not tolerated & {None, ""}
    ]
    return [*stated, *added]


def _qos(spec: Mapping[str, Any]) -> str:
    """Guaranteed when every container limits cpu and memory to what it requests, BestEffort when none asks for anything."""
    requirements = [container.get("resources") or {} for container in spec.get("containers") or ()]
    if not any(resources.get("requests") or resources.get("limits") for resources in requirements):
        return "BestEffort"
    for resources in requirements:
        limits = resources.get("limits") or {}
        requests = {**limits, **(resources.get("requests") or {})}
        if not {"cpu", "memory"} <= limits.keys() or any(requests[name] != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _check_pod(obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("containers"):
        return [Cause("spec.containers", "FieldValueRequired", "Required value: a pod has at least one container")]
    causes = list(rules.containers(spec))
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


def _crd_defaults(obj: JsonObject) -> None:
    obj.update(default_crd(obj))


def _crd_created(obj: JsonObject, _about: Preparation) -> None:
    versions = (obj.get("spec") or {}).get("versions") or ()
    stored = [each.get("name") for each in versions if isinstance(each, dict) and each.get("storage")]
    obj["status"] = {"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}
    meta = obj["metadata"]
    finalizers = [*(meta.get("finalizers") or ())]
    if CRD_FINALIZER not in finalizers:
        obj["metadata"] = {**meta, "finalizers": [*finalizers, CRD_FINALIZER]}


def _event_created(obj: JsonObject, _about: Preparation) -> None:
    _complete_event(obj)


def _event_updated(obj: JsonObject, _old: Mapping[str, Any]) -> None:
    _complete_event(obj)


def _complete_event(obj: JsonObject) -> None:
    """Fields that every event shows, also those that say nothing: clients of both groups read them."""
    if obj["apiVersion"] == "v1":
        fields: JsonObject = {"source": {}, "reportingComponent": "", "reportingInstance": ""}
    else:
        fields = {"deprecatedSource": {}}
    for field, empty in fields.items():
        obj.setdefault(field, empty)


def _check_event(obj: Mapping[str, Any], _old: Mapping[str, Any] | None) -> list[Cause]:
    involved = obj.get("involvedObject") or {}
    namespace = obj["metadata"].get("namespace")
    if (involved.get("namespace") or "default") != namespace:
        text = f"Invalid value: {involved.get('namespace', '')!r}: does not match the event's namespace"
        return [Cause("involvedObject.namespace", "FieldValueInvalid", text)]
    return []


_COUNTED = Strategy(generation=True, defaults=workloads.replicated, on_create=_replicas_reset)
_WITH_STATUS = Strategy(generation=True, on_create=_status_reset)
_WEBHOOKS = Strategy(generation=True, defaults=defaults.webhooks)
_GENERATION = Strategy(generation=True)
_RETURNED = Strategy(returns_deleted=True)

NATIVE: Mapping[tuple[str, str], Strategy] = {
    ("", "namespaces"): Strategy(
        name_rule=names.dns1123_label,
        defaults=defaults.namespace,
        on_create=_namespace_created,
        on_update=_namespace_updated,
    ),
    ("", "secrets"): Strategy(defaults=defaults.secret, check=_check_secret),
    ("", "configmaps"): Strategy(defaults=defaults.without_empty_data, check=_check_config_map),
    ("", "pods"): Strategy(
        generation=True,
        defaults=workloads.pod,
        on_create=_pod_created,
        check=_check_pod,
        returns_deleted=True,
        graceful=True,
    ),
    ("", "nodes"): Strategy(check=rules.node, status_keeps_metadata=False),
    ("", "serviceaccounts"): _RETURNED,
    ("", "services"): Strategy(
        name_rule=names.dns1123_label, defaults=defaults.service, on_create=_service_created, returns_deleted=True
    ),
    ("", "persistentvolumeclaims"): Strategy(
        defaults=defaults.claim, on_create=_claim_created, check=rules.claim, returns_deleted=True
    ),
    ("", "persistentvolumes"): Strategy(defaults=defaults.volume, on_create=_volume_created, returns_deleted=True),
    ("", "podtemplates"): Strategy(generation=True, defaults=workloads.pod_template, returns_deleted=True),
    ("", "endpoints"): Strategy(defaults=defaults.endpoints),
    ("", "resourcequotas"): Strategy(on_create=_status_reset, returns_deleted=True),
    ("", "events"): Strategy(on_create=_event_created, on_update=_event_updated, check=_check_event),
    ("events.k8s.io", "events"): Strategy(on_create=_event_created, on_update=_event_updated, check=rules.event),
    ("", "replicationcontrollers"): _COUNTED,
    ("apps", "deployments"): Strategy(
        generation=True, defaults=workloads.deployment, on_create=_status_reset, check=rules.deployment
    ),
    ("apps", "replicasets"): _COUNTED,
    ("apps", "statefulsets"): Strategy(
        generation=True, defaults=workloads.stateful_set, on_create=_stateful_reset, check=rules.deployment
    ),
    ("apps", "daemonsets"): Strategy(
        generation=True, defaults=workloads.daemon_set, on_create=_daemons_reset, check=rules.deployment
    ),
    ("batch", "jobs"): Strategy(generation=True, defaults=workloads.job, on_create=_job_created, check=rules.job),
    ("batch", "cronjobs"): Strategy(generation=True, defaults=workloads.cron_job, on_create=_status_reset),
    ("policy", "poddisruptionbudgets"): Strategy(generation=True, on_create=_budget_created, check=_check_budget),
    ("networking.k8s.io", "networkpolicies"): Strategy(generation=True, defaults=defaults.network_policy),
    ("networking.k8s.io", "ingresses"): Strategy(generation=True, on_create=_service_created),
    ("networking.k8s.io", "ingressclasses"): _GENERATION,
    ("scheduling.k8s.io", "priorityclasses"): Strategy(
        generation=True, defaults=defaults.priority_class, check=rules.priority_class
    ),
    ("coordination.k8s.io", "leases"): Strategy(check=rules.lease),
    ("storage.k8s.io", "storageclasses"): Strategy(defaults=defaults.storage_class, returns_deleted=True),
    ("discovery.k8s.io", "endpointslices"): Strategy(generation=True, defaults=defaults.endpoint_slice),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _WITH_STATUS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _GENERATION,
    # A kubelet names its request after the digest of its key, in base64url, so letters of both cases must do.
    ("certificates.k8s.io", "certificatesigningrequests"): Strategy(
        name_rule=names.path_segment,
        on_create=_csr_created,
        on_update=_csr_updated,
        check=rules.signing_request,
        checks_parts=True,
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): Strategy(
        generation=True, defaults=_crd_defaults, on_create=_crd_created, bare_finalizers=True
    ),
    ("rbac.authorization.k8s.io", "roles"): Strategy(name_rule=names.path_segment, check=rules.role),
    ("rbac.authorization.k8s.io", "clusterroles"): Strategy(name_rule=names.path_segment, check=rules.cluster_role),
    ("rbac.authorization.k8s.io", "rolebindings"): Strategy(
        name_rule=names.path_segment, defaults=defaults.binding, check=rules.role_binding
    ),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): Strategy(
        name_rule=names.path_segment, defaults=defaults.binding, check=rules.cluster_role_binding
    ),
}
