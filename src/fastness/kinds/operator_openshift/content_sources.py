"""ImageContentSourcePolicy of `v1alpha1`: the older form of an ImageDigestMirrorSet.

It has no policy about the source, and its schema leaves the form of names to whoever uses them.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.openshift import LABELS
from fastness.kinds.operator_openshift import GROUP

_ENTRY = s.obj(
    {
        "source": s.string("What pull specifications name: a registry, a namespace in one, or a repository."),
        "mirrors": s.array(s.string(), "Where the same images are, the first one first.", **s.ATOMIC),
    },
    required=("source",),
)

IMAGE_CONTENT_SOURCE_POLICY = Kind(
    group=GROUP,
    version="v1alpha1",
    kind="ImageContentSourcePolicy",
    plural="imagecontentsourcepolicies",
    scope=Scope.CLUSTER,
    labels=LABELS,
    description="Mirrors for images that are pulled by digest, in the older form.",
    schema=s.obj(
        {
            "spec": s.obj(
                {"repositoryDigestMirrors": s.array(_ENTRY, "Sources and their mirrors.", **s.ATOMIC)},
                "What is wanted.",
            )
        },
        required=("spec",),
    ),
)

KINDS = (IMAGE_CONTENT_SOURCE_POLICY,)
