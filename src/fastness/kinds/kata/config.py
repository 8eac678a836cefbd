"""KataConfig: asks for the runtime for confidential containers on some or all workers.

There is at most one in a cluster; since its name is free, admission sees to that (`admission`). The lists in the status
follow the installation node by node and are left out when they are empty.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kata import GROUP, VERSION
from fastness.kinds.kind import AGE, Column, Kind, Scope

LOG_LEVELS = ("fatal", "panic", "error", "warn", "info", "debug", "trace")
FINALIZER = f"{GROUP}/finalizer"
DEFAULT_LOG_LEVEL = "info"

_SPEC = s.obj(
    {
        "kataConfigPoolSelector": s.label_selector(
            "The workers that get the runtime; all of them if not set.", nullable=True
        ),
        "checkNodeEligibility": s.boolean(
            "Whether only nodes are chosen that feature discovery found able to run it.", default=False
        ),
        "logLevel": s.enum(
            *LOG_LEVELS, description="Log level of the container runtime on those nodes.", default=DEFAULT_LOG_LEVEL
        ),
        "enablePeerPods": s.boolean("Whether pods may run as virtual machines beside their node.", default=False),
        "enableMixedCluster": s.boolean("Whether bare-metal and virtual nodes are told apart by label.", default=False),
    },
    "What to install, and where.",
)


def _nodes(description: str) -> s.Fragment:
    return s.array(s.string(), description, **s.ATOMIC)


_STATUS = s.obj(
    {
        "runtimeClasses": _nodes("Names of the runtime classes that were made."),
        "runtimeClass": s.string("The runtime class, where older readers look for it."),
        "kataNodes": s.obj(
            {
                "nodeCount": s.integer("Nodes that have the runtime or are about to get it."),
                "readyNodeCount": s.integer("Nodes that have the runtime."),
                "installed": _nodes("Nodes that have the runtime."),
                "installing": _nodes("Nodes on which it is being installed."),
                "waitingToInstall": _nodes("Nodes that wait for their turn."),
                "failedToInstall": _nodes("Nodes on which the installation failed."),
                "uninstalling": _nodes("Nodes from which it is being removed."),
                "waitingToUninstall": _nodes("Nodes that wait for removal."),
                "failedToUninstall": _nodes("Nodes on which the removal failed."),
            },
            "The nodes, by how far they are.",
        ),
        "conditions": s.conditions("InProgress: whether something is being installed or removed, and what."),
        "waitingForMcoToStart": s.boolean("Whether the rollout was asked for and has not begun."),
    },
    "What was observed.",
)

KATA_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="KataConfig",
    plural="kataconfigs",
    scope=Scope.CLUSTER,
    description="The runtime for confidential containers on some or all workers.",
    # One default for the whole spec, so that an object without one gets the defaults of its fields too.
    schema=s.obj({"spec": {**_SPEC, "default": {}}, "status": _STATUS}),
    columns=(
        Column("InProgress", ".status.conditions[?(@.type=='InProgress')].status", description="Status of the change."),
        Column("Completed", ".status.kataNodes.readyNodeCount", "integer", description="Nodes that have the runtime."),
        Column("Total", ".status.kataNodes.nodeCount", "integer", description="Nodes that should have it."),
        AGE,
    ),
    subresources=("status",),
)

KINDS = (KATA_CONFIG,)
