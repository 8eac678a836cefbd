"""Which keys a change concerns: operators of one namespace look at each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from fastness.kinds.objects import ObjectName, object_name
from fastness.kube.controllers.controller import Keys, Object
from fastness.kube.informers import Informer


def around(known: Informer) -> Keys:
    """Keys of all objects that an informer knows in the namespace of something that changed."""

    def keys(obj: Object) -> Iterable[ObjectName]:
        return [object_name(one) for one in known.list(object_name(obj).namespace)]

    return keys


def itself_and(near: Keys) -> Keys:
    """An object's own key and those of its neighbours."""

    def keys(obj: Object) -> Iterable[Hashable]:
        return dict.fromkeys((object_name(obj), *near(obj)))

    return keys
