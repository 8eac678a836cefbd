"""Every reason for which a door says no, and its row: Ignition asks again after 5xx for ever, and ends at the first 4xx.

A reason that is not in this table fails here: whether it is final has to be decided before a machine meets it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastness
from fastness.enrolment.door.app import STATUS
from fastness.formats import json
from fastness.http.refusals import MAX_BODY, Refusal

DOORS = ("release/door", "release/live", "enrolment/door")
BESIDE = ("http/limits.py",)
ROWS: dict[int, frozenset[str]] = {
    # Malformed: by form, size and type.
    400: frozenset(
        [
            "bad-join-key",
            "bad-message",
            "bad-nonce",
            "bad-path",
            "bad-policy",
            "bad-query",
            "bad-policy-id",
            "bad-values",
            "too-many-values",
            "bad-key",
            "bad-certificate",
            "endorsement-missing",
        ]
    ),
    415: frozenset({"unsupported-media-type"}),
    405: frozenset({"method-not-allowed"}),
    # A credential that is missing, bad, old or used up: another one may be got.
    401: frozenset(
        [
            "bad-certificate",
            "bad-token",
            "certificate-required",
            "credential-required",
            "no-session",
            "ticket-required",
            "ticket-expired",
            "ticket-used-up",
            "token-required",
            "enrolment-invalid",
            "enrolment-expired",
        ]
    ),
    # Final.
    403: frozenset(
        [
            "reserved-path",
            "unlock-required",
            "unlock-only",
            "not-assigned",
            "attestation-required",
            "limited-ticket",
            "not-attested",
            "other-role",
            "out-of-scope",
            "policy-denied",
            "revoked",
            "wrong-credential",
            "wrong-pool",
            "wrong-role",
            "ticket-enrolment-only",
            "pool-not-attested",
            "evidence-not-accepted",
            "first-use-not-allowed",
            "endorsement-refused",
            "activation-failed",
            "signature-invalid",
            "identity-conflict",
            "quarantined",
            "distrusted",
            "other-machine",
        ]
    ),
    # Unknown, after authorization.
    404: frozenset(
        ["disk-key-destroyed", "no-such-disk", "no-such-resource", "no-such-value", "not-found", "unknown-pool"]
    ),
    500: frozenset({"internal"}),
    # It will pass.
    503: frozenset(
        [
            "disk-key-pending",
            "api-unavailable",
            "cluster-unavailable",
            "config-server",
            "config-server-unreachable",
            "config-unsigned",
            "overlaid",
            "conflict",
            "not-rendered",
            "api-server-unknown",
            "no-place-for-token",
            "slow-down",
            "unavailable",
            "overload",
            "delivered-by-broker",
            "delivered-by-gate",
            "too-many-waiting",
            "overlay-invalid",
            "overlay-changed",
            "trust-unclear",
        ]
    ),
}


def sources() -> Iterator[Path]:
    root = Path(fastness.__path__[0])
    for door in DOORS:
        yield from sorted((root / door).rglob("*.py"))
    yield from (root / name for name in BESIDE)


def reasons_in_code() -> dict[tuple[int, str], str]:
    """Status and code of every refusal whose both are written out, and where."""
    reasons: dict[tuple[int, str], str] = {}
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Refusal" or len(node.args) < 2:
                continue
            status, code = node.args[:2]
            if isinstance(status, ast.Constant) and isinstance(code, ast.Constant):
                reasons[int(str(status.value)), str(code.value)] = f"{path.name}:{node.lineno}"
    return reasons


def test_every_reason_of_every_door_has_its_row() -> None:
    reasons = {**reasons_in_code(), **{(status, code): "enrol STATUS" for code, status in STATUS.items()}}
    assert len(reasons) > 40
    assert {
        reason: where for reason, where in reasons.items() if reason[1] not in ROWS.get(reason[0], frozenset())
    } == {}


def test_no_reason_is_final_at_one_door_and_passing_at_another() -> None:
    final = {code for status, codes in ROWS.items() if 400 <= status < 500 for code in codes}
    assert final & ROWS[503] == set()


@pytest.mark.parametrize("status", sorted(ROWS))
def test_a_refusal_says_when_to_come_again_exactly_when_it_passes_and_is_small(status: int) -> None:
    for code in ROWS[status]:
        answer = Refusal(status, code, "why " * 100, "verdict-1").answer()
        assert (b"retry-after" in dict(answer.headers)) == (status == 503)
        body = json.decode(answer.body)
        assert len(answer.body) <= MAX_BODY
        assert (body["type"], body["code"]) == (f"https://fastness.dev/errors/{code}", code)
        assert body.keys() == {"type", "code", "detail", "verdict"}
