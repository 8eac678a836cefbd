"""Text of strangers in every field that a machine, an agent or a user controls, and what must become of it.

`stage` writes a world in which all of these fields hold a text that would run if it were taken for more than text; `FIELDS`
names, for each view, the fields that it has to show as text.
"""

from __future__ import annotations

import base64
from typing import Any

from fastness.formats import json
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.rollout import ROLLOUT_POLICY
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.port import PatchType
from fastness.page.simulator import ActiveFault, VirtualRow
from fastness.page.view_scope import MACHINES
from fastness.record.live.log import extend
from tests.component.page.served_page import NODES, THUMBPRINT, ServedPage, condition
from tests.component.page.showcase import CONFIGS, EVENTS, POOLS, ROLE, WORKER, file_entry, made
from tests.component.page.simulated import SINCE
from tests.lowering import lowered

SHAPES = (
    "<script>alert('{0}')</script>",
    "\"'><img src=x onerror=alert('{0}')>",
    "</pre></code></table><svg onload=alert('{0}')>",
    "{0}\u202e\u2066<b>\x1b[2J&#60;i&#62;",
    "javascript:alert('{0}')//{0}",
    "{{{{constructor.constructor('alert({0})')()}}}} ${{alert({0})}} {0}",
)
MACHINE, NODE = "machine-evil", "node-machine-evil"


def evil(field: str) -> str:
    """A text that shouts the name of its field if it ever runs; the shape changes from field to field."""
    return SHAPES[sum(field.encode()) % len(SHAPES)].format(field)


# What each view must show as text: the names of fields.
FIELDS: dict[str, tuple[str, ...]] = {
    "/": ("attested-message",),
    f"/machines/{MACHINE}": (
        "attested-message",
        "approval-reason",
        "tee",
        "property-name",
        "property-value",
        "check-name",
        "check-seen",
        "check-expected",
        "check-source",
        "check-hint",
        "agent-reason",
        "event-reason",
        "event-message",
        "record-resource",
        "record-verdict",
        "file-path",
    ),
    "/pools": ("pool-condition", "policy-condition", "file-path", "file-text", "agent-reason"),
    "/trust": (
        "value-name",
        "value-text",
        "value-note",
        "case-name",
        "rego",
        "policy-says",
        "distrust-reason",
        "image-says",
        "record-what",
        "record-resource",
        "checkpoint-note",
        "checkpoint-origin",
        "withdrawn-reason",
        "root-reason",
    ),
    "/record/0": ("record-what", "record-resource", "record-verdict", "record-who", "checkpoint-note"),
    "/simulator": ("virtual-name", "virtual-tee", "fault-kind"),
}


async def stage(web: ServedPage) -> None:
    """All of it."""
    await _machine(web)
    await _node(web)
    await _pool(web)
    await _trust(web)
    await _root(web)
    await _record(web)
    fault = ActiveFault(evil("fault-id"), evil("fault-kind"), evil("virtual-name"), SINCE)
    web.simulator.rows = [VirtualRow(evil("virtual-name"), NODE, evil("virtual-tee"), True, True)]
    web.simulator.faults = [fault]


async def _machine(web: ServedPage) -> None:
    conditions = [condition("Approved", "True"), condition("Attested", "False", "Refused", evil("attested-message"))]
    victim = await web.machine(
        MACHINE,
        "Approved",
        tee=evil("tee")[:63],
        conditions=conditions,
        lastVerdict="verdict-evil",
        properties={"image": evil("image"), evil("property-name")[:63]: evil("property-value")},
    )
    patch = {"spec": {"approvalReason": evil("approval-reason")}}
    await web.cluster.patch(MACHINES, MACHINE, patch, PatchType.MERGE, "fastness-system")
    check = {name: evil(f"check-{name}") for name in ("name", "seen", "expected", "source", "hint", "code")}
    await web.verdict("verdict-evil", victim, [{**check, "result": "Fail"}, {**check, "result": "Pass"}])


