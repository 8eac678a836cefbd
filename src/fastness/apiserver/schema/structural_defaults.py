"""Defaults in a CRD: each must be pruned, and valid by the very schema it stands in.

A default that an object could not have is refused with the CRD, since it would otherwise break objects that say nothing at all.
Below the metadata of an embedded resource, and inside of maps, Kubernetes has its own rules: see `structural_keywords.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.apiserver.schema import causes, validation
from fastness.apiserver.schema.cel.rules import Rules
from fastness.apiserver.schema.correlation import same
from fastness.apiserver.schema.embedded import embedded_problems
from fastness.apiserver.schema.node import META_FIELDS, MISSING, Node, build_part
from fastness.apiserver.schema.pruning import prune
from fastness.kube.errors import Cause


def default_problems(schema: Mapping[str, Any], path: str) -> list[Cause]:
    """Everything that is wrong with the defaults of a structural schema."""
    problems: list[Cause] = []
    _walk(schema, path, problems, inside_meta=False)
    return problems


def _walk(schema: Mapping[str, Any], path: str, problems: list[Cause], *, inside_meta: bool) -> None:
    if schema.get("default") is not None and not inside_meta:
        problems.extend(_judge(build_part(schema), schema["default"], causes.child(path, "default")))
    if isinstance(schema.get("items"), Mapping):
        _walk(schema["items"], causes.child(path, "items"), problems, inside_meta=inside_meta)
    for name, below in (schema.get("properties") or {}).items():
        meta = inside_meta or (bool(schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS)
        _walk(below, causes.key(causes.child(path, "properties"), name), problems, inside_meta=meta)


def _judge(node: Node, default: Any, path: str) -> list[Cause]:
    pruned, _ = prune(node, default)
    unknown = [] if same(pruned, default) else [causes.invalid(path, default, "must not have unknown fields")]
    wrong = embedded_problems(node, default) or validation.problems(node, default)
    if not wrong and node.has_rules:
        rules = Rules(node, is_object=False)
        wrong = rules.broken(default, default) or rules.broken(default, MISSING)
    return unknown + [_under(path, cause) for cause in wrong]


def _under(path: str, cause: Cause) -> Cause:
    if cause.field == causes.NOWHERE:
        return Cause(path, cause.reason, cause.message)
    joined = path + cause.field if cause.field.startswith("[") else causes.child(path, cause.field)
    return Cause(joined, cause.reason, cause.message)
