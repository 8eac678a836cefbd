"""Aggregated cluster roles: `admin`, `edit` and `view` have the rules of every role that their selectors pick.

Authorization resolves the selectors by itself; this loop writes the result into the role, so that `kubectl describe clusterrole
view` shows what holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.rbac import CLUSTER_ROLE
from fastness.kinds.objects import ObjectName, labels_of, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

ROLES = CLUSTER_ROLE.resource
AGGREGATED = ObjectName("", "*")
_AS = WriteOptions(manager="role-aggregation")


def _concerns(role: Object) -> Iterable[ObjectName]:
    """The role itself if it aggregates; all aggregating roles if others may pick it."""
    if role.get("aggregationRule"):
        yield object_name(role)
    if labels_of(role):
        yield AGGREGATED


class RoleAggregation:
    """Keeps the rules of aggregated cluster roles."""

    name = "role-aggregation"
    sources: Sequence[Source] = (Source(ROLES, keys=_concerns),)
    writes: Sequence[Resource] = (ROLES,)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def reconcile(self, key: ObjectName) -> Done:
        """Write the rules of one role, or of all that aggregate."""
        roles = (await self._cluster.list(ROLES)).items
        for role in roles:
            if role.get("aggregationRule") and key in (AGGREGATED, object_name(role)):
                await self._write(role, roles)
        return Done() if key == AGGREGATED or any(object_name(role) == key for role in roles) else GONE

    async def _write(self, role: JsonObject, roles: list[JsonObject]) -> None:
        rules = aggregated(role, roles)
        if (role.get("rules") or []) == rules:
            return
        try:
            await self._cluster.patch(ROLES, role["metadata"]["name"], {"rules": rules}, PatchType.MERGE, "", _AS)
        except NotFound:
            return


def aggregated(role: JsonObject, roles: Iterable[JsonObject]) -> list[JsonObject]:
    """The rules of the roles that this one selects, in order of name, each once."""
    selectors = []
    for entry in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        try:
            selectors.append(label_selector_from_object(entry))
        except SelectorError:
            continue
    rules: list[JsonObject] = []
    for other in sorted(roles, key=object_name):
        if other["metadata"]["name"] == role["metadata"]["name"]:
            continue
        if any(selector.matches(labels_of(other)) for selector in selectors):
            rules += [rule for rule in other.get("rules") or () if rule not in rules]
    return rules
