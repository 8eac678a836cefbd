"""What an account of a role on Kubernetes is: its own Secrets, what it reads, what it writes, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject

LOOK: Final = ("get", "list", "watch")
OWN: Final = (*LOOK, "patch")

Rule = tuple[str, Sequence[str], Sequence[str]] | tuple[str, Sequence[str], Sequence[str], Sequence[str]]
"""API group, resources, verbs, and the names that it is limited to."""
EVENTS: Final[Rule] = ("", ["events"], ["get", "create", "patch"])


@dataclass(frozen=True, slots=True)
class RoleAccount:
    """What one role needs: Secrets and ConfigMaps of its own, kinds that it reads, and what it writes.

    `reads` and `writes` hold at home for kinds that count there alone, else in the whole cluster; `within` holds at home,
    `everywhere` in the whole cluster, and `elsewhere` in the namespace that stands beside each rule.
    """

    name: str
    secrets: tuple[str, ...] = ()
    writes_maps: tuple[str, ...] = ()
    reads: Mapping[str, Sequence[str]] = field(default_factory=dict)
    writes: tuple[Rule, ...] = ()
    elsewhere: tuple[tuple[str, Rule], ...] = ()
    record: str = ""
    within: tuple[Rule, ...] = ()
    everywhere: tuple[Rule, ...] = ()

    @property
    def account(self) -> str:
        """The name of its ServiceAccount."""
        return f"fastness-{self.name}"

    @property
    def user(self) -> str:
        """How the API server names it."""
        return f"system:serviceaccount:{NAMESPACE}:{self.account}"


def as_rule(group: str, plurals: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> JsonObject:
    """A rule as Kubernetes writes it."""
    rule: JsonObject = {"apiGroups": [group], "resources": list(plurals), "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule
