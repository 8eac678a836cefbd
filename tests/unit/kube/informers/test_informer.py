"""Informers against a scripted cluster: sync, resume, relist, and convergence whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError, Expired, Forbidden, InternalError, NotFound, Unavailable
from fastness.kube.informers import Handler, Informer, InformerError, Informers, Key
from fastness.kube.informers.informer import PATIENCE, SILENCE
from fastness.kube.port import EVERYWHERE, Cluster, Scope
from fastness.observe.metrics import REGISTRY
from tests.unit.kube.informers.scripted_cluster import THING, ScriptedCluster
from tests.unit.kube.virtual import FixedEntropy, VirtualClock

TICKS = 2000


async def settle(holds: Callable[[], bool]) -> None:
    """Let tasks run until something holds; no time passes."""
    for _ in range(TICKS):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not settle")


async def quiet() -> None:
    """Let tasks run until none has anything to do."""
    for _ in range(50):
        await asyncio.sleep(0)


def informer_of(world: ScriptedCluster, clock: VirtualClock | None = None, *, patience: float = PATIENCE) -> Informer:
    """An informer in virtual time."""
    cluster = cast("Cluster", world)
    return Informer(cluster, THING, clock=clock or VirtualClock(), entropy=FixedEntropy(), patience=patience)


@asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[None]:
    """The informer runs for as long as the block."""
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Mirror:
    """A state that is made from announcements alone."""

    def __init__(self) -> None:
        self.objects: dict[str, JsonObject] = {}
        self.heard: list[str] = []

    def __call__(self, old: JsonObject | None, new: JsonObject | None) -> None:
        obj = new or old
        assert obj is not None
        name = obj["metadata"]["name"]
        assert self.objects.get(name) == old, "every announcement starts where the last one ended"
        self.heard.append(name)
        if new is None:
            del self.objects[name]
        else:
            self.objects[name] = new


async def test_nothing_is_visible_before_the_state_is_complete() -> None:
    world = ScriptedCluster()
    world.put("a")
    world.put("b")
    informer, sizes = informer_of(world), []
    informer.subscribe(lambda _old, _new: sizes.append(len(informer.list())))
    async with running(informer):
        await informer.synced()
    assert sizes == [2, 2]
    assert informer.has_synced


async def test_a_late_subscriber_hears_what_is_there_and_what_follows_until_it_leaves() -> None:
    world = ScriptedCluster()
    world.put("a")
    informer, mirror = informer_of(world), Mirror()
    async with running(informer):
        await informer.synced()
        stop = informer.subscribe(mirror)
        assert mirror.heard == ["a"]
        world.put("b")
        await settle(lambda: mirror.heard == ["a", "b"])
        stop()
        world.put("c")
        await settle(lambda: informer.get("n", "c") is not None)
    assert mirror.heard == ["a", "b"]


async def test_what_is_held_of_objects_is_what_was_asked_for_in_that_scope_and_what_others_see_is_whole() -> None:
    world = ScriptedCluster()
    world.put("a", 1)
    some = Scope(labels="x=y")

    def named(obj: JsonObject) -> JsonObject:
        return {name: value for name, value in obj.items() if name != "value"}

    cluster, trims = cast("Cluster", world), {(THING, EVERYWHERE): named}
    async with Informers(cluster, clock=VirtualClock(), entropy=FixedEntropy(), trims=trims) as informers:
        held, whole, mirror = informers.of(THING), informers.of(THING, some), Mirror()
        held.subscribe(mirror)
        await informers.synced()
        world.put("b", 2)
        world.put("a", 3)
        await settle(lambda: mirror.heard == ["a", "b", "a"] and len(whole.list()) == 2)
        world.remove("b")
        await settle(lambda: mirror.objects.keys() == {"a"})
        assert (held.get("n", "a") or {}).keys() == {"kind", "metadata"}
        assert (whole.get("n", "a") or {})["value"] == 3


async def test_a_closed_watch_goes_on_from_the_last_bookmark() -> None:
    world = ScriptedCluster()
    informer = informer_of(world)
    async with running(informer):
        await informer.synced()
        world.put("a")
        world.bookmark()
        await quiet()
        world.compact()
        world.disconnect()
        await quiet()
        world.put("b")
        await settle(lambda: informer.get("n", "b") is not None)
    assert world.opened == [("", True), ("2", False)]


async def test_an_informer_is_in_touch_while_its_watch_is_open_and_its_state_complete() -> None:
    world, states = ScriptedCluster(), list[bool]()

    class Asking(VirtualClock):
        async def sleep(self, seconds: float) -> None:
            states.append(informer.in_touch)
            await super().sleep(seconds)

    informer = informer_of(world, Asking())
    states.append(informer.in_touch)
    async with running(informer):
        await informer.synced()
        states.append(informer.in_touch)
        world.disconnect(Unavailable("down"))
        world.fail_next(Unavailable("still down"))
        await settle(lambda: len(states) == 4 and informer.in_touch)
    states.append(informer.in_touch)
    assert states == [False, True, False, False, False]


class Hours:
    """The loop's time, moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self.ahead, real = 0.0, loop.time
        monkeypatch.setattr(loop, "time", lambda: real() + self.ahead)


