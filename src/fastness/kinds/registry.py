"""Where all kinds are found.

A module in one of the group packages below `fastness.kinds` declares its kinds in a tuple `KINDS`; nothing else has to be
touched to add one. The packages are scanned on first use and the result is kept, so that a command that needs no kinds does
not pay for them.

- Within one (group, version) a plural, a kind, a singular or a short name means one kind only. A second claim raises
  `DuplicateKind` at once.
- The versions of one CRD agree on everything a CRD says once (names, scope, labels), and one of them is stored.
- `find` takes what people write: plural, singular, kind (any case) or short name.

The embedded API adds users' own kinds on top (`apiserver/catalog`); `crd` turns entries into manifests.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from fastness import kinds as model
from fastness.kinds.errors import DuplicateKind, UnknownKind
from fastness.kinds.kind import Kind


@cache
def all_kinds() -> tuple[Kind, ...]:
    """Every kind that the product knows, ordered by group, plural and version."""
    kinds = sorted(_declared(), key=lambda kind: (kind.group, kind.plural, kind.version))
    index(kinds)
    check_versions(kinds)
    return tuple(kinds)


@cache
def _index() -> dict[tuple[str, str, str], Kind]:
    return index(all_kinds())


def find(group: str, version: str, name: str) -> Kind:
    """The kind called `name` (plural, singular, kind or short name); an empty version means the stored one.

    Raises UnknownKind, with the closest name there is as the hint.
    """
    spelled = name.lower()
    kind = _index().get((group, version, spelled))
    if kind is not None:
        return kind
    where = f" in {group or 'the core group'}{f'/{version}' if version else ''}"
    near = difflib.get_close_matches(spelled, sorted({key[2] for key in _index() if key[0] == group}), n=1)
    raise UnknownKind(f"no kind {name!r}{where}", f"did you mean {near[0]!r}?" if near else "see `fastness crds`")


def versions_of(group: str, plural: str) -> tuple[Kind, ...]:
    """All versions of one resource, the stored one first."""
    versions = [kind for kind in all_kinds() if (kind.group, kind.plural) == (group, plural)]
    return tuple(sorted(versions, key=lambda kind: not kind.storage_version))


def custom_kinds() -> tuple[Kind, ...]:
    """The kinds that a real API server learns from our CRDs."""
    return tuple(kind for kind in all_kinds() if not kind.native)


def index(kinds: Iterable[Kind]) -> dict[tuple[str, str, str], Kind]:
    """Kinds by (group, version, name) for every name they answer to, and by an empty version for the stored one."""
    names: dict[tuple[str, str, str], Kind] = {}
    for kind in kinds:
        versions = (kind.version, "") if kind.storage_version else (kind.version,)
        for version in versions:
            for name in {kind.plural, kind.singular, kind.kind.lower(), *kind.short_names}:
                claimed = names.setdefault((kind.group, version, name), kind)
                if claimed is not kind:
                    raise DuplicateKind(
                        f"{kind.api_version} {kind.kind} and {claimed.api_version} {claimed.kind} both claim {name!r}",
                        "give one of them another name, or mark one version as not stored",
                    )
    return names


def check_versions(kinds: Iterable[Kind]) -> None:
    """The versions of one resource agree on its names and scope, and exactly one is stored; raises DuplicateKind."""
    resources: defaultdict[tuple[str, str], list[Kind]] = defaultdict(list)
    for kind in kinds:
        resources[kind.group, kind.plural].append(kind)
    for (group, plural), versions in resources.items():
        if len({_shared(kind) for kind in versions}) != 1:
            raise DuplicateKind(f"the versions of {plural}.{group} disagree on names or scope", "share one base entry")
        if sum(kind.storage_version for kind in versions) != 1:
            raise DuplicateKind(f"{plural}.{group} needs exactly one stored version", "set storage_version on one")


def _shared(kind: Kind) -> tuple[object, ...]:
    """What a CRD says once for all versions."""
    return (
        kind.kind, kind.singular, kind.list_kind, kind.scope, kind.short_names, kind.categories,
        tuple(sorted(kind.labels.items())), kind.storage,
    )  # fmt: skip


def _declared() -> Iterator[Kind]:
    for package in pkgutil.iter_modules(model.__path__, f"{model.__name__}."):
        if package.ispkg and package.name != f"{model.__name__}.crd":
            group = importlib.import_module(package.name)
            for module in pkgutil.iter_modules(group.__path__, f"{package.name}."):
                if not module.name.rpartition(".")[2].startswith("_"):
                    yield from getattr(importlib.import_module(module.name), "KINDS", ())
