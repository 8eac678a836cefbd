"""Objects and paths that the families of the script share, with short constructors for the common requests."""

from __future__ import annotations

from typing import Any

from tests.differential.step import Step

CORE = "/api/v1"
TICKETS = "/apis/fastness.dev/v1alpha1/jointickets"
VALUES = "/apis/fastness.dev/v1alpha1/referencevaluesets"
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"

META = {"version": "metadata.resourceVersion", "uid": "metadata.uid"}


def space(family: str) -> str:
    """The namespace of a family."""
    return f"${{run}}-{family}"


def inside(family: str, plural: str, name: str = "", group: str = "") -> str:
    """The path of a collection, or of an object, in the namespace of a family."""
    root = f"/apis/{group}" if group else CORE
    path = f"{root}/namespaces/{space(family)}/{plural}"
    return f"{path}/{name}" if name else path


def begin(family: str) -> Step:
    """The step that makes the namespace of a family."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space(family)}}
    return Step(f"{family}.namespace", "POST", f"{CORE}/namespaces", body)


def captures(name: str, *more: str) -> dict[str, str]:
    """Remember version and uid of the answered object under a name."""
    return {f"{name}.{key}": path for key, path in META.items()}


def obj(api_version: str, kind: str, name: str, /, *, meta: dict[str, Any] | None = None, **content: Any) -> Any:
    """Any object."""
    metadata = {**({"name": name} if name else {}), **(meta or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def config_map(name: str, data: dict[str, Any] | None = None, /, **meta: Any) -> Any:
    """A ConfigMap."""
    return obj("v1", "ConfigMap", name, meta=meta, **({} if data is None else {"data": data}))


def ticket(name: str, spec: dict[str, Any] | None = None, **meta: Any) -> Any:
    """A JoinTicket: a custom object with defaults, patterns and immutable fields."""
    fields = {"pool": "worker", "expires": "2030-01-01T00:00:00Z", "secretHash": "sha256:" + "0" * 64, **(spec or {})}
    return obj("fastness.dev/v1alpha1", "JoinTicket", name, meta=meta, spec=fields)


def values(name: str, *entries: tuple[str, str], **spec: Any) -> Any:
    """A ReferenceValueSet: a custom object with a list map and rules."""
    listed = [{"name": key, "value": value} for key, value in entries]
    fields = {"source": "manual", "values": listed, **spec}
    return obj("fastness.dev/v1alpha1", "ReferenceValueSet", name, spec=fields)


def pod(name: str, **meta: Any) -> Any:
    """A Pod with one container."""
    spec = {"containers": [{"name": "main", "image": "registry.example/app:1"}]}
    return obj("v1", "Pod", name, meta=meta, spec=spec)
