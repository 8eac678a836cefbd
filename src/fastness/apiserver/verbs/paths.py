"""REST paths of the Kubernetes API, taken apart once.

A path names a collection, an object or a subresource: `/api/v1/…` for the core group, `/apis/<group>/<version>/…` for the rest,
`namespaces/<namespace>/` before the plural for what lives in one. Rules:

* `formats/url_path` takes the path apart; one that plays tricks is foreign (404), so that nothing downstream sees a tricked name.
* `namespaces` is itself a collection: `/api/v1/namespaces/a/status` is a subresource, `/api/v1/namespaces/a/pods` is not.

The verb follows from method and shape (`verb_of`), and authorization, audit and metrics use the same value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a resource path names."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def target_of(segments: Sequence[str]) -> Target | None:
    """The resource that the segments name, or None when they have another shape."""
    if len(segments) >= 3 and segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    elif len(segments) >= 4 and segments[0] == "apis":
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    name = rest[1] if len(rest) > 1 else ""
    # As kube-apiserver's RequestInfo has it: a Role inside of a namespace can grant access to the Namespace object itself.
    if rest[0] == "namespaces" and not group:
        namespace = name
    return Target(group, version, rest[0], namespace, name, rest[2] if len(rest) > 2 else "")


_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_COLLECTION_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}


def verb_of(method: str, target: Target, *, watching: bool) -> str:
    """The API verb of a request, empty when the method does not fit the shape."""
    if target.name:
        verb = _OBJECT_VERBS.get(method, "")
        # POST to an object means nothing; to a subresource (`eviction`, `token`) it is a create, which is what RBAC grants.
        return "" if verb == "create" and not target.subresource else verb
    verb = _COLLECTION_VERBS.get(method, "")
    return "watch" if verb == "list" and watching else verb


def methods_of(target: Target) -> tuple[str, ...]:
    """The methods that fit the shape of a path."""
    return tuple(method for method in METHODS if verb_of(method, target, watching=False))
