"""Two documents as people copy them from manuals, built here byte by byte: one that allows everything, one with gaps."""

from __future__ import annotations

from fastness.formats.initdata import decode_init_data, encode_init_data, parse_init_data
from fastness.workloads.agent_policy.lint import lint_policy
from fastness.workloads.agent_policy.requests import LEGACY, REQUESTS
from fastness.workloads.initdata.finding import Finding, fatal
from fastness.workloads.initdata.lint import lint_text
from fastness.workloads.initdata.registers import registers

NEWER = {
    "AddSwapPathRequest", "GetDiagnosticDataRequest", "GetIPTablesRequest", "MemAgentCompactConfig", "MemAgentMemcgConfig",
    "ResizeVolumeRequest", "SetIPTablesRequest", "VolumeStatsRequest",
}  # fmt: skip
NAMES = sorted({*REQUESTS, *LEGACY} - NEWER)
DENIED = ("ExecProcessRequest", "ReadStreamRequest", "SetPolicyRequest", "WriteStreamRequest")
BROKER = "http://kbs-service.trustee-operator-system:8080"


def _defaults(*denied: str) -> str:
    return "".join(f"default {name} := {'false' if name in denied else 'true'}\n" for name in NAMES)


def _entry(name: str, text: str) -> str:
    return f"\"{name}\" = '''\n{text}'''\n"


def permissive() -> str:
    return "".join(
        [
            'version = "0.1.0"\nalgorithm = "sha256"\n[data]\n',
            _entry("policy.rego", "package agent_policy\n\n" + _defaults()),
            _entry("aa.toml", f'[token_configs]\n[token_configs.kbs]\nurl = "{BROKER}"\n') + "\n",
            _entry("cdh.toml", f'[kbc]\nname = "cc_kbc"\nurl = "{BROKER}"\n'),
        ]
    )


def with_gaps() -> str:
    brokers = "[token_configs.coco_as]\nurl = '<trustee_url>'\n[token_configs.kbs]\nurl = '<trustee_url>'\n"
    client = '[kbc]\nname = \'cc_kbc\'\nurl = \'<trustee_url>\'\nkbs_cert = """\n<kbs_certificate>\n"""\n'
    image = "[image]\nimage_security_policy_uri = 'kbs:///default/<secret-policy-name>/<key>\n"
    policy = "package agent_policy\n\n" + _defaults(*DENIED) + "\ndefault ExecProcessRequest := false\n"
    head = 'algorithm = <algorithm>\nversion = "0.1.0"\n[data]\n'
    return head + _entry("aa.toml", brokers) + _entry("cdh.toml", client + image) + _entry("policy.rego", policy)


def _linted(text: str) -> list[Finding]:
    findings, entries = lint_text(text.encode())
    return findings + lint_policy(entries["policy.rego"])


def test_the_permissive_document_has_the_digests_that_were_computed_elsewhere() -> None:
    text = permissive()
    assert len(text) == 1641
    values = registers(parse_init_data(text))
    assert values.digest == values.hostdata == "67bc954442244389c870f023e1756baa2b7f91b435d77db47d5a9f6d90d3efa4"
    assert values.mrconfigid == values.digest + "00" * 16
    assert values.pcr8 == "b35d5eb905076f908fe60be5b8307c82149a23e72cdbbf28ac06e7fac5cc961b"
    assert decode_init_data(encode_init_data(text.encode())) == text.encode()


def test_the_permissive_document_is_told_request_by_request() -> None:
    findings = _linted(permissive())
    assert fatal(findings)
    codes = [finding.code for finding in findings]
    assert (codes.count("E8"), codes.count("W2"), codes.count("P2"), codes.count("P5")) == (2, 2, 1, 3)
    opened = {finding.message.split()[0] for finding in findings if finding.code == "P1"}
    assert {
        *DENIED,
        "CopyFileRequest",
        "CreateContainerRequest",
        "UpdateEphemeralMountsRequest",
        "AddSwapRequest",
    } <= opened


def test_everything_that_is_wrong_with_the_document_with_gaps_is_told_at_once() -> None:
    findings = _linted(with_gaps())
    assert fatal(findings)
    places = {(finding.code, str(finding.severity), finding.where) for finding in findings}
    assert {
        ("E2", "error", ""), ("E4", "error", "algorithm"), ("E6", "error", "cdh.toml"), ("E12", "warning", "policy.rego"),
        ("W3", "warning", ""), ("W3", "warning", "aa.toml"), ("W3", "warning", "cdh.toml"),
    } <= places  # fmt: skip
    gaps = {finding.message.split()[2] for finding in findings if finding.code == "W3"}
    assert gaps == {"<algorithm>", "<trustee_url>", "<kbs_certificate>", "<secret-policy-name>", "<key>"}
    opened = {finding.message.split()[0] for finding in findings if finding.code == "P1"}
    assert not opened & set(DENIED)
    assert {"CopyFileRequest", "CreateContainerRequest"} <= opened
