"""NodeFeature: what was found on one node.

The agent on a node writes one, labelled with the node's name. Several for one node are merged: flags are united, of two
attributes the later wins, instances are appended.
"""

from __future__ import annotations

from dataclasses import replace

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Kind, Scope
from fastness.kinds.nfd import GROUP, UPSTREAM

NODE_NAME_LABEL = "nfd.node.kubernetes.io/node-name"


def _features(elements: s.Fragment, description: str) -> s.Fragment:
    return s.mapping(s.obj({"elements": elements}, required=("elements",)), description)


_FLAG = s.obj(description="Present; a flag has no value.")
_INSTANCE = s.obj({"attributes": s.mapping(s.string(), "What is known about it.")}, required=("attributes",))

_SPEC = s.obj(
    {
        "features": s.obj(
            {
                "flags": _features(s.mapping(_FLAG), "Names that are there or not, by feature."),
                "attributes": _features(s.mapping(s.string()), "Names with a value, by feature."),
                "instances": _features(s.array(_INSTANCE, **s.ATOMIC), "Things of which there are several."),
            },
            "What was found.",
        ),
        "labels": s.mapping(s.string(), "Labels that the node gets."),
    },
    "What was found on the node.",
)

NODE_FEATURE = Kind(
    group=GROUP,
    version="v1alpha1",
    kind="NodeFeature",
    plural="nodefeatures",
    scope=Scope.NAMESPACED,
    description="What was found on one node.",
    schema=s.obj({"spec": _SPEC}, required=("spec",)),
    columns=(AGE,),
)

KINDS = (NODE_FEATURE, replace(NODE_FEATURE, group=UPSTREAM, storage=NODE_FEATURE.storage))
