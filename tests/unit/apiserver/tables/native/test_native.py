"""Native kinds print as a real server prints them (tests/component compares the same samples with one)."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.apiserver.tables.native import CELLS, native_printer
from fastness.kinds.kubernetes import definitions
from tests.unit.apiserver.samples import NATIVES, NOW, native
from tests.unit.apiserver.tables.native_samples import AGE, LONG_AGO, OWNED, SAMPLES, Sample


def stored(sample: Sample) -> dict[str, Any]:
    """The object with what a server fills in."""
    body = dict(sample.body)
    meta = {"name": sample.name, "creationTimestamp": LONG_AGO, **body.pop("metadata", {})}
    spec, status = dict(body.get("spec") or {}), dict(body.get("status") or {})
    match sample.plural:
        case "pods" | "persistentvolumeclaims":
            status.setdefault("phase", "Pending")
        case "services":
            spec.setdefault("type", "ClusterIP")
            fixed = {"None": ["None"], "example.com": []}
            spec["clusterIPs"] = fixed.get(spec.get("clusterIP") or spec.get("externalName") or "", ["<ip>"])
        case "jobs":
            spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "<uid>"}}
    if sample.plural.startswith("persistentvolume"):
        spec.setdefault("volumeMode", "Filesystem")
    return {**body, "metadata": meta, **({"spec": spec} if spec else {}), **({"status": status} if status else {})}


def masked(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("25y", AGE).replace(LONG_AGO, AGE)


@pytest.mark.parametrize("sample", [*SAMPLES, *OWNED], ids=lambda sample: f"{sample.plural}-{sample.name}")
def test_sample_prints(sample: Sample) -> None:
    printer = native_printer(native(sample.group, sample.plural))
    name, *cells = printer.cells(stored(sample), NOW)
    assert name.removesuffix(" (default)") == sample.name
    assert [masked(cell) for cell in cells] == sample.cells
    assert len(printer.headers) == len(cells) + 1


@pytest.mark.parametrize("kind", [kind for kind in NATIVES if "list" in kind.verbs], ids=lambda kind: kind.plural)
def test_columns_are_those_of_a_real_server_and_bare_objects_print(kind: Any) -> None:
    printer = native_printer(kind)
    recorded = [
        (column.name, column.type, column.format, column.priority)
        for column in definitions.columns(kind.group, kind.plural)
    ]
    assert [(column.name, column.type, column.format, column.priority) for column in printer.headers] == recorded
    assert len(printer.cells({"metadata": {"name": "x"}}, NOW)) == len(recorded)
    broken = {"metadata": {"name": "x"}, "spec": 5, "status": "no", "subsets": {}, "rules": [1], "data": []}
    assert len(printer.cells(broken, NOW)) == len(recorded)


def test_every_printer_belongs_to_a_kind_that_exists() -> None:
    assert set(CELLS) <= {(kind.group, kind.kind) for kind in NATIVES}


def test_deletion_overrides_the_state_of_a_pod() -> None:
    printer = native_printer(native("", "pods"))
    meta = {"name": "p", "deletionTimestamp": LONG_AGO}
    assert printer.cells({"metadata": meta, "status": {"phase": "Running"}}, NOW)[2] == "Terminating"
    assert printer.cells({"metadata": meta, "status": {"phase": "Failed"}}, NOW)[2] == "Failed"
    assert printer.cells({"metadata": meta, "status": {"phase": "Running", "reason": "NodeLost"}}, NOW)[2] == "Unknown"


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([], "Running"), (["Complete"], "Complete"), (["Failed", "FailureTarget"], "Failed"), (["Suspended"], "Suspended"),
        (["FailureTarget"], "FailureTarget"), (["SuccessCriteriaMet"], "SuccessCriteriaMet"),
    ],
)  # fmt: skip
def test_state_of_a_job_is_its_first_true_condition(conditions: list[str], status: str) -> None:
    entries = [{"type": kind, "status": "True"} for kind in conditions]
    job = {"metadata": {"name": "j"}, "status": {"conditions": entries, "startTime": "2026-03-01T11:00:00Z"}}
    assert native_printer(native("batch", "jobs")).cells(job, NOW)[1:4] == [status, "0/1", "60m"]


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        ({}, "Pending"),
        ({"conditions": [{"type": "Approved"}]}, "Approved"),
        ({"conditions": [{"type": "Approved"}], "certificate": "AA=="}, "Approved,Issued"),
        ({"conditions": [{"type": "Denied"}, {"type": "Approved"}, {"type": "Failed"}]}, "Denied,Failed"),
    ],
)
def test_state_of_a_signing_request(status: dict[str, Any], condition: str) -> None:
    request = {
        "metadata": {"name": "r"},
        "spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": status,
    }
    cells = native_printer(native("certificates.k8s.io", "certificatesigningrequests")).cells(request, NOW)
    assert cells[2:] == ["s", "u", "60m", condition]


@pytest.mark.parametrize(
    ("event", "cells"),
    [
        (
            {"involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"}, "type": "Normal", "reason": "R",
             "message": " m\n",
             "firstTimestamp": "2026-03-01T11:00:00Z", "lastTimestamp": "2026-03-01T11:55:00Z", "count": 3,
             "source": {"component": "kubelet", "host": "n"}},
            ["5m", "Normal", "R", "pod/p", "spec", "kubelet, n", "m", "60m", 3, "e"],
        ),
        (
            {"regarding": {"kind": "Pod"}, "type": "Warning", "reason": "R", "note": "n",
             "eventTime": "2026-03-01T11:58:00.000000Z",
             "reportingController": "c", "series": {"count": 9, "lastObservedTime": "2026-03-01T11:59:00.000000Z"}},
            ["60s", "Warning", "R", "pod", "", "c", "n", "2m", 9, "e"],
        ),
    ],
)  # fmt: skip
def test_both_spellings_of_an_event_print(event: dict[str, Any], cells: list[Any]) -> None:
    assert native_printer(native("", "events")).cells({"metadata": {"name": "e"}, **event}, NOW) == cells
