"""What the page of one machine reads: its objects, its verdicts, the events of its node, and the record of its key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.attestation.machine.decisions import open_decisions
from fastness.attestation.verdict.explain import explain, unproved_of
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import EVENT
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.errors import NotFound
from fastness.kube.port import Scope
from fastness.machineconfig.render.blame import Blame, Origin
from fastness.machineconfig.render.render import sources_of
from fastness.machineconfig.rollout.nodes import NodeFacts, facts
from fastness.page.fleet import row_of
from fastness.page.pages.machine import Drifted, Moment, Story, machine_page
from fastness.page.view_scope import CONFIGS, MACHINES, NODES, POOLS, VERDICTS, Sight
from fastness.page.views.view_request import NEWEST, Shown, newest_checkpoint
from fastness.record.entry import because, by_person

LOOK_BACK: Final = 2000
EVENTS: Final = EVENT.resource
_DRIFT: Final = "unexpected on-disk state validating against "
_TONES: Final = {"refusal": "Refused", "revocation": "Refused", "verdict": ""}


async def machine_view(shown: Shown) -> bytes:
    """One machine."""
    sight, name = shown.sight, shown.name
    machine = sight.one(MACHINES, name)
    if machine is None:
        raise NotFound(f'machines "{name}" not found', group=MACHINES.group, kind=MACHINES.plural, name=name)
    status = machine.get("status") or {}
    node = sight.glimpse(NODES, str(status.get("nodeName") or ""))
    verdict = sight.glimpse(VERDICTS, str(status.get("lastVerdict") or ""))
    thumbprint = str(status.get("keyThumbprint") or "")
    entries = await shown.reader.newest(newest_checkpoint(sight), LOOK_BACK)
    mine = [one for one in entries if thumbprint and one.get("who") == thumbprint]
    origins = _origins(sight, str(status.get("pool") or ""))
    known = facts(node) if node else None
    moments = moments_of(machine, sight.verdicts_of(machine["metadata"]["uid"]), mine)
    standing = sight.rules(shown.frame.now).standing(view(machine, Machine), shown.frame.now)
    explained = explain(machine, standing, verdict, unproved_of(machine, reversed(mine)))
    return machine_page(shown.frame, Story(
        machine, row_of(machine, node, standing), explained, known,
        [*moments, *await _events(shown, known)],
        [one for one in mine if one.get("what") == "release"][:NEWEST],
        origins, drifted(known, origins),
        open_decisions(view(machine, Machine)) if sight.may("patch", MACHINES, name) else (),
    ))  # fmt: skip


def moments_of(machine: JsonObject, verdicts: list[JsonObject], entries: list[JsonObject]) -> list[Moment]:
    """What happened to a machine: its conditions, its verdicts, and what the record says about its key."""
    found = [
        Moment(
            str(one.get("lastTransitionTime", "")), f"{one.get('type')} is {one.get('status')}",
            str(one.get("message", "")), str(one.get("status", "")) if one.get("type") != "Revoked" else "Refused",
        )
        for one in (machine.get("status") or {}).get("conditions") or ()
    ]  # fmt: skip
    found += [
        Moment(
            str(one["metadata"].get("creationTimestamp", "")), f"verdict {one['spec'].get('result', '')}",
            str(one["spec"].get("reason", "")), str(one["spec"].get("result", "")),
        )
        for one in verdicts
    ]  # fmt: skip
    found += [
        Moment(
            str(one.get("time", "")), f"record: {one.get('what', '')}",
            by_person(one) or str(one.get("resource") or (because(one) if one.get("what") == "refusal" else "")),
            _TONES.get(str(one.get("what")), "Active"), int(one["index"]),
        )
        for one in entries
    ]  # fmt: skip
    return found


async def _events(shown: Shown, node: NodeFacts | None) -> list[Moment]:
    """What was noted about its node, as far as the user may see events."""
    if node is None:
        return []
    found = await shown.ask(EVENTS, Scope(fields=f"involvedObject.kind=Node,involvedObject.name={node.name}"))
    return [
        Moment(
            str(one.get("lastTimestamp") or one.get("eventTime") or one["metadata"].get("creationTimestamp", "")),
            str(one.get("reason", "")), str(one.get("message", "")), "Fail" if one.get("type") == "Warning" else "",
        )
        for one in found
    ]  # fmt: skip


def drifted(node: NodeFacts | None, origins: Iterable[Origin]) -> Sequence[Drifted]:
    """What an agent says is not as it should be, each with the config that set it; none where it says something else."""
    if node is None or not node.degraded or _DRIFT not in node.reason:
        return ()
    sources = {one.name: one.source for one in origins}
    _, _, told = node.reason.partition(_DRIFT)[2].partition(": ")
    parts = (one.partition(": ") for one in told.split("; ") if one)
    return [Drifted(part, text or "differs", sources.get(part, "")) for part, _, text in parts]


def _origins(sight: Sight, pool: str) -> tuple[Origin, ...]:
    found = sight.glimpse(POOLS, pool)
    configs = sight.those(CONFIGS)
    return tuple(Blame(sources_of(found, configs)).origins) if found is not None and configs else ()
