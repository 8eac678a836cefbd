"""The questions that kubectl asks about access: body in, body out.

`kubectl auth can-i`, `auth can-i --list` and `auth whoami` create a review object, which is never stored; the answer is the same
object with a status. Each function takes the body as it came and what it needs to decide, and returns the answered body.

* SubjectAccessReview and LocalSubjectAccessReview ask for somebody else; who may ask is decided by RBAC beforehand.
* The two Self… access reviews ask for the caller, so that nobody needs a permission to learn what they may do.
* Bodies that say too little raise `InvalidReview` with the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.domain.access.errors import InvalidReview
from fastness.domain.access.escalation import Authorize
from fastness.domain.access.policy import Policy, rules_for
from fastness.domain.access.rules import Rule
from fastness.domain.access.user import Attributes, Decision, User
from fastness.model.kind import JsonObject

Body = Mapping[str, Any]


def review_subject_access(body: Body, authorize: Authorize) -> JsonObject:
    """Answer a SubjectAccessReview."""
    spec = _spec(body)
    return _answered(body, authorize(_attributes(spec, _subject(spec))))


def review_local_subject_access(body: Body, namespace: str, authorize: Authorize) -> JsonObject:
    """Answer a LocalSubjectAccessReview, which must ask about its own namespace."""
    spec = _spec(body)
    if spec.get("nonResourceAttributes"):
        raise InvalidReview("not allowed in a LocalSubjectAccessReview", "spec.nonResourceAttributes")
    attrs = _attributes(spec, _subject(spec))
    if attrs.namespace != namespace:
        raise InvalidReview(f"must be the namespace of the review, {namespace!r}", "spec.resourceAttributes.namespace")
    return _answered(body, authorize(attrs))


def review_self_access(body: Body, user: User, authorize: Authorize) -> JsonObject:
    """Answer a SelfSubjectAccessReview for the caller."""
    return _answered(body, authorize(_attributes(_spec(body), user)))


def review_self_rules(body: Body, user: User, policy: Policy) -> JsonObject:
    """Answer a SelfSubjectRulesReview: all rules of the caller in one namespace."""
    namespace = _spec(body).get("namespace")
    if not isinstance(namespace, str) or not namespace:
        raise InvalidReview("no namespace on request", "spec.namespace")
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
    shown: JsonObject = {"verbs": list(rule.verbs), "apiGroups": list(rule.groups), "resources": list(rule.resources)}
    if rule.names:
        shown["resourceNames"] = list(rule.names)
    return shown


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
        raise InvalidReview("a review needs a spec", "spec")
    return spec


def _subject(spec: Mapping[str, Any]) -> User:
    name, groups = spec.get("user") or "", spec.get("groups") or []
    if not isinstance(name, str) or not isinstance(groups, list) or not all(isinstance(item, str) for item in groups):
        raise InvalidReview("user is a string and groups a list of strings", "spec.user")
    if not name and not groups:
        raise InvalidReview("at least one of user or group must be specified", "spec.user")
    extra = spec.get("extra") if isinstance(spec.get("extra"), dict) else {}
    return User(
        name,
        tuple(groups),
        str(spec.get("uid") or ""),
        {str(key): tuple(map(str, values)) for key, values in (extra or {}).items() if isinstance(values, list)},
    )


def _attributes(spec: Mapping[str, Any], user: User) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if bool(isinstance(resource, dict)) == bool(isinstance(path, dict)):
        raise InvalidReview(
            "exactly one of nonResourceAttributes or resourceAttributes must be specified", "spec.resourceAttributes"
        )
    if isinstance(path, dict):
        return Attributes(user, _text(path, "verb"), path=_text(path, "path"), is_resource_request=False)
    asked: Mapping[str, Any] = resource if isinstance(resource, dict) else {}
    return Attributes(
        user, _text(asked, "verb"), _text(asked, "group"), _text(asked, "version"), _text(asked, "resource"),
        _text(asked, "subresource"), _text(asked, "namespace"), _text(asked, "name"),
        field_selector=_selector(asked),
    )  # fmt: skip


def _selector(asked: Mapping[str, Any]) -> str:
    selector = asked.get("fieldSelector")
    raw = selector.get("rawSelector") if isinstance(selector, dict) else ""
    return raw if isinstance(raw, str) else ""


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidReview("must be a string", f"spec.resourceAttributes.{key}")
    return value
