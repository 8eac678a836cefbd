"""YAML: scalars as Kubernetes reads them, documents with lines, and everything that is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import YamlError
from fastness.formats.json import encode
from fastness.formats.yaml import Document, YamlLimits, load_documents


def _only(text: str) -> Any:
    (document,) = load_documents(text.encode())
    return document.value


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("yes", True),
        ("No", False),
        ("ON", True),
        ("off", False),
        ("y", True),
        ("n", False),
        ("yEs", "yEs"),
        ("true", True),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0b101", -5),
        ("08", 8),
        ("1_000", 1000),
        ("+5", 5),
        ("-x", "-x"),
        ("1.0", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1.2.3", "1.2.3"),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615", 1.8446744073709552e19),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ("0xFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFF"),
        ("1e400", "1e400"),
        ("~", None),
        ("Null", None),
        ("''", ""),
        ('"yes"', "yes"),
        ("'0777'", "0777"),
        ("!!str 5", "5"),
        ("! yes", "yes"),
        ("!!int 5", 5),
        ("!!float 5", 5),
        ("!!bool yes", True),
        ("v1", "v1"),
        ("<<", "<<"),
    ],
)
def test_plain_scalars_mean_what_kubernetes_reads(scalar: str, value: Any) -> None:
    got = _only(f"a: {scalar}")["a"]
    assert got == value
    assert type(got) is type(value)


def test_keys_become_json_names() -> None:
    assert _only("1: a\non: b\n1.5: c\n'x': d\n0x10: e") == {"1": "a", "true": "b", "1.5": "c", "x": "d", "16": "e"}


def test_documents_carry_the_line_of_their_content() -> None:
    text = "# head\n---\na: 1\n---\n\n---\n# only a comment\n---\n- b\n"
    assert load_documents(text.encode()) == [Document({"a": 1}, 3), Document(["b"], 9)]


def test_an_empty_stream_has_no_documents() -> None:
    assert load_documents(b"") == load_documents(b"---\n---\n") == load_documents(b"# nothing\n") == []


def test_json_is_read_as_json() -> None:
    assert load_documents(b'\n {"a": "yes", "b": "2024-01-01"}') == [Document({"a": "yes", "b": "2024-01-01"}, 2)]


def test_flow_style_that_is_not_json_is_read_as_yaml() -> None:
    assert _only("{a: [b, c], d: off}") == {"a": ["b", "c"], "d": False}


def test_anchors_are_copied_not_shared() -> None:
    value = _only("a: &x {k: [1]}\nb: *x\n&key c: 1\nd: *key\n")
    assert value == {"a": {"k": [1]}, "b": {"k": [1]}, "c": 1, "d": "c"}
    assert value["a"] is not value["b"]


def test_merge_keys_fill_in_what_is_not_written_out() -> None:
    text = "base: &b {x: 1, v: 2}\nother: &o {v: 3, z: 4}\nall:\n  x: 0\n  <<: [*b, *o]\n  w: 5\n"
    assert _only(text)["all"] == {"x": 0, "v": 2, "z": 4, "w": 5}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: 1\nb: 2\na: 3", "yaml-duplicate-key", 3),
        ("1: a\n'1': b", "yaml-duplicate-key", 2),
        ("x:\n  yes: a\n  on: b", "yaml-duplicate-key", 3),
        ('{"a": 1,\n "a": 2}', "yaml-duplicate-key", 1),
        ("a: 1\n b: 2", "yaml-syntax", 2),
        ("a: [1, 2", "yaml-syntax", 1),
        ("a: 'x", "yaml-syntax", 1),
        ("a:\n\t- b", "yaml-syntax", 2),
        ("a: 1\nb: !foo x", "yaml-tag", 2),
        ("!!set {a, b}", "yaml-tag", 1),
        ("a: !!python/object/apply:os.system [x]", "yaml-tag", 1),
        ("a: !!int x", "yaml-tag", 1),
        ("a: !!binary aGk=", "yaml-tag", 1),
        ("a: 1\nb: *nope", "yaml-alias", 2),
        ("a: &a [*a]", "yaml-alias", 1),
        ("a: &x 1\n---\nb: *x", "yaml-alias", 3),
        ("a: .inf", "yaml-number", 1),
        ("a: .nan", "yaml-number", 1),
        ("? [a]\n: b", "yaml-key", 1),
        ("a: &x [1]\n*x : b", "yaml-key", 2),
        ("~: b", "yaml-key", 1),
        ("18446744073709551616: b", "yaml-key", 1),
        ("<<: 3", "yaml-merge", 1),
        ("<<: [{a: 1}, 2]", "yaml-merge", 1),
    ],
)
def test_mistakes_are_refused_with_their_line(text: str, code: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        load_documents(text.encode())
    assert caught.value.code == code
    assert caught.value.hint
    if code != "yaml-syntax" or "[1, 2" not in text:
        assert caught.value.line >= line
        assert str(caught.value).startswith(f"line {caught.value.line}: ")


@pytest.mark.parametrize("data", [b"\xff\xfe\xfd", b"a: \x00", b"a: \x1b", b"a: \xc3("])
def test_bytes_that_are_not_text_are_refused(data: bytes) -> None:
    with pytest.raises(YamlError) as caught:
        load_documents(data)
    assert caught.value.code in ("yaml-encoding", "yaml-syntax")


@pytest.mark.parametrize("text", ["[" * 101, "{a: " * 101, "- " * 101, "[" * 100_000, '{"a":' * 200 + "1" + "}" * 200])
def test_deep_documents_are_refused(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        load_documents(text.encode())
    assert caught.value.code == "yaml-too-deep"


def test_aliases_cannot_hide_depth() -> None:
    lines = ["- &a0 [x]"] + [f"- &a{n} [*a{n - 1}]" for n in range(1, 400)]
    with pytest.raises(YamlError) as caught:
        load_documents("\n".join(lines).encode())
    assert caught.value.code == "yaml-too-deep"


def test_a_billion_laughs_is_refused() -> None:
    lines = ["- &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(YamlError) as caught:
        load_documents("\n".join(lines).encode())
    assert caught.value.code == "yaml-alias-bomb"


def test_a_stream_is_bounded_in_size_and_documents() -> None:
    with pytest.raises(YamlError) as caught:
        load_documents(b"a: 1\n" * 10, YamlLimits(max_bytes=20))
    assert caught.value.code == "yaml-too-large"
    with pytest.raises(YamlError) as caught:
        load_documents(b"--- a\n" * 3, YamlLimits(max_documents=2))
    assert caught.value.code == "yaml-too-many-documents"


_json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), _json_values, min_size=1, max_size=4))
def test_json_means_the_same_to_both_readers(value: Any) -> None:
    # A comment sends the text through the YAML parser; control characters that YAML forbids are escaped in JSON.
    text = encode(value)
    if any(ord(c) > 0xFFFF or c in "\x7f\x85\ufeff\ufffe\uffff" or "\x80" <= c <= "\x9f" for c in text.decode()):
        return
    assert load_documents(b"# yaml\n" + text)[0].value == load_documents(text)[0].value == value
