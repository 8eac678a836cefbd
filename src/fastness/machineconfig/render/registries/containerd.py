"""hosts.toml: what containerd can be told about registries (containerd's docs/hosts.md).

containerd is told per host, in `/etc/containerd/certs.d/<host>/hosts.toml`, and knows two things that a mirror can do: `pull`, to
fetch content by its digest, and `resolve`, to say which digest a tag has. So:

* A mirror for digests gets `pull`. One for digests and tags gets both.
* A mirror for a part of a host is asked for all images of that host: harmless for digests, which name their content, but not for
  tags.
* A mirror may stand below a path of its own, if the source's path follows it there: containerd puts a path in front, no more.
* An insecure place is asked with TLS that proves nothing, then without TLS, as other runtimes do.

What it cannot be told is refused for the pool, with the reason: a block that is not there would be worse than no config.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats import toml
from fastness.machineconfig.render.errors import BadRegistries, Culprit
from fastness.machineconfig.render.registries.mirrors import MirroredSource
from fastness.machineconfig.render.registries.objects import PullBy
from fastness.machineconfig.render.registries.scopes import inside, is_wildcard

DIRECTORY: Final = "/etc/containerd/certs.d"
HINT: Final = "run this pool with CRI-O, or remove it"

# The one name that its registry does not answer to; without a file of ours containerd knows that itself.
_SERVED_BY: Final = {"docker.io": "registry-1.docker.io"}


@dataclass(frozen=True, slots=True)
class _Host:
    """What is said about one host: where its images are as well, and for what each place is asked."""

    name: str
    insecure: bool = False
    mirrors: dict[str, set[PullBy]] = field(default_factory=dict)
    insecure_mirrors: set[str] = field(default_factory=set)

    def document(self) -> dict[str, Any]:
        """hosts.toml, to be encoded."""
        tables: dict[str, Any] = {}
        for place, uses in self.mirrors.items():
            capabilities = ["pull", "resolve"] if PullBy.TAG in uses else ["pull"]
            tables |= _tables(place, capabilities, insecure=place in self.insecure_mirrors)
        if self.insecure:
            tables |= _tables(self.name, ["pull", "resolve"], insecure=True)
        document: dict[str, Any] = {"server": f"https://{_SERVED_BY.get(self.name, self.name)}"}
        if self.insecure:
            document["skip_verify"] = True
        return {**document, "host": tables}


def hosts_files(
    mirrored: Sequence[MirroredSource], insecure: Iterable[str], image: Culprit
) -> Iterator[tuple[str, str]]:
    """Every hosts.toml with its path; raises BadRegistries for what containerd cannot be told."""
    scopes = frozenset(insecure)
    for scope in sorted(scopes):
        if is_wildcard(scope) or "/" in scope:
            raise BadRegistries(
                f'containerd cannot treat "{scope}" as insecure: it is told so for one whole host at a time',
                HINT,
                image,
            )
    hosts = {scope: _Host(scope, insecure=True) for scope in scopes}
    by_digest = {
        (source.source, mirror) for source in mirrored if source.by is PullBy.DIGEST for mirror in source.mirrors
    }
    for source in mirrored:
        _check(source, by_digest)
        name, _, path = source.source.partition("/")
        host = hosts.setdefault(name, _Host(name))
        for mirror in source.mirrors:
            place = _root(source, mirror, path)
            host.mirrors.setdefault(place, set()).add(source.by)
            if inside(mirror, scopes):
                host.insecure_mirrors.add(place)
    for name in sorted(hosts):
        yield f"{DIRECTORY}/{name}/hosts.toml", toml.encode(hosts[name].document())


def _tables(place: str, capabilities: Sequence[str], *, insecure: bool) -> dict[str, Any]:
    """How containerd reaches a place."""
    registry, _, path = place.partition("/")
    address = f"{registry}/v2/{path}" if path else registry
    table = {"capabilities": list(capabilities), **({"override_path": True} if path else {})}
    if not insecure:
        return {f"https://{address}": table}
    return {f"https://{address}": {**table, "skip_verify": True}, f"http://{address}": table}


def _check(source: MirroredSource, by_digest: set[tuple[str, str]]) -> None:
    """Refuse a source that containerd cannot be told about."""
    if is_wildcard(source.source):
        reason = "is a wildcard"
    elif source.never_contact_source:
        reason = "is blocked by NeverContactSource"
    elif source.by is PullBy.TAG and any((source.source, mirror) not in by_digest for mirror in source.mirrors):
        reason = "has mirrors for tags only"
    elif source.by is PullBy.TAG and "/" in source.source:
        reason = "has mirrors for tags and is a part of a host"
    elif source.source in source.mirrors:
        reason = "is to be asked before one of its mirrors"
    else:
        return
    raise BadRegistries(f'containerd cannot be told this: the source "{source.source}" {reason}', HINT, source.culprit)


def _root(source: MirroredSource, mirror: str, path: str) -> str:
    """Where the paths of the source's host begin at a mirror; raises BadRegistries where they are other paths."""
    if not path:
        return mirror
    if mirror.endswith(f"/{path}"):
        return mirror.removesuffix(f"/{path}")
    raise BadRegistries(
        f'containerd cannot find the images of "{source.source}" at "{mirror}": their path must stay the same',
        f"mirror them to a place that ends in /{path}, or run this pool with CRI-O",
        source.culprit,
    )
