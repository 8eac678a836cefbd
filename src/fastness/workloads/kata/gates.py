"""The feature gates: a ConfigMap with five keys, read forgivingly.

* No ConfigMap means all defaults; so does a missing key.
* A value that cannot be read is told (`problems`) and its key keeps its default. It never stops anything: a typing error in one
  gate must not take down what the others ask for.
* Truth is spelled as Go spells it, because that is what users of this ConfigMap write: `1 t T TRUE true True` and their
  opposites.
* A key that nobody knows is told too, with the closest known one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

Object = Mapping[str, Any]
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
MAX_OVERHEAD_MB: Final = 1 << 20


class DeploymentMode(StrEnum):
    """How the runtime gets onto nodes, as it is asked for."""

    MACHINE_CONFIG = "MachineConfig"
    DAEMON_SET = "DaemonSet"
    FALLBACK = "DaemonSetFallback"


class UpdateStrategy(StrEnum):
    """How the adaptor of peer pods is replaced."""

    ROLLING = "RollingUpdate"
    ON_DELETE = "OnDelete"


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """What the ConfigMap asks for, and what of it could not be read."""

    confidential: bool = False
    deployment_mode: DeploymentMode = DeploymentMode.MACHINE_CONFIG
    layered_image: bool = False
    memory_overhead_mb: int | None = None
    adaptor_update: UpdateStrategy = UpdateStrategy.ROLLING
    problems: tuple[str, ...] = field(default=(), compare=False)


def read_gates(config_map: Object | None) -> FeatureGates:
    """The gates of a ConfigMap, or all defaults when there is none."""
    data = (config_map or {}).get("data")
    given = data if isinstance(data, Mapping) else {}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, text in sorted(given.items()):
        if key not in _KEYS:
            close = difflib.get_close_matches(str(key), _KEYS, 1)
            problems.append(f"{key}: unknown" + (f", did you mean {close[0]}?" if close else ""))
            continue
        name, read, allowed = _KEYS[key]
        value = read(str(text))
        if value is None:
            problems.append(f"{key}: {str(text)[:40]!r} is not {allowed}; the default holds")
        else:
            values[name] = value
    return FeatureGates(**values, problems=tuple(problems))


def _truth(text: str) -> bool | None:
    return True if text in _TRUE else False if text in _FALSE else None


def _mode(text: str) -> DeploymentMode | None:
    return DeploymentMode(text) if text in set(DeploymentMode) else None


def _strategy(text: str) -> UpdateStrategy | None:
    return UpdateStrategy(text) if text in set(UpdateStrategy) else None


def _megabytes(text: str) -> int | None:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        return None
    return int(text) if 0 < int(text) <= MAX_OVERHEAD_MB else None


_KEYS: Final[Mapping[str, tuple[str, Callable[[str], Any], str]]] = {
    "confidential": ("confidential", _truth, "true or false"),
    "deploymentMode": ("deployment_mode", _mode, "one of " + ", ".join(DeploymentMode)),
    "layeredImageDeployment": ("layered_image", _truth, "true or false"),
    "memoryOverheadMB": ("memory_overhead_mb", _megabytes, f"a whole number from 1 to {MAX_OVERHEAD_MB}"),
    "caaUpdateStrategy": ("adaptor_update", _strategy, "one of " + ", ".join(UpdateStrategy)),
}
