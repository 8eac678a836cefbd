"""The whole table: which config of a role holds which rows, and which row wrote something.

documents(inputs)                  the Ignition documents of a role's three configs
explain("01-worker-kubelet", …)    the row behind a file or unit of such a config
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.base import agent_units, host, kubelet_rows, runtime
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.rows import Row, document


class Part(StrEnum):
    """One of the three configs that a role has."""

    HOST = "host"
    RUNTIME = "container-runtime"
    KUBELET = "kubelet"

    def config(self, role: str) -> str:
        """The name of the config of a role, or of a custom pool."""
        return f"00-{role}" if self is Part.HOST else f"01-{role}-{self}"


TABLE: Final[Mapping[Part, tuple[Row, ...]]] = {
    Part.HOST: (*host.ROWS, *agent_units.ROWS),
    Part.RUNTIME: runtime.ROWS,
    Part.KUBELET: kubelet_rows.ROWS,
}


_NAMES: Final = tuple(part.config("/").split("/") for part in Part)


def base_names(role: str) -> tuple[str, ...]:
    """The names of the configs that a role, or a custom pool with a base of its own, starts from."""
    return tuple(part.config(role) for part in Part)


def is_base_name(name: str) -> bool:
    """Whether a config that we made under this name is one that machines of a role start from."""
    return any(
        name.startswith(before) and name.endswith(after) and len(name) > len(before + after) for before, after in _NAMES
    )


def documents(inputs: NodeInputs) -> dict[Part, JsonObject]:
    """The Ignition documents of the three configs."""
    return {part: document(rows, inputs) for part, rows in TABLE.items()}


def rows_of(config: str, role: str, place: str) -> list[Row]:
    """The rows of a base config that are about a file, unit or drop-in: more than one where inputs decide which holds."""
    for part, rows in TABLE.items():
        if part.config(role) == config:
            return [row for row in rows if row.place == place]
    return []
