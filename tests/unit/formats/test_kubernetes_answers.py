"""The parsers against answers of Kubernetes' own libraries (version 1.36), recorded for random and for tricky input.

The file holds the input, whether the library accepted it, and what it made of it. For names the answer is the number of
problems by kind; a strategic merge patch is compared after the typed decoding that drops left-over directives and nulls.
Where we differ on purpose (documented in each module) there is no row.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastness.formats import names
from fastness.formats.errors import FormatError
from fastness.formats.patch import MergeRule, apply_strategic_patch
from fastness.formats.quantity import parse_quantity
from fastness.formats.selectors import parse_field_selector, parse_label_selector
from fastness.formats.yaml import load_documents

_ANSWERS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "data" / "kubernetes_1_36_answers.json").read_text()
)
_NAME_RULES = (
    names.dns1123_label,
    names.dns1123_subdomain,
    names.dns1035_label,
    names.qualified_name,
    names.label_value,
)


_MERGE_KEYS = {
    ("spec", "containers"): "name",
    ("spec", "containers", "ports"): "containerPort",
    ("spec", "containers", "env"): "name",
    ("spec", "volumes"): "name",
}


class PodRules:
    def rule(self, path: tuple[str, ...]) -> MergeRule:
        if path in _MERGE_KEYS:
            return MergeRule("merge", _MERGE_KEYS[path])
        return MergeRule("merge") if path == ("metadata", "finalizers") else MergeRule()


def _yaml(text: str) -> Any:
    documents = load_documents(text.encode())
    return documents[0].value if documents else None


def _quantity(text: str) -> str:
    quantity = parse_quantity(text)
    return f"{quantity}|{int(quantity)}"


_READERS: dict[str, Callable[[Any], Any]] = {
    "yaml": _yaml,
    "quantity": _quantity,
    "label selector": lambda text: str(parse_label_selector(text)),
    "field selector": lambda text: str(parse_field_selector(text)),
    "names": lambda text: " ".join(str(len(rule(text))) for rule in _NAME_RULES),
    "strategic merge patch": lambda pair: apply_strategic_patch(pair[0], pair[1], PodRules()),
}


def test_every_kind_of_answer_has_a_reader_and_enough_rows() -> None:
    assert set(_ANSWERS) == set(_READERS)
    assert all(len(rows) >= 60 for rows in _ANSWERS.values())


@pytest.mark.parametrize("kind", list(_READERS))
def test_input_is_read_as_kubernetes_reads_it(kind: str) -> None:
    for row in _ANSWERS[kind]:
        if row["accepted"]:
            assert _READERS[kind](row["input"]) == row["answer"], row["input"]
        else:
            with pytest.raises(FormatError):
                _READERS[kind](row["input"])
