"""What `fastness plan` and `fastness blame` say about NodeOverlays.

The decisions are `machineconfig.rollout.overlay_plan`; here is how people name machines and how a plan is told to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastness.cli.config.offline import near, split_deletions
from fastness.cli.errors import CliError
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.overlay.overlay import examine, is_member, matching, recipient_of
from fastness.machineconfig.render.merge import Source
from fastness.machineconfig.rollout.diff import text_of
from fastness.machineconfig.rollout.overlay_plan import Group, OverlayPlan
from fastness.machineconfig.rollout.plan import State

KIND: Final = "NodeOverlay"
WORDS: Final = ("nodeoverlay", "nodeoverlays")
MOST_NAMED: Final = 5


def deleted(state: State, delete: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of names to delete those of overlays, and the others; raises CliError for an overlay that is not there."""
    return split_deletions(KIND, WORDS, [str(overlay["metadata"]["name"]) for overlay in state.overlays], delete)


def sources_for(state: State, named: str) -> tuple[str, list[Source]]:
    """The pool of a machine, and its overlays as sources of its config; raises CliError.

    A machine is named as its Machine, its node, or by its uid.
    """
    members = [member for member in state.machines if is_member(member)]
    machine = next((member for member in members if named in _names_of(member)), None)
    if machine is None:
        raise CliError(
            f"there is no machine {named!r}", near(named, [name for member in members for name in _names_of(member)])
        )
    overlays = [examine(overlay) for overlay in matching(state.overlays, recipient_of(machine))]
    return str(machine["status"].get("pool") or ""), [
        overlay.source for overlay in overlays if overlay.document is not None
    ]


def _names_of(machine: Any) -> list[str]:
    meta: JsonObject = machine["metadata"]
    named = (meta.get("name"), machine["status"].get("nodeName"), meta.get("uid"))
    return [str(name) for name in named if name]


def overlays_text(plan: OverlayPlan, *, diffs: bool) -> str:
    """The plan as text."""
    lines = [f"{KIND} {name}: {what}" for name, what in plan.overlays]
    lines += [f"  {problem.severity}: {problem.short}" for problem in plan.problems]
    if plan.fails:
        lines.append("  machines that match would wait until it is corrected")
    for group in plan.groups:
        lines += _group(group, diffs)
    if not plan.groups:
        lines.append(
            f"  nothing changes for any machine; {counted(plan.machines_known, 'machine is', 'machines are')} known"
        )
    return "\n".join(lines)


def _group(group: Group, diffs: bool) -> Iterator[str]:
    named = [f"{name} (node {node})" if node else name for name, node in group.machines[:MOST_NAMED]]
    more = f" and {len(group.machines) - MOST_NAMED} more" if len(group.machines) > MOST_NAMED else ""
    count = counted(len(group.machines), "machine")
    yield f"  {count} of pool {group.pool}: {', '.join(named)}{more}"
    yield f"    overlays: {', '.join(group.before) or '(none)'} -> {', '.join(group.after) or '(none)'}"
    for change, source in group.changes:
        yield f"    {change}" + (f"  [{source}]" if source else "")
        if diffs:
            yield from (f"        {line}" for line in text_of(change).splitlines())
    yield f"    {_follow(group)}"


def _follow(group: Group) -> str:
    """What the machines that run do, and how many at a time."""
    if not group.running:
        return "none of them runs: they get it when they are installed"
    if group.paused:
        return "the pool is paused: machines that run follow when it goes on"
    return f"machines that run follow, at most {group.budget} at a time: {group.decision.headline}"
