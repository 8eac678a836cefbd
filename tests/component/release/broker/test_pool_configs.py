"""Copies of configurations in the broker: how fresh each way of keeping them is, and when it would rather say nothing."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from fastness.agent.boot.fetch import check_delivered
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.http.refusals import Refusal
from fastness.kinds.trusted_execution.subject import Subject
from fastness.observe import metrics
from fastness.protocol.config_proof import BadConfigProof, Copied, Served, signed
from fastness.protocol.delivered import parse_envelope
from fastness.protocol.kbs_path import parse_path, pool_config
from fastness.release.configs import Config, ConfigRequest
from fastness.release.live.copies import PoolConfigs
from fastness.release.live.overlays import Overlays
from fastness.release.live.releases import Assignments, not_assigned
from tests.granting import SUBJECT, grant_of
from tests.virtual import VirtualClock, settle

QUERY = {"nonce": "n" * 24, "accept": "application/json"}
PATH = pool_config("worker")
CLAIMS = {"fastness": {"machine": "uid", "properties": {"tee": "tpm"}}}
THUMBPRINT = SUBJECT.thumbprint
KEY = Ed25519Signer(SecretBytes(bytes(32)))


class Source:
    """A config server that counts."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock, self.lifetime = clock, timedelta(hours=24)
        self.requests = 0
        self.down = False
        self.body = b"one"
        self.name = "rendered-worker-1"

    async def fetch(self, request: ConfigRequest) -> Config:
        assert request.credential == "DPoP of-the-session"
        config = await self._plain()
        served = Served(config.body, request.pool, "uid", request.nonce, request.rendered, THUMBPRINT)
        return config._replace(signature=signed(served, KEY, self.clock.now() + timedelta(minutes=5)))

    async def copy(self, pool: str, accept: str, rendered: str = "") -> Config:
        config, until = await self._plain(), self.clock.now() + self.lifetime
        return config._replace(signature=signed(Copied(config.body, pool, config.name), KEY, until), until=until)

    async def _plain(self) -> Config:
        self.requests += 1
        if self.down:
            raise Refusal(503, "config-server-unreachable", "the config server does not answer")
        return Config(self.body, b'"e"', self.name)


class Cache:
    """An informer with one object."""

    def __init__(self, obj: Any) -> None:
        self.stored = obj
        self.handlers: list[Any] = []

    def get(self, namespace: str, name: str) -> Any:
        return self.stored

    def change(self, obj: Any) -> None:
        self.stored = obj
        for handler in self.handlers:
            handler(None, obj)

    def subscribe(self, handler: Any) -> Any:
        self.handlers.append(handler)
        return lambda: self.handlers.remove(handler)

    def add_index(self, name: str, indexer: Any) -> None:
        """Nothing is looked up here."""

    def by_index(self, name: str, value: str) -> list[Any]:
        return [self.stored] if self.stored else []


class Bench:
    """Everything that delivery needs, by hand."""

    def __init__(self, sync: str, via: str = "Broker") -> None:
        self.clock = VirtualClock()
        self.source = Source(self.clock)
        delivery = {"via": via, "sync": sync, "interval": "5m"}
        self.cluster = Cache({"spec": {"mode": "Enforce", "delivery": delivery}})
        self.pools = Cache(self.pool("rendered-worker-1"))
        self.overlays = Cache(None)
        self.restart()
        self.grant = grant_of(PATH, claims=CLAIMS)

    def restart(self) -> None:
        """Begin with nothing in memory."""
        parts: list[Any] = [
            self.source,
            SessionTokens(),
            self.cluster,
            self.pools,
            Overlays(cast("Any", self.overlays)),
            Assignments(cast("Any", None)),
            self.clock,
        ]
        self.configs = PoolConfigs(*parts)

    @staticmethod
    def pool(rendered: str) -> dict[str, Any]:
        configuration = {"name": rendered}
        return {
            "metadata": {"name": "worker"}, "spec": {"configuration": configuration},
            "status": {"configuration": configuration, "machineCount": 1, "updatedMachineCount": 1},
        }  # fmt: skip

    async def get(self) -> bytes:
        content = await self.configs.read(self.grant, PATH, QUERY)
        delivered = parse_envelope(content.value.reveal())
        served = Served(delivered.config, "worker", "uid", QUERY["nonce"], key=THUMBPRINT)
        check_delivered(delivered, served, {KEY.verifier.id: KEY.verifier}, self.clock.now())
        self.delivered = delivered
        return delivered.config


class SessionTokens:
    """Signs a token for what the session of the machine proved."""

    def sign(self, claims: dict[str, Any]) -> SecretText:
        assert claims == CLAIMS
        return SecretText("of-the-session")


