"""Operating system images on one node: what it boots, what it says about it, and what it does when a boot brings another."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.boots import After, Boots
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.failed_boot import read_failed_boot
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.journal import Begin, Phase
from fastness.agent.apply.update import Goal
from fastness.agent.host.errors import FileFailure, ImageFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import Deployment, File, State
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from tests.component.agent.cluster import NODE_NAME, Play
from tests.component.agent.directory_machine import apply, file, make_machine, plan, relevant, rendered, snapshot
from tests.embedded.fixtures import Embedded

BASE, A, B, GONE = (f"registry.example/os@sha256:{digit * 64}" for digit in "0abf")
FILES: list[JsonObject] = [file("/etc/base.conf", "base\n")]
MOTD = [*FILES, file("/etc/motd", "of the override\n")]
PLAIN = rendered("rendered-worker-plain", files=FILES)
OVERRIDE = rendered("rendered-worker-override", files=MOTD, osImageURL=A, kernelArguments=["nosmt"])
OTHER = rendered("rendered-worker-other", files=FILES, osImageURL=B)
LOST = rendered("rendered-worker-lost", files=MOTD, osImageURL=GONE)
RENAMED = rendered("rendered-worker-renamed", files=FILES, osImageURL=f"mirror.example/os:9@{BASE.partition('@')[2]}")
REBOOT = ({"type": "Reboot"},)
ALL = (PLAIN, OVERRIDE, OTHER, LOST, RENAMED)


class Registry:
    """A registry that has some images, and counts who asks."""

    def __init__(self) -> None:
        self.images = {A, B, BASE}
        self.pulls: list[str] = []

    def pull(self, reference: str) -> str:
        self.pulls.append(reference)
        if reference not in self.images:
            raise ImageFailure(f"image {reference} cannot be pulled: manifest unknown")
        return reference


class OsPlay(Play):
    """A node whose machine pulls from a registry of the test's."""

    registry: Registry

    @property
    def booted(self) -> Deployment:
        return self.machine.system.booted()

    def content(self, path: str) -> bytes:
        state = self.machine.host.root.look(path)
        return state.content if isinstance(state, File) else b""


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> OsPlay:
    """A node that runs the image it was installed with."""
    registry = Registry()
    machine = make_machine(tmp_path / "w0", installed=BASE, pull=registry.pull)
    machine.host.root.put("/etc/base.conf", File(b"base\n"))
    notes = b'{"%s": "rendered-worker-plain"}' % names.CURRENT_CONFIG.encode()
    machine.host.root.put(names.NODE_ANNOTATIONS_FILE, File(notes))
    play = OsPlay(embedded_server, machine)
    play.registry = registry
    await play.prepare(*ALL, current="rendered-worker-plain")
    return play


async def test_an_override_is_booted_and_taking_it_back_boots_the_base_image(play: OsPlay) -> None:
    async with play.alive():
        await play.settled()
        assert (await play.notes())[names.BASE_IMAGE] == BASE
        await play.want("rendered-worker-override")
        notes = await play.done("rendered-worker-override")
        assert play.booted == Deployment(A, ("nosmt",))
        assert notes[names.BOOTED_IMAGE] == A
        assert await _images_of(play, A) == {"currentImage": A, "desiredImage": A}
        await play.want("rendered-worker-plain")
        notes = await play.done("rendered-worker-plain")
    assert play.booted == Deployment(BASE)
    assert (notes[names.BOOTED_IMAGE], notes[names.BASE_IMAGE]) == (BASE, BASE)
    assert len(play.machine.power.reasons) == 2


async def test_a_node_shows_what_it_booted_and_what_it_could_not_reach(play: OsPlay) -> None:
    async with play.alive():
        await play.settled()
        assert await _images_of(play, BASE) == {"currentImage": BASE, "desiredImage": BASE}
        await play.want("rendered-worker-lost")
        await play.state("Degraded")
        assert await _images_of(play, GONE) == {"currentImage": BASE, "desiredImage": GONE}


