"""The dashboard of sandboxed containers, where the console looks for dashboards.

    ConfigMap in the operator's namespace ─ copy, with the console's label ─ ConfigMap in the console's namespace

* The source comes with the operator's release. Without it, or without the console's namespace, there is nothing to copy and
  nobody misses it; neither is made here.
* The copy follows its source: what somebody writes into it is undone, and it goes when the source or the KataConfig goes.
* Only a copy that says of itself that it is ours is touched. A dashboard that somebody put there under the same name stays.
"""

from __future__ import annotations

from typing import Final

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import is_being_deleted, labels_of
from fastness.workloads.kata.inputs import Action, Ensure, Object, Ref, Remove, World

SOURCE: Final = Ref("ConfigMap", names.DASHBOARD, names.NAMESPACE)
COPY: Final = Ref("ConfigMap", names.DASHBOARD, names.DASHBOARD_NAMESPACE)
_OURS: Final = {names.DASHBOARD_LABEL: "true", "app.kubernetes.io/managed-by": "fastness"}


def dashboards(world: World) -> list[Action]:
    """What brings the copy in step with its source."""
    source, known = world.objects.get(SOURCE), world.objects.get(COPY)
    if source is None or is_being_deleted(source):
        return removed(world)
    if known is None:
        return [_copy(source, {})] if world.console else []
    wanted = _copy(source, known)
    return [wanted] if _is_ours(known) and not is_being_deleted(known) and wanted.differs(known) else []


def removed(world: World) -> list[Action]:
    """What takes the copy away."""
    known = world.objects.get(COPY)
    return [Remove(COPY)] if known is not None and _is_ours(known) and not is_being_deleted(known) else []


def _is_ours(known: Object) -> bool:
    return _OURS.items() <= labels_of(known).items()


def _copy(source: Object, known: Object) -> Ensure:
    # A field that the source no longer has is ours too: it must not stay in the copy. A server keeps no empty ones.
    fields = [name for name in ("data", "binaryData") if source.get(name) or known.get(name)]
    meta = {"name": COPY.name, "namespace": COPY.namespace, "labels": dict(_OURS)}
    content = {name: dict(source.get(name) or {}) for name in fields}
    obj: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **content}
    return Ensure(obj, tuple((name,) for name in fields))
