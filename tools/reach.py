"""What a role reaches: not only what its rules allow, but what controllers and doors then do because of it.

    reaches(role, where) -> rows of (kind, verbs, who reads it, which kinds change because of that)

RBAC says who may write a kind. What follows from the write is in the declarations of controllers (what they read and write), in
the accounts of doors (what they read before they release anything), and in the table of namespaces that count
(`fastness.kube.places`): an object in a namespace that does not count is read by nobody. Put together they say what somebody
with a role can move. `tests/component/insiders/test_reach.py` holds the sensitive rows to a list with a reason each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.app.accounts import ACCOUNTS, DOORS, manifests
from fastness.app.controller_account import declared
from fastness.app.role_accounts import RoleAccount
from fastness.kinds.crd.roles import roles
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.kubernetes.definitions import default_roles
from fastness.kinds.registry import all_kinds
from fastness.kube.access.rules import Rule, rules_of
from fastness.kube.controllers.controller import Controller, Source
from fastness.kube.places import EMBEDDED, HOME, Belongs, belongs

WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
TEAM: Final = "a namespace of a team"


class Where(StrEnum):
    """Where a role is bound."""

    TEAM = TEAM
    HOME = HOME
    EVERYWHERE = "the whole cluster"


@dataclass(frozen=True, slots=True)
class Reached:
    """What follows from the right to write a kind."""

    kind: Kind
    part: str
    verbs: tuple[str, ...]
    names: tuple[str, ...]
    controllers: tuple[str, ...]
    doors: tuple[str, ...]
    moves: tuple[str, ...]

    @property
    def name(self) -> str:
        """The resource as rules name it."""
        return f"{self.kind.plural}{f'/{self.part}' if self.part else ''}"


@dataclass(frozen=True, slots=True)
class Holder:
    """A role that we ship, or that every Kubernetes has, and where it is meant to be bound."""

    title: str
    where: Where
    rules: tuple[Rule, ...]


def holders() -> list[Holder]:
    """Every role, people first; accounts with all that they have anywhere."""
    native = {str(role["metadata"]["name"]): role for role in default_roles() if role.get("kind") == "ClusterRole"}
    ours = {str(role["metadata"]["name"]): tuple(rules_of(role)) for role in roles()}
    view = ours["fastness-view"]  # aggregated into the three of Kubernetes
    people = [
        *(Holder(f"`{name}`", Where.TEAM, (*_aggregated(native, name), *view)) for name in ("view", "edit", "admin")),
        Holder(
            "every namespaced kind of ours, and `admin`", Where.TEAM, (*_aggregated(native, "admin"), *_namespaced())
        ),
        *(Holder(f"`{name}`", Where.EVERYWHERE, rules) for name, rules in ours.items()),
    ]
    return [
        *people,
        *(Holder(f"account `{account.account}`", Where.EVERYWHERE, _granted(account)) for account in ACCOUNTS),
    ]


def reaches(holder: Holder) -> list[Reached]:
    """What a role may write, and what follows; kinds that nobody of ours reads are left out."""
    loops, reach = declared(), []
    for kind in all_kinds():
        if kind.scope is not Scope.NAMESPACED and holder.where is not Where.EVERYWHERE:
            continue
        for part in ("", *(("status",) if kind.has_status else ())):
            speaking = [rule for rule in holder.rules if rule.selects(kind.group, kind.plural, part)]
            verbs = tuple(verb for verb in WRITES if any(rule.allows_verb(verb) for rule in speaking))
            writing = [rule for rule in speaking if any(rule.allows_verb(verb) for verb in verbs)]
            named = {name for rule in writing for name in rule.names} if all(rule.names for rule in writing) else set()
            reached = _followed(kind, part, verbs, sorted(named), holder.where, loops) if verbs else None
            if reached is not None:
                reach.append(reached)
    return reach


def _followed(
    kind: Kind, part: str, verbs: tuple[str, ...], names: Sequence[str], where: Where, loops: Sequence[Controller]
) -> Reached | None:
    """What follows from a write; of an object that belongs to the writer by its name, nothing but what its owner does with it."""
    if not _counts(kind, where):
        return None
    if names:
        return Reached(kind, part, verbs, tuple(names), (), (), ())
    resource = kind.resource
    readers = [loop for loop in loops if any(_looks_at(source, kind, where) for source in loop.sources)]
    doors = [door.name for door in DOORS if resource.plural in door.reads.get(resource.group, ())]
    if not readers and not doors:
        return None
    moves = sorted({written.kind for reader in readers for written in reader.writes})
    return Reached(kind, part, verbs, (), tuple(loop.name for loop in readers), tuple(doors), tuple(moves))


def _looks_at(source: Source, kind: Kind, where: Where) -> bool:
    """Whether a controller reads objects of a kind there; one that looks in a namespace by name sees no other."""
    if (source.resource.group, source.resource.plural) != (kind.group, kind.plural):
        return False
    namespace = source.scope.namespace
    return where is Where.EVERYWHERE or not namespace or (where is Where.HOME and namespace == HOME)


def _counts(kind: Kind, where: Where) -> bool:
    """Whether what is written there is read by anybody."""
    if kind.scope is not Scope.NAMESPACED or where is Where.EVERYWHERE:
        return True
    if where is Where.HOME:
        return EMBEDDED.counts(kind.resource, HOME)
    return belongs(kind.resource) is Belongs.OWN


def _aggregated(native: Mapping[str, Mapping[str, Any]], name: str) -> tuple[Rule, ...]:
    """The rules of one of Kubernetes' roles, with those that it gathers from others."""
    role = native[name]
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    labels = [selector.get("matchLabels") or {} for selector in selectors]
    parts = [
        candidate
        for candidate in native.values()
        if any(chosen.items() <= ((candidate["metadata"].get("labels") or {}).items()) for chosen in labels if chosen)
    ]
    gathered = {str(candidate["metadata"]["name"]) for candidate in parts} - {name}
    return (*rules_of(role), *(rule for part in sorted(gathered) for rule in _aggregated(native, part)))


def _namespaced() -> tuple[Rule, ...]:
    """Everything that a platform team may give to the owner of a namespace."""
    kinds = [kind for kind in all_kinds() if not kind.native and kind.scope is Scope.NAMESPACED]
    return tuple(Rule(WRITES, (kind.group,), (kind.plural, f"{kind.plural}/status")) for kind in kinds)


def _granted(account: RoleAccount) -> tuple[Rule, ...]:
    documents = [document for document in manifests(account) if document["kind"] in ("Role", "ClusterRole")]
    return tuple(rule for document in documents for rule in rules_of(document))
