"""The peculiar reader of unit files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.ignition.unit_file import UnitSyntax, _odd, _plain, sections


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        ("[Unit]\nA=b\n[Service]\n\n[Install]\nWantedBy=x\n", {"Unit", "Install"}),
        ("# comment\n; another\n[Unit]\n  A = b  \n", {"Unit"}),
        ("Key=before any section\n", set()),
        ("words [Unit]\nA=b", {"Unit"}),
        ("[Un\nit]\nA=b", {"Un\nit"}),
        ("# goes on \\\n[not a section\n[Unit]\nA=b\n", {"Unit"}),
        ("[Unit]\nA=b\\\n[still the value\n", {"Unit"}),
        ("[Unit]\nA=b\\\n\n[Install]\nB=c\n", {"Unit", "Install"}),
        ("[Unit]\r\nA=b\r\n", {"Unit"}),
        ("[Unit]\n=nameless\n", {"Unit"}),
        ("[Ünit]\nÄ=ö\n", {"Ünit"}),
    ],
)
def test_sections_with_options_are_found(text: str, names: set[str]) -> None:
    assert sections(text) == names


@pytest.mark.parametrize(
    "text", ["[Unit", "[Unit] trailing\n", "[Unit]\nwords\n", "[Unit]\nwords", "[Unit]\nA\\\n=b\n"]
)
def test_what_cannot_be_taken_apart_is_refused(text: str) -> None:
    with pytest.raises(UnitSyntax):
        sections(text)


def test_a_long_line_is_refused_when_the_buffer_shows_it() -> None:
    with pytest.raises(UnitSyntax, match="2048"):
        sections("[Unit]\nA=" + "x" * 2100)
    # Behind 3,000 bytes the buffer of 4,096 never holds 2,048 of the line at the start of a step.
    assert sections("[Unit]\n" + "A=b\n" * 750 + "C=" + "x" * 2100) == {"Unit"}


_LINES = st.sampled_from(
    ["[Unit]", "[Install]", "A=b", " C = d ", "# x", "; y", "", "words", "[x", "E=f\\", "]", "[a] b", "=", "\t"]
)


@given(st.lists(_LINES, max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_the_quick_way_agrees_with_the_thorough_one(lines: list[str], end: str) -> None:
    text = end.join(lines)
    quick = _plain(text)
    if quick is not None:
        assert quick == _odd(text)
