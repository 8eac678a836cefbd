"""The whole agent over the drivers of real hosts, whose programs are stood in for: a node follows its config through reboots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.ports import OperatingSystem
from fastness.agent.errors import AgentError
from fastness.agent.host.image_host import detect
from fastness.agent.host.states import File
from fastness.cli.support.cluster_health import drivers
from fastness.kinds.machineconfiguration import names
from tests.component.agent.cluster import Play
from tests.component.agent.directory_machine import file, make_machine, rendered
from tests.component.agent.host.os_machines import (
    BASE,
    LOST,
    A,
    Pauses,
    boot_loader,
    bootc,
    commands,
    machine_at,
    rpm_ostree,
)
from tests.embedded.fixtures import Embedded
from tests.standins.os_engine import Machine

PLAIN = rendered("rendered-worker-plain")
OVERRIDE = rendered("rendered-worker-override", osImageURL=A, kernelArguments=["nosmt"])
LOADER = rendered("rendered-worker-loader", files=[file(names.BOOT_LOADER_FILE, "update\n")], osImageURL=A)
UNKNOWN = rendered("rendered-worker-unknown", osImageURL=LOST)


class EnginePlay(Play):
    """A node on a machine of a stand-in."""

    engine: Machine


@pytest.fixture(params=[rpm_ostree, bootc])
async def play(
    request: pytest.FixtureRequest, embedded_server: Embedded, tmp_path: Path, monkeypatch: Any
) -> EnginePlay:
    driver: Callable[[Machine], OperatingSystem] = request.param
    engine, machine = machine_at(tmp_path / "engine"), make_machine(tmp_path / "w0")
    machine.host = replace(machine.host, system=driver(engine), boot_loader=boot_loader(engine))
    engine.change(loaders={A.partition("@")[2]: "shim 15.8"})
    power = machine.power

    def reboot() -> None:
        engine.reboot()
        power.booted()

    monkeypatch.setattr(machine, "reboot", reboot)
    notes = b'{"%s": "rendered-worker-plain"}' % names.CURRENT_CONFIG.encode()
    machine.host.root.put(names.NODE_ANNOTATIONS_FILE, File(notes))
    play = EnginePlay(embedded_server, machine)
    play.engine = engine
    await play.prepare(PLAIN, OVERRIDE, LOADER, UNKNOWN, current="rendered-worker-plain")
    return play


async def test_an_override_is_booted_read_back_and_taken_back(play: EnginePlay) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-override")
        notes = await play.done("rendered-worker-override")
        assert (notes[names.BOOTED_IMAGE], notes[names.BASE_IMAGE]) == (A, BASE)
        assert play.engine.read()["booted"]["kargs"] == ["root=UUID=1", "nosmt"]
        await play.want("rendered-worker-plain")
        notes = await play.done("rendered-worker-plain")
    assert notes[names.BOOTED_IMAGE] == BASE
    assert play.engine.read()["booted"]["kargs"] == ["root=UUID=1"]
    assert len(play.machine.power.reasons) == 2


async def test_a_deployment_that_is_not_finalized_degrades_the_node_with_what_the_unit_said(play: EnginePlay) -> None:
    power, engine = play.machine.power, play.engine

    def fails() -> None:
        engine.reboot(finalizes=False)
        power.booted()

    play.machine.reboot = fails  # type: ignore[method-assign]
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-override")
        notes = await play.until(
            lambda notes: notes[names.STATE] == "Degraded" and len(power.reasons) == 2
            and names.POST_CONFIG_ACTION not in notes
        )  # fmt: skip
    assert "No space left on device" in notes[names.REASON]
    assert notes[names.CURRENT_CONFIG] == "rendered-worker-plain"
    assert (engine.read()["booted"]["image"], engine.read()["staged"]) == (BASE, None)


@pytest.mark.parametrize(("prefer", "driver"), [(False, "rpm-ostree"), (True, "bootc")])
async def test_a_node_with_both_programs_says_which_one_deploys_it_and_why(
    play: EnginePlay, prefer: bool, driver: str
) -> None:
    choice = detect(
        commands(play.engine, Pauses()), bootc_program=play.engine.program("bootc"),
        rpm_ostree_program=play.engine.program("rpm-ostree"), prefer_bootc=prefer,
    )  # fmt: skip
    play.driver = f"{choice.driver}: {choice.why}"
    async with play.alive():
        notes = await play.until(lambda notes: names.OS_DRIVER in notes)
    assert notes[names.OS_DRIVER].startswith(f"{driver}: ")
    assert "preferred" in notes[names.OS_DRIVER]
    finding = await drivers(play.admin)
    assert ("w0" in finding.found) is not prefer, finding


@pytest.mark.row("003-72")
async def test_an_image_that_comes_up_and_is_refused_by_the_doors_is_left_again(play: EnginePlay) -> None:
    async def prove() -> None:
        if play.engine.read()["booted"]["image"] == A:
            raise AgentError("PCR 4 is no approved value")

    play.prove = prove
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-override")
        notes = await play.until(
            lambda notes: notes[names.STATE] == "Degraded" and len(play.machine.power.reasons) == 2
            and names.POST_CONFIG_ACTION not in notes
        )  # fmt: skip
        assert "PCR 4 is no approved value" in notes[names.REASON]
        assert notes[names.CURRENT_CONFIG] == "rendered-worker-plain"
        assert play.engine.read()["booted"]["image"] == BASE
        assert play.engine.read()["booted"]["kargs"] == ["root=UUID=1"]
        await play.want("rendered-worker-plain")
        await play.done("rendered-worker-plain")
    assert len(play.machine.power.reasons) == 2


async def test_the_boot_loader_comes_with_an_image_only_where_the_configuration_asks_for_it(play: EnginePlay) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-override")
        await play.done("rendered-worker-override")
        entry = await play.mark("AppliedOSImage", "False", "Action during update")
        assert "the boot loader is left as it is: the configuration does not ask for its update" in entry["message"]
        assert play.engine.read()["loader"] == "shim 15.6"
        await play.want("rendered-worker-plain")
        await play.done("rendered-worker-plain")
        await play.want("rendered-worker-loader")
        await play.done("rendered-worker-loader")
        entry = await play.mark("AppliedOSImage", "False", "to rendered-worker-loader")
        assert f"the boot loader is that of {A}" in entry["message"]
    assert play.engine.read()["loader"] == "shim 15.8"


async def test_a_boot_loader_that_cannot_be_updated_holds_nothing_up(play: EnginePlay) -> None:
    play.engine.fault("podman", "run", times=100, text="error: no EFI system partition")
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-loader")
        notes = await play.done("rendered-worker-loader")
        await play.wait_for_event("BootLoaderNotUpdated")
        entry = await play.mark("AppliedOSImage", "False", "to rendered-worker-loader")
    assert "no EFI system partition" in entry["message"]
    assert (notes[names.BOOTED_IMAGE], play.engine.read()["loader"]) == (A, "shim 15.6")


async def test_a_node_says_of_each_failed_update_whether_its_image_was_pulled(play: EnginePlay) -> None:
    # In the words of the two programs: arguments are set after the image came.
    for program, word in (("rpm-ostree", "kargs"), ("bootc", "--source=fastness")):
        play.engine.fault(program, word, times=1000, text="error: no space left")
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-override")
        await play.state("Degraded")
        entry = await play.mark("ImagePulledFromRegistry", "True")
        assert entry["message"].endswith("no space left; its image was pulled")
        assert (await play.mark("AppliedOSImage", "False"))["message"] == entry["message"]
        await play.want("rendered-worker-unknown")
        entry = await play.mark("ImagePulledFromRegistry", "False")
        assert entry["message"].endswith("its image was not pulled")
        for program, word in (("rpm-ostree", "rebase"), ("bootc", "switch")):
            play.engine.fault(program, word, times=1000, text="error: Writing deployment: Input/output error")
        await play.want("rendered-worker-override")
        entry = await play.mark("ImagePulledFromRegistry", "Unknown", "not known")
        assert "Input/output error" in entry["message"]


async def test_an_image_that_is_not_there_leaves_the_machine_as_it_is(play: EnginePlay) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-unknown")
        notes = await play.state("Degraded")
    assert "manifest unknown" in notes[names.REASON]
    assert (play.engine.read()["booted"]["image"], play.engine.read()["staged"]) == (BASE, None)
    assert play.machine.power.reasons == []
