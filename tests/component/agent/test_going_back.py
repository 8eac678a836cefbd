"""A node always goes back: from a disk that somebody changed, from an image that somebody booted by hand or nobody believes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.errors import AgentError
from fastness.agent.host.states import Deployment, File
from fastness.kinds.machineconfiguration import names
from fastness.kube.errors import Unavailable
from tests.component.agent.cluster import Play
from tests.component.agent.directory_machine import file, make_machine, rendered, unit
from tests.embedded.fixtures import Embedded

BASE, A, B = (f"registry.example/os@sha256:{digit * 64}" for digit in "0ab")
SHARED = [file("/etc/base.conf", "base\n")]
UNITS = [unit("ours.service")]
OLD = rendered("rendered-worker-old", files=SHARED, units=UNITS)
NEW = rendered("rendered-worker-new", files=[*SHARED, file("/etc/motd", "new\n")], units=UNITS)
IMAGE = rendered("rendered-worker-image", files=SHARED, units=UNITS, osImageURL=A, kernelArguments=["nosmt"])
LINK = "etc/systemd/system/multi-user.target.wants/ours.service"


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    """A node that runs the image it was installed with."""
    machine = make_machine(tmp_path / "w0", installed=BASE)
    play = Play(embedded_server, machine)
    await play.prepare(OLD, NEW, IMAGE, current="rendered-worker-old")
    machine.host.root.put("/etc/base.conf", File(b"base\n"))
    machine.host.root.put("/etc/systemd/system/ours.service", File(str(UNITS[0]["contents"]).encode(), 0o644))
    machine.units.enable(["ours.service"])
    notes = b'{"%s": "rendered-worker-old"}' % names.CURRENT_CONFIG.encode()
    machine.host.root.put(names.NODE_ANNOTATIONS_FILE, File(notes))
    return play


def read(play: Play, path: str) -> str:
    return (play.machine.root / path).read_text()


@pytest.mark.row("003-09")
async def test_a_node_whose_disk_was_changed_goes_back_and_is_well(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
        (play.machine.root / "etc/motd").write_text("by hand\n")
        (play.machine.root / "etc/base.conf").write_text("by hand\n")
        (play.machine.root / LINK).unlink()
        await play.state("Degraded")
        await play.want("rendered-worker-old")
        notes = await play.done("rendered-worker-old")
        assert notes[names.REASON] == ""
        await play.wait_for_event("ConfigDriftReplaced")
    assert (read(play, "etc/motd"), read(play, "etc/base.conf")) == ("of the distribution\n", "base\n")
    assert (play.machine.root / LINK).is_symlink(), "the unit is enabled again, as both configs say"
    assert len(play.machine.power.reasons) == 2, "a file that was put right is read by a boot, as one that changed is"


async def test_another_image_replaces_what_drifted_and_a_config_without_one_does_not(play: Play) -> None:
    async with play.alive():
        await play.settled()
        (play.machine.root / "etc/base.conf").write_text("by hand\n")
        await play.state("Degraded")
        await play.want("rendered-worker-new")
        await play.wait_for_event("PreflightConfigDriftCheckFailed")
        assert read(play, "etc/base.conf") == "by hand\n"
        await play.want("rendered-worker-image")
        await play.done("rendered-worker-image")
    assert read(play, "etc/base.conf") == "base\n"
    assert play.machine.system.booted() == Deployment(A, ("nosmt",))


@pytest.mark.row("003-09")
async def test_a_node_that_boots_another_image_by_hand_goes_back_to_the_one_before(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-image")
        await play.done("rendered-worker-image")
    play.machine.system.stage(Deployment(B))
    play.machine.reboot()
    async with play.alive():
        notes = await play.state("Degraded")
        assert f"booted {B}, expected {A}" in notes[names.REASON]
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    assert play.machine.system.booted() == Deployment(BASE)


async def test_on_a_node_with_an_image_of_its_pool_the_next_boot_puts_right_what_drifted(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.annotate(**{names.DESIRED_IMAGE: A})
        await play.until(lambda notes: notes.get(names.CURRENT_IMAGE) == A and notes[names.STATE] == "Done")
        await play.settled()
        (play.machine.root / "etc/base.conf").write_text("by hand\n")
        await play.state("Degraded")
    # An agent that starts again in the same boot is no boot: what a person changed stays to be seen.
    async with play.alive():
        await play.state("Degraded")
        assert read(play, "etc/base.conf") == "by hand\n"
    play.machine.reboot()
    async with play.alive():
        await play.state("Done")
    assert read(play, "etc/base.conf") == "base\n"


@pytest.mark.row("003-72")
async def test_an_image_that_the_doors_refuse_is_left_again_with_its_files_and_not_tried_twice(play: Play) -> None:
    async def prove() -> None:
        if play.machine.system.booted().image == A:
            raise AgentError("no reference value allows PCR 11")

    play.prove = prove
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-image")
        notes = await play.until(
            lambda notes: notes[names.STATE] == "Degraded" and len(play.machine.power.reasons) == 2
            and names.POST_CONFIG_ACTION not in notes
        )  # fmt: skip
        assert f"came up with {A}" in notes[names.REASON]
        assert "no reference value allows PCR 11" in notes[names.REASON]
        assert notes[names.CURRENT_CONFIG] == "rendered-worker-old"
        assert play.machine.system.booted() == Deployment(BASE)
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    assert len(play.machine.power.reasons) == 2


async def test_doors_that_are_away_are_waited_for_and_nobody_goes_back_for_them(play: Play) -> None:
    answers = [Unavailable("the broker does not answer"), Unavailable("the broker does not answer")]

    async def prove() -> None:
        if answers:
            raise answers.pop()

    play.prove = prove
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-image")
        await play.done("rendered-worker-image")
    assert not answers
    assert len(play.machine.power.reasons) == 1