async def test_on_demand_asks_every_time_and_fails_with_its_source() -> None:
    bench = Bench("OnDemand")
    for body in (b"one", b"two"):
        bench.source.body = body
        assert await bench.get() == body
    bench.source.down = True
    with pytest.raises(Refusal):
        await bench.get()


def shown_age() -> float | None:
    """What an operator sees."""
    return metrics.REGISTRY.value("fastness_broker_config_age_seconds")


async def test_on_schedule_serves_a_copy_for_an_interval_and_an_old_one_for_three_when_its_source_is_down() -> None:
    bench = Bench("Scheduled")
    assert await bench.get() == b"one"
    bench.source.body = b"two"
    await bench.clock.advance(299)
    assert (await bench.get(), shown_age()) == (b"one", 299)
    assert bench.source.requests == 1
    await bench.clock.advance(2)
    assert (await bench.get(), shown_age()) == (b"two", 0)
    bench.source.down = True
    await bench.clock.advance(600)
    assert (await bench.get(), shown_age()) == (b"two", 600)
    bench.source.down = False
    assert (await bench.get(), shown_age()) == (b"two", 0), "what is fresh again does not look stale"
    bench.source.down = True
    await bench.clock.advance(901)
    with pytest.raises(Refusal) as stale:
        await bench.get()
    assert stale.value.status == 503


@pytest.mark.parametrize("sync", ["Scheduled", "OnChange"])
async def test_a_broker_that_starts_while_the_config_server_is_down_says_what_it_waits_for(sync: str) -> None:
    bench = Bench(sync)
    assert await bench.get() == b"one"
    bench.source.down = True
    assert await bench.get() == b"one", "the one that runs has its copy"
    bench.restart()
    with pytest.raises(Refusal) as waiting:
        await bench.get()
    assert (waiting.value.status, waiting.value.code) == (503, "config-server-unreachable")
    assert waiting.value.detail == "the config server does not answer, and this broker has no copy yet"
    bench.source.down = False
    assert await bench.get() == b"one"


async def test_on_change_asks_again_when_the_rendered_config_changes_and_never_hands_out_the_old_one() -> None:
    bench = Bench("OnChange")
    assert await bench.get() == b"one"
    await bench.clock.advance(3600)
    assert await bench.get() == b"one"
    assert bench.source.requests == 1
    bench.source.body, bench.source.name = b"two", "rendered-worker-2"
    bench.pools.stored = bench.pool("rendered-worker-2")
    assert await bench.get() == b"two"
    bench.source.down = True
    assert await bench.get() == b"two"
    bench.pools.stored = bench.pool("rendered-worker-3")
    with pytest.raises(Refusal):
        await bench.get()


async def test_a_copy_from_a_config_server_that_is_behind_is_not_kept_under_the_new_name() -> None:
    bench = Bench("OnChange")
    await bench.get()
    bench.pools.stored = bench.pool("rendered-worker-2")
    assert await bench.get() == b"one", "the config server has not heard of the change"
    bench.source.body, bench.source.name = b"two", "rendered-worker-2"
    assert await bench.get() == b"two"
    assert (await bench.get(), bench.source.requests) == (b"two", 3)


async def test_copies_are_renewed_before_the_next_machine_asks() -> None:
    for sync in ("OnChange", "Scheduled"):
        bench = Bench(sync)
        await bench.get()
        keeping = asyncio.create_task(bench.configs.run())
        await settle()
        bench.source.body, bench.source.name = b"two", "rendered-worker-2"
        bench.pools.change(bench.pool("rendered-worker-2"))
        await bench.clock.advance(301 if sync == "Scheduled" else 0)
        assert bench.source.requests == 2, sync
        bench.source.down = True
        assert await bench.get() == b"two", sync
        keeping.cancel()
        await asyncio.wait((keeping,))


async def test_a_config_server_that_is_down_or_behind_is_asked_again_until_the_copy_is_new() -> None:
    bench = Bench("OnChange")
    await bench.get()
    keeping = asyncio.create_task(bench.configs.run())
    await settle()
    bench.source.down = True
    bench.pools.change(bench.pool("rendered-worker-2"))
    await bench.clock.advance(10)
    assert 3 <= bench.source.requests <= 10
    bench.source.down, bench.source.body, bench.source.name = False, b"two", "rendered-worker-2"
    await bench.clock.advance(3)
    before = bench.source.requests
    assert (await bench.get(), bench.source.requests) == (b"two", before)
    await bench.clock.advance(3600)
    assert bench.source.requests == before, "at rest nobody is asked"
    keeping.cancel()
    await asyncio.wait((keeping,))


