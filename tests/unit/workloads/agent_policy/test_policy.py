"""Agent policies: reading, permissive requests, decisions with their statement, and policies made from pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.rego.engine import BadPolicy
from fastness.workloads.agent_policy.decide import decide, open_requests
from fastness.workloads.agent_policy.generate import policy_of
from fastness.workloads.agent_policy.lint import lint_policy
from fastness.workloads.agent_policy.reading import read_policy
from fastness.workloads.agent_policy.requests import PERMISSIVE, REQUESTS, request_named
from fastness.workloads.initdata.finding import fatal
from fastness.workloads.initdata.workload import NotAWorkload

HEAD = "package agent_policy\n"
LS = 'ExecProcessRequest { input.process.Args[0] == "ls" }\n'
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [
            {
                "name": "web", "image": "r.example/web@sha256:1", "command": ["/web"], "args": ["--port", "80"],
                "volumeMounts": [{"name": "d", "mountPath": "/data"}],
                "livenessProbe": {"exec": {"command": ["/check", "live"]}},
                "lifecycle": {"preStop": {"exec": {"command": ["/stop"]}}},
            },
            {"name": "side", "image": "r.example/side:1"},
        ]
    },
}  # fmt: skip


def test_statements_are_found_with_their_lines_and_not_in_comments_or_texts() -> None:
    policy = read_policy(
        HEAD + "# default A := true\ndefault ExecProcessRequest := false\n\n"
        "ExecProcessRequest {\n\tinput.x == \"default B := true\"\n}\n"
        "CopyFileRequest := true\nSetPolicyRequest if true\nx := `\ndefault C := true\n`\n"
    )  # fmt: skip
    assert policy.package == "agent_policy"
    statements = [
        (statement.name, statement.line, statement.is_default, statement.unconditional)
        for statement in policy.statements
    ]
    assert statements == [
        ("ExecProcessRequest", 3, True, True), ("ExecProcessRequest", 5, False, False), ("CopyFileRequest", 8, False, True),
        ("SetPolicyRequest", 9, False, True), ("x", 10, False, False),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(PERMISSIVE))
@pytest.mark.parametrize("form", ["default {0} := true", "{0} := true", "{0} = true", "{0} {{ true }}", "{0}"])
def test_each_permissive_request_is_found_in_each_form(name: str, form: str) -> None:
    findings = [finding for finding in lint_policy(HEAD + form.format(name) + "\n") if finding.code == "P1"]
    assert [finding.severity for finding in findings] == [PERMISSIVE[name][0]]
    assert findings[0].message.startswith(name)
    assert findings[0].hint


@pytest.mark.parametrize(
    "text",
    [
        "default ExecProcessRequest := false",
        'ExecProcessRequest { input.process.Args == ["a"] }',
        "ExecProcessRequest := false",
    ],
)
def test_a_condition_or_a_no_is_not_permissive(text: str) -> None:
    assert not [finding for finding in lint_policy(HEAD + text + "\n") if finding.code == "P1"]


@pytest.mark.parametrize(
    "condition",
    [
        'count("a") == 1',
        "input == input",
        "not input.nothing",
        "input.process.Args == input.process.Args",
        "count(input.process.Args) > 0",
        'input.process.Args[0] != "rm"',
    ],
)
def test_a_rule_that_anything_satisfies_is_found_by_the_engine(condition: str) -> None:
    text = HEAD + f"default ExecProcessRequest := false\nExecProcessRequest {{ {condition} }}\n"
    assert not fatal(lint_policy(text))
    assert open_requests(text) == ["ExecProcessRequest"]
    assert fatal(lint_policy(text, open_requests(text)))


def test_two_defaults_are_told_and_worse_when_they_differ() -> None:
    same = lint_policy(HEAD + "default ExecProcessRequest := false\n" * 2)
    assert [(finding.code, str(finding.severity)) for finding in same if finding.code in ("E12", "P4")] == [
        ("E12", "warning")
    ]
    other = lint_policy(HEAD + "default ExecProcessRequest := true\ndefault ExecProcessRequest := false\n")
    assert ("P4", "high") in [(finding.code, str(finding.severity)) for finding in other]


def test_package_names_legacy_and_silence_are_told() -> None:
    assert "E11" in [finding.code for finding in lint_policy("package policy\n")]
    assert "E11" in [finding.code for finding in lint_policy("")]
    codes = {
        finding.code: finding
        for finding in lint_policy(HEAD + "default PullImageRequest := true\ndefault ExecProcesRequest := false\n")
    }
    assert "ExecProcessRequest" in codes["P6"].hint
    assert {"P5", "P7"} <= set(codes)
    assert "E12" in [finding.code for finding in lint_policy(HEAD, unreadable="line 1: odd")]
    assert [finding.code for finding in lint_policy("#" + "x" * 70_000)] == ["E13"]


def test_allow_all_is_one_more_finding() -> None:
    text = HEAD + "".join(f"default {name} := true\n" for name in REQUESTS)
    assert [str(finding.severity) for finding in lint_policy(text) if finding.code == "P2"] == ["critical"]


@pytest.mark.parametrize(
    ("text", "allowed", "line", "reason"),
    [
        ("default ExecProcessRequest := true\n", True, 2, "default in line 2"),
        ("default ExecProcessRequest := false\n", False, 2, "default in line 2"),
        ("default ExecProcessRequest := false\ndefault ExecProcessRequest := true\n", False, 2, "default in line 2"),
        ("", False, 0, "undefined is refused"),
        ("default ExecProcessRequest := false\nExecProcessRequest { input.process.Args[0] == \"ls\" }\n", False, 2, "line 3"),
        (LS + LS.replace("ls", "sh"), True, 3, "line 3"),
        ("ExecProcessRequest := {\"allowed\": true}\n", True, 2, "line 2"),
        ("ExecProcessRequest := {\"allowed\": false}\n", False, 0, ""),
        ("default AllowRequestsFailingPolicy := true\n", True, 2, "AllowRequestsFailingPolicy"),
    ],
)  # fmt: skip
def test_a_decision_names_the_statement_behind_it(text: str, allowed: bool, line: int, reason: str) -> None:
    decision = decide(HEAD + text, "ExecProcessRequest", {"process": {"Args": ["sh"]}})
    assert (decision.allowed, decision.line) == (allowed, line)
    assert reason in decision.reason


def test_refused_logs_are_empty_and_the_reason_says_so() -> None:
    assert "empty" in decide(HEAD + "default ReadStreamRequest := false\n", "ReadStreamRequest", {}).reason


def test_a_policy_that_does_not_parse_raises() -> None:
    with pytest.raises(BadPolicy):
        decide(HEAD + "default := {", "ExecProcessRequest", {})


def test_people_name_requests_as_kubectl_does() -> None:
    assert [request_named(name) for name in ("exec", "logs", "CopyFile", "CopyFileRequest", "PullImageRequest", "dance")] == [
        "ExecProcessRequest", "ReadStreamRequest", "CopyFileRequest", "CopyFileRequest", "PullImageRequest", None,
    ]  # fmt: skip


def _create(image: str, args: list[str], mounts: tuple[str, ...] = (), env: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "OCI": {
            "Annotations": {"io.kubernetes.cri.image-name": image}, "Process": {"Args": args, "Env": list(env)},
            "Mounts": [{"destination": mount} for mount in mounts],
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("request_name", "document", "allowed"),
    [
        ("ExecProcessRequest", {"process": {"Args": ["sh"]}}, False),
        ("ExecProcessRequest", {"process": {"Args": ["/check", "live"]}}, True),
        ("ExecProcessRequest", {"process": {"Args": ["/check", "live", "x"]}}, False),
        ("ExecProcessRequest", {"process": {"Args": ["/stop"]}}, True),
        (
            "CreateContainerRequest",
            _create("r.example/web@sha256:1", ["/web", "--port", "80"], ("/data", "/proc")),
            True,
        ),
        ("CreateContainerRequest", _create("r.example/web@sha256:1", ["/web", "--port", "81"]), False),
        ("CreateContainerRequest", _create("r.example/evil", ["/web", "--port", "80"]), False),
        ("CreateContainerRequest", _create("r.example/side:1", ["anything"]), True),
        ("CreateContainerRequest", _create("r.example/side:1", ["x"], ("/lib",)), False),
        ("CreateContainerRequest", _create("r.example/side:1", ["x"], (), ("LD_PRELOAD=/x",)), False),
        ("CopyFileRequest", {"path": "/run/kata-containers/shared/containers/a"}, True),
        ("CopyFileRequest", {"path": "/run/kata-containers/shared/containers/../../etc"}, False),
        ("CopyFileRequest", {"path": "/etc/passwd"}, False),
        ("CreateSandboxRequest", {"kernel_modules": [], "guest_hook_path": ""}, True),
        ("CreateSandboxRequest", {"kernel_modules": [{"name": "x"}], "guest_hook_path": ""}, False),
        ("CreateSandboxRequest", {"guest_hook_path": "/x"}, False),
        ("UpdateInterfaceRequest", {"interface": {"name": "eth0"}}, True),
        ("UpdateInterfaceRequest", {"interface": {"name": "lo"}}, False),
        ("UpdateRoutesRequest", {"routes": {"Routes": [{"device": "eth0"}]}}, True),
        ("UpdateRoutesRequest", {"routes": {"Routes": [{"device": "eth0"}, {"device": "lo"}]}}, False),
        ("AddARPNeighborsRequest", {"neighbors": {"ARPNeighbors": [{"device": "eth0"}]}}, True),
        ("UpdateEphemeralMountsRequest", {"storages": [{"driver": "ephemeral"}]}, True),
        ("UpdateEphemeralMountsRequest", {"storages": [{"driver": "blk"}]}, False),
        ("StartContainerRequest", {}, True),
        ("SetPolicyRequest", {}, False),
        ("ReadStreamRequest", {}, False),
        ("WriteStreamRequest", {}, False),
    ],
)
def test_a_policy_made_from_a_pod_allows_that_pod_and_little_else(
    request_name: str, document: dict[str, Any], allowed: bool
) -> None:
    assert decide(policy_of(POD), request_name, document).allowed is allowed


def test_a_made_policy_has_no_findings_but_logs_that_were_asked_for() -> None:
    text = policy_of(POD)
    assert lint_policy(text, open_requests(text)) == []
    text = policy_of(POD, logs=True)
    assert [finding.message.split()[0] for finding in lint_policy(text, open_requests(text))] == ["ReadStreamRequest"]


@pytest.mark.parametrize(
    "spec", [{}, {"containers": []}, {"containers": ["x"]}, {"containers": [{"name": "a"}]},
             {"containers": [{"image": "a", "command": "x"}]}],
)  # fmt: skip
def test_a_pod_without_sound_containers_gets_no_policy(spec: dict[str, Any]) -> None:
    with pytest.raises(NotAWorkload):
        policy_of({"kind": "Pod", "spec": spec})


@given(st.text(st.sampled_from('default Exec:=true{}[]()"`#\n\\ \tpackageif'), max_size=120))
def test_reading_and_linting_are_total_and_blanking_keeps_lines(text: str) -> None:
    policy = read_policy(text)
    assert policy.without(*policy.statements).count("\n") == text.count("\n")
    assert all(finding.hint for finding in lint_policy(text))


def test_names_in_a_manifest_cannot_smuggle_rego() -> None:
    pod = {**POD, "metadata": {"name": "x\ndefault SetPolicyRequest := true"}}
    assert not decide(policy_of(pod), "SetPolicyRequest", {}).allowed
