"""Where things lie in a bundle, and the page that leads to them.

    index.html                                       what was collected, what was left out and why
    summary.json                                     the same for programs
    redacted.txt                                     what was taken out, by file, object and path
    cluster-scoped-resources/<group>/<plural>.yaml   objects of the cluster, without secrets
    namespaces/<namespace>/<group>/<plural>.yaml     objects of namespaces
    namespaces/<namespace>/events.txt                events, oldest first
    namespaces/<namespace>/pods/<pod>/<container>.log
    nodes/<node>/node.yaml                           the node; nodes/skipped_nodes.txt: those that are not ready
    record/tail.json                                 the newest entries of the record
    sandboxed-containers/…                           the same facts as the manual's own collector names them
    audit_logs/…                                     only when asked for

Paths follow from names alone: two bundles of one state are equal but for their times. A name never leads out of its directory.
The page is plain HTML without scripts; all text in it is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from fastness.kinds.kind import Resource

MAX_SEGMENT: Final = 180
_SAFE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #ccc}"
    "td.n{text-align:right}h2{margin-top:2rem}"
)


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file of a bundle."""

    path: str
    size: int
    objects: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is not in a bundle, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Something that was taken out: of which file, of which object in it, at which path or how often."""

    file: str
    what: str
    path: str


def safe(name: str) -> str:
    """A name as one segment of a path: nothing in it means anything to a file system."""
    segment = "".join(char if char in _SAFE else f"%{ord(char):02x}" for char in name)[:MAX_SEGMENT]
    return segment if segment.strip(".") else f"%{segment}"


def list_path(resource: Resource, namespace: str = "") -> str:
    """Where the objects of a kind in a namespace lie."""
    where = f"namespaces/{safe(namespace)}" if namespace else "cluster-scoped-resources"
    return f"{where}/{safe(resource.group or 'core')}/{safe(resource.plural)}.yaml"


def index_page(facts: Mapping[str, str], entries: Sequence[BundleFile], left_out: Sequence[LeftOut]) -> str:
    """The page that leads to everything in a bundle."""
    about = "".join(f"<tr><th>{_text(key)}</th><td>{_text(value)}</td></tr>" for key, value in facts.items())
    parts = [
        _section(top, [entry for entry in entries if _top(entry.path) == top])
        for top in sorted({_top(entry.path) for entry in entries})
    ]
    missing = "".join(
        f"<tr><td>{_text(omission.what)}</td><td>{_text(omission.why)}</td></tr>" for omission in left_out
    )
    rest = f"<h2>Left out</h2><table><tr><th>What</th><th>Why</th></tr>{missing}</table>" if left_out else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Support bundle</title>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><h1>Support bundle</h1><table>{about}</table>{''.join(parts)}{rest}</body></html>\n"
    )


def _top(path: str) -> str:
    return path.split("/")[0] if "/" in path else ""


def _section(title: str, entries: Sequence[BundleFile]) -> str:
    rows = "".join(
        f'<tr><td><a href="{_text(quote(entry.path))}">{_text(entry.path)}</a>{" (cut)" if entry.cut else ""}</td>'
        f'<td class="n">{entry.objects or ""}</td><td class="n">{entry.size}</td></tr>'
        for entry in entries
    )
    heading = f"<h2>{_text(title)}</h2>" if title else ""
    return f"{heading}<table><tr><th>File</th><th>Objects</th><th>Bytes</th></tr>{rows}</table>"


def _text(text: str) -> str:
    return html.escape(text, quote=True)
