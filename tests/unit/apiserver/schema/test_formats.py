"""Formats are those of Kubernetes, good and bad ones of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.schema.formats import CHECKS, check_of, parse_duration

GOOD_AND_BAD: dict[str, tuple[list[str], list[str]]] = {
    "bsonobjectid": (["507f1f77bcf86cd799439011"], ["507f"]),
    "uri": (["https://a/b?c", "/x", "a:b"], ["a b", "x", "http://[::1", "%zz"]),
    "email": (["a@b.c", "Jo <a@b.c>", '"a b"@c'], ["nobody", "@b", "a@"]),
    "hostname": (["a", "a.example", "bücher.example"], ["", "-a", "a-", "a..b", "a.1", "x_y"]),
    "ipv4": (["1.2.3.4", "01.2.3.4"], ["1.2.3", "::1", "1.2.3.256", "1.2.3.4.5"]),
    "ipv6": (["::1", "fe80::1"], ["1.2.3.4", "::1%eth0", ":::"]),
    "cidr": (["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "x/8", "1.2.3.4/"]),
    "mac": (["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455"], ["00:11", "00:11:22:33:44:5g"]),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["123e4567"]),
    "uuid3": (["123e4567-e89b-32d3-a456-426614174000"], ["123e4567-e89b-42d3-a456-426614174000"]),
    "uuid4": (["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-42d3-0456-426614174000"]),
    "uuid5": (["123e4567-e89b-52d3-a456-426614174000"], ["123e4567-e89b-42d3-a456-426614174000"]),
    "isbn": (["0321751043", "978-0321751041"], ["0321751044"]),
    "isbn10": (["0321751043", "0-9752298-0-X"], ["978-0321751041"]),
    "isbn13": (["978-0321751041"], ["978-0321751042", "0321751043"]),
    "creditcard": (["4111 1111 1111 1111"], ["4111 1111 1111 1112", "1"]),
    "ssn": (["111-22-3333", "111 22 3333"], ["11-22-3333"]),
    "hexcolor": (["#fff", "a0B1c2"], ["#ffff", "red"]),
    "rgbcolor": (["rgb(0, 10,255)"], ["rgb(0,0,256)", "rgb(0,0)"]),
    "byte": (["YWJj", "YQ=="], ["", "YQ=", "?"]),
    "password": (["", "anything"], []),
    "date": (["2024-02-29", "0000-01-01"], ["2023-02-29", "2023-2-1", "20230201"]),
    "duration": (["1h30m", "-1.5s", "0", "3 days", "22 ns", "1 week"], ["", "soon", "1", "h", "999999999h"]),
    "datetime": (["2021-01-01T00:00:00Z", "2021-01-01t00:00:00.5+02:00"], ["2021-01-01", "2021-01-01T24:00:00Z",
    "2021-01-01 00:00:00Z"]),
    "k8sshortname": (["a-b"], ["A", "a.b", "-a", "a" * 64]),
    "k8slongname": (["a-b.c"], ["a..b", "A", "a" * 254]),
}  # fmt: skip


def test_every_format_has_its_cases() -> None:
    assert GOOD_AND_BAD.keys() == CHECKS.keys()


@pytest.mark.parametrize("name", CHECKS)
def test_format(name: str) -> None:
    good, bad = GOOD_AND_BAD[name]
    assert [text for text in good if not CHECKS[name](text)] == []
    assert [text for text in bad if CHECKS[name](text)] == []


def test_dashes_in_the_name_do_not_count_and_unknown_formats_say_nothing() -> None:
    assert check_of("date-time") is CHECKS["datetime"]
    assert check_of("made-up") is None


@pytest.mark.parametrize(
    ("text", "nano"), [("1h", 3600 * 10**9), ("1.5us", 1500), ("-2ms", -2_000_000), ("2 days", 172800 * 10**9)]
)
def test_durations_in_nanoseconds(text: str, nano: int) -> None:
    assert parse_duration(text) == nano


@given(st.sampled_from(sorted(CHECKS)), st.text(max_size=40))
def test_no_text_breaks_a_check(name: str, text: str) -> None:
    assert CHECKS[name](text) in (True, False)