async def _node(web: ServedPage) -> None:
    reason = f"unexpected on-disk state validating against x: /etc/{evil('drifted-path')}: {evil('agent-reason')}"
    notes = {
        names.CURRENT_CONFIG: "before",
        names.DESIRED_CONFIG: "after",
        names.STATE: "Degraded",
        names.REASON: reason,
    }
    await web.cluster.create(NODES, {"metadata": {"name": NODE, "annotations": notes, "labels": {WORKER: ""}}})
    about = {"kind": "Node", "name": NODE, "namespace": ""}
    event = {
        "involvedObject": about,
        "reason": evil("event-reason")[:128],
        "message": evil("event-message"),
        "type": "Warning",
    }
    await web.cluster.create(EVENTS, {"metadata": {"name": "evil", "namespace": "default"}, **event})


async def _pool(web: ServedPage) -> None:
    selector = {"matchLabels": {ROLE: "worker"}}
    spec: JsonObject = {
        "nodeSelector": {"matchLabels": {WORKER: ""}},
        "machineConfigSelector": selector,
        "configuration": {"name": "after"},
    }
    text_of_file = SHAPES[0].format("file-text")  # what is not printable is shown by its digest
    for name, text in (("before", "a"), ("after", text_of_file), ("50-mine", text_of_file)):
        file = file_entry(f"/etc/{evil('file-path')}", text)
        config = {"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": [file]}}}
        await made(web, CONFIGS, name, config, labels={ROLE: "worker"} if name == "50-mine" else {})
    status = {"configuration": {"name": "before"}, "machineCount": 3, "updatedMachineCount": 1}
    bad = [condition("Degraded", "True", "Broken", evil("pool-condition"))]
    await made(web, POOLS, "worker", spec, {**status, "conditions": bad}, labels={"pool": "worker"})
    waves = {"poolSelector": {"matchLabels": {"pool": "worker"}}, "waves": [{"count": 1}]}
    stopped = {"wave": 1, "conditions": [condition("Stopped", "True", "Because", evil("policy-condition"))]}
    await made(web, ROLLOUT_POLICY, "careful", waves, stopped)


async def _trust(web: ServedPage) -> None:
    image = "registry.example/os@sha256:" + "ab" * 32
    says = {"conditions": [condition("Committed", "False", "Because", evil("image-says"))]}
    await made(web, APPROVED_IMAGE, "image", {"image": image}, says, namespace="fastness-system")
    values = [{"name": evil("value-name"), "value": evil("value-text"), "note": evil("value-note")}]
    withdrawn = {"at": "2026-01-01T00:00:00Z", "reason": evil("withdrawn-reason")}
    await made(web, REFERENCE_VALUE_SET, "set", {"source": "manual", "values": values, "withdrawn": withdrawn})
    policy = {
        "for": "tpm",
        "rego": f"package policy\n# {evil('rego')}",
        "cases": [{"name": evil("case-name"), "input": {}, "expect": "Refused"}],
    }
    failed = {
        "failedCases": [evil("case-name")],
        "cases": "0/1",
        "conditions": [condition("Active", "False", "No", evil("policy-says"))],
    }
    await made(web, APPRAISAL_POLICY, "mine", policy, failed)
    await made(web, DISTRUST, "away", {"chipGeneration": "Milan", "reason": evil("distrust-reason")})


async def _root(web: ServedPage) -> None:
    root = {"sha256": "ab" * 32, "for": "tpm", "reason": evil("root-reason")}
    await lowered(web.cluster, {"attestation": {"extraRoots": [root]}})


async def _record(web: ServedPage) -> None:
    assert web.tiles is not None
    entry: dict[str, Any] = {
        "time": "2026-01-01T00:00:00Z",
        **{name: evil(f"record-{name}") for name in ("what", "resource", "verdict", "who")},
    }
    mine = {**entry, "what": "release", "who": THUMBPRINT}
    root = await extend(web.tiles, 0, [json.encode(entry), json.encode(mine)])
    spec = {
        "origin": evil("checkpoint-origin"),
        "size": 2,
        "rootHash": base64.b64encode(root).decode(),
        "time": "2026-01-01T00:00:00Z",
        "note": evil("checkpoint-note"),
    }
    await made(web, AUDIT_CHECKPOINT, "checkpoint-2", spec)
