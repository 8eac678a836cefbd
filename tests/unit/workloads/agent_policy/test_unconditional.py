"""Rules that allow a request without looking at it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.workloads.agent_policy.generate import policy_of
from fastness.workloads.agent_policy.lint import unconditionally_open

HEAD = "package agent_policy\n\ndefault ExecProcessRequest := false\n\n"
EXEC = ["ExecProcessRequest"]


@pytest.mark.parametrize(
    ("rules", "opened"),
    [
        ("ExecProcessRequest if {\n\tcount([]) == 0\n}\n", EXEC),
        ("ExecProcessRequest := true if {\n\thelper\n}\n\nhelper if {\n\t1 < 2\n}\n", EXEC),
        ('ExecProcessRequest if {\n\t"input" != ""\n}\n', EXEC),
        ("ExecProcessRequest if {\n\t1 < 2 # input\n}\n", EXEC),
        ("ExecProcessRequest if {\n\tinput.process.Args[0] == \"probe\"\n}\n", []),
        ("ExecProcessRequest if {\n\thelper\n}\n\nhelper if {\n\tdeeper\n}\n\ndeeper if {\n\tinput.x\n}\n", []),
        ("ExecProcessRequest := false if {\n\t1 < 2\n}\n", []),
        ("GuestDetailsRequest if {\n\t1 < 2\n}\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_rule_that_never_leads_to_its_input_allows_everything(rules: str, opened: list[str]) -> None:
    assert unconditionally_open(HEAD + rules) == opened


def test_generated_policies_look_at_what_they_allow() -> None:
    container = {"name": "a", "image": "example.com/a", "livenessProbe": {"exec": {"command": ["true"]}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    assert unconditionally_open(policy_of(pod)) == []


@given(st.text(alphabet='ExecProcessRequest{}[]()\n \t:=if"#`input', max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(unconditionally_open(text), list)
