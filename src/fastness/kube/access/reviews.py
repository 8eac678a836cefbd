"""The questions that kubectl asks about access: body in, body out.

`kubectl auth can-i`, `auth can-i --list` and `auth whoami` create a review object, which is never stored; the answer is the same
object with a status. Each function takes the body as it came and what it needs to decide, and returns the answered body.

* SubjectAccessReview and LocalSubjectAccessReview ask for somebody else; who may ask is decided by RBAC beforehand.
* The two Self… access reviews ask for the caller, so that nobody needs a permission to learn what they may do.
* Bodies that say too little raise `InvalidReview` with the fields, in the words of a real server, or `EmptyReview`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from fastness.kinds.kind import JsonObject
from fastness.kube.access.errors import EmptyReview, InvalidReview
from fastness.kube.access.escalation import Authorize
from fastness.kube.access.policy import Policy, rules_for
from fastness.kube.access.rules import Rule
from fastness.kube.access.user import Attributes, Decision, User

Body = Mapping[str, Any]


def review_subject_access(body: Body, authorize: Authorize) -> JsonObject:
    """Answer a SubjectAccessReview."""
    spec = _spec(body)
    _check(spec, _subject_causes(spec))
    return _answered(body, authorize(_attributes(spec, _subject(spec))))


def review_local_subject_access(body: Body, namespace: str, authorize: Authorize) -> JsonObject:
    """Answer a LocalSubjectAccessReview, which must ask about its own namespace."""
    spec = _spec(body)
    paths = spec.get("nonResourceAttributes")
    if isinstance(paths, dict):
        problem = f"Invalid value: {_go_json(paths)}: disallowed on this kind of request"
        raise InvalidReview(("spec.nonResourceAttributes", problem))
    _check(spec, _subject_causes(spec))
    attrs = _attributes(spec, _subject(spec))
    if attrs.namespace != namespace:
        problem = f'Invalid value: "{attrs.namespace}": must match metadata.namespace'
        raise InvalidReview(("spec.resourceAttributes.namespace", problem))
    return _answered(body, authorize(attrs))


def review_self_access(body: Body, user: User, authorize: Authorize) -> JsonObject:
    """Answer a SelfSubjectAccessReview for the caller."""
    spec = _spec(body)
    _check(spec, [])
    return _answered(body, authorize(_attributes(spec, user)))


def review_self_rules(body: Body, user: User, policy: Policy) -> JsonObject:
    """Answer a SelfSubjectRulesReview: all rules of the caller in one namespace."""
    namespace = _spec(body).get("namespace")
    if not isinstance(namespace, str) or not namespace:
        raise EmptyReview("no namespace on request", "spec.namespace")
    rules = rules_for(user, policy, namespace)
    status: JsonObject = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
        ],
        "incomplete": bool(user.node),
    }
    if user.node:
        status["evaluationError"] = "node authorizer does not support user rule resolution"
    return {**body, "status": status}


def review_self(body: Body, user: User) -> JsonObject:
    """Answer a SelfSubjectReview: who the caller is."""
    return {**body, "status": {"userInfo": user_info(user)}}


def user_info(user: User) -> JsonObject:
    """A user as reviews and admission show them."""
    info: JsonObject = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in sorted(user.extra.items())}
    return info


def _resource_rule(rule: Rule) -> JsonObject:
    entry: JsonObject = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
    if rule.names:
        entry["resourceNames"] = list(rule.names)
    return entry


def _answered(body: Body, decision: Decision) -> JsonObject:
    status: JsonObject = {"allowed": decision.allowed}
    if decision.denied:
        status["denied"] = True
    if decision.reason:
        status["reason"] = decision.reason
    return {**body, "status": status}


def _spec(body: Body) -> Mapping[str, Any]:
    spec = body.get("spec")
    if not isinstance(spec, dict):
        raise InvalidReview(("spec", "Required value: a review says what it asks about"))
    return spec


def _check(spec: Mapping[str, Any], causes: list[tuple[str, str]]) -> None:
    """Raise InvalidReview with everything that is wrong: about the attributes first, as a real server lists it."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(resource, dict) and isinstance(path, dict):
        problem = f"Invalid value: {_go_json(path)}: cannot be specified in combination with resourceAttributes"
        causes = [("spec.nonResourceAttributes", problem), *causes]
    elif not isinstance(resource, dict) and not isinstance(path, dict):
        problem = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes = [("spec.resourceAttributes", problem), *causes]
    if causes:
        raise InvalidReview(*causes)


def _subject_causes(spec: Mapping[str, Any]) -> list[tuple[str, str]]:
    name, groups = spec.get("user") or "", spec.get("groups") or []
    if not isinstance(name, str) or not isinstance(groups, list) or not all(isinstance(item, str) for item in groups):
        return [("spec.user", "Invalid value: user is a string and groups a list of strings")]
    if not name and not groups:
        return [("spec.user", 'Invalid value: "": at least one of user or group must be specified')]
    return []


def _go_json(path: Mapping[str, Any]) -> str:
    """Path attributes as a real server quotes them back."""
    return orjson.dumps({"Path": path.get("path") or "", "Verb": path.get("verb") or ""}).decode()


def _subject(spec: Mapping[str, Any]) -> User:
    extra = spec.get("extra")
    return User(
        spec.get("user") or "",
        tuple(spec.get("groups") or ()),
        str(spec.get("uid") or ""),
        {
            str(key): tuple(map(str, values))
            for key, values in (extra if isinstance(extra, dict) else {}).items()
            if isinstance(values, list)
        },
    )


def _attributes(spec: Mapping[str, Any], user: User) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if isinstance(path, dict):
        return Attributes(user, _text(path, "verb"), path=_text(path, "path"), is_resource_request=False)
    attributes = spec["resourceAttributes"]
    return Attributes(
        user, _text(attributes, "verb"), _text(attributes, "group"), _text(attributes, "version"), _text(attributes, "resource"),
        _text(attributes, "subresource"), _text(attributes, "namespace"), _text(attributes, "name"),
        field_selector=_selector(attributes),
    )  # fmt: skip


def _selector(attributes: Mapping[str, Any]) -> str:
    selector = attributes.get("fieldSelector")
    raw = selector.get("rawSelector") if isinstance(selector, dict) else ""
    return raw if isinstance(raw, str) else ""


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidReview((f"spec.resourceAttributes.{key}", "Invalid value: must be a string"))
    return value
