"""Names: each rule of Kubernetes gives one problem, and good names give none."""

import pytest

from fastness.formats import names


@pytest.mark.parametrize("value", ["a", "a-b", "0", "1a", "a" * 63])
def test_labels_that_are_good(value: str) -> None:
    assert names.dns1123_label(value) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("", 1),
        ("-a", 1),
        ("a-", 1),
        ("A", 1),
        ("a.b", 1),
        ("a_b", 1),
        ("a\n", 1),
        ("é", 1),
        ("a" * 64, 1),
        ("A" * 64, 2),
    ],
)
def test_labels_that_are_not(value: str, problems: int) -> None:
    assert len(names.dns1123_label(value)) == problems


@pytest.mark.parametrize("value", ["a", "a.b-c.d", "1.2", "a" * 253])
def test_subdomains_that_are_good(value: str) -> None:
    assert names.dns1123_subdomain(value) == []


@pytest.mark.parametrize(
    ("value", "problems"), [("", 1), (".a", 1), ("a.", 1), ("a..b", 1), ("a.-b", 1), ("a" * 254, 1), ("A.b" * 100, 2)]
)
def test_subdomains_that_are_not(value: str, problems: int) -> None:
    assert len(names.dns1123_subdomain(value)) == problems


def test_a_1035_label_starts_with_a_letter() -> None:
    assert names.dns1035_label("abc-1") == []
    assert len(names.dns1035_label("1abc")) == 1
    assert len(names.dns1035_label("A" * 64)) == 2


@pytest.mark.parametrize("value", ["a", "A_b.c-d", "example.com/a", "a" * 63, "a.b.c/" + "X" * 63])
def test_qualified_names_that_are_good(value: str) -> None:
    assert names.qualified_name(value) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [("", 2), ("/a", 1), ("a/", 2), ("a/b/c", 1), ("Ex/a", 1), ("a" * 64, 1), ("-" * 64, 2), ("a b", 1), ("é/é", 2)],
)
def test_qualified_names_that_are_not(value: str, problems: int) -> None:
    assert len(names.qualified_name(value)) == problems


@pytest.mark.parametrize(
    ("value", "problems"), [("", 0), ("a", 0), ("A_1.b", 0), ("a" * 64, 1), ("_a", 1), ("é" * 32, 2)]
)
def test_label_values(value: str, problems: int) -> None:
    assert len(names.label_value(value)) == problems


@pytest.mark.parametrize(
    ("value", "problems"), [("system:node", 0), ("a b", 0), (".", 1), ("..", 1), ("a/b", 1), ("a%/", 2)]
)
def test_path_segments(value: str, problems: int) -> None:
    assert len(names.path_segment(value)) == problems


def test_a_generated_name_may_end_with_a_dash() -> None:
    assert names.generate_prefix(names.dns1123_label, "web-") == []
    assert names.generate_prefix(names.dns1123_label, "Web-")
    assert names.generate_prefix(names.dns1123_label, "--") != []


@pytest.mark.parametrize(
    "value", ["a\n", "a/b\n", "a" * 253 + "/b", "a" * 254 + "/b", "x.y/" + "b" * 63, "x.y/" + "b" * 64, "x./b", "x/b."]
)
def test_the_quick_look_at_a_qualified_name_agrees_with_its_two_parts(value: str) -> None:
    prefix, slash, name = value.rpartition("/")
    good = (not slash or not names.dns1123_subdomain(prefix)) and bool(name) and not names.label_value(name)
    assert (names.qualified_name(value) == []) is good
