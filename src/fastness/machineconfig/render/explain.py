"""Why a machine has a file or a unit: the row of the base that wrote it, and every config that said something else later.

    for explanation in explain(result.blame, state.configs, owners, "/etc/kubernetes/kubelet.conf"): ...

Blame says who; the table of the base says why. What people wrote has no reason that we know: their config is named, and whose
settings it was generated from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import labels_of, metadata, object_name
from fastness.machineconfig.render.base.table import rows_of
from fastness.machineconfig.render.blame import Blame, Origin, Touch
from fastness.machineconfig.render.generated import Owners, is_base

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wrote:
    """One config that said something about a part: which row of the base, where it applies and why, or whose settings."""

    config: str
    fields: tuple[str, ...]
    row: str = ""
    when: str = ""
    reason: str = ""

    def __str__(self) -> str:
        if self.row:
            return f"{self.config}, row {self.row!r} ({self.when}): {self.reason}"
        return f"{self.config}: {self.reason}"

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        parts = {"row": self.row, "when": self.when, "reason": self.reason}
        return {
            "config": self.config,
            "fields": list(self.fields),
            **{key: value for key, value in parts.items() if value},
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """A part of a config and everyone who wrote it, in the order in which they were merged; the last one holds."""

    place: str
    kind: str
    history: tuple[Wrote, ...]

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {"kind": self.kind, "name": self.place, "history": [wrote.to_json() for wrote in self.history]}


def explain(blame: Blame, configs: Iterable[Object], owners: Owners, place: str) -> list[Explanation]:
    """Who wrote a part and why; a path that is no part stands for everything below it. Nothing for what nobody wrote."""
    by_name = {object_name(config).name: config for config in configs}
    return [_explanation(origin, by_name, owners) for origin in blame.of(place)]


def _explanation(origin: Origin, configs: Mapping[str, Object], owners: Owners) -> Explanation:
    history = tuple(_wrote(origin, touch, configs.get(touch.config) or {}, owners) for touch in origin.history)
    return Explanation(origin.name, str(origin.kind), history)


def _wrote(origin: Origin, touch: Touch, config: Object, owners: Owners) -> Wrote:
    role = labels_of(config).get(names.ROLE_LABEL, "")
    rows = rows_of(touch.config, role, origin.name) if is_base(config) else []
    # A place may have two rows that exclude each other, as a unit that the image brings or not: the inputs say which one holds.
    holding = [row for row in rows if row.when.holds(owners.inputs(role)[0])] or rows
    if holding:
        row = holding[0]
        return Wrote(touch.config, touch.fields, row.place, row.when.text, row.reason)
    makers = [f"{owner.get('kind')} {owner.get('name')}" for owner in metadata(config).get("ownerReferences") or ()]
    reason = f"generated from {', '.join(makers)}" if makers else "a MachineConfig of this cluster's users"
    return Wrote(touch.config, touch.fields, reason=reason)