async def test_an_image_that_no_registry_has_degrades_the_node_and_changes_nothing(play: OsPlay) -> None:
    async with play.alive():
        await play.settled()
        before = play.content("/etc/motd")
        await play.want("rendered-worker-lost")
        notes = await play.state("Degraded")
        assert "manifest unknown" in notes[names.REASON]
        assert GONE in notes[names.REASON]
        assert notes[names.CURRENT_CONFIG] == "rendered-worker-plain"
        assert (play.booted, play.machine.system.staged()) == (Deployment(BASE), None)
        assert play.content("/etc/motd") == before, "the files of the config went with it"
        for kind in ("ImagePulledFromRegistry", "AppliedOSImage", "AppliedFiles", "UpdateExecuted"):
            entry = await play.mark(kind, "False")
            assert "manifest unknown" in entry["message"], kind
        play.registry.images.add(GONE)
        await play.done("rendered-worker-lost")
    assert play.booted == Deployment(GONE)
    assert len(play.machine.power.reasons) == 1


@pytest.mark.parametrize(("broken", "pulled"), [("/etc/motd", "False"), (names.CURRENT_CONFIG_FILE, "True")])
async def test_a_file_that_cannot_be_written_says_nothing_of_a_pull_that_worked(
    play: OsPlay, monkeypatch: Any, broken: str, pulled: str
) -> None:
    """Files come before the image, the record of the config after it."""
    put = RootedFiles.put

    def failing(self: RootedFiles, path: str, state: State, **more: Any) -> None:
        if path == broken and isinstance(state, File) and b"override" in state.content:
            raise FileFailure(f"{path}: No space left on device")
        put(self, path, state, **more)

    async with play.alive():
        await play.settled()
        monkeypatch.setattr(RootedFiles, "put", failing)
        await play.want("rendered-worker-override")
        entry = await play.mark("ImagePulledFromRegistry", pulled, "No space left on device")
        assert entry["message"].endswith("its image was pulled" if pulled == "True" else "its image was not pulled")
        assert (await play.mark("AppliedOSImage", "False"))["message"] == entry["message"]
        assert (play.registry.pulls != []) == (pulled == "True")
        monkeypatch.undo()
        await play.done("rendered-worker-override")


async def test_a_node_says_how_far_another_image_came_and_nothing_of_images_otherwise(play: OsPlay) -> None:
    async with play.alive():
        await play.settled()
        assert (await play.mark("AppliedOSImage", "False"))["reason"] == "NotYetOccurred"
        await play.want("rendered-worker-renamed")
        await play.done("rendered-worker-renamed")
        assert (await play.mark("ImagePulledFromRegistry", "False"))["reason"] == "NotYetOccurred"
        assert "rendered-worker-renamed" in (await play.mark("AppliedFiles", "False"))["message"]
        await play.want("rendered-worker-override")
        await play.done("rendered-worker-override")
        await play.settled()
        for kind in ("ImagePulledFromRegistry", "AppliedOSImage"):
            entry = await play.mark(kind, "False")
            assert entry["reason"] == f"UpdateExecuted{kind}"
            assert entry["message"].startswith("Action during update to rendered-worker-override: wrote")
            assert A in entry["message"]


async def test_another_name_of_the_image_that_runs_needs_no_pull_and_no_reboot(play: OsPlay) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-renamed")
        await play.done("rendered-worker-renamed")
    assert (play.registry.pulls, play.machine.power.reasons) == ([], [])


