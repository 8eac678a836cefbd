"""A new vault key while two brokers serve: nothing is refused, nothing is lost, whoever dies and whenever."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.crypto.secret import SecretBytes
from fastness.disks.live.key_store import DiskKeys
from fastness.keys.authorities import ROTATE, SECRETS
from fastness.keys.errors import RecordError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import Unavailable
from fastness.kube.places import DISKS
from fastness.kube.port import Cluster, PatchType
from fastness.protocol.kbs_path import ResourcePath, parse_path
from fastness.release.live import vault_turning
from fastness.release.live.resources import SEALED_NAMESPACE, SealedResources, resource_name
from fastness.release.live.vault_secret import NAME, RING, SharedVault
from fastness.release.live.vault_turning import ACT, ROTATED, ROTATING, VaultTurning
from tests.component.release.broker.brokered_cluster import ENTROPY, BrokeredCluster, Guest, Ledger, until

AT_ONCE = timedelta(0)
MACHINE = "11111111-0000-4000-8000-000000000000"


class Died(Exception):
    """A broker that was killed."""


class Watched:
    """A cluster whose writes somebody hears of, before and after; everything else is as it was."""

    def __init__(self, cluster: Cluster, before: Callable[[str], Awaitable[None]], after: Callable[[], None]) -> None:
        self._cluster = cluster
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def create(self, resource: Any, body: Any, *rest: Any) -> Any:
        await self._before(str(body["metadata"].get("namespace") or ""))
        made = await self._cluster.create(resource, body, *rest)
        self._after()
        return made

    async def patch(self, resource: Any, name: str, patch: Any, way: PatchType, namespace: str, *rest: Any) -> Any:
        await self._before(namespace)
        made = await self._cluster.patch(resource, name, patch, way, namespace, *rest)
        self._after()
        return made


def dying(cluster: Cluster, writes: int, *, done: bool) -> Cluster:
    """A cluster as a broker has it that is killed at a write: before it arrives, or before it hears of it."""
    left = [writes]

    async def before(_namespace: str) -> None:
        if left[0] == 0 and not done:
            raise Died

    def after() -> None:
        if left[0] == 0:
            raise Died
        left[0] -= 1

    return cast("Cluster", Watched(cluster, before, after))


def path(text: str) -> ResourcePath:
    parsed = parse_path(text)
    assert parsed is not None
    return parsed


async def ask(cluster: Cluster, why: str = "ann@desk: a laptop was stolen") -> None:
    await cluster.patch(SECRETS, NAME, {"metadata": {"annotations": {ROTATE: why}}}, PatchType.MERGE, NAMESPACE)


async def vault_of(here: BrokeredCluster, cluster: Cluster | None = None) -> SharedVault:
    return await SharedVault.begin(cluster or here.cluster, here.clock, ENTROPY)


async def turn(here: BrokeredCluster, cluster: Cluster | None = None, record: Ledger | None = None) -> SharedVault:
    """Take every step that there is, as one broker."""
    cluster = cluster or here.cluster
    vault = await vault_of(here, cluster)
    turning = VaultTurning(cluster, vault, record or here.ledger, here.clock, ENTROPY, AT_ONCE)
    for _ in range(20):
        if not await turning.step():
            return vault
    raise AssertionError("the rotation does not end")


async def test_two_brokers_go_on_serving_and_writing_while_the_key_is_turned(here: BrokeredCluster) -> None:
    vaults, guests = [], []
    for name in ("a", "b"):
        here.behind["cipher"] = await vault_of(here)
        vaults.append(here.behind["cipher"])
        door = await here.replica()
        guest = Guest(await here.client(door), (await here.guest()).who)
        await guest.attest()
        guests.append(guest)
        headers = {"authorization": await here.admin()}
        written = await guest.http.post(
            f"/kbs/v0/resource/machine/{guest.who.machine}/{name}", content=name.encode(), headers=headers
        )
        assert written.status_code == 200
    disks = DiskKeys(here.cluster, vaults[1], ENTROPY)
    await disks.make(MACHINE, "root", "k1")
    first_keys = await disks.read(MACHINE, "root")
    before = vaults[0].present.primary
    await ask(here.cluster)
    turning = VaultTurning(here.cluster, vaults[0], here.ledger, here.clock, ENTROPY, AT_ONCE)
    rounds = 0
    while await turning.step():
        # Between any two steps either broker serves what either wrote, and takes something new.
        rounds += 1
        for guest in guests:
            own = f"machine/{guest.who.machine}"
            assert [await guest.read(f"{own}/a"), await guest.read(f"{own}/b")] == [b"a", b"b"]
            headers = {"authorization": await here.admin()}
            new = f"{own}/during-{rounds}"
            assert (
                await guest.http.post(f"/kbs/v0/resource/{new}", content=b"new", headers=headers)
            ).status_code == 200
            assert [await reader.read(new) for reader in guests] == [b"new", b"new"]
        await disks.make(MACHINE, "root", f"k{rounds + 1}")
    assert rounds >= 4, "begun, sealed, recorded, retired"
    secret = await here.cluster.get(SECRETS, NAME, NAMESPACE)
    assert annotations_of(secret)[ROTATED].endswith("ann@desk: a laptop was stolen")
    assert not {ROTATE, ROTATING} & annotations_of(secret).keys()
    (present,) = vaults[0].present.key_ids
    assert present != before
    fresh = DiskKeys(here.cluster, await vault_of(here), ENTROPY)  # a broker that starts now has the new key alone
    after = dict(await fresh.read(MACHINE, "root"))
    assert {key: value.reveal() for key, value in first_keys}.items() <= {
        k: v.reveal() for k, v in after.items()
    }.items()
    assert len(after) == rounds + 1
    (entry,) = [entry for entry in here.ledger.entries if entry.what == ACT]
    assert (entry.who, entry.detail) == (
        "ann@desk", {"reason": "a laptop was stolen", "key": present, "before": before},
    )  # fmt: skip
    assert len([entry for entry in here.ledger.entries if entry.what == ACT]) == 1


@pytest.mark.parametrize("done", [False, True], ids=["before-it-arrives", "before-it-is-heard-of"])
async def test_a_broker_may_die_at_any_write_and_another_one_ends_what_it_began(
    here: BrokeredCluster, done: bool
) -> None:
    resources = SealedResources(here.cluster, await vault_of(here))
    values = {path(f"default/db/p{n}"): SecretBytes(f"v{n}".encode()) for n in range(3)}
    for where, value in values.items():
        await resources.write(where, value)
    await DiskKeys(here.cluster, await vault_of(here), ENTROPY).make(MACHINE, "root", "k1")
    (first_keys,) = await DiskKeys(here.cluster, await vault_of(here), ENTROPY).read(MACHINE, "root")
    died = 0
    for writes in range(20):
        before = (await vault_of(here)).present.primary
        await ask(here.cluster, f"ann@desk: attempt {writes}")
        try:
            await turn(here, dying(here.cluster, writes, done=done))
        except Died:
            died += 1
        ended = await turn(here)
        assert len(ended.present.key_ids) == 1
        assert ended.present.primary != before
        again = await vault_of(here)
        for where, value in values.items():
            secret = await here.cluster.get(SECRETS, resource_name(where), SEALED_NAMESPACE)
            assert again.is_current(_sealed(secret, "sealed"))
            content = await SealedResources(here.cluster, again).read(cast("Any", None), where, {})
            assert content is not None
            assert content.value.reveal() == value.reveal()
        (now,) = await DiskKeys(here.cluster, again, ENTROPY).read(MACHINE, "root")
        assert now[1].reveal() == first_keys[1].reveal()
        if died <= writes:
            break
    assert died == 7, "a new ring, three resources, a disk, the note on the record, one key"


def _sealed(secret: Any, name: str) -> bytes:
    return base64.b64decode(secret["data"][name])


async def test_a_write_that_a_whole_rotation_overtakes_is_sealed_again_before_it_is_answered(
    here: BrokeredCluster,
) -> None:
    turned: list[str] = []

    async def before(namespace: str) -> None:
        """The worst moment: the value is sealed with the old key, and not stored yet."""
        if namespace in (SEALED_NAMESPACE, DISKS) and not turned:
            turned.append(namespace)
            await ask(here.cluster)
            await turn(here)

    slow = cast("Cluster", Watched(here.cluster, before, lambda: None))
    stale = await vault_of(here)
    where = path("default/db/password")
    assert await SealedResources(slow, stale).write(where, SecretBytes(b"secret"))
    assert turned
    content = await SealedResources(here.cluster, await vault_of(here)).read(cast("Any", None), where, {})
    assert content is not None
    assert content.value.reveal() == b"secret"
    turned.clear()
    await DiskKeys(slow, await vault_of(here), ENTROPY).make(MACHINE, "data", "k1")
    assert turned
    assert len(await DiskKeys(here.cluster, await vault_of(here), ENTROPY).read(MACHINE, "data")) == 1


async def test_the_old_key_stays_until_every_broker_had_time_to_read_the_new_one(here: BrokeredCluster) -> None:
    vault = await vault_of(here)
    await ask(here.cluster)
    turning = VaultTurning(here.cluster, vault, here.ledger, here.clock, ENTROPY)
    while await turning.step():
        pass
    assert len(vault.present.key_ids) == 2
    assert not [entry for entry in here.ledger.entries if entry.what == ACT]


async def test_without_the_record_no_key_is_retired(here: BrokeredCluster) -> None:
    await vault_of(here)
    await ask(here.cluster)
    with pytest.raises(RecordError):
        await turn(here, record=Ledger(broken=True))
    assert len((await vault_of(here)).present.key_ids) == 2
    assert len((await turn(here)).present.key_ids) == 1


async def test_what_no_key_opens_is_named_and_holds_nothing_up(here: BrokeredCluster) -> None:
    resources = SealedResources(here.cluster, await vault_of(here))
    lost, good = path("default/db/lost"), path("default/db/good")
    for where in (lost, good):
        await resources.write(where, SecretBytes(b"x"))
    broken = {"data": {"sealed": "AAAA" * 20}}
    await here.cluster.patch(SECRETS, resource_name(lost), broken, PatchType.MERGE, SEALED_NAMESPACE)
    await ask(here.cluster)
    assert len((await turn(here)).present.key_ids) == 1
    content = await SealedResources(here.cluster, await vault_of(here)).read(cast("Any", None), good, {})
    assert content is not None


async def test_a_broker_whose_secret_was_emptied_takes_nothing_that_a_restart_would_lose(here: BrokeredCluster) -> None:
    vault = await vault_of(here)
    await here.cluster.patch(SECRETS, NAME, {"data": {RING: None}}, PatchType.MERGE, NAMESPACE)
    with pytest.raises(Unavailable, match="holds no key"):
        await SealedResources(here.cluster, vault).write(path("default/db/password"), SecretBytes(b"secret"))
    with pytest.raises(Unavailable, match="holds no key"):
        await DiskKeys(here.cluster, vault, ENTROPY).make(MACHINE, "root", "k1")
    assert await SealedResources(here.cluster, vault).list() == []
    assert await DiskKeys(here.cluster, vault, ENTROPY).entries(MACHINE) is None


async def test_it_is_taken_up_by_whoever_looks_next(here: BrokeredCluster) -> None:
    vault = await vault_of(here)
    before = vault.present.primary
    turning = VaultTurning(here.cluster, vault, here.ledger, here.clock, ENTROPY, AT_ONCE)
    await ask(here.cluster)
    task = asyncio.create_task(turning.run())

    async def turned() -> bool:
        return len(vault.present.key_ids) == 1 and vault.present.primary != before

    try:
        await until(turned)
    finally:
        task.cancel()


async def rotate(here: BrokeredCluster, directory: Path, *words: str) -> Result:
    """`fastness vault rotate` as somebody with a kubeconfig runs it."""
    (directory / "kubeconfig").write_bytes(here.kubeconfig())
    command = [
        "vault",
        "rotate",
        "--kubeconfig",
        str(directory / "kubeconfig"),
        "--reason",
        "a laptop was stolen",
        *words,
    ]
    return await asyncio.to_thread(CliRunner().invoke, cli, command)


async def test_the_verb_asks_the_brokers_and_says_when_they_are_done(
    here: BrokeredCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_turning, "LOOK_SECONDS", 0.05)
    vault = await vault_of(here)
    before = vault.present.primary
    turning = VaultTurning(here.cluster, vault, here.ledger, here.clock, ENTROPY, AT_ONCE)
    task = asyncio.create_task(turning.run())
    try:
        done = await rotate(here, tmp_path)
    finally:
        task.cancel()
    assert done.exit_code == 0, done.output
    assert "rotated: 20" in done.output
    assert "a laptop was stolen" in done.output
    assert before not in (await vault_of(here)).present.key_ids
    (entry,) = [entry for entry in here.ledger.entries if entry.what == ACT]
    assert entry.detail["reason"] == "a laptop was stolen"


async def test_the_verb_says_so_when_no_broker_begins_and_when_there_is_no_key(
    here: BrokeredCluster, tmp_path: Path
) -> None:
    nothing = await rotate(here, tmp_path)
    assert (nothing.exit_code, "holds no key" in nothing.output) == (3, True), nothing.output
    await vault_of(here)
    waited = await rotate(here, tmp_path, "--wait", "1")
    assert waited.exit_code == 1
    assert "no broker has begun within 1 seconds" in waited.output
    unwatched = await rotate(here, tmp_path, "--wait", "0")
    assert (unwatched.exit_code, unwatched.output) == (0, "asked; the brokers do it while they serve\n")
