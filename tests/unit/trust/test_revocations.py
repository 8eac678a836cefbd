"""A token counts while its machine is ours, of its epoch, and nothing that it proved is distrusted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.model.fastness_dev.distrust import DISTRUST
from fastness.model.objects import rfc3339
from fastness.model.trusted_execution.machine import MACHINE
from fastness.trust.revocations import MachineRevocations
from tests.virtual import VirtualClock

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "sha256:" + "ab" * 32
NAME = f"machine-{'ab' * 10}"


class Cache:
    """What an informer of one resource knows."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self._handlers: list[Any] = []

    def get(self, _namespace: str, name: str) -> dict[str, Any] | None:
        return self.objects.get(name)

    def list(self) -> list[dict[str, Any]]:
        return [*self.objects.values()]

    def subscribe(self, handler: Any) -> None:
        self._handlers.append(handler)

    def put(self, obj: dict[str, Any]) -> None:
        old = self.objects.get(obj["metadata"]["name"])
        self.objects[obj["metadata"]["name"]] = obj
        for handler in self._handlers:
            handler(old, obj)


class Caches:
    """Informers by resource."""

    def __init__(self) -> None:
        self.machines, self.distrusts = Cache(), Cache()

    def of(self, resource: Any) -> Any:
        return {MACHINE.resource: self.machines, DISTRUST.resource: self.distrusts}[resource]


def machine(*, approval: str = "Approved", uid: str = "uid-1", epoch: int = 0, **status: Any) -> dict[str, Any]:
    conditions = [{"type": "Approved", "status": "True", "reason": "X", "message": ""}]
    return {
        "metadata": {"name": NAME, "namespace": "fastness-system", "uid": uid},
        "spec": {"id": "i", "approval": approval},
        "status": {"keyThumbprint": KEY, "conditions": conditions, "epoch": epoch, **status},
    }


def claims(*, epoch: Any = 0, uid: str = "uid-1", **properties: str) -> dict[str, Any]:
    ours = {"machine": uid, "tenant": "red", "epoch": epoch, "properties": properties}
    return {"sub": KEY, "iat": int(START.timestamp()), "fastness": ours}


def distrust(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "d"}, "spec": {"reason": "x", **spec}}


@pytest.fixture
def caches() -> Caches:
    found = Caches()
    found.machines.put(machine())
    return found


def revoked(caches: Caches, token: dict[str, Any], later: float = 0.0) -> bool:
    clock = VirtualClock(START + timedelta(seconds=later))
    return MachineRevocations(caches, clock).revoked(token)  # type: ignore[arg-type]


def test_a_good_machine_keeps_its_token(caches: Caches) -> None:
    assert not revoked(caches, claims(), later=300)


@pytest.mark.parametrize(
    ("seen", "token"),
    [
        (machine(approval="Quarantined"), claims()),
        (machine(uid="uid-2"), claims()),
        (machine(epoch=1), claims()),
        (machine(epoch=2), claims(epoch=1)),
        (machine(), claims(epoch="0")),
        (machine(), claims(epoch=None)),
        (machine(), {"sub": KEY, "iat": 0}),
    ],
)
def test_a_token_of_a_machine_that_changed_its_standing_is_dead(
    caches: Caches, seen: dict[str, Any], token: dict[str, Any]
) -> None:
    caches.machines.put(seen)
    assert revoked(caches, token)


def test_a_token_of_the_present_epoch_counts(caches: Caches) -> None:
    caches.machines.put(machine(epoch=3))
    assert not revoked(caches, claims(epoch=3))


@pytest.mark.parametrize(
    "target",
    [
        {"machine": "uid-1"},
        {"key": KEY},
        {"tenant": "red"},
        {"chipGeneration": "Milan"},
        {"tcbBelow": {"snp": {"snp": 9}}},
    ],
)
def test_a_distrust_counts_at_once_and_until_it_ends(caches: Caches, target: dict[str, Any]) -> None:
    token = claims(**{"tee": "snp", "chip-generation": "Milan", "tcb-snp": "8"})
    assert not revoked(caches, token)
    caches.distrusts.put(distrust(**target, expires=rfc3339(START + timedelta(minutes=1))))
    assert revoked(caches, token)
    assert not revoked(caches, token, later=61)


def test_what_the_machine_proved_since_counts_beside_what_the_token_says(caches: Caches) -> None:
    caches.machines.put(machine(properties={"chip-generation": "Milan"}))
    caches.distrusts.put(distrust(chipGeneration="Milan"))
    assert revoked(caches, claims())


def test_a_machine_that_the_cache_has_not_seen_yet_has_a_moment(caches: Caches) -> None:
    caches.machines.objects.clear()
    assert not revoked(caches, claims(), later=1)
    assert revoked(caches, claims(), later=3)


@pytest.mark.parametrize(
    "change",
    [
        machine(approval="Quarantined"),
        machine(epoch=1),
        machine(uid="uid-2"),
        {**machine(), "metadata": {**machine()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        distrust(key=KEY),
        distrust(tenant="red"),
    ],
)
def test_a_token_that_was_found_good_dies_with_the_next_change(caches: Caches, change: dict[str, Any]) -> None:
    asked, token = MachineRevocations(caches, VirtualClock(START + timedelta(seconds=5))), claims()  # type: ignore[arg-type]
    for _ in range(3):
        assert not asked.revoked(token)
    (caches.distrusts if "reason" in change["spec"] else caches.machines).put(change)
    assert asked.revoked(token)
    assert asked.revoked(token)


def test_a_token_that_was_found_good_dies_with_its_machine(caches: Caches) -> None:
    asked, token = MachineRevocations(caches, VirtualClock(START + timedelta(seconds=5))), claims()  # type: ignore[arg-type]
    assert not asked.revoked(token)
    caches.machines.objects.clear()
    assert asked.revoked(token)


def test_another_token_of_a_good_machine_is_looked_at_for_itself(caches: Caches) -> None:
    caches.machines.put(machine(epoch=1))
    asked = MachineRevocations(caches, VirtualClock(START))  # type: ignore[arg-type]
    assert not asked.revoked(claims(epoch=1))
    assert asked.revoked(claims(epoch=0))
