"""Subresources that are not a part of the object: scale, eviction, binding, approval, finalize.

`status` is handled by the write pipeline itself. Each function here takes the engine and does one thing; the table `CONNECT` says
which kinds have which, and a path outside of it is a 404. Tokens of service accounts are issued by `auth/`.

* An eviction asks every disruption budget of the pod's namespace and answers 429 when one says no, so that drains wait.
* `finalize` changes `spec.finalizers` of a namespace and nothing else.
* `approval` changes the conditions of a signing request and nothing else.
"""

from __future__ import annotations

from typing import Any, NoReturn

from fastness.apiserver import storable
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.refusals import invalid, no_such_resource, not_found
from fastness.apiserver.verbs.drafts import part
from fastness.apiserver.verbs.writes import Edit, Written
from fastness.formats import json
from fastness.formats.patch import apply_json_patch, apply_merge_patch
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.budgets import assess, guards, is_ready, needs_no_budget
from fastness.kube.errors import BadRequest, Cause, Conflict, InternalError, Invalid, TooManyRequests
from fastness.kube.port import DeleteOptions, PatchType

OF_A_KUBELET = frozenset({"log", "exec", "attach", "portforward", "proxy"})
_DONE: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def evict(api: EmbeddedApi, call: Call, namespace: str, name: str, body: JsonObject) -> JsonObject:
    """Delete a pod unless a disruption budget forbids it; raises TooManyRequests, NotFound."""
    if body.get("kind") != "Eviction":
        raise BadRequest("the body of an eviction is an Eviction of policy/v1")
    if (part(body, "metadata").get("name") or name) != name:
        raise BadRequest("the name in the eviction does not match the pod in the path")
    pods = api.served("", "v1", "pods")
    pod = storable.read(api.get(pods, namespace, name))
    if not needs_no_budget(pod):
        _ask_budgets(api, namespace, pod)
    sent = part(body, "deleteOptions")
    preconditions = part(sent, "preconditions")
    options = DeleteOptions(
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=call.dry_run or bool(sent.get("dryRun")),
    )
    await api.delete(call, pods, namespace, name, options)
    return _DONE


def _ask_budgets(api: EmbeddedApi, namespace: str, pod: JsonObject) -> None:
    budgets = (
        storable.read(record.body) for record in api.store.range("policy", "poddisruptionbudgets", namespace).records
    )
    guarding = [budget for budget in budgets if guards(budget, pod)]
    if not guarding:
        return
    # The answer of kube-apiserver, which does not support this either: whoever drains learns it here already.
    if len(guarding) > 1:
        raise InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = guarding[0]
    pods = [storable.read(record.body) for record in api.store.range("", "pods", namespace).records]
    assessment = assess(budget, pods)
    if assessment.allowed > 0 or not is_ready(pod):
        return
    name = budget["metadata"]["name"]
    text = (
        f"The disruption budget {name} needs {assessment.desired} healthy pods and has {assessment.healthy} currently"
    )
    # No Retry-After: clients would wait silently by themselves, and `kubectl drain` could not say what blocks it.
    raise TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        causes=[Cause("", "DisruptionBudget", text)],
    )


async def bind(api: EmbeddedApi, call: Call, namespace: str, name: str, body: JsonObject) -> JsonObject:
    """Put a pod on a node; raises Conflict when it is on one."""
    node = part(body, "target").get("name")
    if not node or not isinstance(node, str):
        raise BadRequest("target.name: a binding names a node")
    pods = api.served("", "v1", "pods")

    def edit(old: JsonObject | None) -> JsonObject:
        pod = old or {}
        # Of two schedulers that choose at once, the second gets a conflict and not the pod.
        if (pod.get("spec") or {}).get("nodeName"):
            why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            text = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
            raise Conflict(text, kind="pods/binding", name=name)
        now = rfc3339(api.clock.now())
        scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        others = [each for each in (pod.get("status") or {}).get("conditions") or () if each["type"] != "PodScheduled"]
        status = {**(pod.get("status") or {}), "conditions": [*others, scheduled]}
        return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}

    await api.change(call, pods, namespace, name, edit, "binding")
    return _DONE


def of_a_kubelet(obj: JsonObject, subresource: str) -> NoReturn:
    """What a kubelet would be asked for; always raises BadRequest.

    Nodes here run no containers, so there is nobody to pass the question on to. Kubernetes answers an empty log for a pod that is
    on no node; here that would look like a program that ran and said nothing.
    """
    name, node = obj["metadata"]["name"], part(obj, "spec").get("nodeName")
    if subresource == "log" and not node:
        raise BadRequest(f"pod {name} never ran, so it has no log: it is on no node")
    if obj.get("kind") == "Pod" and not node:
        raise BadRequest(f"pod {name} does not have a host assigned")
    raise BadRequest(f"{subresource} of {name} is not available: nodes of this control plane run no containers")