async def test_a_cache_is_as_old_as_the_last_word_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    world, hours, states = ScriptedCluster(), Hours(monkeypatch), list[bool]()
    informer = informer_of(world, patience=3600)
    assert informer.age == inf
    async with running(informer):
        await informer.synced()
        assert informer.age < 1
        hours.ahead += SILENCE - 2
        states.append(informer.in_touch)
        hours.ahead += 4
        assert informer.age > SILENCE
        states.append(informer.in_touch)
        world.bookmark()
        await settle(lambda: informer.in_touch)
        hours.ahead += SILENCE + 1
        states.append(informer.in_touch)
        world.put("a")
        await settle(lambda: informer.in_touch)
    assert states == [True, False, False]


async def test_readiness_names_the_caches_that_lost_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    world, hours = ScriptedCluster(), Hours(monkeypatch)
    cluster = cast("Cluster", world)
    async with Informers(cluster, clock=VirtualClock(), entropy=FixedEntropy()) as informers:
        assert informers.out_of_touch() is None
        informer = informers.of(THING)
        assert informers.out_of_touch() is None, "one that has no state yet is waited for, not missed"
        await informer.synced()
        world.deaf = True
        hours.ahead += SILENCE + 1
        assert informers.out_of_touch() == "out of touch with the API: nothing is heard of pods"
        await settle(lambda: not informers.out_of_touch())


async def test_a_half_told_state_makes_an_old_cache_no_younger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of an initial state are old changes: only its end is a word about now."""
    world, hours = ScriptedCluster(), Hours(monkeypatch)
    world.put("a")
    informer = informer_of(world, patience=3600)
    async with running(informer):
        await informer.synced()
        hours.ahead += SILENCE + 1
        hold = world.hold_after(1)
        world.expire()
        await settle(lambda: len(world.opened) == 2 and world.held)
        assert not informer.in_touch
        hold.set()
        await settle(lambda: informer.in_touch)


async def test_a_watch_that_hangs_is_given_up_and_the_state_taken_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bookmark came for longer than any API server lets one wait: the connection is dead and does not know it."""
    world, hours, before = ScriptedCluster(), Hours(monkeypatch), relists()
    informer = informer_of(world)
    async with running(informer):
        await informer.synced()
        world.deaf = True
        world.put("missed")
        hours.ahead += PATIENCE + 1
        await settle(lambda: informer.get("n", "missed") is not None)
        assert informer.in_touch
    assert world.opened == [("", True), ("", True)]
    assert relists() == before + 1


async def test_a_watch_that_speaks_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world, hours = ScriptedCluster(), Hours(monkeypatch)
    informer = informer_of(world)
    async with running(informer):
        await informer.synced()
        for _ in range(3):
            hours.ahead += PATIENCE - 5
            world.bookmark()
            await settle(lambda: informer.age < 1)
            await quiet()
        assert world.opened == [("", True)]
        hours.ahead += PATIENCE + 1
        await settle(lambda: len(world.opened) == 2)


async def test_an_expired_version_means_a_new_state_and_unseen_deletions_are_told() -> None:
    world, before = ScriptedCluster(), relists()
    world.put("kept")
    world.put("gone")
    informer, mirror = informer_of(world), Mirror()
    informer.subscribe(mirror)
    async with running(informer):
        await informer.synced()
        world.disconnect(Unavailable("down"))
        world.fail_next(Unavailable("still down"))
        world.remove("gone")
        world.put("new")
        world.compact()
        world.put("later")
        await settle(lambda: mirror.objects == world.objects)
    assert mirror.heard.count("kept") == 1
    assert mirror.heard[2] == "gone"
    assert relists() == before + 1


