"""PinnedImageSet and OSImageStream: images that are chosen ahead of time.

A PinnedImageSet names images that nodes keep pulled. The OSImageStream, a singleton, lists the operating system images that a
release offers and says which one pools get by default.
"""

from __future__ import annotations

from fastness.kinds import predicates
from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.machineconfiguration import GROUP, LABELS, VERSION
from fastness.kinds.machineconfiguration.references import digested

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


def stream_name(description: str) -> s.Fragment:
    """The name of a stream of operating system images."""
    return s.with_rules(s.string(description, minLength=1, maxLength=predicates.LONGEST_NAME), predicates.STREAM_NAME)


_STREAM = s.obj(
    {
        "name": stream_name("Name of the stream."),
        "osImage": digested("The operating system image."),
        "osExtensionsImage": digested("The image with packages for extensions."),
    },
    required=("name", "osImage", "osExtensionsImage"),
)

_STATUS = s.with_rules(
    s.obj(
        {
            "availableStreams": s.list_map(_STREAM, ("name",), "What is on offer.", minItems=1, maxItems=100),
            "defaultStream": stream_name("Stream that pools get which name none."),
        },
        "What was observed.",
        required=("availableStreams", "defaultStream"),
    ),
    s.rule(
        "self.availableStreams.exists(stream, stream.name == self.defaultStream)",
        "defaultStream must reference a stream name from availableStreams",
    ),
)

OS_IMAGE_STREAM = Kind(
    group=GROUP,
    version=VERSION,
    kind="OSImageStream",
    plural="osimagestreams",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="The operating system images that a release offers to pools.",
    schema=s.with_rules(
        s.obj(
            {
                "spec": s.obj(
                    {"defaultStream": stream_name("Stream of pools that name none.")},
                    "What is preferred.",
                    required=("defaultStream",),
                ),
                "status": _STATUS,
            },
            required=("spec",),
        ),
        s.rule("self.metadata.name == 'cluster'", "osimagestream is a singleton, .metadata.name must be 'cluster'"),
        # A choice that was right when it was made stays, also when its stream goes away: only another choice is judged.
        s.rule(
            "self.spec == oldSelf.spec || !has(self.status) || "
            "self.status.availableStreams.exists(stream, stream.name == self.spec.defaultStream)",
            "spec.defaultStream must reference an existing stream name from status.availableStreams",
        ),
    ),
    subresources=("status",),
)

KINDS = (PINNED_IMAGE_SET, OS_IMAGE_STREAM)
