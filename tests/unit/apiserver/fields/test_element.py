"""Steps of field paths: canonical form, order, and how people read them."""

from __future__ import annotations

import pytest

from fastness.apiserver.fields.element import describe_step, in_order, keyed, normal, valued


@pytest.mark.parametrize(
    ("keys", "step"),
    [
        ({"name": "x"}, 'k:{"name":"x"}'),
        ({"protocol": "TCP", "port": 80}, 'k:{"port":80,"protocol":"TCP"}'),
        ({"port": 80.0}, 'k:{"port":80}'),
        ({"on": True}, 'k:{"on":true}'),
        ({"path": "/a b"}, 'k:{"path":"/a b"}'),
        ({"q": 'say "x"'}, 'k:{"q":"say \\"x\\""}'),
    ],
)
def test_key_fields_are_written_in_one_way(keys: dict[str, object], step: str) -> None:
    assert keyed(keys) == step


def test_values_are_escaped_as_go_escapes_them() -> None:
    assert valued("a<b>&c") == 'v:"a\\u003cb\\u003e\\u0026c"'
    assert valued("ü\u2028") == 'v:"ü\\u2028"'
    assert valued(1) == "v:1"
    assert valued(1.5) == "v:1.5"
    assert valued(False) == "v:false"


def test_stored_steps_are_brought_into_canonical_form() -> None:
    assert normal('k:{ "protocol": "TCP", "port": 80.0 }') == 'k:{"port":80,"protocol":"TCP"}'
    assert normal('v:"<"') == 'v:"\\u003c"'
    assert normal("i:07") == "i:7"
    assert normal("f:any: thing {}") == "f:any: thing {}"


def test_a_kind_of_step_from_the_future_is_passed_over() -> None:
    assert normal("z:what") is None


@pytest.mark.parametrize("step", ["", "f", "fname", "k:{}", "k:[1]", "k:{", "v:", "i:x", "k:7"])
def test_damaged_steps_are_refused(step: str) -> None:
    with pytest.raises(ValueError):
        normal(step)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("f:replicas", ".replicas"),
        ('k:{"name":"x"}', '[name="x"]'),
        ('k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        ('v:"a\\u003cb"', '[="a<b"]'),
        ("v:7", "[=7]"),
        ("i:3", "[3]"),
    ],
)
def test_steps_read_like_kubernetes_paths(step: str, text: str) -> None:
    assert describe_step(step) == text


def test_fields_come_first_then_keyed_items_then_values_then_places_and_numbers_go_by_size() -> None:
    steps = ["i:10", "i:9", 'v:"b"', "v:10", "v:9", 'k:{"port":443}', 'k:{"port":80}', "f:b", "f:a", ".", "v:true"]
    assert in_order(steps) == [
        ".", "f:a", "f:b", 'k:{"port":80}', 'k:{"port":443}', "v:9", "v:10", 'v:"b"', "v:true", "i:9", "i:10",
    ]  # fmt: skip