async def test_a_cluster_that_is_younger_than_the_position_is_another_one_and_is_believed_at_once() -> None:
    world, before = ScriptedCluster(), relists()
    for number in range(9):
        world.put(f"old-{number}")
    informer, mirror = informer_of(world), Mirror()
    informer.subscribe(mirror)
    async with running(informer):
        await informer.synced()
        world.disconnect(Unavailable("down"))
        world.begin_anew()
        world.put("new")
        await settle(lambda: mirror.objects == world.objects)
    assert list(mirror.objects) == ["new"]
    assert relists() == before + 1


def relists() -> float:
    """How often informers of the kind had to list again."""
    name = "fastness_informer_relists_total"
    return REGISTRY.value(name, {"resource": THING.plural}) or 0.0


@pytest.mark.parametrize("error", [Unavailable("x"), Forbidden("x"), InternalError("x"), NotFound("x"), Expired("x")])
async def test_whatever_the_cluster_answers_the_informer_tries_again_with_growing_pauses(error: ApiError) -> None:
    world, clock = ScriptedCluster(), VirtualClock()
    world.fail_next(*[error] * 12)
    informer = informer_of(world, clock)
    async with running(informer):
        await informer.synced()
    assert len(clock.slept) == 12
    assert clock.slept == sorted(clock.slept)
    assert clock.slept[0] < 0.2
    assert clock.slept[-1] == 22.5, "the cap of 30 seconds with half the jitter"


async def test_an_event_resets_the_pause() -> None:
    world, clock = ScriptedCluster(), VirtualClock()
    world.fail_next(*[Unavailable("x")] * 5)
    informer = informer_of(world, clock)
    async with running(informer):
        await informer.synced()
        world.disconnect()
        await settle(lambda: len(clock.slept) == 6)
    assert clock.slept[5] == clock.slept[0]


def _fails_on(name: str) -> Handler:
    def handler(_old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and new["metadata"]["name"] == name:
            raise ZeroDivisionError(name)

    return handler


async def test_an_object_on_which_a_handler_fails_is_set_aside_and_the_others_are_told() -> None:
    world = ScriptedCluster()
    world.put("bad")
    world.put("good")
    informer = informer_of(world)
    mirror = Mirror()
    informer.subscribe(_fails_on("bad"))
    informer.subscribe(mirror)
    async with running(informer):
        await settle(lambda: informer.has_synced)
        world.put("later")
        await settle(lambda: len(mirror.objects) == 3)
        assert [key.name for key in informer.aside] == ["bad"]
        assert "ZeroDivisionError" in informer.aside[Key("n", "bad")]
        assert REGISTRY.value("fastness_informer_set_aside", {"resource": THING.plural}) == 1
        world.remove("bad")
        await settle(lambda: not informer.aside)
    assert REGISTRY.value("fastness_informer_set_aside", {"resource": THING.plural}) == 0


async def test_a_late_subscriber_that_fails_on_an_object_hears_of_the_others() -> None:
    world = ScriptedCluster()
    for name in ("a", "bad", "c"):
        world.put(name)
    informer = informer_of(world)
    async with running(informer):
        await settle(lambda: informer.has_synced)
        names: list[str] = []

        def handler(old: JsonObject | None, new: JsonObject | None) -> None:
            _fails_on("bad")(old, new)
            names.append((new or {})["metadata"]["name"])

        informer.subscribe(handler)
        assert names == ["a", "c"]
        assert [key.name for key in informer.aside] == ["bad"]


async def test_an_object_that_cannot_be_read_is_set_aside_by_name_from_the_first_state_on() -> None:
    world = ScriptedCluster()
    world.put("good")
    world.unread["bad"] = world.put("bad")
    informer = informer_of(world)
    async with running(informer):
        await settle(lambda: informer.has_synced)
        assert [obj["metadata"]["name"] for obj in informer.list()] == ["good"]
        assert informer.aside == {Key("n", "bad"): "too deep"}
        with pytest.raises(Unavailable, match="n/bad is set aside: too deep"):
            informer.get("n", "bad")
        world.unread.clear()
        world.put("bad")
        await settle(lambda: not informer.aside)
        assert informer.get("n", "bad") == world.objects["bad"]


async def test_an_object_that_becomes_unreadable_keeps_its_last_state_and_is_not_taken_for_deleted() -> None:
    world = ScriptedCluster()
    good = world.put("a")
    informer = informer_of(world)
    mirror = Mirror()
    informer.subscribe(mirror)
    async with running(informer):
        await settle(lambda: informer.has_synced)
        world.unread["a"] = good
        world.put("a", 7)
        await settle(lambda: bool(informer.aside))
        assert informer.get("n", "a") == good
        world.expire()
        world.put("b")
        await settle(lambda: len(informer.list()) == 2)
        assert informer.get("n", "a") == good
        assert mirror.objects.keys() == {"a", "b"}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcde")),
        st.tuples(st.just("remove"), st.sampled_from("abcde")),
        st.tuples(st.just("replace"), st.sampled_from("abcde")),
        st.tuples(
            st.sampled_from(["bookmark", "close", "break", "compact", "expire", "fail", "run", "run"]), st.just("")
        ),
    ),
    max_size=40,
)


