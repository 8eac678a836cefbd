"""Printers of the kinds of Kubernetes itself, one small function each.

    access.py     Printers of who may do what, and of the small kinds that steer the API: leases, classes, webhooks, policies
    core.py       Printers of the core group: nodes, namespaces, data, quotas, events
    network.py    Printers of how traffic finds pods: services, endpoints, ingresses, network policies
    pods.py       How a pod prints: its status is a judgement over all its containers
    reading.py    Reading parts of raw objects without tripping: a part that is missing or of another type is empty
    storage.py    Printers of volumes, claims and storage classes
    workloads.py  Printers of what runs pods: deployments and their relatives, jobs, disruption budgets

A real API server prints these kinds with code, not with JSONPath: a pod's status is a judgement over its containers, a node's
roles come from its labels. Every module here lists its functions in `CELLS`, by (group, kind); a native kind without an
entry prints name and creation time, as an API server does for a kind that has no printer. Columns are those that a real server of
the pinned release reported (`kinds/kubernetes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from fastness.apiserver.tables.native import access, core, network, pods, storage, workloads
from fastness.apiserver.tables.native.reading import Cells, name_of, part
from fastness.apiserver.tables.printer import NAME, Header, Printer
from fastness.kinds.kind import Kind
from fastness.kinds.kubernetes import definitions

CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    **access.CELLS, **core.CELLS, **network.CELLS, **pods.CELLS, **storage.CELLS, **workloads.CELLS,
}  # fmt: skip


def native_printer(kind: Kind) -> Printer:
    """The printer of a native kind."""
    cells = CELLS.get((kind.group, kind.kind))
    if cells is None:
        return CREATED
    return Printer(tuple(_header(column) for column in definitions.columns(kind.group, kind.plural)), cells)


def _header(column: definitions.NativeColumn) -> Header:
    text = NAME.description if column.format == "name" else DESCRIPTIONS.get(column.name, "")
    return Header(column.name, column.type, column.format, column.priority, text)


def _created(obj: Mapping[str, Any], _now: datetime) -> list[Any]:
    return [name_of(obj), part(obj, "metadata").get("creationTimestamp")]


DESCRIPTIONS: Final = {"Age": "Time since the object was created.", "Created At": "When the object was created."}
CREATED: Final = Printer((NAME, Header("Created At", "date", description=DESCRIPTIONS["Created At"])), _created)
