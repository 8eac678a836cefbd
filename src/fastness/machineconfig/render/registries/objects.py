"""What registries are configured from, as the objects say it.

Objects come from an API that has checked their schemas, or from files that nobody has checked: whatever has another form than the
schema says is left out of what is read here, except for names, which `mirrors` and `requirements` judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fastness.kinds.objects import is_being_deleted, object_name
from fastness.kinds.openshift.images import NEVER_CONTACT_SOURCE
from fastness.machineconfig.render.errors import BadRegistries, Culprit

Object = Mapping[str, Any]
MAX_LOCATIONS: Final = 20_000
MAX_SCOPES: Final = 2_000


class PullBy(StrEnum):
    """What a mirror is asked for, as registries.conf writes it."""

    DIGEST = "digest-only"
    TAG = "tag-only"


@dataclass(frozen=True, slots=True)
class MirrorList:
    """One source with its mirrors, out of one object."""

    by: PullBy
    source: str
    mirrors: tuple[str, ...]
    never_contact_source: bool
    culprit: Culprit


@dataclass(frozen=True, slots=True)
class RegistryLists:
    """`spec.registrySources` of the Image."""

    insecure: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegistryObjects:
    """The objects that registries are configured from, as they are stored; without an Image nothing is configured."""

    image: Object | None = None
    cluster_version: Object | None = None
    content_sources: Sequence[Object] = field(default_factory=tuple)
    digest_mirrors: Sequence[Object] = field(default_factory=tuple)
    tag_mirrors: Sequence[Object] = field(default_factory=tuple)
    cluster_policies: Sequence[Object] = field(default_factory=tuple)
    policies: Sequence[Object] = field(default_factory=tuple)

    def everything(self) -> Iterator[Object]:
        """All of them but the Image and the ClusterVersion, which every cluster of this kind has."""
        for objects in (
            self.content_sources, self.digest_mirrors, self.tag_mirrors, self.cluster_policies, self.policies
        ):  # fmt: skip
            yield from objects


def culprit_of(obj: Object, kind: str = "") -> Culprit:
    """How an object is named in an error."""
    name = object_name(obj)
    return Culprit(kind or str(obj.get("kind") or ""), name.namespace, name.name)


def by_name(objects: Iterable[Object]) -> list[Object]:
    """The objects that stay, in an order that does not depend on who listed them."""
    return sorted((obj for obj in objects if not is_being_deleted(obj)), key=object_name)


def mirror_lists(objects: RegistryObjects) -> list[MirrorList]:
    """All lists of mirrors; raises BadRegistries when there are more than can be carried out."""
    lists = [
        *_lists(objects.digest_mirrors, "ImageDigestMirrorSet", "imageDigestMirrors", PullBy.DIGEST),
        *_lists(objects.content_sources, "ImageContentSourcePolicy", "repositoryDigestMirrors", PullBy.DIGEST),
        *_lists(objects.tag_mirrors, "ImageTagMirrorSet", "imageTagMirrors", PullBy.TAG),
    ]
    locations = 0
    for entry in lists:
        locations += 1 + len(entry.mirrors)
        if locations > MAX_LOCATIONS:
            raise BadRegistries(
                f"there are more than {MAX_LOCATIONS} sources and mirrors in all",
                "mirror whole registries or namespaces instead of single repositories",
                entry.culprit,
            )
    return lists


def registry_lists(image: Object) -> RegistryLists:
    """What the Image says about registries; raises BadRegistries when a list is too long."""
    sources = _members(image.get("spec")).get("registrySources")
    values = {name: _texts(_members(sources).get(f"{name}Registries")) for name in ("insecure", "blocked", "allowed")}
    search = _texts(_members(sources).get("containerRuntimeSearchRegistries"))
    for name, scopes in (*values.items(), ("search", search)):
        if len(scopes) > MAX_SCOPES:
            raise BadRegistries(
                f"{name} registries has {len(scopes)} entries, {MAX_SCOPES} is the most",
                "name whole registries or domains",
                culprit_of(image, "Image"),
            )
    return RegistryLists(**values, search=search)


def release_image(cluster_version: Object | None) -> str:
    """The image of the release that the cluster runs, empty where nobody says."""
    status = _members((cluster_version or {}).get("status"))
    return str(_members(status.get("desired")).get("image") or "")


def _lists(objects: Iterable[Object], kind: str, member: str, by: PullBy) -> Iterator[MirrorList]:
    for obj in by_name(objects):
        entries = _members(obj.get("spec")).get(member)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping):
                never = entry.get("mirrorSourcePolicy") == NEVER_CONTACT_SOURCE
                source, mirrors = str(entry.get("source") or ""), _texts(entry.get("mirrors"))
                yield MirrorList(by, source, mirrors, never, culprit_of(obj, kind))


def _members(value: Any) -> Object:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(entry) for entry in value) if isinstance(value, list | tuple) else ()
