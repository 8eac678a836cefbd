"""Opening volumes in the initial file system: waits, refusals, first and later boots, and no way around the broker."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from fastness.agent.boot import unlock as module
from fastness.agent.boot.boot import BootRefused
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.generation import Generation
from fastness.agent.boot.prove import BrokerRefused, UnlockClaim
from fastness.agent.boot.unlock import Unlock, UnlockTarget
from fastness.agent.boot.volumes import DiskRefused
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.sim.disks.container import SealedVolumes
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.virtual import SeededEntropy, VirtualClock

ENTROPY = SeededEntropy(7)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
UID = "0d7d1f0c-5f2c-4c7b-9a7e-0123456789ab"
AWAY = BrokerRefused(503, "unreachable", "the broker does not answer")


@dataclass
class Broker:
    """A broker that answers with keys; `ahead` are refusals that come first, one for each call."""

    keys: list[str] = field(default_factory=lambda: ["k1"])
    expect: dict[str, Any] | None = None
    ahead: list[BrokerRefused] = field(default_factory=list)
    claims: list[UnlockClaim] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=lambda: {"integrity": "none"})
    released: int = 0
    recorded: int = 0

    def __call__(self, url: str, *_: object) -> Self:
        assert url == "https://broker.example"
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def attest(self, *, unlock: UnlockClaim) -> None:
        self.claims.append(unlock)
        self._refuse()

    async def resource(self, path: str) -> SecretBytes:
        self.resources.append(path)
        self._refuse()
        keys = [{"id": name, "key": _key(name)} for name in self.keys]
        volume = path.rsplit("-", 1)[-1]
        self.released += 1
        whole = {
            "version": 1, "volume": volume, "keys": keys, "expect": self.expect, "settings": self.settings,
            "opening": self.released, "recorded": self.recorded,
        }  # fmt: skip
        return SecretBytes(json.encode(whole))

    def _refuse(self) -> None:
        if self.ahead:
            raise self.ahead.pop(0)


def _key(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode() * 16).decode().rstrip("=")


class JumpingClock(VirtualClock):
    """A clock that is where a sleeper wants to be."""

    async def sleep(self, seconds: float) -> None:
        """No wait at all."""
        self._elapsed += seconds


class World:
    """One machine, its disk, and what it says on its console."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broker = Broker()
        self.clock = JumpingClock()
        self.console: list[str] = []
        self.volumes = SealedVolumes(directory, ENTROPY)
        self.attester = SimAttester(SimVendor(ENTROPY, NOW).chip("snp").boot())
        self.first = UnlockTarget(UID, ("var",), lambda: "https://broker.example", first_boot=True)
        self.later = replace(self.first, first_boot=False)
        monkeypatch.setattr(module, "BrokerClient", self.broker)

    def unlock(self, seconds: float = 3600.0) -> Unlock:
        patience = RetryBudget(self.clock, ENTROPY, seconds, 1.0)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return Unlock(self.attester, tls, self.volumes, PrivateKey.generate(ENTROPY), patience, self.console.append)

    async def made(self) -> None:
        """A first boot, which the cluster recorded."""
        (report,) = await self.unlock().run(self.first)
        self.broker.expect, self.broker.recorded = report.header, report.generation


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


async def test_a_first_boot_makes_the_volume_and_reports_it(world: World) -> None:
    (report,) = await world.unlock().run(world.first)
    assert (report.volume, report.generation, report.key) == ("var", 1, "k1")
    assert list(await world.attester.disks()) == [report]
    assert world.broker.resources == [f"machine/{UID}/disk-var"]
    assert world.broker.claims[0].with_identity


async def test_a_later_boot_opens_it_counts_and_shows_no_identity(world: World) -> None:
    await world.made()
    (report,) = await world.unlock().run(world.later)
    assert (report.generation, report.key, report.header) == (2, "k1", world.broker.expect)
    assert not world.broker.claims[-1].with_identity


async def test_a_first_boot_that_is_repeated_opens_what_was_recorded_and_formats_nothing(world: World) -> None:
    await world.made()
    (report,) = await world.unlock().run(world.first)
    assert report.generation == 2


async def test_a_later_boot_never_formats(world: World) -> None:
    await world.made()
    before = world.volumes.path("var").read_bytes()
    world.broker.expect = None
    with pytest.raises(DiskRefused) as refused:
        await world.unlock().run(world.later)
    assert refused.value.reason == "disk-not-made"
    assert world.volumes.path("var").read_bytes() == before


async def test_a_broker_that_is_away_is_waited_for_and_the_console_says_so_once(world: World) -> None:
    world.broker.ahead = [AWAY] * 5
    reports = await world.unlock().run(world.first)
    assert len(reports) == 1
    assert [line for line in world.console if "unreachable" in line] == [
        "waiting for the keys of this machine's volumes (unreachable): the broker does not answer"
    ]