async def test_a_system_that_does_not_come_up_is_undone_remembered_and_not_tried_again(
    play: OsPlay, monkeypatch: Any
) -> None:
    async with play.alive():
        await play.settled()
        before = play.content("/etc/motd")
        monkeypatch.setattr(play.machine, "reboot", play.machine.power_cut)
        await play.want("rendered-worker-override")
        # Said once by the boot that failed, and again by the one that came back from it.
        notes = await play.until(lambda notes: "did not bring it" in notes.get(names.REASON, ""))
        await play.when(lambda: _rebooted(play, 2))
        notes = await play.until(
            lambda notes: notes[names.STATE] == "Degraded" and names.POST_CONFIG_ACTION not in notes
            and notes[names.CURRENT_CONFIG] == "rendered-worker-plain"
        )  # fmt: skip
        assert f"booted {BASE}, expected {A}" in notes[names.REASON]
        assert f"the last shutdown said: no clean shutdown: {A}" in notes[names.REASON]
        assert (await play.mark("AppliedOSImage", "False"))["reason"] == "UpdateExecutedAppliedOSImage"
        assert (await play.mark("ImagePulledFromRegistry", "True"))["reason"] == "UpdateExecutedImagePulledFromRegistry"
        assert play.content("/etc/motd") == before
        assert (disk.read_current(play.machine.host.root) or {})["metadata"]["name"] == "rendered-worker-plain"
        # Whatever wakes the agent, it does not reboot for the same system again.
        await play.annotate(**{"fastness.dev/drift-policy": "repair"})
        await play.annotate(**{"fastness.dev/drift-policy": None})
        assert len(play.machine.power.reasons) == 2
        monkeypatch.undo()
        await play.want("rendered-worker-other")
        await play.done("rendered-worker-other")
    assert play.booted == Deployment(B)
    assert read_failed_boot(play.machine.host.state) is None


async def test_somebody_on_the_machine_can_force_another_try_of_what_failed(play: OsPlay, monkeypatch: Any) -> None:
    async with play.alive():
        await play.settled()
        monkeypatch.setattr(play.machine, "reboot", play.machine.power_cut)
        await play.want("rendered-worker-override")
        await play.when(lambda: _rebooted(play, 2))
        await play.until(lambda notes: notes[names.STATE] == "Degraded" and names.POST_CONFIG_ACTION not in notes)
        monkeypatch.undo()
        play.machine.host.root.put(names.FORCE_FILE, File(b""))
        await play.annotate(**{"fastness.dev/drift-policy": "repair"})
        await play.done("rendered-worker-override")
    assert play.booted.image == A


async def test_a_machine_whose_base_nobody_recorded_says_so_and_stays_where_it_is(play: OsPlay) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-override")
        await play.done("rendered-worker-override")
    (play.machine.root / names.BASE_IMAGE_FILE.lstrip("/")).unlink()
    async with play.alive():
        await play.until(lambda notes: notes.get(names.BASE_IMAGE) == names.UNKNOWN_IMAGE)
        await play.want("rendered-worker-plain")
        notes = await play.state("Degraded")
        assert "no base image known" in notes[names.REASON]
        assert notes[names.CURRENT_CONFIG] == "rendered-worker-override"
        play.machine.host.root.put(names.BASE_IMAGE_FILE, File(f"{B}\n".encode()))
        await play.done("rendered-worker-plain")
    assert play.booted.image == B


async def test_what_somebody_staged_beside_the_config_is_dropped_before_the_node_is_done(play: OsPlay) -> None:
    play.machine.system.stage(Deployment(B))
    async with play.alive():
        await play.settled()
        assert play.machine.system.staged() is None
        await play.wait_for_event("StagedImageDropped")
    play.machine.reboot()
    assert play.booted == Deployment(BASE)


class Killed(BaseException):
    """The machine dies."""


def update_until(machine: DirectoryMachine, config: JsonObject, point: int | str) -> list[str]:
    """An update of the machine as its agent drives it, until the power fails; the points that it came to."""
    points: list[str] = []

    def reached(name: str) -> None:
        points.append(name)
        if point in (len(points), name):
            raise Killed(name)

    current = disk.goal(machine.host.root, disk.read_current(machine.host.root) or {})
    goal = disk.goal(machine.host.root, config)
    begin = Begin(current.name, goal.name, REBOOT, False, goal.desired.deployment.image, machine.power.boot_id())
    with suppress(Killed):
        applier = Applier(machine.host, reached)
        applier.apply(begin, plan(machine, current, config))
        applier.booting()
    return points


