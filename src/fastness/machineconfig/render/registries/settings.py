"""Everything that is said about registries, judged and merged: what the files of a machine are written from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName
from fastness.machineconfig.render.base.runtime import POLICY_JSON, REGISTRIES_CONF
from fastness.machineconfig.render.errors import BadRegistries, Culprit
from fastness.machineconfig.render.registries import mirrors
from fastness.machineconfig.render.registries.attachments import signed_places
from fastness.machineconfig.render.registries.conf import registries_conf
from fastness.machineconfig.render.registries.mirrors import MirroredSource
from fastness.machineconfig.render.registries.objects import (
    RegistryLists,
    RegistryObjects,
    culprit_of,
    mirror_lists,
    registry_lists,
    release_image,
)
from fastness.machineconfig.render.registries.payload import blocked_scopes, payload_repository
from fastness.machineconfig.render.registries.policy import (
    Admitted,
    Remark,
    check_admitted,
    check_scopes,
    cluster_policy,
    namespace_policies,
)
from fastness.machineconfig.render.registries.requirements import cluster_policies, namespaced_policies
from fastness.machineconfig.render.registries.scopes import is_scope, is_wildcard

INVALID: Final = "InvalidPolicy"


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """What machines are to do; a file that nothing is said about is None and stays as the base has it.

    `left_out` are scopes that are not blocked because the cluster would block itself; `remarks` say why ImagePolicies are not
    carried out as they stand; `signers` are the ClusterImagePolicies, `signers_of_namespaces` the ImagePolicies.
    """

    image: Culprit
    lists: RegistryLists
    mirrored: Sequence[MirroredSource] = ()
    registries: dict[str, Any] | None = None
    policy: JsonObject | None = None
    namespaces: Mapping[str, JsonObject] = field(default_factory=dict)
    signed: Sequence[str] = ()
    signers: Sequence[Culprit] = ()
    signers_of_namespaces: Sequence[Culprit] = ()
    left_out: Sequence[str] = ()
    remarks: Mapping[ObjectName, Remark] = field(default_factory=dict)


def registry_settings(objects: RegistryObjects) -> RegistrySettings | None:
    """What the objects come to, None without an Image; raises BadRegistries."""
    if objects.image is None:
        return None
    image = culprit_of(objects.image, "Image")
    lists = registry_lists(objects.image)
    _check_lists(lists, image)
    listed = mirror_lists(objects)
    mirrors.check(listed)
    mirrored = mirrors.merged(listed)
    payload = payload_repository(release_image(objects.cluster_version)) if lists.blocked else ""
    check_admitted(lists.allowed, lists.blocked, payload, image)
    blocked = blocked_scopes(lists, mirrored, payload)
    registries = None
    if lists.insecure or lists.blocked or listed:
        registries = registries_conf(REGISTRIES_CONF, mirrored, lists.insecure, blocked.registries)
    admitted = Admitted(lists.allowed, blocked)
    policies = cluster_policies(objects.cluster_policies)
    check_scopes(policies, admitted)
    policy = cluster_policy(POLICY_JSON, admitted, policies)
    own, problems = namespaced_policies(objects.policies)
    namespaces = namespace_policies(policy, policies, own, admitted)
    scopes = namespaces.scopes.union(*(signed.scopes for signed in policies))
    return RegistrySettings(
        image=image, lists=lists, mirrored=mirrored, registries=registries,
        policy=policy if lists.allowed or lists.blocked or policies else None, namespaces=namespaces.documents,
        signed=signed_places(scopes, (registries or {}).get("registry") or ()), left_out=blocked.left_out,
        remarks={**namespaces.remarks, **{name: Remark(INVALID, text) for name, text in problems.items()}},
        signers=[signed.culprit for signed in policies], signers_of_namespaces=[signed.culprit for signed in own],
    )  # fmt: skip


def _check_lists(lists: RegistryLists, image: Culprit) -> None:
    named = {"insecure": lists.insecure, "blocked": lists.blocked, "allowed": lists.allowed, "search": lists.search}
    for name, scopes in named.items():
        for scope in scopes:
            if not is_scope(scope) or (name == "search" and is_wildcard(scope)):
                raise BadRegistries(
                    f'invalid entry for {name} registries "{scope}"',
                    "write host[:port], a path in one, or (except for search) *.domain",
                    image,
                )
