"""What the page of one machine reads: its objects, its verdicts, the events of its node, and the record of its key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.attestation.machine.decisions import open_decisions
from fastness.attestation.verdict.explain import explain, unproved_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import EVENT
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.errors import NotFound
from fastness.kube.port import Scope
from fastness.machineconfig.render.blame import Blame, Origin
from fastness.machineconfig.render.render import sources_of
from fastness.machineconfig.rollout.nodes import NodeFacts, facts
from fastness.page.fleet import row_of
from fastness.page.pages.machine import Drifted, Moment, Story, machine_page
from fastness.page.view_scope import CONFIGS, MACHINES, NODES, POOLS, VERDICTS, ViewScope
from fastness.page.views.view_request import NEWEST, ViewRequest, newest_checkpoint
from fastness.record.entry import because, by_person

LOOK_BACK: Final = 2000
EVENTS: Final = EVENT.resource
_DRIFT: Final = "unexpected on-disk state validating against "
_TONES: Final = {"refusal": "Refused", "revocation": "Refused", "verdict": ""}


async def machine_view(request: ViewRequest) -> bytes:
    """One machine."""
    scope, name = request.scope, request.name
    machine = scope.get(MACHINES, name)
    if machine is None:
        raise NotFound(f'machines "{name}" not found', group=MACHINES.group, kind=MACHINES.plural, name=name)
    status = machine.get("status") or {}
    node = scope.glimpse(NODES, str(status.get("nodeName") or ""))
    verdict = scope.glimpse(VERDICTS, str(status.get("lastVerdict") or ""))
    thumbprint = str(status.get("keyThumbprint") or "")
    entries = await request.reader.newest(newest_checkpoint(scope), LOOK_BACK)
    mine = [entry for entry in entries if thumbprint and entry.get("who") == thumbprint]
    origins = _origins(scope, str(status.get("pool") or ""))
    node_facts = facts(node) if node else None
    moments = moments_of(machine, scope.verdicts_of(machine["metadata"]["uid"]), mine)
    standing = scope.rules(request.frame.now).standing(view(machine, Machine), request.frame.now)
    explained = explain(machine, standing, verdict, unproved_of(machine, reversed(mine)))
    return machine_page(request.frame, Story(
        machine, row_of(machine, node, standing), explained, node_facts,
        [*moments, *await _events(request, node_facts)],
        [entry for entry in mine if entry.get("what") == "release"][:NEWEST],
        origins, drifted(node_facts, origins),
        open_decisions(view(machine, Machine)) if scope.may("patch", MACHINES, name) else (),
        annotations_of(node).get(names.BOOTED_IMAGE, "") if node else "",
    ))  # fmt: skip


def moments_of(machine: JsonObject, verdicts: list[JsonObject], entries: list[JsonObject]) -> list[Moment]:
    """What happened to a machine: its conditions, its verdicts, and what the record says about its key."""
    moments = [
        Moment(
            str(state.get("lastTransitionTime", "")), f"{state.get('type')} is {state.get('status')}",
            str(state.get("message", "")), str(state.get("status", "")) if state.get("type") != "Revoked" else "Refused",
        )
        for state in (machine.get("status") or {}).get("conditions") or ()
    ]  # fmt: skip
    moments += [
        Moment(
            str(verdict["metadata"].get("creationTimestamp", "")), f"verdict {verdict['spec'].get('result', '')}",
            str(verdict["spec"].get("reason", "")), str(verdict["spec"].get("result", "")),
        )
        for verdict in verdicts
    ]  # fmt: skip
    moments += [
        Moment(
            str(entry.get("time", "")), f"record: {entry.get('what', '')}",
            by_person(entry) or str(entry.get("resource") or (because(entry) if entry.get("what") == "refusal" else "")),
            _TONES.get(str(entry.get("what")), "Active"), int(entry["index"]),
        )
        for entry in entries
    ]  # fmt: skip
    return moments


async def _events(request: ViewRequest, node: NodeFacts | None) -> list[Moment]:
    """What was noted about its node, as far as the user may see events."""
    if node is None:
        return []
    events = await request.ask(EVENTS, Scope(fields=f"involvedObject.kind=Node,involvedObject.name={node.name}"))
    return [
        Moment(
            str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp", "")),
            str(event.get("reason", "")), str(event.get("message", "")), "Fail" if event.get("type") == "Warning" else "",
        )
        for event in events
    ]  # fmt: skip


def drifted(node: NodeFacts | None, origins: Iterable[Origin]) -> Sequence[Drifted]:
    """What an agent says is not as it should be, each with the config that set it; none where it says something else."""
    if node is None or not node.degraded or _DRIFT not in node.reason:
        return ()
    sources = {origin.name: origin.source for origin in origins}
    _, _, differences = node.reason.partition(_DRIFT)[2].partition(": ")
    parts = (text.partition(": ") for text in differences.split("; ") if text)
    return [Drifted(part, text or "differs", sources.get(part, "")) for part, _, text in parts]


def _origins(scope: ViewScope, pool: str) -> tuple[Origin, ...]:
    pool_object = scope.glimpse(POOLS, pool)
    configs = scope.those(CONFIGS)
    return tuple(Blame(sources_of(pool_object, configs)).origins) if pool_object is not None and configs else ()
