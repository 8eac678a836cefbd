"""A cluster in which everything happens at once, for looking at pages: every state, a change under way, a distrust, a record.

`stage` fills a `ServedPage`; names and texts are those of a real cluster, so that a page that reads well here reads well there.
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
from fastness.kinds.kind import JsonObject, Kind, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.render.render import Rendered, render
from fastness.page.simulator import VirtualRow
from fastness.record.live.log import extend
from tests.component.page.served_page import NODES, THUMBPRINT, ServedPage, condition

POOLS = find("machineconfiguration.openshift.io", "v1", "machineconfigpools")
CONFIGS = find("machineconfiguration.openshift.io", "v1", "machineconfigs")
EVENTS = Resource("", "v1", "events", "Event", True)
WORKER = "node-role.kubernetes.io/worker"
ROLE = "machineconfiguration.openshift.io/role"
IMAGE = "registry.example/os/node@sha256:" + "70d36d63" * 8
OLD = "9b1c" * 16
GOOD = [condition("Approved", "True"), condition("Attested", "True", "Affirmed", "every mandatory claim is affirmed")]
REFUSED = [
    condition("Approved", "True"),
    condition("Attested", "False", "value-differs", "PCR 4 (boot loader and kernel) is not that of an approved image"),
]
CHECKS: list[JsonObject] = [
    {
        "name": "Signature of the quote",
        "result": "Pass",
        "code": "ok",
        "seen": "valid",
        "expected": "valid",
        "source": "the enrolled key",
    },
    {
        "name": "PCR 0 (firmware)",
        "result": "Pass",
        "code": "ok",
        "seen": "3f" * 32,
        "expected": "3f" * 32,
        "source": IMAGE,
    },
    {
        "name": "PCR 4 (boot loader and kernel)",
        "result": "Fail",
        "code": "value-differs",
        "seen": OLD,
        "expected": "9b1c77" + "e4" * 29,
        "source": "tpm_pcr4",
        "hint": "The first event that no approved image has is number 17: EV_EFI_BOOT_SERVICES_APPLICATION, a program that was "
        "started: boot loader or kernel image. No image that was ever approved has it.",
    },
    {
        "name": "PCR 7 (Secure Boot)",
        "result": "Warn",
        "code": "value-differs",
        "seen": "00" * 32,
        "expected": "",
        "source": "tpm_pcr7",
    },
]
STATES: tuple[tuple[str, dict[str, Any], tuple[str, str] | None], ...] = (
    *((f"machine-{number:020x}", {"conditions": GOOD}, ("Done", "")) for number in range(0x51, 0x59)),
    ("machine-3c1f09b2aa417e65d0c8", {"conditions": REFUSED}, None),
    (
        "machine-77e2a4d1905bb3f8c641",
        {"conditions": GOOD},
        (
            "Degraded",
            "unexpected on-disk state validating against rendered-worker-1: "
            "/etc/chrony.conf: line 2 is 'server evil.example', expected 'server ntp.example'",
        ),
    ),
    ("machine-c08d5a1e2f77b9346ea0", {"conditions": [condition("Approved", "False")]}, None),
)


async def stage(web: ServedPage) -> None:
    """Everything."""
    goal, before = await _configs(web)
    await _machines(web, goal, before)
    await _trust(web)
    await _record(web)
    web.simulator.rows = [
        VirtualRow("worker-1", "worker-00000000000000000051", "tpm", True, True),
        VirtualRow("worker-2", "", "tdx", True, False),
    ]
    await web.simulator.do("loader", "worker-2")
    await web.simulator.do("vendor")


async def made(
    web: ServedPage, kind: Kind, name: str, spec: JsonObject, status: JsonObject | None = None, **meta: Any
) -> None:
    """An object of a kind, with its status."""
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **meta}, "spec": spec}
    await web.cluster.create(kind.resource, body)
    if status is not None:
        options = WriteOptions(subresource="status")
        await web.cluster.patch(
            kind.resource, name, {"status": status}, PatchType.MERGE, meta.get("namespace", ""), options
        )


def file_entry(path: str, text: str) -> JsonObject:
    """A file of an Ignition config."""
    return {"path": path, "contents": {"source": f"data:;base64,{base64.b64encode(text.encode()).decode()}"}}


async def _configs(web: ServedPage) -> tuple[str, str]:
    """A pool on its way from one config to another, in waves; returns the names of both."""
    pool: JsonObject = {
        "apiVersion": POOLS.api_version,
        "kind": POOLS.kind,
        "metadata": {"name": "worker", "labels": {"pool": "worker"}},
        "spec": {
            "nodeSelector": {"matchLabels": {WORKER: ""}},
            "machineConfigSelector": {"matchLabels": {ROLE: "worker"}},
            "maxUnavailable": 2,
        },
    }
    rendereds: list[str] = []
    first = {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [file_entry("/etc/chrony.conf", "# time\nserver ntp.example\nmakestep 1 3\n")]},
    }
    second = {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [file_entry("/etc/chrony.conf", "# time\nserver ntp2.example iburst\nmakestep 1 3\n")]},
    }
    sources: list[JsonObject] = []
    for name, config in (("00-worker", first), ("50-time", second)):
        generated = {
            "apiVersion": CONFIGS.api_version,
            "kind": CONFIGS.kind,
            "metadata": {"name": name, "labels": {ROLE: "worker"}},
            "spec": {"config": config},
        }
        await web.cluster.create(CONFIGS.resource, generated)
        sources.append(generated)
        rendered = render(pool, sources)
        assert isinstance(rendered, Rendered)
        rendereds.append(rendered.name)
        await web.cluster.create(
            CONFIGS.resource, {**generated, "metadata": {"name": rendered.name}, "spec": rendered.spec}
        )
    before, goal = rendereds
    pool["spec"]["configuration"] = {"name": goal}
    await web.cluster.create(POOLS.resource, pool)
    status = {
        "configuration": {"name": before},
        "machineCount": 10,
        "updatedMachineCount": 3,
        "degradedMachineCount": 1,
        "unavailableMachineCount": 1,
        "conditions": [
            condition("Updating", "True", "", "wave 2: 1 node is unavailable, at most 2 may be"),
            condition(
                "NodeDegraded",
                "True",
                "1 node is degraded",
                "worker-77e2a4d1905bb3f8c641 does not have what it should have",
            ),
        ],
    }
    await web.cluster.patch(
        POOLS.resource, "worker", {"status": status}, PatchType.MERGE, "", WriteOptions(subresource="status")
    )
    waves = {
        "poolSelector": {"matchLabels": {"pool": "worker"}},
        "waves": [{"count": 3, "soak": "10m"}, {"percent": 40, "soak": "1h"}],
        "stopOn": {"degraded": 2},
    }
    await made(
        web,
        ROLLOUT_POLICY,
        "careful",
        waves,
        {"wave": 2, "conditions": [condition("Progressing", "True", "RollingOut", "worker: wave 2")]},
    )
    return goal, before


async def _machines(web: ServedPage, goal: str, before: str) -> None:
    for number, (name, status, agent) in enumerate(STATES):
        node = f"worker-{name.removeprefix('machine-')}"
        tee = ("tpm", "tdx", "snp")[number % 3]
        pending = status["conditions"][0]["status"] == "False"
        proved = (
            {} if pending else {"image": IMAGE, "tee": tee, **({"chip-generation": "Genoa"} if tee == "snp" else {})}
        )
        created = await web.machine(
            name,
            "Pending" if pending else "Approved",
            nodeName=node,
            tee=tee,
            simulated=True,
            properties=proved,
            lastAttested=None if pending else web.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            ticket="user-data-worker-b30ce9ccdc2c",
            **({"lastVerdict": "verdict-refused"} if status is STATES[8][1] else {}),
            **status,
        )
        if status is STATES[8][1]:
            await web.verdict("verdict-refused", created, CHECKS)
        if agent is not None:
            has = goal if number < 3 else before
            notes = {
                names.CURRENT_CONFIG: has,
                names.DESIRED_CONFIG: goal if number < 4 else before,
                names.STATE: "Working" if number == 3 else agent[0],
                names.REASON: agent[1],
            }
            await web.cluster.create(
                NODES, {"metadata": {"name": node, "annotations": notes, "labels": {WORKER: ""}}, "status": {}}
            )
            ready = {"status": {"conditions": [condition("Ready", "True")]}}
            await web.cluster.patch(NODES, node, ready, PatchType.MERGE, "", WriteOptions(subresource="status"))


async def _trust(web: ServedPage) -> None:
    committed = {"conditions": [condition("Committed", "True", "Committed", "its measurements are reference values")]}
    await made(web, APPROVED_IMAGE, "node-42", {"image": IMAGE}, committed, namespace="fastness-system")
    values = [
        {
            "name": "tpm_pcr4",
            "register": "pcr4",
            "algorithm": "sha256",
            "value": "9b1c77" + "e4" * 29,
            "note": "the boot loader and the kernel",
        },
        {
            "name": "tpm_pcr4",
            "register": "pcr4",
            "algorithm": "sha256",
            "value": "aa" * 32,
            "state": "Retiring",
            "note": "the kernel before",
        },
    ]
    await made(
        web,
        REFERENCE_VALUE_SET,
        "image-70d36d63",
        {"source": "image", "image": IMAGE, "values": values},
        {"state": "Retiring", "values": 2, "version": "7"},
    )
    policy = {
        "for": "tpm",
        "rego": "package policy\n\nimport rego.v1\n\ndefault executables := 33\n",
        "active": True,
        "cases": [
            {"name": "an approved image", "input": {}, "expect": "Affirmed"},
            {"name": "debug mode is on", "input": {}, "expect": "Refused"},
        ],
    }
    says = {
        "cases": "1/2",
        "failedCases": ["debug mode is on"],
        "conditions": [condition("Active", "False", "CasesFail", "1 of 2 cases fail")],
    }
    await made(web, APPRAISAL_POLICY, "no-debug", policy, says)
    hit = {"target": "chipGeneration Genoa", "affected": {"machines": 3, "grants": 5, "certificates": 1}}
    await made(
        web, DISTRUST, "old-chips", {"chipGeneration": "Genoa", "reason": "microcode older than the advisory"}, hit
    )


async def _record(web: ServedPage) -> None:
    """Forty entries in tiles, and a checkpoint over them."""
    assert web.tiles is not None
    whats = ("enrol", "approve", "verdict", "release")
    entries = [
        json.encode(
            {
                "time": "2026-01-01T00:00:00Z",
                "what": whats[number % 4],
                "who": THUMBPRINT,
                "resource": "pool/worker/config" if number % 4 == 3 else "",
                "verdict": "verdict-good" if number % 4 == 3 else "",
            }
        )
        for number in range(60)
    ]
    root = base64.b64encode(await extend(web.tiles, 0, entries)).decode()
    note = f"fastness.dev/record/showcase\n60\n{root}\n\n— fastness.dev/record/showcase c2lnbmF0dXJl\n"
    spec = {
        "origin": "fastness.dev/record/showcase",
        "size": 60,
        "rootHash": root,
        "time": "2026-01-01T00:00:00Z",
        "note": note,
    }
    await made(web, AUDIT_CHECKPOINT, "checkpoint-60", spec)
