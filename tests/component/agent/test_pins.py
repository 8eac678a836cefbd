"""Pinned images on a node, against a real API: pulled, verified, pinned, told; and every fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.pins.loop import PinnedImages
from fastness.agent.apply.pins.plan import Pace
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.memory_images import MemoryImages
from fastness.agent.host.states import File
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.machineconfiguration.pinned_images import PINNED_IMAGE_SET
from fastness.kinds.objects import condition
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemClock
from fastness.runtime.retries import Backoff
from tests.component.agent.cluster import NODE_NAME, QUICK_PINS, Play
from tests.component.agent.directory_machine import file, make_machine, rendered
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy

SETS = PINNED_IMAGE_SET.resource
CONFIG = rendered("rendered-worker-old", files=[file("/etc/base.conf", "base\n")])
GIB = 1024**3


def image(name: str) -> str:
    return f"quay.example/team/{name}@sha256:{name.encode().hex():0<64}"


class Runtime(MemoryImages):
    """A container runtime that fails as it is told to."""

    def __init__(self, sizes: dict[str, int] | None = None) -> None:
        super().__init__(sizes=sizes)
        self.pulls: list[str] = []
        self.hangs: set[str] = set()
        self.cancelled: set[str] = set()
        self.refuses_pins = ""
        self.missing_pins: set[str] = set()
        self.hiccups = 0

    async def size(self, image: str) -> int:
        if self.hiccups:
            self.hiccups -= 1
            raise ImageFailure("the registry is busy")
        return await super().size(image)

    async def pull(self, image: str) -> None:
        self.pulls.append(image)
        if image in self.hangs:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.add(image)
                raise
        await super().pull(image)

    async def pin(self, images: Sequence[str]) -> None:
        if self.refuses_pins and images:
            raise ImageFailure(self.refuses_pins)
        await super().pin(images)

    async def look(self, images: Sequence[str]) -> dict[str, bool]:
        present = await super().look(images)
        return {name: pinned and name not in self.missing_pins for name, pinned in present.items()}

    def pinned(self) -> set[str]:
        return {name for name, pinned in self._images.items() if pinned}

    def drop(self, image: str) -> None:
        del self._images[image]


class Pins:
    """A node, and what its MachineConfigNode says about pinned images."""

    def __init__(self, play: Play, runtime: Runtime) -> None:
        self.play = play
        self.runtime = runtime

    async def store(self, name: str, *images: str) -> None:
        """A set as its user writes it."""
        spec = {"pinnedImages": [{"name": each} for each in images]}
        body = {"apiVersion": names.API_VERSION, "kind": "PinnedImageSet", "metadata": {"name": name}, "spec": spec}
        await self.play.admin.create(SETS, body)

    async def change(self, name: str, *images: str) -> None:
        spec = {"pinnedImages": [{"name": each} for each in images]}
        await self.play.admin.patch(SETS, name, {"spec": spec}, PatchType.MERGE)

    async def note(self, text: str) -> None:
        """What the control plane writes on the Node."""
        await self.play.annotate(**{names.PINNED_IMAGE_SETS: text})

    async def ready(self, storage: str = "100Gi", **conditions: str) -> None:
        stated = {"Ready": "True", **conditions}
        status = {
            "conditions": [{"type": kind, "status": state} for kind, state in stated.items()],
            "allocatable": {"ephemeral-storage": storage},
        }
        options = WriteOptions(subresource="status")
        await self.play.admin.patch(NODE.resource, NODE_NAME, {"status": status}, PatchType.MERGE, "", options)

    async def status(self) -> JsonObject:
        return (await self.play.admin.get(MACHINE_CONFIG_NODE.resource, NODE_NAME)).get("status") or {}

    async def sets(self) -> dict[str, JsonObject]:
        return {entry["name"]: entry for entry in (await self.status()).get("pinnedImageSets") or ()}

    async def until(self, holds: Callable[[dict[str, JsonObject]], Any]) -> dict[str, JsonObject]:
        sets: dict[str, JsonObject] = {}

        async def so() -> bool:
            nonlocal sets
            sets = await self.sets()
            return bool(holds(sets))

        await self.play.when(so)
        return sets

    async def has(self, name: str, generation: int = 1) -> dict[str, JsonObject]:
        """Until a set is current in a generation."""
        return await self.until(lambda sets: (sets.get(name) or {}).get("currentGeneration") == generation)

    async def degraded(self, words: str) -> JsonObject:
        """The condition, once it is True with these words."""
        state: JsonObject = {}

        async def so() -> bool:
            nonlocal state
            state = dict(condition({"status": await self.status()}, "PinnedImageSetsDegraded") or {})
            return state.get("status") == "True" and words in str(state.get("message"))

        await self.play.when(so)
        return state


@pytest.fixture
async def pins(embedded_server: Embedded, tmp_path: Path) -> Pins:
    """A ready node with an agent that is not started yet."""
    machine = make_machine(tmp_path / "w0")
    machine.host.root.put("/etc/base.conf", File(b"base\n"))
    machine.host.root.put(
        names.NODE_ANNOTATIONS_FILE, File(b'{"%s": "rendered-worker-old"}' % names.CURRENT_CONFIG.encode())
    )
    play = Play(embedded_server, machine)
    await play.prepare(CONFIG, current="rendered-worker-old")
    runtime = Runtime()
    machine.images = runtime
    prepared = Pins(play, runtime)
    await prepared.ready()
    return prepared


async def test_images_of_all_sets_are_pulled_once_pinned_and_told(pins: Pins) -> None:
    await pins.store("base", image("a"), image("b"))
    await pins.store("tools", image("b"), image("c"))
    await pins.note("base=1 tools=1")
    async with pins.play.alive():
        await pins.has("base")
        sets = await pins.has("tools")
        assert pins.runtime.pinned() == {image("a"), image("b"), image("c")}
        assert sorted(pins.runtime.pulls) == [image("a"), image("b"), image("c")]
        assert sets["tools"] == {"name": "tools", "desiredGeneration": 1, "currentGeneration": 1}
        for kind in ("PinnedImageSetsProgressing", "PinnedImageSetsDegraded"):
            assert (await pins.play.mark(kind, "False"))["reason"] == "AsExpected"
        # The steps of updates, which another loop reports, stand beside them.
        await pins.play.settled()
        assert (await pins.sets())["base"]["currentGeneration"] == 1


async def test_a_set_that_changes_is_pulled_anew_and_what_left_it_is_let_go(pins: Pins) -> None:
    await pins.store("base", image("a"), image("b"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.has("base")
        await pins.change("base", image("b"), image("c"))
        await pins.note("base=2")
        await pins.has("base", 2)
        assert pins.runtime.pinned() == {image("b"), image("c")}
        await pins.note("")
        await pins.until(lambda sets: not sets)
        assert pins.runtime.pinned() == set()
        assert (await pins.play.mark("PinnedImageSetsDegraded", "False"))["message"] == "no images are pinned"


async def test_a_set_that_was_deleted_and_made_again_begins_anew(pins: Pins) -> None:
    await pins.store("base", image("a"))
    await pins.change("base", image("b"))
    await pins.note("base=2")
    async with pins.play.alive():
        await pins.has("base", 2)
        await pins.play.admin.delete(SETS, "base")
        await pins.store("base", image("c"))
        await pins.note("base=1")
        await pins.has("base", 1)
        assert pins.runtime.pinned() == {image("c")}


async def test_an_image_that_vanished_from_its_registry_is_named_and_nothing_is_pinned(pins: Pins) -> None:
    pins.runtime._sizes = {image("a"): 5}
    await pins.store("base", image("a"), image("gone"))
    await pins.note("base=1")
    async with pins.play.alive():
        state = await pins.degraded(f"{image('gone')}: not found")
        assert state["reason"] == "PrefetchFailed"
        failed = (await pins.sets())["base"]
        assert (failed["desiredGeneration"], failed["lastFailedGeneration"]) == (1, 1)
        assert image("gone") in failed["lastFailedGenerationError"]
        assert "currentGeneration" not in failed
        assert pins.runtime.pinned() == set()
        assert (await pins.play.mark("PinnedImageSetsProgressing", "False"))["reason"] == "PrefetchFailed"
        pins.runtime._sizes = None  # it is back
        assert "lastFailedGeneration" not in (await pins.has("base"))["base"]
        await pins.play.mark("PinnedImageSetsDegraded", "False")


async def test_a_registry_that_is_busy_for_a_moment_is_asked_again_and_nobody_is_told(pins: Pins) -> None:
    pins.runtime.hiccups = 4
    await pins.store("base", image("a"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.has("base")
    assert pins.runtime.hiccups == 0
    assert (condition({"status": await pins.status()}, "PinnedImageSetsDegraded") or {})["status"] == "False"


async def test_a_failure_of_a_new_generation_leaves_what_the_node_has(pins: Pins) -> None:
    pins.runtime._sizes = {image("a"): 5}
    await pins.store("base", image("a"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.has("base")
        await pins.change("base", image("a"), image("gone"))
        await pins.note("base=2")
        await pins.degraded("not found")
        # An image of the new generation is not here, so the set is not whole; the old pin is untouched all the same.
        assert (await pins.sets())["base"]["lastFailedGeneration"] == 2
        assert pins.runtime.pinned() == {image("a")}


async def test_a_pull_that_hangs_is_given_up_after_the_time_and_told(pins: Pins) -> None:
    pins.runtime.hangs = {image("slow")}
    await pins.store("base", image("slow"))
    async with running(pins, Pace(timeout=0.3, pause=0.0, again=Backoff(0.05, 0.1))) as loop:
        await pins.note("base=1")
        loop.noticed(await pins.play.admin.get(NODE.resource, NODE_NAME))
        await pins.degraded("images were not there within")
        assert pins.runtime.cancelled == {image("slow")}
        assert "currentGeneration" not in (await pins.sets())["base"]
        pins.runtime.hangs = set()
        await pins.has("base")


async def test_a_set_that_is_deleted_while_it_is_pulled_stops_the_pull(pins: Pins) -> None:
    pins.runtime.hangs = {image("slow")}
    await pins.store("base", image("slow"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.play.mark("PinnedImageSetsProgressing", "True")
        await pins.play.when(lambda: asyncio.sleep(0, bool(pins.runtime.pulls)))
        await pins.play.admin.delete(SETS, "base")
        await pins.note("")
        await pins.until(lambda sets: not sets)
        assert pins.runtime.cancelled == {image("slow")}
        await pins.play.mark("PinnedImageSetsProgressing", "False")


async def test_a_set_that_is_gone_before_the_note_changes_is_named(pins: Pins) -> None:
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.degraded("PinnedImageSet base does not exist any more")


async def test_a_disk_that_is_full_while_pinning_leaves_nothing_claimed(pins: Pins) -> None:
    pins.runtime.refuses_pins = "no space left on device"
    await pins.store("base", image("a"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.degraded("no space left on device")
        assert "currentGeneration" not in (await pins.sets())["base"]
        pins.runtime.refuses_pins = ""
        await pins.has("base")


async def test_a_runtime_that_does_not_keep_what_it_was_told_is_not_believed(pins: Pins) -> None:
    pins.runtime.missing_pins = {image("b")}
    await pins.store("base", image("a"), image("b"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.degraded(f"images are not pinned: {image('b')}")
        assert "currentGeneration" not in (await pins.sets())["base"]


async def test_an_agent_that_was_killed_half_way_goes_on_with_what_is_there(pins: Pins) -> None:
    pins.runtime.hangs = {image("b")}
    await pins.store("base", image("a"), image("b"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.play.when(lambda: asyncio.sleep(0, len(pins.runtime.pulls) == 2))
    pins.runtime.hangs, pins.runtime.pulls = set(), []
    async with pins.play.alive():
        await pins.has("base")
    assert pins.runtime.pulls == [image("b")]


async def test_an_image_that_somebody_removed_is_pulled_again_at_the_next_look(pins: Pins) -> None:
    await pins.store("base", image("a"))
    await pins.note("base=1")
    async with running(pins, Pace(pause=0.0, again=Backoff(0.01, 0.02), resync=0.05)) as loop:
        loop.noticed(await pins.play.admin.get(NODE.resource, NODE_NAME))
        await pins.has("base")
        pins.runtime.drop(image("a"))
        await pins.play.when(lambda: asyncio.sleep(0, pins.runtime.pinned() == {image("a")}))


@pytest.mark.parametrize(
    ("storage", "conditions", "words"),
    [
        ("15Gi", {}, "storage available is less than minimum required"),
        ("17Gi", {}, "missing images need 1073741824 bytes"),
        ("100Gi", {"Ready": "False"}, "the node is not ready"),
        ("100Gi", {"DiskPressure": "True"}, "disk pressure"),
        ("nonsense", {}, "storage available is less than minimum required"),
    ],
)
async def test_a_node_without_room_or_rest_pulls_nothing(
    pins: Pins, storage: str, conditions: dict[str, str], words: str
) -> None:
    pins.runtime._sizes = {image("a"): GIB // 2}
    await pins.ready(storage, **conditions)
    await pins.store("base", image("a"))
    await pins.note("base=1")
    async with pins.play.alive():
        await pins.degraded(words)
        assert pins.runtime.pulls == []
        await pins.ready()
        await pins.has("base")


async def test_a_node_that_nobody_asked_for_images_says_nothing_about_them(pins: Pins) -> None:
    await pins.runtime.pull(image("a"))
    await pins.runtime.pin([image("a")])
    async with pins.play.alive():
        await pins.play.settled()
    assert pins.runtime.pinned() == {image("a")}
    assert condition({"status": await pins.status()}, "PinnedImageSetsDegraded") is None


@asynccontextmanager
async def running(pins: Pins, pace: Pace = QUICK_PINS) -> AsyncIterator[PinnedImages]:
    """The loop alone, in a time of its own."""
    loop = PinnedImages(pins.play.as_node, lambda: pins.runtime, NODE_NAME, SystemClock(), SeededEntropy(1), pace)
    task = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        task.cancel()
        await asyncio.wait([task])
