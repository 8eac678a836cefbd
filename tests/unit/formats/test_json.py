"""JSON: what is accepted, what is refused, how repeated keys are found, and the upper levels of texts that no decoder reads."""

import json as stdlib_json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import FormatError, JsonError
from fastness.formats.json import (
    CUT,
    JsonLimits,
    canonical,
    check_depth,
    cut,
    decode,
    decode_reporting_duplicates,
    encode,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"{}", {}),
        (b' {"a": [1, 2.5, true, null, "x"]} ', {"a": [1, 2.5, True, None, "x"]}),
        (b'"\\u00e9\\ud83d\\ude00"', "é😀"),
        (b"-0", 0),
        (b"1e3", 1000.0),
    ],
)
def test_valid_documents_decode(text: bytes, value: Any) -> None:
    assert decode(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{",
        b'{"a":1}x',
        b"{'a':1}",
        b'{"a":1,}',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"01",
        b"1.",
        b"1e999",
        b'"\xff"',
        b'"\\ud800"',
        b'"\x01"',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"{1:2}",
        b"// c\n{}",
    ],
)
def test_anything_else_is_refused_with_a_place(text: bytes) -> None:
    with pytest.raises(JsonError) as caught:
        decode(text)
    assert caught.value.code == "json-syntax"
    assert "line" in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**53 + 1, 0])
def test_integers_of_64_bits_stay_exact(number: int) -> None:
    value = decode(f'{{"n":{number}}}'.encode())["n"]
    assert value == number
    assert type(value) is int


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**40])
def test_larger_integers_become_floats(number: int) -> None:
    for value in (decode(f"{number}".encode()), decode(f'{{"a":[[{number}]]}}'.encode())["a"][0][0]):
        assert type(value) is float
        assert math.isclose(value, number)


def test_digits_inside_text_are_left_alone() -> None:
    assert decode(b'{"n":"18446744073709551615"}') == {"n": "18446744073709551615"}


def test_size_is_checked_before_parsing() -> None:
    with pytest.raises(JsonError) as caught:
        decode(b"x" * 11, JsonLimits(max_bytes=10))
    assert caught.value.code == "json-too-large"


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [101, 300, 1000, 5000, 200_000])
def test_deep_documents_are_refused_at_any_depth(opening: bytes, depth: int) -> None:
    closing = b"]" if opening == b"[" else b"}"
    with pytest.raises(JsonError) as caught:
        decode(opening * depth + b"1" + closing * depth)
    assert caught.value.code == "json-too-deep"


def test_the_deepest_allowed_document_passes() -> None:
    assert decode(b"[" * 100 + b"]" * 100)
    assert decode(b'{"x":"[[[[[[", "y":' + b"[" * 99 + b"]" * 99 + b"}", JsonLimits(max_depth=100))


def test_brackets_inside_text_do_not_count_as_depth() -> None:
    assert decode(b'["' + b"[{" * 500 + b'"]') == ["[{" * 500]


def test_depth_of_a_value_is_measured_exactly() -> None:
    check_depth([[1], {"a": []}], 3)
    with pytest.raises(JsonError):
        check_depth([[1], {"a": []}], 2)


def test_a_deep_value_that_a_later_duplicate_hides_is_refused_in_strict_reading() -> None:
    for depth in (150, 900):
        text = b'{"a":' + b"[" * depth + b"]" * depth + b',"a":1}'
        with pytest.raises(JsonError) as caught:
            decode_reporting_duplicates(text)
        assert caught.value.code == "json-too-deep"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (b'{"a":1,"b":":"}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"a":1,"a":2,"a":3}', ["a", "a"]),
        (b'{"a":1,"\\u0061":2}', ["a"]),
        (b'{"spec":{"items":[{"n":1},{"n":1,"n":2}]}}', ["spec.items[1].n"]),
        (b'[[{"x":1,"x":1}]]', ["[0][0].x"]),
        (b'{"m":{"labels":{"k":"v","k":"v"}},"m2":{"a":1,"a":1}}', ["m.labels.k", "m2.a"]),
        (b'{"a":{"b":1,"b":2},"a":3}', ["a", "a.b"]),
        (b'{"a":"\\u003a","a":":"}', ["a"]),
        (b'{"a":"\\u003a\\u003A"}', []),
        (b'{"a\\u003a":1,"a:":2}', ["a:"]),
        (b'{"a":1,"a":":"}', ["a"]),
    ],
)
def test_repeated_keys_are_reported_by_path(text: bytes, paths: list[str]) -> None:
    assert decode_reporting_duplicates(text)[1] == paths


def test_the_last_of_a_repeated_key_counts() -> None:
    assert decode(b'{"a":1,"a":2}') == {"a": 2}


