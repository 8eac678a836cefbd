"""PinnedImageSet and OSImageStream: images that are chosen ahead of time.

A PinnedImageSet names images that nodes keep pulled. The OSImageStream, a singleton, lists the operating system images that a
release offers and says which one pools get by default.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.pullspec import digested

PINNED_IMAGE_SET = Kind(
    group=GROUP,
    version=VERSION,
    kind="PinnedImageSet",
    plural="pinnedimagesets",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Images that the nodes of a pool keep pulled.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "pinnedImages": s.list_map(
                        s.obj({"name": digested("The image, by digest.")}, required=("name",)),
                        ("name",),
                        "The images.",
                        minItems=1,
                        maxItems=500,
                    )
                },
                "What to keep.",
                required=("pinnedImages",),
            )
        },
        required=("spec",),
    ),
)

_STREAM = s.obj(
    {
        "name": s.object_name("Name of the stream.", minLength=1),
        "osImage": digested("The operating system image."),
        "osExtensionsImage": digested("The image with packages for extensions."),
    },
    required=("name", "osImage", "osExtensionsImage"),
)

OS_IMAGE_STREAM = Kind(
    group=GROUP,
    version=VERSION,
    kind="OSImageStream",
    plural="osimagestreams",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="The operating system images that a release offers to pools.",
    schema=s.singleton(
        s.obj(
            {
                "spec": s.obj(
                    {"defaultStream": s.object_name("Stream of pools that name none.")}, "What is preferred."
                ),
                "status": s.obj(
                    {
                        "availableStreams": s.list_map(_STREAM, ("name",), "What is on offer.", maxItems=100),
                        "defaultStream": s.object_name("Stream that pools get which name none."),
                    },
                    "What was observed.",
                ),
            },
            required=("spec",),
        ),
        "cluster",
    ),
    subresources=("status",),
)

KINDS = (PINNED_IMAGE_SET, OS_IMAGE_STREAM)
