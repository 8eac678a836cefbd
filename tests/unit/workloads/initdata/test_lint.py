"""Every rule about init data, broken once."""

from __future__ import annotations

import base64
import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.initdata import write_init_data
from fastness.workloads.initdata.finding import Finding, Severity, fatal
from fastness.workloads.initdata.lint import lint_encoded, lint_text
from fastness.workloads.initdata.workload import ANNOTATION, NotAWorkload, applied, carried

AA = '[token_configs.kbs]\nurl = "https://kbs.example.com"\ncert = "PEM"\n'
CDH = '[kbc]\nname = "cc_kbc"\nurl = "https://kbs.example.com"\nkbs_cert = "PEM"\n'
POLICY = "package agent_policy\n"
GOOD = {"aa.toml": AA, "cdh.toml": CDH, "policy.rego": POLICY}


def _codes(text: str) -> set[tuple[str, str]]:
    return {(finding.code, str(finding.severity)) for finding in lint_text(text.encode())[0]}


def _with(**entries: str) -> str:
    return write_init_data("sha256", {**GOOD, **{name.replace("_", "."): text for name, text in entries.items()}})


def test_nothing_is_wrong_with_a_good_document() -> None:
    assert lint_text(write_init_data("sha256", GOOD).encode()) == ([], GOOD)


@pytest.mark.parametrize(
    ("text", "code", "severity"),
    [
        ("a = ", "E2", "error"),
        ('version = "0.2.0"\nalgorithm = "sha256"\n[data]\n', "E3", "error"),
        ('version = "0.1.0"\nalgorithm = "sha-256"\n[data]\n', "E4", "error"),
        ('version = "0.1.0"\nalgorithm = "SHA256"\n[data]\n', "E4", "error"),
        ('version = "0.1.0"\nalgorithm = 5\n[data]\n', "E4", "error"),
        ('version = "0.1.0"\nalgorithm = "sha256"\n', "E5", "error"),
        ('version = "0.1.0"\nalgorithm = "sha256"\n[data]\nx = 5\n', "E5", "error"),
        (_with(aa_toml="[x"), "E6", "error"),
        (_with(cdh_toml="[kbc]\nname = 'odd'\n"), "E7", "error"),
        (_with(cdh_toml="[kbc]\nname = 'cc_kbc'\n"), "E7", "error"),
        (_with(cdh_toml="[kbc]\nname = 'cc_kbc'\nurl = 'kbs.example.com'\n"), "E7", "error"),
        (_with(aa_toml=""), "E7", "warning"),
        (_with(cdh_toml=CDH.replace("https", "http")), "E8", "error"),
        (_with(cdh_toml=CDH.replace('kbs_cert = "PEM"', "")), "E8", "warning"),
        (_with(aa_toml=AA.replace("kbs.example", "other.example")), "E9", "warning"),
        (_with(cdh_toml=CDH + "[image]\nimage_security_policy_uri = 'kbs:///a/b'\n"), "E10", "error"),
        (_with(cdh_toml="credentials = [{path = '/etc/passwd', resource_uri = 'x'}]\n" + CDH), "E10", "error"),
        (write_init_data("sha256", {"aa.toml": AA}), "W1", "warning"),
        (_with(aa_toml=AA.replace("kbs.example.com", "kbs.trustee.svc")), "W2", "warning"),
        (_with(aa_toml=AA.replace("kbs.example.com", "kbs-service.trustee-operator-system")), "W2", "warning"),
        (_with(aa_toml=AA.replace("kbs.example.com", "kbs")), "W2", "warning"),
        (_with(cdh_toml=CDH.replace("PEM", "<your certificate>")), "W3", "warning"),
        ("extra = 1\n" + _with(), "W4", "warning"),
        (_with(other_txt="x"), "W5", "info"),
        (_with(cdh_toml=CDH.replace("PEM", "-----BEGIN EC PRIVATE KEY-----")), "S1", "error"),
        (_with(aa_toml=AA + 'password = "hunter22"\n'), "S1", "error"),
        (_with(aa_toml=AA + 'x = "https://user:pass@host"\n'), "S1", "error"),
        (_with(aa_toml=AA + 'x = "eyJhbGciOiJI.eyJzdWIiOiIx.sig"\n'), "S1", "error"),
    ],
)
def test_each_rule_finds_what_breaks_it(text: str, code: str, severity: str) -> None:
    assert (code, severity) in _codes(text)


