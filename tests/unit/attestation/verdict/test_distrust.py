"""Whom a Distrust hits, target by target, and what a plan says about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Check, Result
from fastness.attestation.policy.claims import TrustVector
from fastness.attestation.verdict.blast_radius import blast_radius
from fastness.attestation.verdict.conclude import Conclusion, refused_for
from fastness.attestation.verdict.distrust import About, Distrusted, about_claims, about_machine, against, read_distrust
from fastness.attestation.verdict.machine_standing import MachineStanding, machine_standing
from fastness.kinds.objects import rfc3339, view
from fastness.kinds.trusted_execution.machine import Machine

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UID = "0b0e7f0e-0000-4000-8000-000000000001"
KEY, EK = "sha256:" + "a" * 64, "sha256:" + "b" * 64
CHIP = "snp:" + "e" * 128
IMAGE = "registry.example/os@sha256:" + "c" * 64
SNP = {"tee": "snp", "chip-generation": "Milan", "tcb-microcode": "93", "tcb-bootloader": "4", "image": IMAGE}
TURIN = {**SNP, "chip-generation": "Turin", "tcb-fmc": "1"}
TDX = {"tee": "tdx", "chip-generation": "00806f050000", "tcb-evaluation": "17", "tcb-date": "2026-01-01T00:00:00Z"}
MIXED = {"tee": "tpm", "image-parts": f"{IMAGE},other@sha256:{'d' * 64}"}


def about(properties: dict[str, str] | None = None) -> About:
    return About(UID, frozenset({KEY, EK}), "red", properties or {})


def distrust(**target: Any) -> Distrusted:
    entry = read_distrust({"metadata": {"name": "d"}, "spec": {**target, "reason": "why"}})
    assert entry is not None
    return entry


CASES: list[tuple[dict[str, Any], About, bool]] = [
    ({"machine": UID}, about(), True),
    ({"machine": UID.replace("1", "2")}, about(), False),
    ({"machine": ""}, About(), False),
    ({"key": KEY}, about(), True),
    ({"key": "A" * 64}, about(), True),
    ({"key": EK}, about(), True),
    ({"key": "sha256:" + "9" * 64}, about(), False),
    ({"endorsementKey": EK}, About(endorsement="B" * 64), True),
    ({"endorsementKey": EK}, About(endorsement=KEY), False),
    ({"endorsementKey": ""}, About(), False),
    ({"chip": CHIP}, About(chip=CHIP), True),
    ({"chip": CHIP}, About(chip=CHIP.replace("e", "f")), False),
    ({"chip": ""}, About(), False),
    ({"tenant": "red"}, about(), True),
    ({"tenant": "blue"}, about(), False),
    ({"tenant": ""}, About(), False),
    ({"image": IMAGE}, about(SNP), True),
    ({"image": IMAGE.replace("registry.example", "mirror.example")}, about(SNP), True),
    ({"image": "registry.example/os@sha256:" + "0" * 64}, about(SNP), False),
    ({"image": IMAGE}, about(MIXED), True),
    ({"image": IMAGE}, about(), False),
    ({"chipGeneration": "milan"}, about(SNP), True),
    ({"chipGeneration": "Genoa"}, about(SNP), False),
    ({"chipGeneration": "Milan"}, about(), False),
    ({"chipGeneration": "00806F050000"}, about(TDX), True),
    ({"tcbBelow": {"snp": {"microcode": 94}}}, about(SNP), True),
    ({"tcbBelow": {"snp": {"microcode": 93}}}, about(SNP), False),
    ({"tcbBelow": {"snp": {"microcode": 93, "bootloader": 5}}}, about(SNP), True),
    ({"tcbBelow": {"snp": {"snp": 1}}}, about(SNP), True),
    ({"tcbBelow": {"snp": {"fmc": 2}}}, about(SNP), False),
    ({"tcbBelow": {"snp": {"fmc": 2}}}, about(TURIN), True),
    ({"tcbBelow": {"snp": {"microcode": 94}}}, about(TDX), False),
    ({"tcbBelow": {"snp": {"microcode": 94}}}, about(), False),
    ({"tcbBelow": {"tdx": {"evaluationDataNumber": 18}}}, about(TDX), True),
    ({"tcbBelow": {"tdx": {"evaluationDataNumber": 17}}}, about(TDX), False),
    ({"tcbBelow": {"tdx": {"tcbDate": "2026-01-02T00:00:00Z"}}}, about(TDX), True),
    ({"tcbBelow": {"tdx": {"tcbDate": "2025-12-31T00:00:00Z"}}}, about(TDX), False),
    ({"tcbBelow": {"tdx": {"tcbDate": "2026-01-01T00:00:00Z"}}}, about({"tee": "tdx"}), True),
]


@pytest.mark.parametrize(("target", "who", "hit"), CASES)
def test_a_distrust_hits_what_it_names_and_what_cannot_be_told(target: dict[str, Any], who: About, hit: bool) -> None:
    assert distrust(**target).hits(who) is hit


def test_only_who_is_named_is_revoked_and_what_was_proved_can_be_put_right() -> None:
    assert [distrust(**{kind: "x"}).revokes for kind in ("machine", "key", "tenant")] == [True] * 3
    assert [distrust(**{kind: "x"}).revokes for kind in ("image", "chipGeneration")] == [False] * 2
    assert not distrust(tcbBelow={"snp": {"microcode": 1}}).revokes


def test_an_expired_or_deleted_distrust_and_one_of_two_targets_hit_nobody() -> None:
    spec = {"machine": UID, "reason": "x", "expires": rfc3339(NOW)}
    entry = read_distrust({"metadata": {"name": "d"}, "spec": spec})
    assert entry is not None
    assert against([entry], about(), NOW) == []
    assert against([entry], about(), NOW - timedelta(seconds=1)) == [entry]
    assert read_distrust({"metadata": {"name": "d", "deletionTimestamp": rfc3339(NOW)}, "spec": spec}) is None
    assert read_distrust({"metadata": {"name": "d"}, "spec": {**spec, "tenant": "red"}}) is None
    assert read_distrust({"metadata": {"name": "d"}, "spec": {"reason": "x"}}) is None
    assert read_distrust({"metadata": {"name": "d"}}) is None


def test_what_a_token_says_of_its_machine_is_all_that_is_compared() -> None:
    claims = {"sub": KEY, "fastness": {"machine": UID, "tenant": "red", "properties": SNP}}
    assert about_claims(claims) == About(UID, frozenset({KEY}), "red", SNP)
    assert about_claims({"sub": KEY, "fastness": 7}) == About("", frozenset({KEY}))
    assert about_claims({"fastness": {"properties": ["no"]}}) == About()


def test_a_conclusion_is_refused_for_every_distrust_and_says_how_to_end_it() -> None:
    good = Conclusion((Check("x", Result.PASS, "ok"),), TrustVector.of({}), {}, "Affirmed", "", True)
    assert refused_for(good, []) is good
    refused = refused_for(good, [distrust(machine=UID)])
    assert (refused.accepted, refused.result, refused.reason, refused.retry) == (False, "Refused", "distrusted", False)
    assert "delete Distrust d" in refused.checks[-1].hint


def machine(number: int, pool: str, properties: dict[str, str], *, attested: bool = True) -> dict[str, Any]:
    statuses = {"Approved": True, "Attested": attested}
    conditions = [
        {"type": kind, "status": str(value), "reason": "X", "message": ""} for kind, value in statuses.items()
    ]
    return {
        "metadata": {"name": f"machine-{number}", "uid": f"uid-{number}"},
        "spec": {"id": "i", "approval": "Approved"},
        "status": {
            "keyThumbprint": f"sha256:{number:064}", "pool": pool, "nodeName": f"{pool}-{number}",
            "conditions": conditions, "properties": properties, "lastAttested": "2026-01-01T00:00:00Z",
        },
    }  # fmt: skip


def stands(machine: Machine) -> MachineStanding:
    return machine_standing(machine, datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=15))


def test_the_blast_radius_counts_pools_and_names_those_that_would_be_empty() -> None:
    milan, genoa = {"chip-generation": "Milan"}, {"chip-generation": "Genoa"}
    machines = [
        machine(1, "worker", milan), machine(2, "worker", genoa), machine(3, "infra", milan),
        machine(4, "infra", milan, attested=False),
        {"metadata": {"name": "not-enrolled", "uid": "u"}, "spec": {"id": "i"}},
    ]  # fmt: skip
    radius = blast_radius(distrust(chipGeneration="Milan"), machines, stands)
    assert [(hit.node, hit.attested) for hit in radius.hits] == [
        ("infra-3", True),
        ("infra-4", False),
        ("worker-1", True),
    ]
    assert radius.pools == {"worker": (2, 1), "infra": (1, 0)}
    assert radius.emptied == ("infra",)
    assert radius.to_json()["effect"] == "refused until it proves better"


def test_a_machine_is_known_by_all_its_keys() -> None:
    machine_object = machine(1, "worker", {})
    machine_object["status"]["endorsement"] = {"key": EK}
    assert about_machine(view(machine_object, Machine)).keys == {f"sha256:{1:064}", EK}
