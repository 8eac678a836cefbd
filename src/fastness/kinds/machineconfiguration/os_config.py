"""MachineOSConfig: the operating system image that is built for a pool.

There is one per pool and it has the pool's name. Objects that were accepted under another name before that rule keep working:
an update is held to the rule only if it changes the pool.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.references import digested, named, reference, tagged

ARCHITECTURES = ("ARM64", "AMD64", "PPC64LE", "S390X", "NoArch")


_CONTAINERFILE = s.obj(
    {
        "containerfileArch": s.enum(
            *ARCHITECTURES, description="Architecture that the text is for; NoArch for all.", default="NoArch"
        ),
        "content": s.string("Text of a containerfile that goes on top of the base image.", maxLength=4096),
    },
    required=("content",),
)

_SPEC = s.obj(
    {
        "machineConfigPool": named("The pool that runs the image."),
        "imageBuilder": s.obj(
            {"imageBuilderType": s.enum("Job", description="What runs the build.")},
            "How the image is built.",
            required=("imageBuilderType",),
        ),
        "baseImagePullSecret": named("Secret to pull the base image with; the cluster's own if not set."),
        "renderedImagePushSecret": named("Secret to push the built image with."),
        "renderedImagePushSpec": tagged("Where the built image is pushed to."),
        "containerFile": s.list_map(
            _CONTAINERFILE,
            ("containerfileArch",),
            "What to add to the base image, by architecture.",
            minItems=0,
            maxItems=4,
        ),
    },
    "What to build.",
    required=("machineConfigPool", "imageBuilder", "renderedImagePushSecret", "renderedImagePushSpec"),
)

_GENERATION = s.with_rules(
    s.integer("Generation that the status speaks of.", format="int64", minimum=0),
    predicates.not_less("observedGeneration must not move backwards"),
)

_ONE_PER_POOL = s.rule(
    "self.metadata.name == self.spec.machineConfigPool.name || "
    "(oldSelf.hasValue() && oldSelf.value().spec.machineConfigPool.name == self.spec.machineConfigPool.name)",
    "MachineOSConfig name must match the referenced MachineConfigPool name; can only have one MachineOSConfig per "
    "MachineConfigPool",
    optionalOldSelf=True,
)

_STATUS = s.obj(
    {
        "conditions": s.conditions("Seeded: whether the image that a pool came with was taken over."),
        "observedGeneration": _GENERATION,
        "currentImagePullSpec": digested("The image that was built last."),
        "machineOSBuild": reference("The build that is current."),
    },
    "What was observed.",
)

RENAMED = {
    "spec.buildInputs": (
        "today its members stand in spec itself: imageBuilder, baseImagePullSecret, renderedImagePushSecret, "
        "renderedImagePushSpec, containerFile; baseOSImagePullspec is osImageURL of a MachineConfig, and "
        "baseOSExtensionsImagePullspec its baseOSExtensionsContainerImage"
    ),
    "spec.buildOutputs": (
        "today nodes pull with the pull secret of the cluster, or with the Secret that the annotation "
        "fastness.dev/image-pull-secret names, which proven nodes of the pool alone get"
    ),
    "spec.baseOSImagePullspec": "today it is osImageURL of a MachineConfig",
    "spec.baseOSExtensionsImagePullspec": "today it is baseOSExtensionsContainerImage of a MachineConfig",
    "spec.renderedImagePushspec": "today it is spec.renderedImagePushSpec",
    "spec.containerfile": "today it is spec.containerFile",
}
"""Names of the first proposals, with those of today."""

MACHINE_OS_CONFIG = Kind(
    group=GROUP,
    version=VERSION,
    kind="MachineOSConfig",
    plural="machineosconfigs",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="The operating system image that is built for one pool.",
    schema=s.with_rules(s.obj({"spec": _SPEC, "status": _STATUS}, required=("spec",)), _ONE_PER_POOL),
    subresources=("status",),
    renamed=RENAMED,
)

KINDS = (MACHINE_OS_CONFIG,)
