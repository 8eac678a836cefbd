"""The wall around a process that computes: where there is no list of calls, the answer is no."""

from __future__ import annotations

import platform

import pytest

from fastness.rego.system_calls import allow_computing


def test_on_an_architecture_without_a_list_there_is_no_filter_and_the_answer_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert allow_computing() is False
