"""The key of a disk is given for a statement that two approvers signed about this volume, in its time, once."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.verdict.breakglass import message as override_message
from fastness.attestation.verdict.recovery import BadRecovery, agreed_recovery, issue_time, message, statement_of
from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.formats import json
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.machine import Machine
from tests.breakglass import KEYS, people
from tests.virtual import SeededEntropy

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLUSTER_UID, MACHINE_UID = "0b0e7f0e-0000-4000-8000-000000000001", "0b0e7f0e-0000-4000-8000-000000000002"
ONCE = dict(public_jwk(PrivateKey.generate(SeededEntropy(1))))


def cluster(recovery: str | None = "Approvers") -> dict[str, Any]:
    disk = {"volume": "var", **({"recovery": recovery} if recovery else {})}
    pools = [{"name": "worker", "trustModel": "ConfidentialCluster", "disk": disk}]
    return {"metadata": {"uid": CLUSTER_UID}, "spec": {"mode": "Enforce", "pools": pools}}


def machine(approval: str = "Approved", issued: datetime | None = None, uid: str = MACHINE_UID) -> Machine:
    recovery = {"recovery": {"issued": issue_time(issued)}} if issued else {}
    conditions = [{"type": "Approved", "status": "True" if approval == "Approved" else "False", "reason": approval}]
    disk = {"volume": "var", "state": "Open", "keyId": "k1", **recovery}
    return view(
        {
            "metadata": {"name": "machine-1", "uid": uid},
            "spec": {"id": "1", "approval": approval},
            "status": {
                "pool": "worker", "keyThumbprint": "sha256:" + "ab" * 32, "conditions": conditions, "disks": [disk],
            },
        },
        Machine,
    )  # fmt: skip


def signed(
    by: tuple[str, ...] = ("ada", "grace"), *, keys: tuple[str, ...] = (), hours: float = 1, about: Machine | None = None,
    sign: Any = message, reason: Any = "the board broke", **changes: Any,
) -> str:  # fmt: skip
    """An annotation that these people signed; `changes` are made after they did."""
    statement = statement_of(
        CLUSTER_UID, about or machine(), "var", reason, ONCE, NOW, NOW + timedelta(hours=hours)
    )  # fmt: skip
    agreed = [
        {"by": name, "signature": base64.b64encode(KEYS[key].sign(sign(statement))).decode()}
        for name, key in zip(by, keys or by, strict=True)
    ]
    return json.encode({"statement": {**statement, **changes}, "agreed": agreed}).decode()


def test_two_approvers_have_the_key_of_one_volume_for_whom_they_named() -> None:
    recovery = agreed_recovery(signed(), cluster(), machine(), people("ada", "grace"), NOW)
    assert (recovery.volume, recovery.by, recovery.reason) == ("var", ("ada", "grace"), "the board broke")
    assert recovery.expires == NOW + timedelta(hours=1)


BAD: dict[str, tuple[str, str]] = {
    "one approver": (signed(("ada",)), "not-agreed"),
    "nobody": (signed(()), "not-agreed"),
    "one person twice": (signed(("ada", "ada")), "not-agreed"),
    "one key under two names": (signed(("ada", "grace"), keys=("ada", "ada")), "not-agreed"),
    "somebody who is no approver": (signed(("ada", "eve")), "not-agreed"),
    "signatures of an override": (signed(sign=override_message), "not-agreed"),
    "another recipient than the one signed": (
        signed(key=dict(public_jwk(PrivateKey.generate(SeededEntropy(2))))),
        "not-agreed",
    ),
    "a later end than the one signed": (signed(expires=rfc3339(NOW + timedelta(hours=3))), "not-agreed"),
    "another membership than the one signed": (signed(membership="Quarantined"), "not-agreed"),
    "another cluster": (signed(cluster="x"), "other-cluster"),
    "another machine": (signed(about=machine(uid=CLUSTER_UID)), "other-machine"),
    "another name": (signed(name="machine-2"), "other-machine"),
    "another volume": (signed(volume="root"), "no-such-disk"),
    "no reason": (signed(reason=" "), "reason-missing"),
    "a reason without end": (signed(reason="x" * 513), "reason-missing"),
    "five hours": (signed(hours=5), "too-long"),
    "an end before the beginning": (signed(hours=-1), "too-long"),
    "a member more": (signed(more="x"), "unreadable"),
    "a reason that is no text": (signed(reason=7), "unreadable"),
    "a key that is no object": (signed(key="x"), "unreadable"),
    "a key that is none": (signed(key={"kty": "EC"}), "unreadable"),
    "a time without a zone": (signed(issued="2026-03-01T12:00:00"), "unreadable"),
    "no JSON": ("{", "unreadable"),
    "no object": ("[]", "unreadable"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_opens_no_disk_says_why(name: str) -> None:
    text, code = BAD[name]
    with pytest.raises(BadRecovery) as refused:
        agreed_recovery(text, cluster(), machine(), people("ada", "grace"), NOW)
    assert refused.value.code == code


@pytest.mark.parametrize("recovery", [None, "Nobody"])
def test_nobody_has_a_key_where_the_pool_does_not_say_so(recovery: str | None) -> None:
    with pytest.raises(BadRecovery) as refused:
        agreed_recovery(signed(), cluster(recovery), machine(), people("ada", "grace"), NOW)
    assert refused.value.code == "recovery-off"


@pytest.mark.parametrize("late", [timedelta(hours=1), timedelta(minutes=-6)])
def test_a_statement_counts_in_its_time_alone(late: timedelta) -> None:
    with pytest.raises(BadRecovery) as refused:
        agreed_recovery(signed(), cluster(), machine(), people("ada", "grace"), NOW + late)
    assert refused.value.code == "expired"


@pytest.mark.parametrize("last", [NOW, NOW + timedelta(minutes=1)])
def test_a_statement_that_was_used_or_is_older_than_one_that_was_is_over(last: datetime) -> None:
    with pytest.raises(BadRecovery) as refused:
        agreed_recovery(signed(), cluster(), machine(issued=last), people("ada", "grace"), NOW)
    assert refused.value.code == "statement-used"
    earlier = machine(issued=NOW - timedelta(seconds=1))
    assert agreed_recovery(signed(), cluster(), earlier, people("ada", "grace"), NOW).volume == "var"


def test_a_machine_in_quarantine_is_opened_only_where_that_was_signed() -> None:
    quarantined = machine("Quarantined")
    with pytest.raises(BadRecovery) as refused:
        agreed_recovery(signed(), cluster(), quarantined, people("ada", "grace"), NOW)
    assert refused.value.code == "membership-differs"
    named = signed(about=quarantined)
    assert agreed_recovery(named, cluster(), quarantined, people("ada", "grace"), NOW).volume == "var"
    # Released since: what they agreed to was more, not less.
    assert agreed_recovery(named, cluster(), machine(), people("ada", "grace"), NOW).volume == "var"


def test_an_approver_who_does_not_count_any_more_is_nobody() -> None:
    with pytest.raises(BadRecovery) as refused:
        agreed_recovery(signed(), cluster(), machine(), people("ada", "eve"), NOW)
    assert refused.value.code == "not-agreed"


def test_a_statement_that_was_made_later_within_the_same_second_counts() -> None:
    earlier = machine(issued=NOW - timedelta(microseconds=1))
    assert agreed_recovery(signed(), cluster(), earlier, people("ada", "grace"), NOW).issued == NOW
