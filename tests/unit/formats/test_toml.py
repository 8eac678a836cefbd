"""TOML, read and written: nothing is lost on the way, and hostile texts are refused before they cost anything."""

from __future__ import annotations

import tomllib
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import toml
from fastness.formats.errors import TomlError

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_PLAIN = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), _TEXTS,
    st.dates(), st.datetimes(timezones=st.none() | st.just(timezone(timedelta(hours=2)))), st.times(),
)  # fmt: skip
_VALUES = st.recursive(
    _PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3), max_leaves=12
)
DOCUMENTS = st.dictionaries(_TEXTS, _VALUES, max_size=4)


@given(DOCUMENTS)
def test_what_is_written_reads_back_as_the_same(document: dict[str, Any]) -> None:
    assert toml.parse(toml.encode(document)) == document


@given(DOCUMENTS)
def test_another_reader_reads_the_same(document: dict[str, Any]) -> None:
    assert tomllib.loads(toml.encode(document)) == document


def test_tables_in_arrays_have_headings_of_their_own() -> None:
    document = {
        "short": True,
        "registry": [{"location": "a.example", "mirror": [{"location": "b.example"}]}, {"prefix": "*.c"}],
        "storage": {"options": {"size": "8G", "stores": ["/a", "/b"]}},
        "empty": {},
    }
    assert toml.encode(document) == (
        "short = true\n\n"
        '[[registry]]\nlocation = "a.example"\n\n'
        '[[registry.mirror]]\nlocation = "b.example"\n\n'
        '[[registry]]\nprefix = "*.c"\n\n'
        '[storage.options]\nsize = "8G"\nstores = ["/a", "/b"]\n\n'
        "[empty]\n"
    )


def test_an_empty_document_is_an_empty_text() -> None:
    assert toml.encode({}) == ""
    assert toml.parse("") == toml.parse(b"# nothing\n") == {}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('say "hi"\\\n\t\x00\x7f', r'"say \"hi\"\\\n\t\u0000\u007f"'),
        (float("inf"), "inf"),
        (1e22, "1e+22"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(1, 2, 3), "01:02:03"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))), "2026-01-02T03:04:05+01:00"),
        ([1, {"a": {"b": []}}], "[1, {a = {b = []}}]"),
    ],
)
def test_values_are_written_as_toml_has_them(value: object, written: str) -> None:
    assert toml.encode({"a.b": value}) == f'"a.b" = {written}\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a = ", "toml-syntax"),
        ("a = 1\na = 2", "toml-syntax"),
        (b"a = '\xff'", "toml-encoding"),
        ("a = " + "[" * 5000, "toml-syntax"),
        ("a = " + "1" * 5000, "toml-syntax"),
        ("a = 9223372036854775808", "toml-number"),
        ("a = " + "[" * 60 + "]" * 60, "toml-depth"),
        ("x = 1 #" + " " * toml.MAX_BYTES, "toml-too-large"),
        # The standard library would take some 40 GB for this one.
        ("a." * 100_000 + "a = 1", "toml-key"),
        ("[" + '"a" . ' * 33 + "b]", "toml-key"),
        ("x = {" + "'a'." * 33 + "b = 1}", "toml-key"),
    ],
)
def test_a_text_that_is_not_toml_or_too_much_is_one_error(text: str | bytes, code: str) -> None:
    with pytest.raises(TomlError) as refused:
        toml.parse(text)
    assert refused.value.code == code
    assert refused.value.hint


def test_many_dots_in_texts_are_not_a_long_key() -> None:
    hosts = [f"registry-{number}.some.where.example" for number in range(40)]
    assert toml.parse(toml.encode({"hosts": hosts})) == {"hosts": hosts}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"a": {"b": None}}, "a.b"),
        ({"a": [b"bytes"]}, "a"),
        ({"a": "\ud800"}, "a"),
        ({1: "a"}, ""),
    ],
)
def test_what_toml_cannot_say_is_refused_by_its_path(document: dict[Any, Any], path: str) -> None:
    with pytest.raises(TomlError) as refused:
        toml.encode(document)
    assert (refused.value.code, refused.value.path) == ("toml-value", path)


@pytest.mark.parametrize(("value", "code"), [(2**63, "toml-number"), (-(2**63) - 1, "toml-number")])
def test_numbers_that_readers_differ_on_are_not_written(value: int, code: str) -> None:
    with pytest.raises(TomlError) as refused:
        toml.encode({"a": [value]})
    assert refused.value.code == code
