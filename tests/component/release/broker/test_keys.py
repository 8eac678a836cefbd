"""Keys in the cluster: made once, shared, replaced in time, and never lost to a damaged Secret."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from fastness.apiserver import LocalCluster, ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.keys import mac_keys as mackeys
from fastness.keys.authorities import HERE, SECRETS, named
from fastness.keys.errors import BadToken, DamagedKeys, NoTokenKeys
from fastness.keys.keyrings import PUBLISHED_FOR, KeySecret, Ring, RingKey, signing_first
from fastness.keys.mac_keys import LIFETIME, MacKeys
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import PatchType
from fastness.release.ear import Proved
from fastness.release.live.admins import ADMIN_KEYS, Admins, mint
from fastness.release.live.tokens import TOKEN_JWKS, TOKEN_KEYS, TokenIssuer, TokenVerifier
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.release.broker.brokered_cluster import subject, until

ENTROPY = SystemEntropy()
MAC_KEYS = mackeys.MAC_KEYS["broker"]
START = datetime(2026, 11, 1, tzinfo=UTC)


@dataclass
class HandClock:
    """A clock that a test sets; waiting is real, because the cluster is."""

    at: datetime = START

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return SystemClock().monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass
class Place:
    cluster: LocalCluster
    informers: Informers
    clock: HandClock = field(default_factory=HandClock)

    @property
    def secrets(self) -> Informer:
        return self.informers.of(SECRETS, HERE)

    async def synced(self, kind: KeySecret, count: int) -> None:
        """Wait until the cache has so many keys."""

        async def there() -> bool:
            secret = self.secrets.get(NAMESPACE, kind.name)
            return secret is not None and len(kind.read(secret)) == count

        await until(there)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with (
        open_apiserver(ServerOptions(tmp_path / "state"), PRODUCT) as server,
        Informers(server.cluster, clock=SystemClock(), entropy=ENTROPY) as informers,
    ):
        yield Place(server.cluster, informers)


def _rings(place: Place) -> tuple[Ring, ...]:
    secret = place.secrets.get(NAMESPACE, MAC_KEYS.name)
    return (MAC_KEYS.read(secret),) if secret else ()


async def test_replicas_that_come_at_once_share_one_ring(place: Place) -> None:
    rings = await asyncio.gather(*(MAC_KEYS.open(place.cluster, ENTROPY, START) for _ in range(5)))
    assert len({ring[0].material.reveal() for ring in rings}) == 1


async def test_a_key_is_replaced_after_a_day_and_the_one_before_stays_live(place: Place) -> None:
    macs = await MacKeys.open("broker", place.cluster, place.informers, place.clock, ENTROPY)
    old = macs.write("p", b"old")
    place.clock.at = START + LIFETIME
    await macs.renew(place.cluster, ENTROPY)
    await place.synced(MAC_KEYS, 2)
    assert macs.write("p", b"x")[:5] == old[:5], "a key that others may not know yet does not sign"
    place.clock.at += PUBLISHED_FOR
    fresh = macs.write("p", b"new")
    assert fresh[:5] != old[:5]
    assert (macs.read("p", old), macs.read("p", fresh)) == (b"old", b"new")
    place.clock.at = START + 2 * LIFETIME
    await macs.renew(place.cluster, ENTROPY)

    async def forgotten() -> bool:
        return macs.read("p", old) is None

    await until(forgotten)
    assert macs.read("p", fresh) == b"new"
    assert len(_rings(place)[0]) == 2


async def test_replicas_that_rotate_at_once_make_one_new_key(place: Place) -> None:
    await MAC_KEYS.open(place.cluster, ENTROPY, START)
    later = START + LIFETIME
    rings = await asyncio.gather(*(MAC_KEYS.renew(place.cluster, ENTROPY, later) for _ in range(5)))
    keys = MAC_KEYS.read(await place.cluster.get(SECRETS, MAC_KEYS.name, NAMESPACE))
    assert len(keys) == 2
    assert all(ring[0].material.reveal() == keys[0].material.reveal() for ring in rings)


async def test_before_its_time_nothing_is_replaced(place: Place) -> None:
    await MAC_KEYS.open(place.cluster, ENTROPY, START)
    before = await place.cluster.get(SECRETS, MAC_KEYS.name, NAMESPACE)
    await MAC_KEYS.renew(place.cluster, ENTROPY, START + LIFETIME - timedelta(seconds=1))
    assert await place.cluster.get(SECRETS, MAC_KEYS.name, NAMESPACE) == before


async def test_a_damaged_secret_stops_nobody_who_runs_and_tells_whoever_starts(place: Place) -> None:
    macs = await MacKeys.open("broker", place.cluster, place.informers, place.clock, ENTROPY)
    text = macs.write("p", b"x")
    good = base64.b64decode((await place.cluster.get(SECRETS, MAC_KEYS.name, NAMESPACE))["data"]["keys"])
    newer = base64.b64encode(good.replace(b'"version":1', b'"version":2')).decode()
    for damage in (
        newer,
        "AAAA",
        base64.b64encode(b'{"version":1,"keys":[]}').decode(),
        base64.b64encode(b"{}").decode(),
    ):
        patch = {"data": {"keys": damage}}
        made = await place.cluster.patch(SECRETS, MAC_KEYS.name, patch, PatchType.MERGE, NAMESPACE)
        version = made["metadata"]["resourceVersion"]

        async def cached(expected: str = version) -> bool:
            secret = place.secrets.get(NAMESPACE, MAC_KEYS.name)
            return secret is not None and secret["metadata"]["resourceVersion"] == expected

        await until(cached)
        assert macs.read("p", text) == b"x"
        with pytest.raises(DamagedKeys) as damaged:
            await MAC_KEYS.open(place.cluster, ENTROPY, START)
        assert damaged.value.hint
        assert damaged.value.__cause__ is None


async def test_a_deleted_secret_is_made_anew(place: Place) -> None:
    macs = await MacKeys.open("broker", place.cluster, place.informers, place.clock, ENTROPY)
    await place.cluster.delete(SECRETS, MAC_KEYS.name, NAMESPACE)
    await macs.renew(place.cluster, ENTROPY)
    assert await place.cluster.get(SECRETS, MAC_KEYS.name, NAMESPACE)


def test_the_newest_published_key_signs() -> None:
    from fastness.crypto.secret import SecretBytes

    old, new = RingKey(START, SecretBytes(b"o")), RingKey(START + LIFETIME, SecretBytes(b"n"))
    assert signing_first((new, old), new.created) == (old, new)
    assert signing_first((new, old), new.created + PUBLISHED_FOR) == (new, old)
    assert signing_first((new,), new.created) == (new,)


def _proved() -> Proved:
    return Proved(subject(), "v", public_jwk(PrivateKey.generate(ENTROPY)), "n", vector={"executables": 3})


async def test_tokens_of_the_key_before_count_and_the_public_halves_are_published_apart(place: Place) -> None:
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)
    place.clock.at = START + TOKEN_KEYS.lifetime
    token, claims = tokens.issue(_proved(), timedelta(minutes=10))
    await tokens.renew(place.cluster)
    await place.synced(TOKEN_KEYS, 2)
    assert tokens.verify(token.reveal(), "gate") == claims
    assert len(tokens.jwks()["keys"]) == 2
    published = await place.cluster.get(CONFIG_MAP.resource, TOKEN_JWKS.name, NAMESPACE)
    keys = json.loads(published["data"]["jwks.json"])["keys"]
    assert {key["kid"] for key in keys} == {key["kid"] for key in tokens.jwks()["keys"]}
    assert all(set(key) == {"alg", "crv", "kid", "kty", "use", "x", "y"} for key in keys)


async def test_who_verifies_follows_the_published_keys_through_a_rotation_and_never_reads_the_secret(
    place: Place,
) -> None:
    verifier = await TokenVerifier.following(place.informers, place.clock)
    with pytest.raises(NoTokenKeys):
        verifier.verify("a.b.c", "gate")
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)

    async def published(count: int) -> None:
        async def there() -> bool:
            with suppress(NoTokenKeys):
                return len(verifier.jwks()["keys"]) == count
            return False

        await until(there)

    await published(1)
    old, claims = tokens.issue(_proved(), timedelta(hours=24))
    assert verifier.verify(old.reveal(), "gate") == claims
    place.clock.at = START + TOKEN_KEYS.lifetime
    await tokens.renew(place.cluster)
    await published(2)
    place.clock.at += PUBLISHED_FOR
    await place.synced(TOKEN_KEYS, 2)
    fresh, claims = tokens.issue(_proved(), timedelta(minutes=10))
    assert fresh.reveal().split(".")[0] != old.reveal().split(".")[0]
    assert verifier.verify(fresh.reveal(), "gate") == claims
    assert not hasattr(verifier, "issue")
    assert not hasattr(verifier, "sign")


async def test_published_keys_that_somebody_damaged_change_nothing_and_are_written_again(place: Place) -> None:
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)
    verifier = await TokenVerifier.following(place.informers, place.clock)
    maps = place.informers.of(CONFIG_MAP.resource, named(TOKEN_JWKS.name))
    good = await place.cluster.get(CONFIG_MAP.resource, TOKEN_JWKS.name, NAMESPACE)
    token, claims = tokens.issue(_proved(), timedelta(minutes=10))
    await until(lambda: _is(maps, good["data"]))
    assert verifier.verify(token.reveal(), "gate") == claims
    for damage in ("{", "{}", '{"keys": []}', '{"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]}'):
        data = {"jwks.json": damage}
        await place.cluster.patch(CONFIG_MAP.resource, TOKEN_JWKS.name, {"data": data}, PatchType.MERGE, NAMESPACE)
        await until(partial(_is, maps, data))
        assert verifier.verify(token.reveal(), "gate") == claims
    await tokens.renew(place.cluster)
    assert (await place.cluster.get(CONFIG_MAP.resource, TOKEN_JWKS.name, NAMESPACE))["data"] == good["data"]


async def _is(maps: Informer, data: object) -> bool:
    return (maps.get(NAMESPACE, TOKEN_JWKS.name) or {}).get("data") == data


async def test_what_one_role_wrote_another_one_does_not_read(place: Place) -> None:
    broker = await MacKeys.open("broker", place.cluster, place.informers, place.clock, ENTROPY)
    replica = await MacKeys.open("broker", place.cluster, place.informers, place.clock, ENTROPY)
    others = [
        await MacKeys.open(role, place.cluster, place.informers, place.clock, ENTROPY) for role in ("gate", "enrolment")
    ]
    text = broker.write("challenge", b"x")
    assert replica.read("challenge", text) == b"x"
    assert [other.read("challenge", text) for other in others] == [None, None]
    assert [broker.read("challenge", other.write("challenge", b"x")) for other in others] == [None, None]


async def test_an_empty_secret_is_filled_once_by_whoever_comes_first(place: Place) -> None:
    meta = {"name": MAC_KEYS.name, "namespace": NAMESPACE}
    await place.cluster.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    rings = await asyncio.gather(*(MAC_KEYS.open(place.cluster, ENTROPY, START) for _ in range(5)))
    assert len({ring[0].material.reveal() for ring in rings}) == 1


async def test_a_token_counts_for_its_audience_until_it_ends(place: Place) -> None:
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)
    text = tokens.issue(_proved(), timedelta(minutes=10), ["broker"])[0].reveal()
    with pytest.raises(BadToken):
        tokens.verify(text, "gate")
    place.clock.at += timedelta(minutes=10)
    with pytest.raises(BadToken):
        tokens.verify(text, "broker")
    place.clock.at = START - timedelta(seconds=31)
    with pytest.raises(BadToken):
        tokens.verify(text, "broker")


async def test_a_token_never_lives_longer_than_a_day(place: Place) -> None:
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)
    _, claims = tokens.issue(_proved(), timedelta(days=30))
    assert claims["exp"] - claims["iat"] == 24 * 3600


async def test_claims_that_do_not_fit_into_a_token_are_refused(place: Place) -> None:
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)
    long = Proved(subject(), "v", _proved().tee_pubkey, "n", claims={"init_data_claims": {"x": "y" * 20_000}})
    with pytest.raises(BadToken):
        tokens.issue(long, timedelta(minutes=1))


async def test_an_administrator_is_recognised_by_keys_of_their_own(place: Place) -> None:
    admins = await Admins.open(place.cluster, place.informers, place.clock, ENTROPY)
    tokens = await TokenIssuer.open(place.cluster, place.informers, place.clock, ENTROPY)
    made = await mint(place.cluster, ENTROPY, START, "kim@example.org", ["GET resource"], timedelta(minutes=1))
    administrator = admins.recognise(made.reveal())
    assert (administrator.name, administrator.scopes) == ("kim@example.org", ("GET resource",))
    with pytest.raises(BadToken):
        tokens.verify(made.reveal(), "broker-admin")
    with pytest.raises(BadToken):
        admins.recognise(tokens.issue(_proved(), timedelta(minutes=1))[0].reveal())
    place.clock.at += ADMIN_KEYS.lifetime
    await admins.renew(place.cluster, ENTROPY)
    with pytest.raises(BadToken):
        admins.recognise(made.reveal())
