"""Every rule of the public API is in our definitions, with its words, and judges as it should.

The rows are in `rules`; `tests/component/kinds` sends them to the embedded API and to a real one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from fastness.apiserver.schema import CompiledSchema
from fastness.kinds import registry
from fastness.kinds.crd.manifest import full_schema
from fastness.kinds.kind import JsonObject, Kind
from tests.unit.kinds.rules import cases
from tests.unit.kinds.rules.cases import Case
from tests.unit.kinds.rules.table import CASES, COUNTS

COMPARES = re.compile(r"\boldSelf\b")


@cache
def schema_of(crd: str) -> JsonObject:
    plural, _, group = crd.partition(".")
    return full_schema(registry.versions_of(group, plural)[0])


@cache
def compiled(crd: str) -> CompiledSchema:
    return CompiledSchema(schema_of(crd))


def rules_in(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every rule of a schema with the path of its field."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule
    for name, below in (schema.get("properties") or {}).items():
        yield from rules_in(below, f"{path}.{name}" if path else name)
    if isinstance(schema.get("items"), Mapping):
        yield from rules_in(schema["items"], f"{path}[]")


def words_of(rule: Mapping[str, Any]) -> str:
    return str(rule.get("message") or f"failed rule: {rule['rule']}")


def judged(case: Case, patch: JsonObject) -> list[tuple[str, str]]:
    """What is said against a document: field and words."""
    schema = compiled(case.crd)

    def stored(document: JsonObject) -> JsonObject:
        done: JsonObject = schema.default(schema.prune(document)[0])
        return done

    old = None if case.old is None else stored(case.document(case.old))
    return [(cause.field, cause.message) for cause in schema.validate(stored(case.document(patch)), old)]


@pytest.mark.parametrize("crd", COUNTS)
def test_there_are_as_many_rules_as_the_public_api_has(crd: str) -> None:
    assert len(list(rules_in(schema_of(crd)))) == COUNTS[crd]


@pytest.mark.parametrize("crd", COUNTS)
def test_every_rule_has_a_row_and_every_row_a_rule(crd: str) -> None:
    rules = Counter((path, words_of(rule)) for path, rule in rules_in(schema_of(crd)))
    rows = Counter((case.path, case.message) for case in CASES if case.crd == crd and not case.again)
    assert rows == rules


@pytest.mark.parametrize("crd", COUNTS)
def test_a_row_compares_exactly_where_its_rule_does(crd: str) -> None:
    compares = {
        (path, words_of(rule))
        for path, rule in rules_in(schema_of(crd))
        if COMPARES.search(rule["rule"]) and not rule.get("optionalOldSelf")
    }
    rows = {(case.path, case.message) for case in CASES if case.crd == crd and case.old is not None and not case.again}
    assert rows == compares


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_obeys_the_rule_passes(case: Case) -> None:
    assert judged(case, case.passes) == []
    if case.old is not None:
        assert judged(Case(case.crd, case.path, case.message, case.old, case.old), case.old) == []


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_breaks_the_rule_is_refused_there_and_in_its_words(case: Case) -> None:
    refusals = judged(case, case.fails)
    assert [words for field, words in refusals if field == case.place and words.endswith(f": {case.message}")], refusals


@pytest.mark.parametrize("case", [case for case in CASES if case.old is None and case.path], ids=str)
def test_what_is_stored_and_breaks_a_rule_may_stay_as_it_is(case: Case) -> None:
    stored_before = Case(case.crd, case.path, case.message, case.passes, case.fails, case.fails)
    refusals = judged(stored_before, {**case.fails, "metadata": {"labels": {"a": "b"}}})
    assert [words for field, words in refusals if field == case.place] == []


def test_kinds_without_rules_have_none() -> None:
    mco = "machineconfiguration.openshift.io"
    for crd in (f"kubeletconfigs.{mco}", f"machineconfigs.{mco}"):
        assert list(rules_in(schema_of(crd))) == []


def test_an_os_config_under_another_name_may_be_updated_as_long_as_it_keeps_its_pool() -> None:
    older = {"metadata": {"name": "built-before"}}
    stored_before = Case(cases.OS_CONFIG, "", "", older, older, older)
    assert judged(stored_before, {**older, "spec": {"renderedImagePushSecret": {"name": "other"}}}) == []
    moved = judged(stored_before, {**older, "spec": {"machineConfigPool": {"name": "infra"}}})
    assert [field for field, _ in moved] == ["<nil>"]


def test_our_own_empty_controller_config_is_valid() -> None:
    assert judged(Case(cases.CONTROLLER, "", "", {}, {}), {}) == []


@pytest.mark.parametrize("kind", registry.custom_kinds(), ids=lambda kind: kind.crd_name)
def test_no_field_has_an_empty_list_of_rules(kind: Kind) -> None:
    assert '"x-kubernetes-validations":[]' not in json.dumps(full_schema(kind), separators=(",", ":"))
