"""The embedded API judges every example and every refusal as a real API server does.

`tests/component/kinds` proves the same list on a real server; here the schemas and their CEL rules run in process.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from fastness.apiserver.schema import CompiledSchema, structural_problems
from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds import registry
from fastness.kinds.crd.manifest import full_schema
from fastness.kinds.kind import JsonObject, Kind
from tests.unit.kinds.examples import EXAMPLES, Refusal
from tests.unit.kinds.refusals import REFUSALS


@cache
def compiled(crd: str) -> CompiledSchema:
    """The schema of the stored version of a resource."""
    plural, _, group = crd.partition(".")
    return CompiledSchema(full_schema(registry.versions_of(group, plural)[0]))


def accepted(crd: str, obj: JsonObject, old: Any = None) -> tuple[JsonObject, str]:
    """The object as it would be stored, and everything that is said against it."""
    schema = compiled(crd)
    stored = schema.default(schema.prune(obj)[0])
    return stored, "\n".join(f"{cause.field}: {cause.message}" for cause in schema.validate(stored, old))


@pytest.mark.parametrize("crd", EXAMPLES)
def test_example_is_accepted_and_nothing_of_it_is_pruned(crd: str) -> None:
    assert compiled(crd).prune(EXAMPLES[crd])[1] == []
    assert accepted(crd, EXAMPLES[crd])[1] == ""


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal_names_the_field_or_the_rule(refusal: Refusal) -> None:
    old, _ = accepted(refusal.crd, EXAMPLES[refusal.crd])
    changed = apply_merge_patch(old, refusal.change)
    _, words = accepted(refusal.crd, changed, old if refusal.by == "transition" else None)
    assert refusal.field in words


@pytest.mark.parametrize("kind", registry.custom_kinds(), ids=lambda kind: f"{kind.crd_name}/{kind.version}")
def test_schema_is_structural_in_our_own_judgement(kind: Kind) -> None:
    assert list(structural_problems(full_schema(kind))) == []
