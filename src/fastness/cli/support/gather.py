"""Collecting a support bundle over the API: ask, redact, write, within bounds.

* Only reads. No namespace, pod or role is made in the cluster: whoever may read gets a bundle, and what they may not read is
  named in it as left out.
* Every object and every line goes through `cli/support/redact` before it is written.
* Bounds: objects of a kind, bytes of a file, bytes of all. What does not fit is cut or left out, and the index says so.
* Files are for their owner only. A bundle is written beside its place and renamed when it is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fastness.builds.build_objects import BUILD_LABEL, LOG
from fastness.builds.build_objects import NAMESPACE as BUILDS_NAMESPACE
from fastness.cli.support.layout import BundleFile, LeftOut, Taken, index_page, list_path, safe
from fastness.cli.support.redact import NEVER, redacted, scrubbed, taken_from_text, taken_out
from fastness.formats import json
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject, Kind, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP, EVENT, NODE, POD
from fastness.kinds.objects import condition, labels_of, object_name
from fastness.kinds.registry import all_kinds
from fastness.kube.client.client import KubeCluster
from fastness.kube.errors import ApiError, Forbidden, MethodNotAllowed, NotFound

MIB: Final = 1024 * 1024
PAGE: Final = 500
LOG_LINES: Final = 5000
MOST_TAKEN: Final = 20_000
REDACTIONS: Final = "redacted.txt"
NODES: Final = NODE.resource
PODS: Final = POD.resource
EVENTS: Final = EVENT.resource
CUT: Final = "\n# cut here: the bundle has a bound for one file\n"
# The record itself is collected by its newest entries; definitions are many and the same everywhere.
ELSEWHERE: Final = frozenset({
    ("fastness.dev", "auditbatches"), ("", "events"), ("", "nodes"), ("apiextensions.k8s.io", "customresourcedefinitions"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a bundle may hold."""

    total: int = 200 * MIB
    file: int = 4 * MIB
    objects: int = 5000


