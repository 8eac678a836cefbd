"""What was found on one node: flags, attributes and instances, by feature.

One name may exist in more than one of the three (`cpu.cpuid` has flags and an attribute). Several NodeFeatures of one node are
merged: flags are united, of two attributes the later wins, instances are appended; those in the namespace of the control plane
come first, then the others by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.workloads.features.errors import BadFeatures

Attributes = Mapping[str, str]
RULE_MATCHED: Final = "rule.matched"
MAX_INSTANCES: Final = 100_000
_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a node; names of features are in lower case."""

    flags: Mapping[str, frozenset[str]] = field(default_factory=dict)
    attributes: Mapping[str, Attributes] = field(default_factory=dict)
    instances: Mapping[str, tuple[Attributes, ...]] = field(default_factory=dict)

    def has(self, feature: str) -> bool:
        """Whether the feature exists at all; it may be empty."""
        return feature in self.flags or feature in self.attributes or feature in self.instances

    def has_plain(self, feature: str) -> bool:
        """Whether the feature has flags or attributes, even empty ones."""
        return feature in self.flags or feature in self.attributes

    def with_matched(self, matched: Attributes) -> Features:
        """The same with what earlier rules left behind."""
        attributes = {**self.attributes, RULE_MATCHED: {**self.attributes.get(RULE_MATCHED, {}), **matched}}
        return Features(self.flags, attributes, self.instances)

    def to_json(self) -> JsonObject:
        """The `spec.features` of a NodeFeature, in the order of names."""
        return {
            "flags": {name: {"elements": {key: {} for key in sorted(self.flags[name])}} for name in sorted(self.flags)},
            "attributes": {
                name: {"elements": dict(sorted(self.attributes[name].items()))} for name in sorted(self.attributes)
            },
            "instances": {
                name: {
                    "elements": [{"attributes": dict(sorted(instance.items()))} for instance in self.instances[name]]
                }
                for name in sorted(self.instances)
            },
        }


NOTHING: Final = Features()


def read_features(raw: Any) -> Features:
    """Read the `spec.features` of a NodeFeature; raises BadFeatures."""
    parts = _mapping(raw, "features")
    unknown = sorted(set(parts) - {"flags", "attributes", "instances"})
    if unknown:
        raise BadFeatures("unknown-part", f"{unknown[0]!r} is not a part of features", _HINT, "features")
    return Features(
        {name.lower(): frozenset(_mapping(value, path)) for name, value, path in _elements(parts, "flags", {})},
        {name.lower(): _texts(value, path) for name, value, path in _elements(parts, "attributes", {})},
        {name.lower(): _instances(value, path) for name, value, path in _elements(parts, "instances", [])},
    )


_HINT: Final = "features has flags, attributes and instances, each {<domain>.<feature>: {elements: …}}."


def _elements(parts: Mapping[str, Any], part: str, empty: Any) -> Iterable[tuple[str, Any, str]]:
    for name, holder in _mapping(parts.get(part), part).items():
        path = f"features.{part}[{name}]"
        elements = _mapping(holder, path).get("elements")
        yield str(name), empty if elements is None else elements, path


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadFeatures("not-a-mapping", "this is not a mapping", _HINT, path)
    return value


def _texts(value: Any, path: str) -> Attributes:
    texts = _mapping(value, path)
    if not all(isinstance(text, str) for text in texts.values()):
        raise BadFeatures("not-text", "the values of attributes are texts", "Put them in quotes.", path)
    return texts


def _instances(value: Any, path: str) -> tuple[Attributes, ...]:
    if not isinstance(value, list):
        raise BadFeatures("not-a-list", "instances are a list", _HINT, path)
    if len(value) > MAX_INSTANCES:
        raise BadFeatures("too-many", f"more than {MAX_INSTANCES} instances", "Leave out what no rule needs.", path)
    return tuple(_texts(_mapping(instance, path).get("attributes"), path) for instance in value)


def merged(parts: Iterable[Features]) -> Features:
    """One set of features from several, in order."""
    flags: dict[str, frozenset[str]] = {}
    attributes: dict[str, Attributes] = {}
    instances: dict[str, tuple[Attributes, ...]] = {}
    for part in parts:
        for name, elements in part.flags.items():
            flags[name] = flags.get(name, _NONE) | elements
        for name, texts in part.attributes.items():
            attributes[name] = {**attributes.get(name, {}), **texts}
        for name, several in part.instances.items():
            instances[name] = instances.get(name, ()) + several
    return Features(flags, attributes, instances)
