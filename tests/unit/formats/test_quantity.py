"""Quantities and int-or-percent: amounts, canonical text, order, rounding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.errors import QuantityError
from fastness.formats.quantity import Quantity, parse_quantity, scaled


@pytest.mark.parametrize(
    ("text", "canonical", "value"),
    [
        ("0", "0", 0),
        ("100m", "100m", 1),
        ("1000m", "1", 1),
        ("1.5", "1500m", 2),
        (".5", "500m", 1),
        ("5.", "5", 5),
        ("+3", "3", 3),
        ("-1.5", "-1500m", -1),
        ("1500", "1500", 1500),
        ("1500000", "1500k", 1_500_000),
        ("1k", "1k", 1000),
        ("1E", "1E", 10**18),
        ("1Ki", "1Ki", 1024),
        ("1.5Gi", "1536Mi", 3 * 2**29),
        ("512Ki", "512Ki", 2**19),
        ("0.5Ki", "512", 512),
        ("0.1Mi", "104857600m", 104858),
        ("12e6", "12e6", 12_000_000),
        ("1e-1", "100e-3", 1),
        ("1E3", "1e3", 1000),
        ("0.1n", "1n", 1),
        ("-0.1n", "-1n", 0),
        ("1e60", "1e60", 10**60),
        ("10E", "10E", 10**19),
        ("10Ei", "9223372036854775807", 2**63 - 1),
        ("m", "0", 0),
        (".", "0", 0),
        ("1e-60", "1e-9", 1),
    ],
)
def test_amounts_and_canonical_text(text: str, canonical: str, value: int) -> None:
    quantity = parse_quantity(text)
    assert str(quantity) == canonical
    assert int(quantity) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 ",
        " 1",
        "1mm",
        "1ki",
        "1KI",
        "1.2.3",
        "1e",
        "1e1.5",
        "1e301",
        "1e-301",
        "0x1",
        "1" * 65,
        "١",
        "1Mi3",
        "--1",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text, "spec.limits.cpu")
    assert caught.value.path == "spec.limits.cpu"
    assert caught.value.hint


def test_quantities_compare_by_amount() -> None:
    assert parse_quantity("1Gi") == parse_quantity("1024Mi") == parse_quantity("1073741824")
    assert parse_quantity("1G") < parse_quantity("1Gi")
    assert len({parse_quantity("1"), parse_quantity("1000m"), parse_quantity("1e0")}) == 1


@given(st.integers(-(10**24), 10**24), st.sampled_from(["decimal", "binary", "exponent"]))
def test_canonical_text_keeps_the_amount(nanos: int, notation: str) -> None:
    quantity = Quantity(nanos, notation)  # type: ignore[arg-type]
    assert parse_quantity(str(quantity)) == quantity


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        ("50%", 10, 5, 5),
        ("25%", 10, 3, 2),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("1%", 1, 1, 0),
        ("50%", 0, 0, 0),
    ],
)
def test_percentages_round_as_asked(value: int | str, total: int, up: int, down: int) -> None:
    assert scaled(value, total, round_up=True) == up
    assert scaled(value, total, round_up=False) == down


@pytest.mark.parametrize("value", ["", "5", "-5%", "5.5%", "%", "5%%", "99999999999%", True, None, 1.5])
def test_anything_else_is_no_int_or_percent(value: object) -> None:
    with pytest.raises(QuantityError):
        scaled(value, 10, round_up=True)  # type: ignore[arg-type]
