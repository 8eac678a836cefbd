"""What a change of objects about registries would do, for plans: objects by their kinds, and the configs that would follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.openshift.config import GROUP as CONFIG
from fastness.kinds.openshift.images import IMAGE_CONFIG_NAME
from fastness.kinds.operator_openshift import GROUP as OPERATOR
from fastness.machineconfig.render.generated import REGISTRIES, generated_name
from fastness.machineconfig.render.registries.configs import registry_configs
from fastness.machineconfig.render.registries.objects import RegistryObjects

Object = Mapping[str, Any]
LISTED: Final = {
    "ImageContentSourcePolicy": (OPERATOR, "content_sources"),
    "ImageDigestMirrorSet": (CONFIG, "digest_mirrors"),
    "ImageTagMirrorSet": (CONFIG, "tag_mirrors"),
    "ClusterImagePolicy": (CONFIG, "cluster_policies"),
    "ImagePolicy": (CONFIG, "policies"),
}
KINDS: Final = ("Image", *LISTED)
_SUFFIX: Final = generated_name(REGISTRIES, "")[len("99-") :]


def names_of(objects: RegistryObjects, kind: str) -> list[str]:
    """The names of all objects of one of `KINDS`, with their namespaces."""
    if kind == "Image":
        return [IMAGE_CONFIG_NAME] if objects.image is not None else []
    return [str(object_name(obj)) for obj in getattr(objects, LISTED[kind][1])]


def changed(
    before: RegistryObjects, new: Iterable[Object] = (), gone: Iterable[tuple[str, str]] = ()
) -> RegistryObjects:
    """The objects after applying some and deleting others, by kind and name; objects of other kinds are passed over."""
    after = before
    for kind, name in gone:
        if kind == "Image":
            after = replace(after, image=None)
        else:
            field = LISTED[kind][1]
            left: dict[str, Any] = {field: [obj for obj in getattr(after, field) if str(object_name(obj)) != name]}
            after = replace(after, **left)
    for obj in new:
        after = _with(after, obj)
    return after


def proposed_registries(
    objects: RegistryObjects,
    pools: Sequence[Object],
    configs: Iterable[Object],
    controller: Object | None,
    version: str,
) -> tuple[list[JsonObject], list[str]]:
    """The configs about registries that objects lead to, and the names of those that go; raises BadRegistries."""
    result = registry_configs(objects, pools, controller, version)
    for error in result.refused.values():
        raise error
    made = list(result.configs.values())
    names = {object_name(config).name for config in made}
    present = (object_name(config).name for config in configs)
    return made, sorted(name for name in present if name.endswith(_SUFFIX) and name not in names)


def _with(objects: RegistryObjects, obj: Object) -> RegistryObjects:
    kind, group = str(obj.get("kind")), str(obj.get("apiVersion") or "").partition("/")[0]
    if (kind, group) == ("ClusterVersion", CONFIG):
        return replace(objects, cluster_version=obj)
    if (kind, group) == ("Image", CONFIG):
        return replace(objects, image=obj) if object_name(obj).name == IMAGE_CONFIG_NAME else objects
    if LISTED.get(kind, ("", ""))[0] != group:
        return objects
    field = LISTED[kind][1]
    others = [other for other in getattr(objects, field) if object_name(other) != object_name(obj)]
    together: dict[str, Any] = {field: [*others, obj]}
    return replace(objects, **together)