@dataclass(slots=True)
class Bundle:
    """A bundle being written."""

    root: Path
    bounds: Bounds = field(default_factory=Bounds)
    entries: list[BundleFile] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    size: int = 0

    def put(self, path: str, text: str, objects: int = 0) -> None:
        """Write one file, cut to its bound; left out when the bundle is full."""
        data = text.encode(errors="replace")
        cut = len(data) > self.bounds.file
        if cut:
            data = data[: self.bounds.file].decode(errors="ignore").encode() + CUT.encode()
        if self.size + len(data) > self.bounds.total:
            self.miss(path, f"the bundle may have {self.bounds.total} bytes")
            return
        target = self.root / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(data)
        self.size += len(data)
        self.entries.append(BundleFile(path, len(data), objects, cut))

    def miss(self, what: str, why: str) -> None:
        """Note something that is not in the bundle."""
        self.left_out.append(LeftOut(what, why))

    def visible_part(self, obj: JsonObject, path: str) -> JsonObject | None:
        """An object as the file at a path may show it; what was taken out is noted."""
        made = redacted(obj)
        if made is not None:
            what = f"{obj.get('kind', '')} {object_name(obj)}"
            self._note(path, what, (place for place in taken_out(obj, made) if place != "metadata.managedFields"))
        return made

    def put_text(self, path: str, text: str, objects: int = 0) -> None:
        """Write a text without credentials; how many there were is noted."""
        made = scrubbed(text)
        self._note(path, "text", filter(None, (taken_from_text(text, made),)))
        self.put(path, made, objects)

    def _note(self, path: str, what: str, places: Iterable[str]) -> None:
        for place in places:
            if len(self.taken) >= MOST_TAKEN:
                return
            self.taken.append(Taken(path, what, place))

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write what was taken out, the summary, and the page that leads to everything."""
        lines = sorted({f"{taken.file}  {taken.what}  {taken.path}" for taken in self.taken})
        more = "# and more, which is not listed\n" if len(self.taken) >= MOST_TAKEN else ""
        listed = "".join(f"{line}\n" for line in lines) + more
        self.entries.append(BundleFile(REDACTIONS, len(listed.encode()), len(lines)))
        self.entries.sort(key=lambda entry: entry.path)
        self.left_out.sort(key=lambda omission: (omission.what, omission.why))
        summary = {
            **facts,
            "files": [
                {"path": entry.path, "bytes": entry.size, "objects": entry.objects, "cut": entry.cut}
                for entry in self.entries
            ],
            "leftOut": [{"what": omission.what, "why": omission.why} for omission in self.left_out],
        }
        # These are always there, whatever the bound says.
        for name, text in (
            (REDACTIONS, listed),
            ("summary.json", json.encode(summary).decode() + "\n"),
            ("index.html", index_page(facts, self.entries, self.left_out)),
        ):
            target = self.root / name
            target.touch(mode=0o600)
            target.write_text(text)


async def gather_objects(cluster: KubeCluster, bundle: Bundle) -> dict[str, list[JsonObject]]:
    """Collect every kind that the product knows; returns what was seen of the kinds that other parts need."""
    by_kind: dict[str, list[JsonObject]] = {}
    for kind in collected_kinds():
        items = await listed(cluster, kind.resource, bundle)
        if kind.resource == CONFIG_MAP.resource:
            gather_build_logs(bundle, items)
        if kind.resource in (PODS,) or kind.group in _MANUAL_GROUPS:
            by_kind[f"{kind.plural}.{kind.group}".rstrip(".")] = items
        _write_lists(bundle, kind.resource, items)
    return by_kind


def gather_build_logs(bundle: Bundle, maps: Sequence[JsonObject]) -> None:
    """What builds of operating system images printed, as text: of ConfigMaps a bundle shows long texts by their size alone."""
    for stored in maps:
        place, build = object_name(stored), labels_of(stored).get(BUILD_LABEL)
        log = (stored.get("data") or {}).get(LOG)
        if place.namespace == BUILDS_NAMESPACE and build and isinstance(log, str):
            bundle.put_text(f"namespaces/{safe(place.namespace)}/builds/{safe(build)}.log", log)


_MANUAL_GROUPS: Final = ("kataconfiguration.openshift.io", "operators.coreos.com", "machineconfiguration.openshift.io")


def collected_kinds() -> list[Kind]:
    """The kinds whose objects are collected as lists: stored once, and not among those that never leave."""
    return [
        kind
        for kind in all_kinds()
        if kind.storage_version
        and not kind.computed
        and kind.storage == (kind.group, kind.plural)
        and (kind.group, kind.kind) not in NEVER
        and (kind.group, kind.plural) not in ELSEWHERE
    ]


async def listed(cluster: KubeCluster, resource: Resource, bundle: Bundle) -> list[JsonObject]:
    """Objects of a kind, page by page up to the bound; a kind that cannot be read is noted."""
    items: list[JsonObject] = []
    token = ""
    what = f"{resource.plural}.{resource.group}".rstrip(".")
    try:
        while True:
            page = await cluster.list(resource, limit=PAGE, token=token)
            items += page.items
            token = page.next
            if not token:
                return items
            if len(items) >= bundle.bounds.objects:
                bundle.miss(what, f"only the first {counted(len(items), 'object is', 'objects are')} here")
                return items
    except (NotFound, MethodNotAllowed):
        bundle.miss(what, "the cluster does not serve it")
    except Forbidden:
        bundle.miss(what, "this user may not list it")
    except ApiError as error:
        bundle.miss(what, f"it could not be read: {scrubbed(error.message)}")
    return items


def _write_lists(bundle: Bundle, resource: Resource, items: Iterable[JsonObject]) -> None:
    places: dict[str, list[JsonObject]] = {}
    for obj in items:
        namespace = object_name(obj).namespace
        visible = bundle.visible_part(obj, list_path(resource, namespace))
        if visible is not None:
            places.setdefault(namespace, []).append(visible)
    for namespace, group in sorted(places.items()):
        group.sort(key=lambda obj: str(obj["metadata"].get("name")))
        bundle.put(list_path(resource, namespace), documents(group), len(group))


def documents(objects: Sequence[Any]) -> str:
    """Objects as YAML documents, keys in order: the same objects give the same text."""
    return str(
        yaml.dump_all(
            objects, Dumper=yaml.CSafeDumper, sort_keys=True, width=2**20, allow_unicode=True, explicit_start=True
        )
    )


async def gather_nodes(cluster: KubeCluster, bundle: Bundle) -> None:
    """Every node; those that are not ready are named beside."""
    skipped = []
    for node in await listed(cluster, NODES, bundle):
        name = object_name(node).name
        path = f"nodes/{safe(name)}/node.yaml"
        bundle.put(path, documents([bundle.visible_part(node, path)]), 1)
        if (condition(node, "Ready") or {}).get("status") != "True":
            skipped.append(name)
    if skipped:
        bundle.put("nodes/skipped_nodes.txt", "".join(f"{name}: not ready\n" for name in sorted(skipped)))


async def gather_events(cluster: KubeCluster, bundle: Bundle) -> list[JsonObject]:
    """Events by namespace, oldest first, as lines."""
    events = await listed(cluster, EVENTS, bundle)
    places: dict[str, list[str]] = {}
    for event in sorted(events, key=_moment):
        about = event.get("involvedObject") or {}
        line = (
            f"{_moment(event)[0] or '-'}  {event.get('type', '')}  {event.get('reason', '')}  "
            f"{about.get('kind', '')}/{about.get('name', '')}  x{event.get('count') or 1}  {event.get('message', '')}"
        )
        places.setdefault(object_name(event).namespace, []).append(" ".join(line.split("\n")))
    for namespace, lines in sorted(places.items()):
        bundle.put_text(f"namespaces/{safe(namespace)}/events.txt", "\n".join(lines) + "\n", len(lines))
    return events


def _moment(event: Mapping[str, Any]) -> tuple[str, str]:
    moment = (
        event.get("lastTimestamp") or event.get("eventTime") or (event.get("metadata") or {}).get("creationTimestamp")
    )
    return str(moment or ""), object_name(event).name


async def gather_logs(
    cluster: KubeCluster, bundle: Bundle, pods: Sequence[JsonObject], namespaces: Sequence[str]
) -> None:
    """The newest lines of every container of pods in some namespaces."""
    for pod in pods:
        place = object_name(pod)
        if place.namespace not in namespaces:
            continue
        spec = pod.get("spec") or {}
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
            name = str(container.get("name"))
            where = f"namespaces/{safe(place.namespace)}/pods/{safe(place.name)}/{safe(name)}.log"
            try:
                data = await cluster.log(place.name, place.namespace, name, lines=LOG_LINES, most=bundle.bounds.file)
            except ApiError as error:
                bundle.miss(where, f"no log: {scrubbed(error.message)}")
                continue
            bundle.put_text(where, data.decode(errors="replace"))
