"""MachineConfigNode: how far one node is with its configuration.

It has the name of its node. The daemon on the node writes the status, step by step; a step in progress is Unknown, one that has
not begun is False with reason NotYetOccurred. Wide output shows every step.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.references import digested, named, subdomain

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
            {"desired": subdomain("Rendered config that the node should have, or not-yet-set.", minLength=1)},
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


_GENERATIONS = {
    "currentGeneration": "Generation that the node has.",
    "desiredGeneration": "Generation that the node should have.",
    "lastFailedGeneration": "Generation that failed last.",
}


def _generation(name: str, description: str) -> s.Fragment:
    return s.with_rules(
        s.integer(description, format="int32", minimum=1), predicates.not_less(f"{name} must not decrease")
    )


def _not_behind(other: str, words: str) -> s.Fragment:
    return s.rule(
        f"!has(self.desiredGeneration) || !has(self.{other}) || self.desiredGeneration >= self.{other}",
        f"desired generation must be greater than or equal to the {words} generation",
    )


_PINNED = s.with_rules(
    s.obj(
        {
            "name": subdomain("Name of the set.", minLength=1),
            **{name: _generation(name, description) for name, description in _GENERATIONS.items()},
            "lastFailedGenerationError": s.string("Why it failed.", maxLength=32768),
        },
        required=("name",),
    ),
    _not_behind("currentGeneration", "current"),
    _not_behind("lastFailedGeneration", "last failed"),
    s.rule(
        "!has(self.lastFailedGeneration) || has(self.lastFailedGenerationError)",
        "last failed generation error must be defined on image pull and pin failure",
    ),
)

_IRRECONCILABLE = s.obj(
    {
        "fieldPath": s.with_rules(
            s.string("Field that differs.", minLength=1, maxLength=70),
            s.rule("self.startsWith('spec.')", "The fieldPath must start with `spec.`"),
            predicates.pattern(
                r"^[a-zA-Z0-9.\[\]]+$",
                "The fieldPath must consist only of alphanumeric characters, brackets [] and dots ('.').",
            ),
        ),
        "diff": s.string("How it differs.", minLength=1, maxLength=4096),
    },
    required=("fieldPath", "diff"),
)

_RELEASE = s.obj(
    {
        "name": s.with_rules(
            s.string("Name of the bundle of images.", minLength=1, maxLength=64),
            predicates.pattern(
                r"^ocp-release-bundle-[0-9]+\.[0-9]+\.[0-9]+-[A-Za-z0-9._-]+$",
                "must be ocp-release-bundle-<version>-<arch|stream> and <= 64 chars",
            ),
        ),
        "image": s.with_rules(
            s.string("The release image, by digest.", minLength=1, maxLength=predicates.LONGEST_IMAGE),
            *predicates.DIGESTED_OR_LOCAL,
        ),
        "conditions": s.conditions("How far the bundle is on the node.", maxItems=20),
    },
    required=("name",),
)

_STATUS = s.obj(
    {
        "conditions": s.conditions("One condition for each step of an update.", maxItems=20),
        "observedGeneration": s.with_rules(
            s.integer("Generation that the status speaks of.", format="int64", minimum=1),
            predicates.not_less("observedGeneration must not decrease"),
        ),
        "configVersion": s.obj(
            {
                "current": subdomain("Rendered config that the node has."),
                "desired": subdomain("Rendered config that the node works towards.", minLength=1),
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
            minProperties=1,
        ),
        "pinnedImageSets": s.list_map(_PINNED, ("name",), "Sets of images that the node keeps.", maxItems=100),
        "irreconcilableChanges": s.list_map(
            _IRRECONCILABLE,
            ("fieldPath",),
            "Differences that only a new installation can remove.",
            minItems=1,
            maxItems=32,
        ),
        "internalReleaseImage": s.obj(
            {"releases": s.list_map(_RELEASE, ("name",), "Bundles that are kept.", minItems=1, maxItems=32)},
            "State of release images kept on the node.",
            **s.KEEP,
        ),
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
        s.rule("self.metadata.name == self.spec.node.name", "spec.node.name should match metadata.name"),
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
