"""MachineConfigNode: how far one node is with its configuration.

It has the name of its node. The daemon on the node writes the status, step by step; a step in progress is Unknown, one that has
not begun is False with reason NotYetOccurred. Wide output shows every step.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.os_config import named
from fastness.kinds.machineconfiguration.pullspec import digested

NOT_YET_SET = "not-yet-set"

_WIDE = (
    ("UpdatePrepared", "UpdatePrepared"),
    ("UpdateExecuted", "UpdateExecuted"),
    ("UpdatePostActionComplete", "UpdatePostActionComplete"),
    ("UpdateComplete", "UpdateComplete"),
    ("Resumed", "Resumed"),
    ("UpdatedFilesAndOS", "AppliedFilesAndOS"),
    ("CordonedNode", "Cordoned"),
    ("DrainedNode", "Drained"),
    ("RebootedNode", "RebootedNode"),
    ("UncordonedNode", "Uncordoned"),
)


_SPEC = s.obj(
    {
        "node": named("The node."),
        "pool": named("The pool of the node, or not-yet-set."),
        "configVersion": s.obj(
            {"desired": s.object_name("Rendered config that the node should have, or not-yet-set.", minLength=1)},
            "The rendered config.",
            required=("desired",),
        ),
        "configImage": s.obj(
            {"desiredImage": digested("Image that the node should boot.")}, "The image.", required=("desiredImage",)
        ),
    },
    "What the node should be.",
    required=("node", "pool", "configVersion"),
)


def _generation(description: str) -> s.Fragment:
    return s.integer(description, format="int32", minimum=0)


_PINNED = s.obj(
    {
        "name": s.object_name("Name of the set.", minLength=1),
        "currentGeneration": _generation("Generation that the node has."),
        "desiredGeneration": _generation("Generation that the node should have."),
        "lastFailedGeneration": _generation("Generation that failed last."),
        "lastFailedGenerationError": s.string("Why it failed.", maxLength=32768),
    },
    required=("name",),
)

_STATUS = s.obj(
    {
        "conditions": s.conditions("One condition for each step of an update.", maxItems=20),
        "observedGeneration": s.integer("Generation that the status speaks of.", format="int64", minimum=1),
        "configVersion": s.obj(
            {
                "current": s.string("Rendered config that the node has.", maxLength=253),
                "desired": s.object_name("Rendered config that the node works towards.", minLength=1),
            },
            "The rendered config.",
            required=("desired",),
        ),
        "configImage": s.obj(
            {
                "currentImage": digested("Image that the node booted."),
                "desiredImage": digested("Image that the node works towards."),
            },
            "The image.",
        ),
        "pinnedImageSets": s.list_map(_PINNED, ("name",), "Sets of images that the node keeps.", maxItems=100),
        "irreconcilableChanges": s.list_map(
            s.obj(
                {
                    "fieldPath": s.string("Field that differs.", minLength=1, maxLength=253),
                    "diff": s.string("How it differs.", minLength=1, maxLength=4096),
                },
                required=("fieldPath", "diff"),
            ),
            ("fieldPath",),
            "Differences that only a new installation can remove.",
            maxItems=32,
        ),
        "internalReleaseImage": s.anything("State of release images kept on the node."),
    },
    "What was observed.",
)

MACHINE_CONFIG_NODE = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineConfigNode",
    plural="machineconfignodes",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="How far one node is with its configuration.",
    schema=s.with_rules(
        s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)),
        s.rule("self.metadata.name == self.spec.node.name", "the name must be that of the node in spec.node.name"),
    ),
    columns=(
        Column("PoolName", ".spec.pool.name"),
        Column("DesiredConfig", ".spec.configVersion.desired"),
        Column("CurrentConfig", ".status.configVersion.current"),
        Column("Updated", '.status.conditions[?(@.type=="Updated")].status'),
        AGE,
        *(Column(name, f'.status.conditions[?(@.type=="{kind}")].status', priority=1) for name, kind in _WIDE),
    ),
    subresources=("status",),
)

KINDS = (MACHINE_CONFIG_NODE,)
