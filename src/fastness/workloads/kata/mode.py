"""How the runtime gets onto nodes.

    asked for            MachineConfigs are served   result
    MachineConfig        yes                         MachineConfig
    MachineConfig        no                          refused; nothing is changed
    DaemonSet            either                      DaemonSet
    DaemonSetFallback    yes                         MachineConfig
    DaemonSetFallback    no                          DaemonSet

What an installation began with, it ends with: the mode stands in an annotation of the KataConfig, and another one that is
asked for later is refused until the KataConfig is gone. Half of the nodes would otherwise have the runtime twice, and no way
to lose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.kata import names
from fastness.kinds.objects import annotations_of
from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.gates import DeploymentMode

MACHINE_CONFIG: Final = DeploymentMode.MACHINE_CONFIG
DAEMON_SET: Final = DeploymentMode.DAEMON_SET


def resolve(asked: DeploymentMode, served: bool) -> DeploymentMode:
    """The mode that holds: never the fallback; raises Refused."""
    match asked:
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
    found = annotations_of(config).get(names.MODE_IN_USE)
    return DeploymentMode(found) if found in (MACHINE_CONFIG, DAEMON_SET) else None


def change_refused(used: DeploymentMode | None, asked: DeploymentMode, served: bool) -> str:
    """Why the mode that is asked for now does not hold; empty when it does."""
    if used is None:
        return ""
    try:
        wanted = resolve(asked, served)
    except Refused as error:
        return f"{error.message}; the installation goes on as {used}" if used is not MACHINE_CONFIG else ""
    if wanted is used:
        return ""
    return f"deploymentMode is {asked}, but the runtime was installed as {used}: delete the KataConfig to change it"
