"""One rule of a role: what it allows, and whether it covers another.

A `Rule` is the typed look at a PolicyRule. Two questions are asked of it: does it allow a request (`allows`), and does a set of
rules cover another set (`uncovered`), which decides whether somebody may grant it.

* `*` matches every verb, group or resource; `*/scale` matches that subresource of every resource. `pods` does not match
  `pods/log`.
* `resourceNames` limits to those names; a request without a name (create, list) does not match such a rule.
* `nonResourceURLs` match exactly, or by prefix when they end in `*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.kube.access.user import Attributes

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One PolicyRule."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def from_object(cls, rule: Mapping[str, Any]) -> Rule:
        """Read a PolicyRule; fields that are missing or of another type count as empty."""
        return cls(
            verbs=_strings(rule.get("verbs")),
            groups=_strings(rule.get("apiGroups")),
            resources=_strings(rule.get("resources")),
            names=_strings(rule.get("resourceNames")),
            urls=_strings(rule.get("nonResourceURLs")),
        )

    def to_object(self) -> dict[str, Any]:
        """The PolicyRule as JSON, without empty fields except verbs."""
        fields = {"apiGroups": self.groups, "resources": self.resources, "resourceNames": self.names}
        members = {key: list(value) for key, value in {**fields, "nonResourceURLs": self.urls}.items() if value}
        return {"verbs": list(self.verbs), **members}

    def allows(self, attrs: Attributes) -> bool:
        """Whether this rule by itself allows the request."""
        if not self.allows_verb(attrs.verb):
            return False
        if not attrs.is_resource_request:
            return any(url_matches(pattern, attrs.path) for pattern in self.urls)
        return self.selects(attrs.group, attrs.resource, attrs.subresource) and (
            not self.names or (attrs.name != "" and attrs.name in self.names)
        )

    def allows_verb(self, verb: str) -> bool:
        """Whether the verb is among those of the rule."""
        return ANY in self.verbs or verb in self.verbs

    def selects(self, group: str, resource: str, subresource: str) -> bool:
        """Whether the rule speaks of that resource, whatever the name."""
        if ANY not in self.groups and group not in self.groups:
            return False
        return any(resource_matches(pattern, resource, subresource) for pattern in self.resources)

    def __str__(self) -> str:
        fields = (
            ("APIGroups", self.groups), ("Resources", self.resources), ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names), ("Verbs", self.verbs),
        )  # fmt: skip
        return "{" + ", ".join(f"{name}:{quoted(values)}" for name, values in fields if values) + "}"


EVERYTHING: Final = (Rule((ANY,), (ANY,), (ANY,)), Rule((ANY,), urls=(ANY,)))


def resource_matches(pattern: str, resource: str, subresource: str) -> bool:
    """Whether an entry of `resources` names this resource or subresource."""
    if pattern == ANY:
        return True
    # `pods` does not cover `pods/exec`: subresources are named by themselves, or by `*/exec`.
    if not subresource:
        return pattern == resource
    return pattern == f"{resource}/{subresource}" or pattern == f"*/{subresource}"


def url_matches(pattern: str, path: str) -> bool:
    """Whether an entry of `nonResourceURLs` names this path."""
    return pattern == path or (pattern.endswith(ANY) and path.startswith(pattern.rstrip(ANY)))


def rules_of(role: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules that stand in a Role or ClusterRole itself."""
    rules = role.get("rules")
    return tuple(Rule.from_object(rule) for rule in rules or () if isinstance(rule, dict)) if rules else ()


def uncovered(requested: Iterable[Rule], held: Iterable[Rule]) -> list[Rule]:
    """What `held` does not cover of `wanted`, gathered so that rules that differ in their verbs become one."""
    owned = list(held)
    missing: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for rule in requested:
        for atom in _atoms(rule):
            if not any(_covers(owner, atom) for owner in owned):
                verbs = missing.setdefault((atom.groups, atom.resources, atom.names, atom.urls), [])
                if atom.verbs[0] not in verbs:
                    verbs.append(atom.verbs[0])
    rules = [Rule(tuple(verbs), *key) for key, verbs in missing.items()]
    return sorted(rules, key=str)


def quoted(values: Iterable[str]) -> str:
    """A list of strings as Go prints it with %q, the form of Kubernetes' messages."""
    return "[" + " ".join('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values) + "]"


def _atoms(rule: Rule) -> Iterable[Rule]:
    """The rule in pieces that have one verb and one target each."""
    for verb in rule.verbs:
        for group in rule.groups:
            for resource in rule.resources:
                if rule.names:
                    yield from (Rule((verb,), (group,), (resource,), (name,)) for name in rule.names)
                else:
                    yield Rule((verb,), (group,), (resource,))
        for url in rule.urls:
            yield Rule((verb,), urls=(url,))


def _covers(owner: Rule, atom: Rule) -> bool:
    if not owner.allows_verb(atom.verbs[0]):
        return False
    if atom.urls:
        return any(url_matches(pattern, atom.urls[0]) for pattern in owner.urls)
    subresource = atom.resources[0].partition("/")[2]
    if ANY not in owner.groups and atom.groups[0] not in owner.groups:
        return False
    if not any(
        pattern in (ANY, atom.resources[0]) or (subresource and pattern == f"*/{subresource}")
        for pattern in owner.resources
    ):
        return False
    # Who holds a right for some names cannot grant it for all.
    return not owner.names or (bool(atom.names) and atom.names[0] in owner.names)


def _strings(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()