def start(machine: DirectoryMachine) -> tuple[After | None, str]:
    """What an agent does at its start, until it is at rest or asks for a reboot, which the machine then does."""
    applier = Applier(machine.host)
    applier.recover()
    if applier.journal.phase is Phase.IDLE:
        return None, ""
    resumed = Boots(machine.host, applier).resume()
    if resumed.after in (After.REBOOT, After.FAILED):
        applier.booting()
        machine.reboot()
    return resumed


def installed(directory: Path) -> tuple[DirectoryMachine, dict[str, object]]:
    machine = make_machine(directory, installed=BASE, pull=Registry().pull)
    disk.record_base_image(machine.host.root, machine.system, {})
    apply(machine, Goal({}, Desired()), PLAIN)
    machine.reboot()
    return machine, snapshot(machine.root)


def test_power_that_fails_at_any_step_leaves_the_old_or_the_new_and_says_which(tmp_path: Path) -> None:
    machine, _ = installed(tmp_path / "count")
    total = len(update_until(machine, OVERRIDE, 0))
    assert total > 8
    for point in range(1, total + 1):
        machine, before = installed(tmp_path / str(point))
        points = update_until(machine, OVERRIDE, point)
        machine.power_cut()
        after, reason = start(machine)
        while after in (After.REBOOT, After.FAILED):
            assert not reason or A in reason
            after, reason = start(machine)
        # What was staged is lost with the power, so nothing of the update may be left, whatever its journal came to.
        assert machine.system.booted() == Deployment(BASE), points
        assert relevant(snapshot(machine.root)) == relevant(before), points
        assert (disk.read_current(machine.host.root) or {})["metadata"]["name"] == "rendered-worker-plain", points
        asked = "booting" in points
        assert (read_failed_boot(machine.host.state) is not None) == asked, "remembered only if a reboot was asked for"


def test_an_agent_that_dies_at_any_step_ends_where_it_began_or_where_it_went(tmp_path: Path) -> None:
    """The process dies, the machine runs on and keeps what was staged."""
    machine, _ = installed(tmp_path / "count")
    total = len(update_until(machine, OVERRIDE, 0))
    for point in range(1, total + 1):
        machine, before = installed(tmp_path / str(point))
        points = update_until(machine, OVERRIDE, point)
        boots = 0
        while (after := start(machine)[0]) is not None and boots < 5:
            boots += after is After.REBOOT
        committed = "commit" in points
        assert boots == int(committed), points
        assert machine.system.booted() == (Deployment(A, ("nosmt",)) if committed else Deployment(BASE)), points
        assert committed or relevant(snapshot(machine.root)) == relevant(before), points
        assert machine.system.staged() is None, points


async def test_power_that_fails_before_the_reboot_begins_the_update_anew(play: OsPlay) -> None:
    """Committed, not yet asked to reboot: what was staged is lost, and the one reboot for this system is still to come."""
    async with play.alive():
        await play.settled()
    machine = play.machine
    assert update_until(machine, OVERRIDE, "commit")[-1] == "commit"
    machine.power_cut()
    await play.want("rendered-worker-override")
    async with play.alive():
        await play.done("rendered-worker-override")
    assert play.booted.image == A
    assert len(machine.power.reasons) == 1
    assert read_failed_boot(machine.host.state) is None


async def _images_of(play: Play, goal: str) -> JsonObject:
    """What the MachineConfigNode says of images, once it goes to this one."""
    images: JsonObject = {}

    async def so() -> bool:
        nonlocal images
        node = await play.admin.get(MACHINE_CONFIG_NODE.resource, NODE_NAME)
        images = (node.get("status") or {}).get("configImage") or {}
        return images.get("desiredImage") == goal

    await play.when(so)
    return images


async def _rebooted(play: Play, times: int) -> bool:
    return len(play.machine.power.reasons) >= times
