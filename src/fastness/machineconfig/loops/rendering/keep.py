"""Generated configs are what they should be: made, put back when edited, made anew by another version."""

from __future__ import annotations

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.rendering.prune import CONFIGS


async def keep(cluster: Cluster, stored: dict[str, JsonObject], config: JsonObject, options: WriteOptions) -> None:
    """Have a generated config in the cluster; `stored` are the configs as they were listed, and follows."""
    name = object_name(config).name
    present = stored.get(name)
    if present is None:
        try:
            stored[name] = await cluster.create(CONFIGS, config, options)
        except AlreadyExists:
            return
    elif _differs(present, config):
        notes = {**annotations_of(present), **annotations_of(config)}
        patch = [
            {"op": "replace", "path": "/spec", "value": config["spec"]},
            {"op": "add", "path": "/metadata/labels", "value": dict(labels_of(config))},
            {"op": "add", "path": "/metadata/annotations", "value": notes},
            {"op": "add", "path": "/metadata/ownerReferences", "value": config["metadata"]["ownerReferences"]},
        ]
        stored[name] = await cluster.patch(CONFIGS, name, patch, PatchType.JSON, "", options)


def _differs(present: JsonObject, config: JsonObject) -> bool:
    """Whether a generated config is not what it should be; who made it counts, because versions must not mix."""
    made_by = (annotations_of(side).get(names.GENERATED_BY) for side in (present, config))
    # An owner that was deleted and made again has another uid: with the old one the config would be collected.
    owners = [[owner.get("uid") for owner in metadata(side).get("ownerReferences") or ()] for side in (present, config)]
    others = labels_of(present) != labels_of(config) or len(set(made_by)) > 1 or owners[0] != owners[1]
    return present.get("spec") != config["spec"] or others
