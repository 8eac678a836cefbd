"""MachineOSBuild: one build of a pool's operating system image.

What is built never changes, times are written once, and a build that ended stays as it ended: its conditions are frozen as soon
as one of Failed, Interrupted or Succeeded is True.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.references import digested, named, reference, subdomain, tagged

CONDITIONS = ("Prepared", "Building", "Succeeded", "Interrupted", "Failed")
FINAL = ("a Failed", "an Interrupted", "an Succeeded")
"""The conditions that end a build, each with the article that its message has."""

_SPEC = s.immutable(
    s.obj(
        {
            "machineConfig": s.obj(
                {"name": subdomain("Name of the rendered config.", minLength=10)},
                "The rendered config that goes into the image.",
                required=("name",),
            ),
            "machineOSConfig": named("The MachineOSConfig that asked for the build."),
            "renderedImagePushSpec": tagged("Where the image is pushed to."),
        },
        "What is built.",
        required=("machineConfig", "machineOSConfig", "renderedImagePushSpec"),
    ),
    "machineOSBuildSpec is immutable once set",
)

_FROZEN = [
    s.rule(
        f"!oldSelf.exists(c, c.type == '{final.split()[-1]}' && c.status == 'True') || self == oldSelf",
        f"once {final} condition is set, conditions are immutable",
    )
    for final in FINAL
]

_BUILDER = s.with_rules(
    s.obj(
        {
            "imageBuilderType": s.enum("Job", description="What runs the build."),
            "job": reference("The job that runs the build."),
        },
        "Who builds.",
        required=("imageBuilderType",),
    ),
    predicates.member_iff(
        "job", "imageBuilderType", "Job", "job is required when imageBuilderType is Job, and forbidden otherwise"
    ),
)

_ENDS_LATER = s.rule(
    "!has(self.buildEnd) || (has(self.buildStart) && self.buildStart < self.buildEnd)",
    "buildEnd must be after buildStart",
)

_STATUS = s.with_rules(
    s.obj(
        {
            "conditions": s.with_rules(s.conditions("How far the build is.", maxItems=8), *_FROZEN),
            "builder": _BUILDER,
            "relatedObjects": s.list_map(
                reference("An object of the build."),
                ("name", "resource"),
                "Objects that the build made and that are removed with it.",
                maxItems=10,
            ),
            "buildStart": s.immutable(s.timestamp("When the build began."), "buildStart is immutable once set"),
            "buildEnd": s.immutable(s.timestamp("When the build ended."), "buildEnd is immutable once set"),
            "digestedImagePushSpec": digested("What was pushed."),
        },
        "What was observed.",
    ),
    _ENDS_LATER,
)

MACHINE_OS_BUILD = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineOSBuild",
    plural="machineosbuilds",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="One build of a pool's operating system image.",
    schema=s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)),
    columns=(*(Column(name, f'.status.conditions[?(@.type=="{name}")].status') for name in CONDITIONS), AGE),
    subresources=("status",),
)

KINDS = (MACHINE_OS_BUILD,)