async def test_the_way_of_keeping_copies_changes_while_it_runs() -> None:
    bench = Bench("Scheduled")
    await bench.get()
    bench.source.body = b"two"
    bench.cluster.stored = {"spec": {"mode": "Enforce", "delivery": {"via": "Broker", "sync": "OnDemand"}}}
    assert await bench.get() == b"two"


async def test_where_the_gate_delivers_the_broker_does_not() -> None:
    with pytest.raises(Refusal) as refused:
        await Bench("OnDemand", via="Gate").get()
    assert (refused.value.status, refused.value.code) == (503, "delivered-by-gate")


async def test_copies_are_bounded() -> None:
    bench = Bench("Scheduled")
    for number in range(200):
        await bench.configs.read(bench.grant, PATH, {**QUERY, "accept": f"v{number}"})
    assert len(bench.configs._copies) == 64


async def test_a_machine_with_overlays_gets_no_copy_and_waits() -> None:
    for sync, status in (("Scheduled", 503), ("OnChange", 503), ("OnDemand", 200)):
        bench = Bench(sync)
        bench.overlays.stored = {"metadata": {"name": "rack", "uid": "o"}, "spec": {"match": {"machines": ["uid"]}}}
        if status == 200:
            assert await bench.get() == b"one"
            continue
        with pytest.raises(Refusal) as waits:
            await bench.get()
        assert (waits.value.status, waits.value.code) == (503, "overlaid")


async def test_a_copy_is_sealed_for_one_machine_and_one_request() -> None:
    bench = Bench("OnChange")
    await bench.get()
    keys, now = {KEY.verifier.id: KEY.verifier}, bench.clock.now()
    for machine, nonce, pool in (
        ("other", QUERY["nonce"], "worker"),
        ("uid", "m" * 24, "worker"),
        ("uid", QUERY["nonce"], "infra"),
    ):
        served = Served(b"one", pool, machine, nonce, key=THUMBPRINT)
        with pytest.raises(BadConfigProof):
            check_delivered(bench.delivered, served, keys, now)
    with pytest.raises(BadConfigProof):
        check_delivered(
            bench.delivered, Served(b"one", "worker", "uid", QUERY["nonce"], "rendered-worker-9"), keys, now
        )


async def test_a_copy_is_renewed_before_its_signature_ends_and_never_handed_out_after() -> None:
    bench = Bench("OnChange")
    bench.source.lifetime = timedelta(hours=1)
    await bench.get()
    await bench.clock.advance(1801)
    await bench.get()
    assert bench.source.requests == 2
    bench.source.down = True
    await bench.clock.advance(3601)
    with pytest.raises(Refusal):
        await bench.get()


class Unassigned:
    """Says of every rendered config that the machine was not told to have it."""

    async def check(self, subject: Subject, rendered: str, verdict: str = "") -> None:
        raise not_assigned(verdict)


@pytest.mark.parametrize("sync", ["OnDemand", "Scheduled", "OnChange"])
async def test_a_rendered_config_that_the_machine_was_not_told_to_have_is_not_even_fetched(sync: str) -> None:
    bench = Bench(sync)
    bench.configs._assignments = cast("Any", Unassigned())
    query = {**QUERY, "rendered": f"rendered-worker-{'a' * 32}"}
    with pytest.raises(Refusal) as refused:
        await bench.configs.read(bench.grant, PATH, query)
    assert (refused.value.status, refused.value.code, bench.source.requests) == (403, "not-assigned", 0)


async def test_an_old_copy_is_not_handed_out_when_its_signature_has_ended() -> None:
    bench = Bench("Scheduled")
    bench.source.lifetime = timedelta(minutes=6)
    await bench.get()
    bench.source.down = True
    await bench.clock.advance(330)
    await bench.get()  # older than an interval, younger than three, and its signature counts
    await bench.clock.advance(60)
    with pytest.raises(Refusal):
        await bench.get()


async def test_a_copy_that_does_not_say_how_long_it_counts_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench("Scheduled")
    copy = bench.source.copy

    async def endless(pool: str, accept: str, rendered: str = "") -> Config:
        return (await copy(pool, accept, rendered))._replace(until=None)

    monkeypatch.setattr(bench.source, "copy", endless)
    await bench.get()
    await bench.get()
    assert bench.source.requests == 2


@pytest.mark.parametrize(
    ("path", "config"), [("pool/worker/config", True), ("pool/worker/key", False), ("machine/uid/config", False)]
)
def test_which_paths_are_configurations(path: str, config: bool) -> None:
    parsed = parse_path(path)
    assert parsed is not None
    assert Bench("OnDemand").configs.serves(parsed) is config
