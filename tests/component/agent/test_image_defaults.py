"""Defaults below /usr on hosts that boot images: /etc is left to people, who changes a file is noticed, going back writes all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.ports import OperatingSystem
from fastness.agent.host.states import File
from fastness.kinds.machineconfiguration import names
from tests.component.agent.cluster import Play
from tests.component.agent.directory_machine import UNIT, file, make_machine, rendered, unit
from tests.component.agent.host.os_machines import A, boot_loader, bootc, machine_at, rpm_ostree
from tests.embedded.fixtures import Embedded
from tests.standins.os_engine import Machine

ARP, THEIRS = "/etc/sysctl.d/arp.conf", "/etc/sysctl.d/theirs.conf"
LINK = "etc/systemd/system/multi-user.target.wants/ours.service"
FILES = [file(ARP, "ours\n", 0o644), file(THEIRS, "ours\n", 0o644), file("/etc/kubernetes/x", "ours\n", 0o644)]
PLAIN = rendered("rendered-worker-plain", files=FILES, units=[unit("ours.service")])
NEWER = rendered("rendered-worker-newer", files=[file(ARP, "newer\n", 0o644), *FILES[1:]], units=[unit("ours.service")])
OURS = {"usr/lib/sysctl.d/arp.conf": "ours\n", "usr/lib/sysctl.d/theirs.conf": "ours\n",
        "usr/lib/systemd/system/ours.service": UNIT}  # fmt: skip


@pytest.fixture(params=[rpm_ostree, bootc])
async def play(
    request: pytest.FixtureRequest, embedded_server: Embedded, tmp_path: Path, monkeypatch: Any
) -> Play:  # fmt: skip
    """A node whose base has a file of its own at one path; an image that was built for its pool has the defaults below /usr."""
    driver: Callable[[Machine], OperatingSystem] = request.param
    engine, machine = machine_at(tmp_path / "engine"), make_machine(tmp_path / "w0")
    machine.host = replace(machine.host, system=driver(engine), boot_loader=boot_loader(engine))
    power = machine.power

    def reboot() -> None:
        engine.reboot()
        power.booted()
        for path, text in OURS.items():
            place = machine.root / path
            place.unlink(missing_ok=True)
            if engine.read()["booted"]["image"] == A:
                machine.host.root.put(f"/{path}", File(text.encode(), 0o644))

    monkeypatch.setattr(machine, "reboot", reboot)
    machine.host.root.put(THEIRS, File(b"of the distribution\n"))
    play = Play(embedded_server, machine)
    await play.prepare(PLAIN, NEWER, rendered("rendered-worker-bare"), current="rendered-worker-bare")
    notes = b'{"%s": "rendered-worker-bare"}' % names.CURRENT_CONFIG.encode()
    machine.host.root.put(names.NODE_ANNOTATIONS_FILE, File(notes))
    return play


def in_etc(play: Play) -> dict[str, str]:
    paths = (ARP, THEIRS, "/etc/kubernetes/x", "/etc/systemd/system/ours.service")
    places = {path: play.machine.root / path.lstrip("/") for path in paths}
    return {path: place.read_text() for path, place in places.items() if place.exists()}


async def on_image(play: Play) -> None:
    await play.settled()
    await play.want("rendered-worker-plain")
    await play.done("rendered-worker-plain")
    assert in_etc(play)[ARP] == "ours\n", "without an image of the pool all of it is in /etc"
    await play.annotate(**{names.DESIRED_IMAGE: A})
    await play.until(lambda notes: notes.get(names.CURRENT_IMAGE) == A and notes[names.STATE] == "Done")
    await play.settled()


@pytest.mark.row("003-78")
@pytest.mark.row("003-79")
async def test_defaults_of_the_image_are_left_to_it_and_who_hides_one_is_noticed(play: Play) -> None:
    async with play.alive():
        await on_image(play)
        expected = {THEIRS: "ours\n", "/etc/kubernetes/x": "ours\n"}
        assert in_etc(play) == expected, "where the distribution has a file of its own, ours stays over it"
        link = play.machine.root / LINK
        assert str(link.readlink()).endswith("/usr/lib/systemd/system/ours.service"), (
            "and the unit still starts at boot"
        )
        boots = len(play.machine.power.reasons)

        (play.machine.root / ARP.lstrip("/")).write_text("by hand\n")
        notes = await play.state("Degraded")
        assert ARP in notes[names.REASON]
        (play.machine.root / ARP.lstrip("/")).unlink()
        await play.state("Done")

        await play.policies(files=[{"path": "/etc/sysctl.d", "actions": [{"type": "None"}]}])
        await play.want("rendered-worker-newer")
        await play.done("rendered-worker-newer")
        assert in_etc(play) == {ARP: "newer\n", **expected}, "what changed wins over the image that is older"
        assert len(play.machine.power.reasons) == boots, "without a reboot"


async def test_a_machine_that_leaves_the_image_has_all_of_it_in_etc_again(play: Play) -> None:
    async with play.alive():
        await on_image(play)
        await play.annotate(**{names.DESIRED_IMAGE: None})
        await play.until(lambda notes: not notes.get(names.CURRENT_IMAGE) and notes[names.STATE] == "Done")
        await play.settled()
        assert in_etc(play) == {
            ARP: "ours\n", THEIRS: "ours\n", "/etc/kubernetes/x": "ours\n", "/etc/systemd/system/ours.service": UNIT,
        }  # fmt: skip
        assert play.machine.units.is_enabled("ours.service") == "enabled"