def test_reports_are_bounded_in_number_and_length() -> None:
    text = b'{"' + b"k" * 100_000 + b'":[' + b",".join([b'{"a":1,"a":2}'] * 5000) + b"]}"
    _, paths = decode_reporting_duplicates(text)
    assert len(paths) == 100
    assert sum(map(len, paths)) < 100_000


# A document as written: objects are lists of pairs, so that a key can repeat.
class Members(list[tuple[str, Any]]):
    pass


_keys = st.sampled_from(["a", "b", "c:d", "e"])
_plain = st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(alphabet='ab:"\\{}[],é', max_size=6))
_written = st.recursive(
    _plain,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(st.tuples(_keys, inner), max_size=4).map(Members)),
    max_leaves=12,
)


def _quote(text: str, escape_colons: bool) -> str:
    quoted = stdlib_json.dumps(text)
    return quoted.replace(":", "\\u003a") if escape_colons else quoted


def _render(value: Any, escape_colons: bool) -> str:
    if isinstance(value, Members):
        return "{" + ", ".join(f"{_quote(k, escape_colons)} :{_render(v, escape_colons)}" for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_render(v, escape_colons) for v in value) + "]"
    return _quote(value, escape_colons) if isinstance(value, str) else stdlib_json.dumps(value)


def _expected_paths(value: Any, path: str = "") -> list[str]:
    paths: list[str] = []
    if isinstance(value, Members):
        names = [name for name, _ in value]
        steps = [f"{path}.{name}" if path else name for name in names]
        paths += [step for index, step in enumerate(steps) if names[index] in names[:index]]
        for step, (_, child) in zip(steps, value, strict=True):
            paths += _expected_paths(child, step)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            paths += _expected_paths(child, f"{path}[{index}]")
    return paths


@given(_written, st.booleans())
def test_repeated_keys_are_found_exactly(written: Any, escape_colons: bool) -> None:
    text = _render(written, escape_colons).encode()
    value, paths = decode_reporting_duplicates(text)
    assert sorted(paths) == sorted(_expected_paths(written))
    assert encode(value) == encode(decode(text))


@given(_written)
def test_decoding_agrees_with_the_standard_library(written: Any) -> None:
    text = _render(written, False)

    def integer(digits: str) -> int | float:
        return int(digits) if -(2**63) <= int(digits) < 2**63 else float(digits)

    assert decode(text.encode()) == stdlib_json.loads(text, parse_int=integer)


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_format_error(data: bytes) -> None:
    try:
        decode_reporting_duplicates(data)
    except FormatError:
        return
    orjson.loads(data)


def test_canonical_form_is_independent_of_order() -> None:
    assert canonical({"b": 1, "a": [2]}) == canonical({"a": [2], "b": 1}) == b'{"a":[2],"b":1}'
    assert encode({"b": 1, "a": 2}) == b'{"b":1,"a":2}'


@pytest.mark.parametrize("value", [{1: 2}, object(), 2**70, {"a": {1, 2}}])
@pytest.mark.parametrize("function", [encode, canonical])
def test_values_without_a_json_form_are_refused(function: Any, value: Any) -> None:
    with pytest.raises(JsonError) as caught:
        function(value)
    assert caught.value.code == "json-unencodable"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


def cut_value(value: Any, levels: int) -> Any:
    """What `cut` promises, by recursion over the value."""
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        return stdlib_json.loads(CUT)
    if isinstance(value, list):
        return [cut_value(child, levels - 1) for child in value]
    return {key: cut_value(child, levels - 1) for key, child in value.items()}


@given(VALUES, st.integers(1, 6), st.booleans())
def test_a_cut_text_is_the_text_of_the_cut_value(value: Any, levels: int, spaced: bool) -> None:
    text = stdlib_json.dumps(value, ensure_ascii=spaced, indent=1 if spaced else None).encode("utf-8", "surrogatepass")
    assert stdlib_json.loads(cut(text, levels)) == cut_value(value, levels)


def test_a_text_of_ten_thousand_levels_gives_its_name() -> None:
    deep = b'{"a":' * 10_000 + b"1" + b"}" * 10_000
    text = b'{"spec":' + deep + b',"metadata":{"managedFields":[' + deep + b'],"name":"whose"}}'
    assert stdlib_json.loads(cut(text, 100))["metadata"]["name"] == "whose"


@given(st.binary(max_size=200), st.integers(1, 4))
def test_whatever_the_bytes_are_there_is_an_answer_that_is_not_longer_by_much(text: bytes, levels: int) -> None:
    assert len(cut(text, levels)) <= len(text) + len(CUT) * text.count(b"{") + len(CUT) * text.count(b"[")
