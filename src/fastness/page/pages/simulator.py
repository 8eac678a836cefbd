"""The simulator: virtual machines, what can go wrong with them, and the way back.

Every control is a form, so it works without a script. Whoever may not decide about machines sees what is going on and no forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from fastness.formats.words import counted
from fastness.page.markup import Child, Markup, tag
from fastness.page.pages.layout import Frame, PageFrame, page
from fastness.page.pages.parts import badge, hidden, machine_path, section, table, when
from fastness.page.simulator import ActiveFault, FaultKind, VirtualRow

MOST_ADDED: Final = 50
MOST_SHOWN: Final = 100
TEES: Final = ("tpm", "tdx", "snp")
PATH: Final = "/simulator"


@dataclass(frozen=True, slots=True)
class Stage:
    """What the simulator holds; `machines_by_node` leads from a node to its Machine, `states` to where it stands."""

    rows: Sequence[VirtualRow]
    kinds: Sequence[FaultKind]
    faults: Sequence[ActiveFault]
    may_act: bool
    notice: str = ""
    machines_by_node: Mapping[str, str] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


def simulator_page(frame: Frame, stage: Stage) -> bytes:
    """The whole view."""
    broken = len(stage.faults) + sum(len(row.faults) for row in stage.rows)
    faults = counted(broken, "fault") if broken else "no faults"
    lead = f"{counted(len(stage.rows), 'virtual machine')}; {faults}. Every fault can be undone."
    return page(
        frame, PageFrame("Simulator", PATH, "machines simulator", lead=lead),
        tag("p", stage.notice, class_="said", role="status") if stage.notice else None,
        _machines(frame, stage), _cluster(frame, stage), _add(frame) if stage.may_act else None, _kinds(stage),
    )  # fmt: skip


def _machines(frame: Frame, stage: Stage) -> Markup:
    matches = [
        row for row in stage.rows if not stage.words or stage.words in f"{row.name} {row.node} {row.tee}".lower()
    ]
    heads = ("Machine", "Evidence", "State", "Faults", *(("Do",) if stage.may_act else ()))
    rows = (
        (*_row(frame, stage, row), *((_controls(frame, stage, row),) if stage.may_act else ()))
        for row in matches[:MOST_SHOWN]
    )
    find = tag(
        "form", tag("label", tag("span", "Find"), tag("input", type="text", name="q", id="q", value=stage.words, maxlength=100)),
        tag("button", "Show", type="submit"), method="get", action=PATH, class_="filters",
    ) if len(stage.rows) > MOST_SHOWN or stage.words else None  # fmt: skip
    more = f" (the first {MOST_SHOWN})" if len(matches) > MOST_SHOWN else ""
    return section(
        "Machines", find, table(f"{len(matches)} of {len(stage.rows)} virtual machines{more}", heads, rows, "virtual")
    )


def _row(frame: Frame, stage: Stage, row: VirtualRow) -> tuple[Child, ...]:
    machine = stage.machines_by_node.get(row.node, "")
    link: Child = tag("a", row.node, href=machine_path(machine)) if machine else row.node or "not joined yet"
    state = stage.states.get(machine, "waiting")
    running = [None if row.running else badge("stopped"), None if row.network else badge("cut off")]
    faults = [_fault(frame, stage, fault) for fault in row.faults] or "–"
    return (
        tag("div", tag("strong", row.name), tag("small", link)),
        row.tee,
        tag("div", badge(state), running, class_="badges"),
        faults,
    )


def _fault(frame: Frame, stage: Stage, fault: ActiveFault) -> Markup:
    title = next((kind.title for kind in stage.kinds if kind.id == fault.kind), fault.kind)
    undo = _button(frame, "Undo", {"action": "undo", "fault": fault.id}, f"Undo: {title} {fault.machine}".strip())
    return tag(
        "div", badge(title), tag("small", _since(fault, frame.now)), undo if stage.may_act else None, class_="fault"
    )


def _since(fault: ActiveFault, now: datetime) -> Markup:
    return when(fault.since.isoformat(), now)


def _controls(frame: Frame, stage: Stage, row: VirtualRow) -> Markup:
    kinds = [tag("option", kind.title, value=kind.id) for kind in stage.kinds if kind.scope == "machine"]
    tamper = tag(
        "form", hidden("token", frame.form_token), hidden("action", "do"), hidden("machine", row.name),
        tag("select", kinds, name="kind", aria_label=f"What to do to {row.name}"),
        tag("button", "Do", type="submit", aria_label=f"Do it to {row.name}"), method="post", action=PATH,
    )  # fmt: skip
    return tag(
        "div", tamper if kinds else None,
        _button(frame, "Reboot", {"action": "reboot", "machine": row.name}, f"Reboot {row.name}"),
        _button(frame, "Remove", {"action": "remove", "machine": row.name}, f"Remove {row.name}"), class_="controls",
    )  # fmt: skip


def _cluster(frame: Frame, stage: Stage) -> Markup | None:
    kinds = [kind for kind in stage.kinds if kind.scope == "cluster"]
    if not kinds and not stage.faults:
        return None
    kinds = [kind for kind in kinds if kind.id not in {fault.kind for fault in stage.faults}]
    buttons = (
        [_button(frame, kind.title, {"action": "do", "kind": kind.id}, kind.title) for kind in kinds]
        if stage.may_act
        else []
    )
    return section(
        "The whole cluster", [_fault(frame, stage, fault) for fault in stage.faults],
        tag("div", buttons, class_="controls") if buttons else None,
    )  # fmt: skip


def _add(frame: Frame) -> Markup:
    tees = [tag("option", tee, value=tee) for tee in TEES]
    return section("More machines", tag(
        "form", hidden("token", frame.form_token), hidden("action", "add"),
        tag(
            "label", tag("span", "How many"),
            tag("input", type="number", name="count", value=1, min=1, max=MOST_ADDED, required=True),
        ),
        tag("label", tag("span", "Evidence"), tag("select", tag("option", "mixed", value=""), tees, name="tee")),
        tag("button", "Start", type="submit"), method="post", action=PATH, class_="filters",
    ))  # fmt: skip


def _kinds(stage: Stage) -> Markup:
    return section("What can go wrong", table(
        "Faults", ("Fault", "What happens", "To whom"),
        ((kind.title, kind.explanation, f"a {kind.scope}") for kind in stage.kinds),
    ))  # fmt: skip


def _button(frame: Frame, text: str, fields: Mapping[str, str], label: str) -> Markup:
    return tag(
        "form", hidden("token", frame.form_token), [hidden(name, value) for name, value in fields.items()],
        tag("button", text, type="submit", aria_label=label), method="post", action=PATH,
    )  # fmt: skip