def only(served: Served, subresource: str, sent: JsonObject) -> Edit:
    """An edit that takes from `sent` only what the subresource may change."""

    def edit(old: JsonObject | None) -> JsonObject:
        base = old or {}
        meta = part(sent, "metadata")
        # RBAC grants these subresources by themselves: whoever may finalize a namespace may thereby not edit its labels.
        identity = {key: meta[key] for key in ("name", "uid", "resourceVersion") if key in meta}
        unchanged = {**base, "metadata": {**base["metadata"], **identity}}
        if subresource == "finalize":
            return {
                **unchanged,
                "spec": {**(base.get("spec") or {}), "finalizers": part(sent, "spec").get("finalizers") or []},
            }
        conditions = part(sent, "status").get("conditions") or []
        return {**unchanged, "status": {**(base.get("status") or {}), "conditions": conditions}}

    if (served.kind.kind, subresource) not in (("Namespace", "finalize"), ("CertificateSigningRequest", "approval")):
        raise no_such_resource()
    return edit


def get_scale(served: Served, obj: JsonObject) -> JsonObject:
    """The Scale of an object; raises NotFound for kinds without one."""
    paths = scale_paths(served)
    selector = _at(obj, paths["labelSelectorPath"]) if paths.get("labelSelectorPath") else None
    status: JsonObject = {"replicas": _at(obj, paths["statusReplicasPath"]) or 0}
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    source = obj["metadata"]
    meta = {
        key: source[key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in source
    }
    spec = {"replicas": _at(obj, paths["specReplicasPath"]) or 0}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def scale_paths(served: Served) -> dict[str, str]:
    """Where a kind keeps its replicas; raises NotFound for kinds without a scale."""
    if "scale" not in served.kind.subresources:
        raise no_such_resource()
    if served.kind.scale:
        return dict(served.kind.scale)
    return {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".spec.selector",
    }  # fmt: skip


def scaled(served: Served, name: str, change: Any) -> Edit:
    """An edit that sets the replicas; `change` makes a new Scale out of the present one."""
    paths = scale_paths(served)

    def edit(old: JsonObject | None) -> JsonObject:
        if old is None:
            raise not_found(served, name)
        scale = change(get_scale(served, old))
        replicas = part(scale, "spec").get("replicas", 0)
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
            raise _bad_replicas(served, name, f"Invalid value: {replicas!r:.40}: must be a number of at least 0")
        version = part(scale, "metadata").get("resourceVersion")
        new = _with(old, paths["specReplicasPath"], replicas)
        return {**new, "metadata": {**new["metadata"], "resourceVersion": version}} if version else new

    return edit


def _bad_replicas(served: Served, name: str, text: str) -> Invalid:
    """A native kind refuses its Scale, a custom kind itself by the path that its definition names."""
    if not served.kind.native:
        return invalid(served, name, [Cause(scale_paths(served)["specReplicasPath"], "FieldValueInvalid", text)])
    cause = Cause("spec.replicas", "FieldValueInvalid", text)
    message = f'Scale.autoscaling "{name}" is invalid: spec.replicas: {text}'
    return Invalid(message, group="autoscaling", kind="Scale", name=name, causes=[cause])


def scale_change(kind: PatchType | None, body: Any) -> Any:
    """What a PUT (None) or a patch does to a Scale."""
    if kind is None:
        if body.get("kind", "Scale") != "Scale":
            raise BadRequest(f"{str(body['kind'])[:60]} cannot be handled as a Scale")
        return lambda _scale: body
    if kind is PatchType.JSON:
        return lambda scale: apply_json_patch(scale, body)
    return lambda scale: apply_merge_patch(scale, body)


async def change_scale(api: EmbeddedApi, call: Call, served: Served, namespace: str, name: str, change: Any) -> Written:
    """Set the replicas of an object and answer with its Scale."""
    done = await api.change(call, served, namespace, name, scaled(served, name, change), "scale")
    return Written(json.encode(get_scale(served, storable.read(done.body))))


def _at(obj: JsonObject, path: str) -> Any:
    value: Any = obj
    for name in path.lstrip(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _with(obj: JsonObject, path: str, value: Any) -> JsonObject:
    first, _, rest = path.lstrip(".").partition(".")
    below = obj.get(first)
    return {**obj, first: _with(below if isinstance(below, dict) else {}, rest, value) if rest else value}


def _selector_text(selector: JsonObject) -> str:
    labels = selector.get("matchLabels", selector if "matchExpressions" not in selector else {})
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()) if isinstance(value, str))
