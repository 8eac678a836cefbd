"""What a matching rule may put on a node: names, prefixes, namespaces, `@` references and values.

* Names without a prefix get `feature.node.kubernetes.io/`, but those of taints do not.
* `kubernetes.io` and everything below it is denied, except for `feature.node.kubernetes.io` (and, for labels,
  `profile.node.kubernetes.io`) with what is below them. Settings deny more, or allow more labels; allowing wins.
* Our own namespaces, that of attested properties above all, are denied to every rule, whatever the settings say: hosts must not
  be able to write what only a verdict proves.
* So are roles of nodes, and labels by which a pool chooses its nodes: whoever tells of features would choose the pool, and
  with it the configuration.
* `@<domain>.<feature>.<element>` takes the value of an attribute.
* Whatever breaks a rule here is dropped alone, with a reason; the rest stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from fastness.formats.errors import QuantityError
from fastness.formats.names import label_value, qualified_name
from fastness.formats.quantity import parse_quantity
from fastness.workloads.features.discovered import Attributes, Features
from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.regexps import matcher
from fastness.workloads.features.rules import Taint

PREFIX: Final = "feature.node.kubernetes.io"
PROFILE: Final = "profile.node.kubernetes.io"
DENIED: Final = ("kubernetes.io", "*.kubernetes.io")
# Labels below these say what a verdict proved. Hosts report their own features, so no setting opens them to rules.
OURS: Final = ("fastness.dev", "*.fastness.dev")
# The role of a node chooses its pool, and with it the configuration and the secrets that it gets.
ROLES: Final = ("node-role.kubernetes.io", "*.node-role.kubernetes.io")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# As in Node Feature Discovery.
MAX_ANNOTATION: Final = 1024
REFERENCE: Final = "@"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a cluster treats outputs."""

    auto_prefix: bool = True
    extra_label_ns: tuple[str, ...] = ()
    deny_label_ns: tuple[str, ...] = ()
    label_white_list: str = ""
    enable_taints: bool = False
    pool_labels: frozenset[str] = frozenset()


DEFAULT: Final = Settings()


class Dropped(NamedTuple):
    """An output that the node does not get, and why."""

    kind: str
    name: str
    reason: str


class Judged(NamedTuple):
    """Outputs that passed, and those that did not."""

    entries: dict[str, str]
    dropped: list[Dropped]


def allowed_labels(labels: Mapping[str, str], features: Features, settings: Settings = DEFAULT) -> Judged:
    """The labels that a node gets."""
    return _judged("label", labels, settings, features, lambda name, value: _label_problem(name, value, settings))


def allowed_resources(resources: Mapping[str, str], features: Features, settings: Settings = DEFAULT) -> Judged:
    """The extended resources that a node offers."""
    return _judged("extended resource", resources, settings, features, _resource_problem)


def allowed_annotations(annotations: Mapping[str, str], settings: Settings = DEFAULT) -> Judged:
    """The annotations that a node gets; references are not resolved in them."""
    return _judged("annotation", annotations, settings, None, _annotation_problem)


def allowed_taints(taints: Iterable[Taint], settings: Settings = DEFAULT) -> tuple[list[Taint], list[Dropped]]:
    """The taints that a node gets: none unless the settings allow them."""
    passed, dropped = [], []
    for taint in taints:
        reason = _taint_problem(taint) if settings.enable_taints else "taints are not enabled"
        if reason is not None:
            dropped.append(Dropped("taint", taint.key, reason))
        else:
            passed.append(taint)
    return passed, dropped


def _judged(
    kind: str, outputs: Mapping[str, str], settings: Settings, features: Features | None,
    judge: Callable[[str, str], str | None],
) -> Judged:  # fmt: skip
    judged = Judged({}, [])
    for written, text in outputs.items():
        name = prefixed(written, settings)
        value: str | None = text
        if features is not None and text.startswith(REFERENCE):
            value = resolved(text, features.attributes)
        reason = f"{text} is not an attribute of the node" if value is None else judge(name, value)
        if reason is not None:
            judged.dropped.append(Dropped(kind, name, reason))
        elif value is not None:
            judged.entries[name] = value
    return judged


def prefixed(name: str, settings: Settings = DEFAULT) -> str:
    """The full name of an output."""
    return f"{PREFIX}/{name}" if settings.auto_prefix and "/" not in name else name


def resolved(reference: str, attributes: Mapping[str, Attributes]) -> str | None:
    """The value that `@<domain>.<feature>.<element>` names, or None."""
    # The first two dots alone: names of elements have dots too (cpu.security, sev.encrypted_state_ids).
    parts = reference.removeprefix(REFERENCE).split(".", 2)
    if len(parts) != 3:
        return None
    return attributes.get(f"{parts[0]}.{parts[1]}".lower(), {}).get(parts[2])


def _label_problem(name: str, value: str, settings: Settings) -> str | None:
    reason = _name_problem(name, (PREFIX, PROFILE), settings)
    if reason is not None:
        return reason
    if name in settings.pool_labels:
        return "a pool chooses its nodes by this label: it is denied to rules"
    if settings.label_white_list:
        try:
            if not matcher(settings.label_white_list)(name.rpartition("/")[2]):
                return f"the name does not match labelWhiteList {settings.label_white_list!r}"
        except BadExpression as error:
            return f"labelWhiteList: {error}"
    return _first(label_value(value))


def _resource_problem(name: str, value: str) -> str | None:
    reason = _name_problem(name, (PREFIX,))
    if reason is not None:
        return reason
    try:
        parse_quantity(value)
    except QuantityError as error:
        return str(error)
    return None


def _annotation_problem(name: str, value: str) -> str | None:
    if len(value.encode()) > MAX_ANNOTATION:
        return f"the value has more than {MAX_ANNOTATION} bytes"
    return _name_problem(name, (PREFIX,))


def _taint_problem(taint: Taint) -> str | None:
    if taint.effect not in EFFECTS:
        return f"the effect is one of {', '.join(EFFECTS)}"
    return _name_problem(taint.key, (PREFIX,)) or _first(label_value(taint.value))


def _name_problem(name: str, allowed: tuple[str, ...], settings: Settings | None = None) -> str | None:
    namespace, separator, _ = name.rpartition("/")
    if not separator:
        return "the name has no namespace"
    problems = qualified_name(name)
    if problems:
        return problems[0]
    # Before what the settings allow: `extraLabelNs` must not open these two.
    if _inside(namespace, OURS):
        return f"the namespace {namespace} is denied to rules: what it says comes from verdicts"
    if _inside(namespace, ROLES):
        return f"the namespace {namespace} is denied to rules: roles choose the pool of a node"
    extra = settings.extra_label_ns if settings else ()
    if _inside(namespace, extra) or any(namespace == suffix or namespace.endswith(f".{suffix}") for suffix in allowed):
        return None
    if _inside(namespace, (*DENIED, *(settings.deny_label_ns if settings else ()))):
        return f"the namespace {namespace} is denied"
    return None


def _inside(namespace: str, patterns: Iterable[str]) -> bool:
    return any(
        namespace.endswith(pattern[1:]) if pattern.startswith("*") else namespace == pattern for pattern in patterns
    )


def _first(problems: list[str]) -> str | None:
    return problems[0] if problems else None