async def test_all_attempts_of_a_boot_are_made_with_one_key(world: World) -> None:
    unlock = world.unlock()
    world.broker.ahead = [AWAY, AWAY]
    await unlock.run(world.first)
    await unlock.run(world.first)  # enrolment may send a machine round again
    assert len({id(claim.key) for claim in world.broker.claims}) == 1
    assert len(world.broker.claims) == 4


async def test_an_answer_that_was_lost_is_asked_for_again(world: World) -> None:
    world.broker.ahead = []
    unlock = world.unlock()
    original = world.broker.resource
    lost = [AWAY]

    async def resource(path: str) -> SecretBytes:
        answer = await original(path)
        if lost:
            raise lost.pop()
        return answer

    world.broker.resource = resource  # type: ignore[method-assign]
    (report,) = await unlock.run(world.first)
    assert (report.generation, report.after) == (2, 0)
    assert len(world.broker.claims) == 2


@pytest.mark.parametrize("reason", ["revoked", "quarantined", "launch-already-used", "image-not-approved"])
async def test_a_refusal_opens_nothing_and_says_why(world: World, reason: str) -> None:
    await world.made()
    before = world.volumes.path("var").read_bytes()
    world.broker.ahead = [AWAY, BrokerRefused(403, reason, f"the broker refused ({reason})")]
    with pytest.raises(BootRefused) as refused:
        await world.unlock().run(world.later)
    assert refused.value.reason == reason
    assert refused.value.hint
    assert world.volumes.path("var").read_bytes() == before


async def test_a_machine_that_is_revoked_between_proof_and_key_opens_nothing(world: World) -> None:
    await world.made()

    async def resource(path: str) -> SecretBytes:
        raise BrokerRefused(403, "revoked", "the broker refused (revoked)")

    world.broker.resource = resource  # type: ignore[method-assign]
    with pytest.raises(BootRefused):
        await world.unlock().run(world.later)


async def test_a_pool_without_the_volume_of_the_image_stops_the_boot(world: World) -> None:
    world.broker.ahead = [BrokerRefused(404, "resource-unknown", "there is none")]
    with pytest.raises(DiskRefused) as refused:
        await world.unlock().run(world.first)
    assert refused.value.reason == "no-volume"
    assert "spec.pools[].disk" in refused.value.hint


async def test_a_challenge_that_grew_old_is_asked_for_anew_a_few_times(world: World) -> None:
    expired = BrokerRefused(401, "challenge-expired", "too late")
    world.broker.ahead = [expired] * 3
    assert await world.unlock().run(world.first)
    world.broker.ahead = [expired] * 4
    with pytest.raises(BootRefused):
        await world.unlock().run(world.first)


async def test_patience_ends_where_somebody_said_so(world: World) -> None:
    world.broker.ahead = [AWAY] * 50
    with pytest.raises(BrokerRefused):
        await world.unlock(seconds=20.0).run(world.first)


async def test_two_keys_open_it_and_the_newest_is_the_only_one_afterwards(world: World) -> None:
    await world.made()
    world.broker.keys = ["k2", "k1"]
    (report,) = await world.unlock().run(world.later)
    assert report.key == "k2"
    world.broker.keys = ["k1"]
    with pytest.raises(DiskRefused) as refused:
        await world.unlock().run(world.later)
    assert refused.value.reason == "key-does-not-open"


async def test_a_rekey_that_fails_leaves_the_machine_booting_with_the_old_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.made()
    world.broker.keys = ["k2", "k1"]

    def fails(*_: object) -> str:
        raise DiskRefused("disk-unwritable", "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(SealedVolumes, "rekey", fails)
        (report,) = await world.unlock().run(world.later)
    assert report.key == "k1"
    assert any("not under its new key yet" in line for line in world.console)
    (again,) = await world.unlock().run(world.later)
    assert again.key == "k2"


async def test_a_disk_that_is_full_is_not_booted_from(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(directory: Path, opening: int, recorded: int) -> Generation:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "count_opening", full)
    with pytest.raises(DiskRefused) as refused:
        await world.unlock().run(world.first)
    assert refused.value.reason == "disk-unwritable"


async def test_an_answer_that_nobody_understands_formats_nothing(world: World) -> None:
    world.broker.settings = {"integrity": "perhaps"}
    with pytest.raises(DiskRefused) as refused:
        await world.unlock().run(world.first)
    assert refused.value.reason == "bad-disk-answer"
    assert not world.volumes.path("var").exists()


async def test_a_machine_that_became_another_one_does_not_go_on_with_the_volumes_of_the_first(world: World) -> None:
    unlock = world.unlock()
    await unlock.run(world.first)
    with pytest.raises(DiskRefused) as refused:
        await unlock.run(replace(world.first, machine=UID.replace("0", "1")))
    assert refused.value.reason == "machine-changed"
