"""A token counts while its machine is ours, of its epoch, and nothing that it proved is distrusted."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.keys.errors import CannotKnow
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import NotFound, Unavailable
from fastness.release.live import revocations
from fastness.release.live.revocations import MachineRevocations
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


class Api:
    """The API server: one Machine, an error, or silence."""

    def __init__(self, answer: dict[str, Any] | Exception | None = None) -> None:
        self.answer, self.asked = answer, 0

    async def get(self, _resource: Any, name: str, _namespace: str) -> dict[str, Any]:
        self.asked += 1
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert name == NAME
        return self.answer or {}


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
        "status": {
            "keyThumbprint": KEY,
            "tee": "tpm",
            "endorsedBy": "ek-certificate",
            "conditions": conditions,
            "epoch": epoch,
            **status,
        },
    }


def claims(*, epoch: Any = 0, uid: str = "uid-1", **properties: str) -> dict[str, Any]:
    ours = {
        "machine": uid, "name": NAME, "pool": "worker", "tenant": "red", "simulated": False, "verdict": "v", "tee": "tpm",
        "endorsement": "ek-certificate", "epoch": epoch, "properties": properties,
    }  # fmt: skip
    return {"sub": KEY, "iat": int(START.timestamp()), "fastness": ours}


def distrust(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "d"}, "spec": {"reason": "x", **spec}}


@pytest.fixture
def caches() -> Caches:
    stores = Caches()
    stores.machines.put(machine())
    return stores


def revoked(caches: Caches, token: dict[str, Any], later: float = 0.0) -> bool:
    clock = VirtualClock(START + timedelta(seconds=later))
    return MachineRevocations(Api(), caches, clock).revoked(token)  # type: ignore[arg-type]


def test_a_good_machine_keeps_its_token(caches: Caches) -> None:
    assert not revoked(caches, claims(), later=300)


@pytest.mark.parametrize(
    ("machine", "token"),
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
    caches: Caches, machine: dict[str, Any], token: dict[str, Any]
) -> None:
    caches.machines.put(machine)
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
    revocations, token = MachineRevocations(Api(), caches, VirtualClock(START + timedelta(seconds=5))), claims()  # type: ignore[arg-type]
    for _ in range(3):
        assert not revocations.revoked(token)
    (caches.distrusts if "reason" in change["spec"] else caches.machines).put(change)
    assert revocations.revoked(token)
    assert revocations.revoked(token)


def test_a_token_that_was_found_good_dies_with_its_machine(caches: Caches) -> None:
    revocations, token = MachineRevocations(Api(), caches, VirtualClock(START + timedelta(seconds=5))), claims()  # type: ignore[arg-type]
    assert not revocations.revoked(token)
    caches.machines.objects.clear()
    assert revocations.revoked(token)


def test_another_token_of_a_good_machine_is_looked_at_for_itself(caches: Caches) -> None:
    caches.machines.put(machine(epoch=1))
    revocations = MachineRevocations(Api(), caches, VirtualClock(START))  # type: ignore[arg-type]
    assert not revocations.revoked(claims(epoch=1))
    assert revocations.revoked(claims(epoch=0))


def asking(api: Api, caches: Caches) -> MachineRevocations:
    return MachineRevocations(api, caches, VirtualClock(START + timedelta(seconds=5)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (machine(), False),
        (machine(approval="Quarantined"), True),
        (machine(uid="uid-2"), True),
        (machine(epoch=1), True),
        ({**machine(), "metadata": {**machine()["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, True),
        (NotFound("gone"), True),
    ],
)
async def test_the_api_has_the_last_word_about_a_machine(
    caches: Caches, answer: dict[str, Any] | Exception, ended: bool
) -> None:
    """The cache knows nothing of it: its watch hangs, or is a moment late."""
    revocations, token = asking(Api(answer), caches), claims()
    assert not revocations.revoked(token)
    assert await revocations.ended(token) is ended
    assert revocations.revoked(claims()) is ended


async def test_what_the_api_said_counts_until_the_cache_says_something_else(caches: Caches) -> None:
    api = Api(machine(epoch=1))
    revocations = asking(api, caches)
    assert await revocations.ended(claims())
    assert revocations.revoked(claims())
    assert api.asked == 1
    assert not revocations.revoked(claims(epoch=1))
    caches.machines.put(machine())
    assert not revocations.revoked(claims())


async def test_a_distrust_counts_for_the_machine_as_the_api_has_it(caches: Caches) -> None:
    caches.distrusts.put(distrust(chipGeneration="Milan"))
    revocations = asking(Api(machine(properties={"chip-generation": "Milan"})), caches)
    assert not revocations.revoked(claims())
    assert await revocations.ended(claims())


@pytest.mark.parametrize("answer", [Unavailable("down"), None])
async def test_an_api_that_fails_or_says_nothing_leaves_no_answer(
    caches: Caches, answer: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(revocations, "ASK_SECONDS", 0.01)
    lookup = asking(Api(answer), caches)
    with pytest.raises(CannotKnow):
        await lookup.ended(claims())
    assert not lookup.revoked(claims())


@pytest.mark.parametrize(
    "change",
    [{"tee": "snp", "endorsement": "evidence"}, {"endorsement": "trust-on-first-use"}, {"endorsement": "evidence"}],
)
def test_a_token_of_another_type_or_endorsement_than_the_machine_has_is_dead(
    caches: Caches, change: dict[str, str]
) -> None:
    token = claims()
    token["fastness"] |= change
    assert revoked(caches, token, later=300)


def test_an_attestation_key_is_not_found_as_a_guest_key(caches: Caches) -> None:
    """One key, two kinds: the name of the other kind leads to no Machine, and the Machine under a name must be of its kind."""
    caches.machines.put(machine(tee="snp", endorsedBy="evidence"))
    assert revoked(caches, claims(), later=300)
