"""TokenRequest: a new token for a service account.

The body says for whom (audiences), how long, and what the token shall be bound to; the answer is the same object with the
token in its status. What is not said gets a default: the audiences of this API, one hour.

* Ten minutes is the shortest life, 2^32 seconds the longest, as in Kubernetes.
* A node gets tokens only for pods that run on it, bound to them.
* A bound object must exist, with the uid that was given, and a pod must run as this very service account.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.apiserver.auth.tokens import CLAIM, ServiceAccountTokens, TokenLookups
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import metadata, object_name, rfc3339
from fastness.kube.access.node_restriction import refuse_node_token
from fastness.kube.access.user import User, service_account_name
from fastness.kube.errors import BadRequest, Cause, Conflict, Forbidden, Invalid, NotFound
from fastness.runtime.clock import Entropy

GROUP: Final = "authentication.k8s.io"
DEFAULT_SECONDS: Final = 3600
# Both bounds are those of kube-apiserver's validation of TokenRequest.
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 1 << 32
MAX_AUDIENCES: Final = 64
_KINDS: Final = {"Pod": ("pod", "pods"), "Secret": ("secret", "secrets"), "Node": ("node", "nodes")}


def issue_token(
    request: Mapping[str, Any],
    service_account: Mapping[str, Any],
    now: datetime,
    tokens: ServiceAccountTokens,
    entropy: Entropy,
    requester: User | None = None,
) -> JsonObject:
    """The answered TokenRequest; raises Invalid, NotFound, Conflict, BadRequest, and Forbidden for a node's request."""
    namespace, name = object_name(service_account)
    spec = _spec(request)
    # A kubelet asks for the tokens of its pods; a node that was taken over would otherwise mint itself the token of any account.
    if requester is not None and requester.node:
        _check_node(requester.node, namespace, name, request, tokens.lookups)
    seconds = _seconds(spec)
    audiences = _audiences(spec) or list(tokens.audiences)
    now = now.replace(microsecond=0)
    expires = now + timedelta(seconds=seconds)
    about: JsonObject = {
        "namespace": namespace,
        "serviceaccount": {"name": name, "uid": metadata(service_account).get("uid")},
        **_bound(spec.get("boundObjectRef"), namespace, name, tokens.lookups),
    }
    claims = {
        "aud": audiences, "exp": int(expires.timestamp()), "iat": int(now.timestamp()), "iss": tokens.issuer,
        "jti": entropy.uid(), CLAIM: about, "nbf": int(now.timestamp()), "sub": service_account_name(namespace, name),
    }  # fmt: skip
    token = tokens.keys.signer.sign(claims)
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{GROUP}/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": rfc3339(now)},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token.reveal(), "expirationTimestamp": rfc3339(expires)},
    }


def _check_node(node: str, namespace: str, name: str, request: Mapping[str, Any], lookups: TokenLookups) -> None:
    why = refuse_node_token(node, namespace, request, lambda place, pod: lookups.find("pods", place, pod))
    if why is not None:
        raise Forbidden(f'serviceaccounts "{name}" is forbidden: {why}', kind="serviceaccounts", name=name)


def _spec(request: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = request.get("spec", {})
    if not isinstance(spec, dict):
        raise _invalid("spec", "must be an object")
    return spec


def _seconds(spec: Mapping[str, Any]) -> int:
    value = spec.get("expirationSeconds")
    if value is None:
        return DEFAULT_SECONDS
    if not isinstance(value, int) or isinstance(value, bool):
        raise _invalid("spec.expirationSeconds", "must be an integer")
    if value < MIN_SECONDS:
        raise _invalid("spec.expirationSeconds", f"{value}: may not specify a duration less than 10 minutes")
    if value > MAX_SECONDS:
        raise _invalid("spec.expirationSeconds", f"{value}: may not specify a duration larger than 2^32 seconds")
    return value


def _audiences(spec: Mapping[str, Any]) -> list[str]:
    value = spec.get("audiences") or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value) or len(value) > MAX_AUDIENCES:
        raise _invalid("spec.audiences", f"must be a list of at most {MAX_AUDIENCES} strings")
    return value


def _bound(reference: Any, namespace: str, account: str, lookups: TokenLookups) -> JsonObject:
    """The claims about the object that the token is bound to."""
    if reference is None:
        return {}
    if not isinstance(reference, dict) or not isinstance(reference.get("name"), str):
        raise _invalid("spec.boundObjectRef", "must name an object")
    kind, name, uid = reference.get("kind"), reference["name"], reference.get("uid") or ""
    if kind not in _KINDS or reference.get("apiVersion", "v1") != "v1":
        version = str(reference.get("apiVersion") or "v1")
        group = version if "/" in version else f"/{version}"
        raise BadRequest(f"cannot bind token to object of type {group}, Kind={kind}")
    claim, resource = _KINDS[kind]
    bound_to = lookups.find(resource, "" if resource == "nodes" else namespace, name)
    if bound_to is None or lookups.live_uid(resource, "" if resource == "nodes" else namespace, name) is None:
        raise NotFound(f'{resource} "{name}" not found', kind=resource, name=name)
    actual = str(metadata(bound_to).get("uid") or "")
    # A pod that was deleted and made anew under its name is another one; a token for the old one would be good for the new.
    if uid and uid != actual:
        raise Conflict(
            f'Operation cannot be fulfilled on {kind} "{name}": the UID in the bound object reference ({uid}) does not match '
            "the UID in record. The object might have been deleted and then recreated",
            kind=kind,
            name=name,
        )
    claims: JsonObject = {claim: {"name": name, "uid": actual}}
    return {**claims, **_pod_claims(bound_to, account, lookups)} if claim == "pod" else claims


def _pod_claims(pod: Mapping[str, Any], account: str, lookups: TokenLookups) -> JsonObject:
    spec = pod.get("spec") or {}
    # The token lives as long as the pod: bound to any other pod, it would outlive what it was asked for.
    if (spec.get("serviceAccountName") or "default") != account:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        )
    node = spec.get("nodeName")
    uid = lookups.live_uid("nodes", "", node) if node else None
    return {"node": {"name": node, "uid": uid}} if uid else {}


def _invalid(field: str, why: str) -> Invalid:
    cause = Cause(field, "FieldValueInvalid", f"Invalid value: {why}")
    return Invalid(
        f'TokenRequest.{GROUP} "" is invalid: {field}: {cause.message}',
        group=GROUP,
        kind="TokenRequest",
        causes=[cause],
    )
