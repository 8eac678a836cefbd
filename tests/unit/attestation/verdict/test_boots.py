"""Boots: which evidence is of a boot that is over, what stays silent, and what a Machine remembers."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.verdict.dispute import (
    BOOT_CODE,
    CLOCK_SLACK_MS,
    OVER_BOOT,
    Boot,
    Dispute,
    boot_dispute,
    boot_of,
    boot_status,
)
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import MOST_FORMER_BOOTS, Machine

A, B, C = (digit * 64 for digit in "abc")
LAST = 2**32 - 1


def tpm(resets: int, restarts: int = 0, clock: int = 0) -> Boot:
    return Boot(resets=resets, restarts=restarts, clock=clock)


def remembered(*boots: Boot) -> JsonObject:
    """The status of a Machine whose evidence was of these boots, one after the other; none of them may be disputed."""
    status: JsonObject = {}
    for boot in boots:
        assert disputed(status, boot) is None
        status |= boot_status(status, boot)
    return status


def disputed(status: JsonObject, boot: Boot | None) -> Dispute | None:
    machine = {"metadata": {"name": "machine-1"}, "spec": {"id": "i"}, "status": status}
    return boot_dispute(view(machine, Machine), boot)


@pytest.mark.parametrize(
    ("before", "presented", "is_over"),
    [
        ((), tpm(3), False),  # nothing to compare with
        ((tpm(3),), tpm(3), False),
        ((tpm(3),), tpm(4), False),  # a reboot
        ((tpm(3),), tpm(9), False),  # some of them without a proof
        ((tpm(4),), tpm(3), True),
        ((tpm(3), tpm(4)), tpm(3), True),
        ((tpm(3), tpm(4)), tpm(4), False),
        ((tpm(3, 1),), tpm(3, 0), True),  # awake again, and then as if it had never slept
        ((tpm(3, 1),), tpm(3, 2), False),
        ((tpm(3, 7),), tpm(4, 0), False),  # a reset begins to count restarts anew
        ((tpm(4, 0, 50),), tpm(3, 7, CLOCK_SLACK_MS * 9), True),  # whatever its clock says
        ((tpm(3, 0, CLOCK_SLACK_MS * 9),), tpm(4, 0, 1), False),  # a clock may run back over a power cut
        ((tpm(3, 0, CLOCK_SLACK_MS + 5),), tpm(3, 0, 5), False),  # two attempts of one boot overtook each other
        ((tpm(3, 0, CLOCK_SLACK_MS + 6),), tpm(3, 0, 5), True),  # two TPMs that were booted equally often
        ((tpm(LAST),), tpm(0), False),  # a count with an addend of the TPM's own passes zero
        ((tpm(0),), tpm(LAST), True),
        ((tpm(5, LAST),), tpm(5, 0), False),
        ((Boot(A),), Boot(A), False),
        ((Boot(A),), Boot(B), False),  # a reboot
        ((Boot(A), Boot(B)), Boot(B), False),
        ((Boot(A), Boot(B)), Boot(A), True),
        ((Boot(A), Boot(B), Boot(C)), Boot(A), True),
        ((Boot(A), Boot(B)), Boot(C), False),
        ((Boot(A), Boot(B)), None, False),  # a kind of evidence that does not tell
    ],
)
def test_evidence_of_a_boot_that_is_over_is_disputed(
    before: tuple[Boot, ...], presented: Boot | None, is_over: bool
) -> None:
    dispute = disputed(remembered(*before), presented)
    assert (dispute is not None) == is_over
    if dispute is not None:
        assert (dispute.over, dispute.check.code, dispute.may_pass) == (OVER_BOOT, BOOT_CODE, False)
        assert dispute.shows != dispute.against


def test_a_dispute_shows_both_boots_and_is_the_same_for_all_evidence_of_one() -> None:
    first, second = (disputed(remembered(tpm(4, 2, 77)), tpm(3, 0, clock)) for clock in (10, 20))
    assert first == second
    assert first is not None
    assert (first.shows, first.against) == (
        "TPM boot of 3 resets and 0 restarts", "TPM boot of 4 resets and 2 restarts",
    )  # fmt: skip
    first, second = (disputed(remembered(tpm(4, 2, CLOCK_SLACK_MS * 2)), tpm(4, 2, clock)) for clock in (10, 20))
    assert first == second
    assert first is not None
    assert "earlier clock" in first.shows
    assert f"{CLOCK_SLACK_MS * 2} ms" in first.against
    launch = disputed(remembered(Boot(A), Boot(B)), Boot(A))
    assert launch is not None
    assert (launch.shows, launch.against) == (f"SNP launch {A}", f"SNP launch {B}")


def test_the_same_boot_writes_nothing_but_a_clock_that_went_on() -> None:
    assert boot_status(remembered(Boot(A)), Boot(A)) == {}
    status = remembered(tpm(3, 1, 100))
    assert boot_status(status, tpm(3, 1, 100)) == {}
    assert boot_status(status, tpm(3, 1, 99)) == {}
    assert boot_status(status, tpm(3, 1, 101)) == {"boot": {"resets": 3, "restarts": 1, "clock": 101}}
    assert boot_status(status, None) == {}


def test_a_first_boot_leaves_no_launch_behind_and_the_list_of_them_is_bounded() -> None:
    assert remembered(Boot(A)) == {"boot": {"launch": A}}
    launches = [Boot(f"{number:064x}") for number in range(1, MOST_FORMER_BOOTS + 4)]
    status = remembered(*launches)
    assert len(status["formerBoots"]) == MOST_FORMER_BOOTS
    assert disputed(status, launches[-2]) is not None


@pytest.mark.parametrize(
    ("claims", "boot"),
    [
        ({"tpm": {"reset_count": 3, "restart_count": 1, "clock": 9}}, tpm(3, 1, 9)),
        ({"snp": {"report_id": A}}, Boot(A)),
        ({"snp": {"report_id": "0" * 64}}, None),
        ({"snp": {}}, None),
        ({"tpm": {}}, None),
        ({"tdx": {"mr_td": "00"}}, None),
        ({}, None),
    ],
)
def test_the_boot_is_what_evidence_tells_of_it(claims: dict[str, Any], boot: Boot | None) -> None:
    assert boot_of(claims) == boot


def test_where_evidence_does_not_tell_the_key_of_the_boot_does() -> None:
    first, second = (boot_of({"tdx": {}}, key) for key in (A, B))
    assert first is not None
    assert second is not None
    dispute = disputed(remembered(first, second), first)
    assert dispute is not None
    assert (dispute.shows, dispute.against) == (f"TDX launch {A}", f"TDX launch {B}")
