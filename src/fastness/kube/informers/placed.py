"""From where objects count (`kube.places`) to where informers look.

* A kind that counts in some namespaces is watched in those, each by its name: what lies elsewhere is not even fetched.
* A kind that speaks for its own namespace is watched everywhere.
* Of anything else the reader names the namespace. An informer without one cannot be made: forgetting it would let whoever owns
  any namespace speak for the cluster.
* `elsewhere` is where objects do not count. It is for telling their owners so, and for nothing else; so is `to_tell_owners`.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kind import Resource
from fastness.kube.informers.cache import InformerError
from fastness.kube.places import Belongs, Places, belongs, speaks_for_itself
from fastness.kube.port import EVERYWHERE, Scope

_NOT_IN: Final = "metadata.namespace!="
_NAMED: Final = "metadata.name="


def scopes_of(places: Places, resource: Resource, scope: Scope = EVERYWHERE) -> tuple[Scope, ...]:
    """The scopes that a reader's scope stands for; raises InformerError for a namespace that does not count."""
    namespaces = places.of(resource)
    if not namespaces or scope.fields.startswith(_NOT_IN):
        return (scope,)
    # Otherwise whoever owns one namespace speaks for the cluster: an ApprovedImage there would approve its owner's boot loader.
    if scope.namespace and scope.namespace not in namespaces:
        raise InformerError(
            f"{resource.plural} do not count in namespace {scope.namespace}", f"They count in: {', '.join(namespaces)}."
        )
    return tuple(Scope(name, scope.labels, scope.fields) for name in namespaces if scope.namespace in ("", name))


def elsewhere(places: Places, resource: Resource) -> Scope:
    """Where objects of a kind do not count."""
    return Scope(fields=",".join(f"{_NOT_IN}{name}" for name in places.of(resource)))


def to_tell_owners(resource: Resource) -> Scope:
    """Where a loop looks that writes to nothing but the object it found: everywhere, in an informer that nobody decides by."""
    speaks = belongs(resource) is not Belongs.NAMED or not resource.namespaced
    return EVERYWHERE if speaks else Scope(fields=_NOT_IN)


def require_place(resource: Resource, scope: Scope) -> None:
    """Raise InformerError for a look into every namespace at a kind that does not speak for its own."""
    named = scope.fields.removeprefix(_NAMED) if scope.fields.startswith(_NAMED) else ""
    if scope.namespace or scope.fields.startswith(_NOT_IN) or speaks_for_itself(resource, named):
        return
    raise InformerError(
        f"{resource.plural} are looked for in every namespace, and do not speak for their own",
        "Name the namespace, or say in kube/places.py where they count.",
    )