def test_a_document_that_no_annotation_holds_is_an_error() -> None:
    noise = base64.b64encode(random.Random(1).randbytes(230_000)).decode()
    assert ("E13", "error") in _codes(_with(policy_rego=f"# {noise}\n"))
    noise = noise[: 160_000 * 4 // 3]
    assert ("E13", "warning") in _codes(_with(policy_rego=f"# {noise}\n"))


def test_text_that_is_not_utf_8_has_no_entries() -> None:
    findings, entries = lint_text(b"\xff")
    assert ([finding.code for finding in findings], entries) == (["E2"], {})


def test_a_template_shows_all_its_gaps_at_once() -> None:
    text = (
        "algorithm = <algorithm>\nversion = \"0.1.0\"\n[data]\n\"cdh.toml\" = '''\n[kbc]\nname = 'cc_kbc'\nurl = '<url>'\n"
        "[image]\nimage_security_policy_uri = 'kbs:///default/<name>/<key>\n'''\n"
    )
    findings, entries = lint_text(text.encode())
    places = {(finding.code, finding.where) for finding in findings}
    assert {
        ("E2", ""),
        ("E4", "algorithm"),
        ("E6", "cdh.toml"),
        ("W1", "data"),
        ("W3", ""),
        ("W3", "cdh.toml"),
    } <= places
    assert sum(finding.code == "W3" for finding in findings) == 4
    assert list(entries) == ["cdh.toml"]


@pytest.mark.parametrize(
    ("encoded", "code"),
    [("!", "E1"), (base64.b64encode(b"x").decode(), "E1"), (base64.b64encode(gzip.compress(b"x") + b"y").decode(), "E1"),
     (base64.b64encode(gzip.compress(bytes(5_000_000))).decode(), "E13")],
)  # fmt: skip
def test_the_wrapping_is_judged_too(encoded: str, code: str) -> None:
    findings, text = lint_encoded(encoded)
    assert ([finding.code for finding in findings], text) == ([code], None)


@given(st.text(max_size=200))
def test_any_text_is_linted_without_a_defect(text: str) -> None:
    findings, _ = lint_text(text.encode("utf-8", "surrogatepass"))
    assert all(finding.code and finding.hint and finding.message for finding in findings)


def test_warnings_stop_only_the_strict() -> None:
    warning = [Finding("W1", Severity.WARNING, "m", "h")]
    assert not fatal(warning)
    assert fatal(warning, strict=True)
    assert fatal([Finding("P1", Severity.HIGH, "m", "h")])
    assert not fatal([Finding("P7", Severity.INFO, "m", "h")], strict=True)


@pytest.mark.parametrize(
    "kind", ["Pod", "ReplicaSet", "ReplicationController", "StatefulSet", "Deployment", "DeploymentConfig", "CronJob"]
)
def test_every_kind_of_workload_gets_both_where_it_reads_them(kind: str) -> None:
    spec = {"containers": [{"name": "a", "image": "b"}]}
    old = {"io.katacontainers.config.agent.policy": "x", "keep": "1"}
    pod = {"metadata": {"annotations": old}, "spec": spec}
    inside = pod if kind == "Pod" else {"spec": {"template": pod}}
    whole = {"kind": kind, **({"spec": {"jobTemplate": inside}} if kind == "CronJob" else inside)}
    made = applied(whole, "DATA", "kata-cc-tdx")
    assert carried(made) == ("DATA", [])
    assert "runtimeClassName" not in spec, "the original stays as it was"
    assert pod["metadata"] == {"annotations": old}
    template = made
    for name in {"Pod": (), "CronJob": ("spec", "jobTemplate", "spec", "template")}.get(kind, ("spec", "template")):
        template = template[name]
    assert template["metadata"]["annotations"] == {"keep": "1", ANNOTATION: "DATA"}
    assert template["spec"]["runtimeClassName"] == "kata-cc-tdx"


@pytest.mark.parametrize(
    "obj", [{"kind": "Service"}, {"kind": "Pod"}, {"kind": "Deployment", "spec": {}}, {"kind": "Pod", "spec": 5}, {}]
)
def test_what_has_no_pods_is_refused(obj: dict[str, object]) -> None:
    with pytest.raises(NotAWorkload):
        applied(obj, "x")


def test_old_annotations_ignoring_classes_and_misplaced_classes_are_told() -> None:
    annotations = {"io.katacontainers.config.runtime.cc_init_data": "x", ANNOTATION: "DATA"}
    pod = {"kind": "Pod", "metadata": {"annotations": annotations}, "spec": {"runtimeClassName": "kata"}}
    assert [finding.code for finding in carried(pod)[1]] == ["E14", "W6"]
    template = {"metadata": {"annotations": {ANNOTATION: "DATA"}}, "spec": {}}
    deployment = {"kind": "Deployment", "spec": {"runtimeClassName": "kata-cc", "template": template}}
    assert [finding.code for finding in carried(deployment)[1]] == ["W6", "E15"]
