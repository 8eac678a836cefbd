"""MachineOSBuild: one build of a pool's operating system image.

What is built never changes, times are written once, and a build that ended stays as it ended: its conditions are frozen as soon
as one of Failed, Interrupted or Succeeded is True.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Column, Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.os_config import named
from fastness.kinds.machineconfiguration.pullspec import digested, tagged

CONDITIONS = ("Prepared", "Building", "Succeeded", "Interrupted", "Failed")
FINAL = ("Failed", "Interrupted", "Succeeded")


def _reference(description: str, **fixed: s.Fragment) -> s.Fragment:
    return s.obj(
        {
            "name": s.object_name("Name of the object."),
            "namespace": s.string("Namespace of the object.", maxLength=253),
            "group": s.string("Group of the object.", maxLength=253),
            "resource": s.string("Resource of the object, plural.", maxLength=63),
            **fixed,
        },
        description,
        required=("name", "group", "resource"),
    )


_SPEC = s.immutable(
    s.obj(
        {
            "machineConfig": s.obj(
                {"name": s.object_name("Name of the rendered config.", minLength=10)},
                "The rendered config that goes into the image.",
                required=("name",),
            ),
            "machineOSConfig": named("The MachineOSConfig that asked for the build."),
            "renderedImagePushSpec": tagged("Where the image is pushed to."),
        },
        "What is built.",
        required=("machineConfig", "machineOSConfig", "renderedImagePushSpec"),
    ),
    "a build cannot be changed, start another one",
)

_FROZEN = [
    s.rule(
        f"!oldSelf.exists(c, c.type == '{final}' && c.status == 'True') || self == oldSelf",
        f"conditions cannot change once {final} is True",
    )
    for final in FINAL
]

_BUILDER = s.obj(
    {
        "imageBuilderType": s.enum("Job", description="What runs the build."),
        "job": _reference(
            "The job that runs the build.",
            group=s.enum("batch", description="Group of the job."),
            resource=s.enum("jobs", description="Resource of the job."),
        ),
    },
    "Who builds.",
    required=("imageBuilderType",),
)

_TIME_RULE = s.rule(
    "!has(self.buildStart) || !has(self.buildEnd) || self.buildEnd > self.buildStart",
    "buildEnd must be after buildStart",
)

_STATUS = s.with_rules(
    s.immutable_once_set(
        s.obj(
            {
                "conditions": s.with_rules(s.conditions("How far the build is.", maxItems=8), *_FROZEN),
                "builder": _BUILDER,
                "relatedObjects": s.list_map(
                    _reference("An object of the build."),
                    ("name", "group", "resource"),
                    "Objects that the build made and that are removed with it.",
                    maxItems=10,
                ),
                "buildStart": s.timestamp("When the build began."),
                "buildEnd": s.timestamp("When the build ended."),
                "digestedImagePushSpec": digested("What was pushed."),
            },
            "What was observed.",
        ),
        "buildStart",
        "buildEnd",
    ),
    _TIME_RULE,
)

MACHINE_OS_BUILD = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineOSBuild",
    plural="machineosbuilds",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="One build of a pool's operating system image.",
    schema=s.status_stays(s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",))),
    columns=(*(Column(name, f'.status.conditions[?(@.type=="{name}")].status') for name in CONDITIONS), AGE),
    subresources=("status",),
)

KINDS = (MACHINE_OS_BUILD,)