def step(world: ScriptedCluster, action: str, name: str, value: int) -> None:
    """One thing that happens to the cluster."""
    actions: dict[str, Callable[[], Any]] = {
        "put": lambda: world.put(name, value),
        "remove": lambda: world.remove(name),
        "replace": lambda: world.replace(name, value),
        "bookmark": world.bookmark,
        "close": world.disconnect,
        "break": lambda: world.disconnect(Unavailable("broken")),
        "compact": world.compact,
        "expire": world.expire,
        "fail": lambda: world.fail_next(Unavailable("down")),
    }
    actions[action]()


@given(STEPS, st.lists(st.integers(0, 6), min_size=1, max_size=10))
def test_the_cache_converges_and_every_changed_key_is_announced(steps: list[tuple[str, str]], pace: list[int]) -> None:
    async def scenario() -> None:
        world = ScriptedCluster()
        world.put("a")
        informer, mirror = informer_of(world), Mirror()
        informer.add_index("value", lambda obj: [str(obj["value"])])
        informer.subscribe(mirror)
        async with running(informer):
            for number, (action, name) in enumerate(steps):
                if action != "run":
                    step(world, action, name, number)
                for _ in range(pace[number % len(pace)] + (5 if action == "run" else 0)):
                    await asyncio.sleep(0)
            await settle(lambda: {obj["metadata"]["name"]: obj for obj in informer.list()} == world.objects)
            assert not informer.aside, "the mirror raised"
        assert mirror.objects == world.objects
        for obj in world.objects.values():
            assert obj in informer.by_index("value", str(obj["value"]))

    asyncio.run(scenario())


async def test_those_who_ask_for_the_same_get_the_same_informer() -> None:
    world = ScriptedCluster()
    informers = Informers(cast("Cluster", world), clock=VirtualClock(), entropy=FixedEntropy())
    early = informers.of(THING)
    assert informers.unsynced() == ["pods"]
    async with informers:
        assert informers.of(THING) is early
        other = informers.of(THING, Scope("elsewhere"), indexers={"name": lambda obj: [obj["metadata"]["name"]]})
        await informers.synced()
        assert informers.unsynced() == []
        assert other is not early
    assert len(world.opened) == 2


async def test_two_indexes_of_one_name_are_refused() -> None:
    informers = Informers(cast("Cluster", ScriptedCluster()), clock=VirtualClock(), entropy=FixedEntropy())
    informers.of(THING, indexers={"x": lambda _obj: []})
    with pytest.raises(InformerError):
        informers.of(THING, indexers={"x": lambda _obj: []})


async def test_the_end_of_the_block_ends_every_watch() -> None:
    world = ScriptedCluster()
    tasks = len(asyncio.all_tasks())
    async with Informers(cast("Cluster", world), clock=VirtualClock(), entropy=FixedEntropy()) as informers:
        informers.of(THING)
        await informers.synced()
        assert len(asyncio.all_tasks()) == tasks + 1
    assert len(asyncio.all_tasks()) == tasks


async def test_a_hostile_object_takes_no_block_down_and_readiness_can_name_it() -> None:
    world = ScriptedCluster()
    async with Informers(cast("Cluster", world), clock=VirtualClock(), entropy=FixedEntropy()) as informers:
        informers.of(THING).subscribe(_fails_on("bad"))
        world.put("bad")
        world.put("good")
        await settle(lambda: len(informers.of(THING).list()) == 2)
        assert informers.set_aside() == [f"{THING.plural} n/bad: a reader fails on it: ZeroDivisionError('bad')"]
