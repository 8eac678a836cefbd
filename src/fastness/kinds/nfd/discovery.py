"""NodeFeatureDiscovery: asks for the discovery of node features.

Creating one starts discovery; its settings are mostly about the programs that do it, so what is not known here is kept.
"""

from __future__ import annotations

from fastness.kinds import schema as s
from fastness.kinds.kind import AGE, Kind, Scope
from fastness.kinds.nfd import GROUP

NODE_FEATURE_DISCOVERY = Kind(
    group=GROUP,
    version="v1",
    kind="NodeFeatureDiscovery",
    plural="nodefeaturediscoveries",
    scope=Scope.NAMESPACED,
    description="Asks for the discovery of what nodes can do.",
    schema=s.obj(
        {
            "spec": s.obj(
                {
                    "instance": s.string("Name of this instance, when there are several."),
                    "operand": s.obj(
                        {
                            "image": s.string("Image of the discovery programs."),
                            "imagePullPolicy": s.string("When that image is pulled."),
                            "servicePort": s.integer(
                                "Port of the discovery service.", minimum=1, maximum=65535, default=12000
                            ),
                        },
                        "The programs that discover.",
                        **s.KEEP,
                    ),
                    "workerConfig": s.obj(
                        {"configData": s.string("Settings of discovery on each node, YAML; may be empty.")},
                        "What each node looks for.",
                    ),
                    "labelWhiteList": s.string("Regular expression that names of labels must match."),
                    "extraLabelNs": s.array(s.string(), "Further namespaces in which labels may be made."),
                },
                "What to discover.",
                **s.KEEP,
            ),
            "status": s.obj({"conditions": s.conditions()}, "What was observed.", **s.KEEP),
        }
    ),
    columns=(AGE,),
    subresources=("status",),
)

KINDS = (NODE_FEATURE_DISCOVERY,)
