"""How the runtime gets onto nodes, and whether it may: the feature gates, the mode that follows, the releases that can.

    mode of the gates    MachineConfigs are served   result
    MachineConfig        yes                         MachineConfig
    MachineConfig        no                          refused; nothing is changed
    DaemonSet            either                      DaemonSet
    DaemonSetFallback    yes                         MachineConfig
    DaemonSetFallback    no                          DaemonSet

* What an installation began with, it ends with: the mode stands in an annotation of the KataConfig, and another one that is
  set later is refused until the KataConfig is gone. Half of the nodes would otherwise have the runtime twice, and no way to
  lose it.
* The gates are a ConfigMap with five keys. No ConfigMap means all defaults; so does a missing key. A value that cannot be read,
  and a key that does not exist, are reported (`problems`) and the default holds: a typing error in one gate must not take down
  what the others switch on.
* Truth is spelled as Go spells it, because that is what users of this ConfigMap write: `1 t T TRUE true True` and their
  opposites.
* A release of the platform is compared within its own minor version; a minor above the last listed one is accepted, one below
  all of them is not (`workloads.compat`). A prerelease comes before its release. A cluster that has no release (plain
  Kubernetes, the embedded API) is not judged.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.objects import annotations_of
from fastness.workloads.compat.support import column, parse_release
from fastness.workloads.compat.tables import RELEASES
from fastness.workloads.kata.errors import Refused

Object = Mapping[str, Any]
# What strconv.ParseBool of Go accepts, and nothing else.
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

MACHINE_CONFIG: Final = DeploymentMode.MACHINE_CONFIG
DAEMON_SET: Final = DeploymentMode.DAEMON_SET


def resolve(gate: DeploymentMode, served: bool) -> DeploymentMode:
    """The mode that holds: never the fallback; raises Refused."""
    match gate:
        case DeploymentMode.DAEMON_SET:
            return DAEMON_SET
        case DeploymentMode.FALLBACK:
            return MACHINE_CONFIG if served else DAEMON_SET
        case DeploymentMode.MACHINE_CONFIG:
            if served:
                return MACHINE_CONFIG
            raise Refused(
                "DeploymentModeUnavailable",
                "deployment mode is MachineConfig but it is not available",
                f"set deploymentMode to {DAEMON_SET} or {DeploymentMode.FALLBACK} in ConfigMap {names.FEATURE_GATES}",
                again=20.0,
            )


def in_use(config: Mapping[str, Any]) -> DeploymentMode | None:
    """The mode that an installation began with; None before it began."""
    mode = annotations_of(config).get(names.MODE_IN_USE)
    return DeploymentMode(mode) if mode in (MACHINE_CONFIG, DAEMON_SET) else None


def change_refused(used: DeploymentMode | None, gate: DeploymentMode, served: bool) -> str | None:
    """Why the mode that the gates say now does not hold; None when it does, or nothing has begun."""
    if used is None:
        return None
    try:
        mode = resolve(gate, served)
    except Refused as error:
        return f"{error.message}; the installation goes on as {used}" if used is not MACHINE_CONFIG else None
    if mode is used:
        return None
    return f"deploymentMode is {gate}, but the runtime was installed as {used}: delete the KataConfig to change it"


def release_can(version: str) -> bool:
    """Whether a release can host confidential containers on bare metal; one that cannot be read counts as too old."""
    release = parse_release(version)
    return release is not None and column(release) is not None


def require_release(version: str) -> None:
    """Refuse a release that is too old; raises Refused."""
    # Plain Kubernetes and the embedded API have no release of the platform.
    if version and not release_can(version):
        least = ", ".join(".".join(map(str, release)) for release in RELEASES)
        raise Refused(
            "UnsupportedOCPVersion",
            f"OpenShift version {version} does not support CoCo bare metal (minimum required: {least} or higher)",
            "upgrade the cluster, or set confidential to false",
            exact=True,
        )
