"""Messages of the reference value provider service: read as they are meant, refused when nobody can vouch for them."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.values.from_images import MAX_VALUES, BadValues
from fastness.attestation.values.rvps import parse_message, read_value, set_of_message, values_of
from fastness.attestation.values.values import ReferenceValues
from tests.unit.attestation.policyinputs import NOW


def message(values: object, **change: Any) -> bytes:
    payload = base64.b64encode(json.dumps(values).encode()).decode()
    return json.dumps({"version": "0.1.0", "type": "sample", "payload": payload, **change}).encode()


def test_a_message_becomes_a_set_and_reads_back_as_it_was() -> None:
    values = {"tpm_pcr4": ["aa", "bb"], "svn": [1, 2], "smt": True, "minimum": 3, "one": "x", "none": []}
    made = set_of_message("imported", message(values), NOW)
    assert made["spec"]["source"] == "import"
    assert made["spec"]["validity"]["notAfter"] == "2027-11-01T00:00:00Z"
    book = ReferenceValues.of([made], NOW)
    assert book.document == {key: value for key, value in values.items() if value != []}
    assert read_value(book, "smt") is True
    assert read_value(book, "none") is None


@pytest.mark.parametrize("kind", ["swid", "corim"])
def test_pitfall_21_provenance_that_nobody_verifies_is_not_believed(kind: str) -> None:
    with pytest.raises(BadValues) as refused:
        parse_message(message({"a": ["1"]}, type=kind))
    assert refused.value.code == "provenance-unverified"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"{}", b'{"version":"0.1.0","type":"sample"}', message({"a": ["1"]}, version="0.2.0"),
        message({"a": ["1"]}, type="other"), message({"a": ["1"]}, payload="%%"), message({"a": ["1"]}, payload=5),
        message({"a": ["1"]}, more=1), message([]), message({}), message("x"), b"[" * 5000, b"x" * 2_000_000,
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(BadValues):
        parse_message(data)


@pytest.mark.parametrize("value", [None, {"a": 1}, [[1]], 1.5, [None], "", ["x" * 257], 10**16])
def test_values_that_cannot_be_kept_are_refused_and_not_dropped(value: object) -> None:
    with pytest.raises(BadValues):
        values_of({"a": value, "good": ["1"]})


@given(st.binary(max_size=200))
def test_parsing_is_total(data: bytes) -> None:
    with suppress(BadValues):
        assert isinstance(parse_message(data), dict)


def test_a_message_with_more_values_than_a_set_may_have_is_refused() -> None:
    assert len(values_of({"a": list(range(MAX_VALUES))})) == MAX_VALUES
    with pytest.raises(BadValues) as refused:
        values_of({"a": list(range(MAX_VALUES)), "b": "x"})
    assert refused.value.code == "too-many-values"
