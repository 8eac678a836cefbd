"""Containerfiles: what is told before a build, and the file that is built."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.builds import containerfile


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing", "RUN true", "FROM configs AS final\nRUN a && \\\n  # why\n  b\n", "ARG x=1\nFROM configs\nENV a=b",
        "FROM configs AS one\nRUN a\nFROM one\nCOPY --from=configs /a /b\nCOPY --from=0 /a /b",
        "RUN --mount=type=bind,from=configs,target=/x ls /x", "RUN cat <<EOF > /a\nNONSENSE here\nEOF\nRUN b",
        "RUN tool --from=elsewhere",
    ],
)  # fmt: skip
@pytest.mark.row("003-44")
def test_what_can_be_built_is_told_nothing(text: str) -> None:
    assert containerfile.problems(text) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NONSENSE", "line 1: NONSENSE is no instruction"),
        ("RUN", "line 1: RUN says nothing"),
        ("RUN a\nFROM registry.example/other:1", "line 2: FROM registry.example/other:1: a build has no other image"),
        ("COPY --from=registry.example/x /a /b", "line 1: COPY from registry.example/x: a build has earlier stages"),
        ("RUN --mount=type=bind,from=x,target=/y ls", "line 1: RUN from x: a build has earlier stages"),
        ("ADD https://example.com/x /x", "line 1: ADD from elsewhere: a build has no network"),
        ("RUN " + "a" * 4096, "more than 4096 bytes"),
        ("RUN true\n" * 101, "more than 100 instructions"),
        ("RUN a\x00b", "control characters"),
    ],
)
@pytest.mark.row("003-44")
def test_what_cannot_be_built_is_told_with_its_line(text: str, said: str) -> None:
    assert any(said in problem for problem in containerfile.problems(text))


@given(st.text(max_size=400))
def test_any_text_gets_an_answer(text: str) -> None:
    containerfile.problems(text)


def test_what_people_write_goes_on_top_of_the_config_in_a_stage_of_its_own() -> None:
    whole = containerfile.whole("RUN true", {"b": 'x"y', "a": "1"}).splitlines()
    assert whole == [
        "FROM oci:/build/base:base AS configs", "COPY root/ /", 'LABEL a="1" b="x\\"y"', "FROM configs AS final", "RUN true",
    ]  # fmt: skip
    assert containerfile.whole("FROM configs AS final\nRUN a", {"a": "1"}).count("FROM configs") == 1
    assert containerfile.whole("# only words", {"a": "1"}).count("FROM") == 1
