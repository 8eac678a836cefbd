"""Boards keep their identity over boots and measure what they are made to boot."""

from __future__ import annotations

import pytest

from fastness.sim import swtpm
from fastness.sim.hardware import AS_IT_SHOULD, TEES, Conditions, Silicon, Tee
from fastness.sim.swtpm import extensions
from fastness.sim.tee import SimVendor, default_image
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.tpm import TpmMachine

VENDOR = SimVendor()


async def booted(board: Silicon, conditions: Conditions = AS_IT_SHOULD) -> SimAttester:
    attester = await board.power_on(conditions)
    assert isinstance(attester, SimAttester)
    return attester


@pytest.mark.parametrize("tee", TEES)
async def test_every_boot_of_a_board_has_the_same_identity_and_boards_differ(tee: Tee) -> None:
    board = Silicon(VENDOR, tee, serial=7)
    conditions = [AS_IT_SHOULD, Conditions(boot_loader=True), Conditions(old_firmware=True), Conditions(replay=True)]
    identities = {await (await booted(board, condition)).identity_public() for condition in conditions}
    assert len(identities) == 1
    assert await (await booted(Silicon(VENDOR, tee, serial=8))).identity_public() not in identities
    assert await (await booted(Silicon(VENDOR, tee, serial=7))).identity_public() in identities


@pytest.mark.parametrize("tee", TEES)
async def test_a_changed_boot_loader_changes_what_is_measured(tee: Tee) -> None:
    image = Conditions(boot_loader=True).image(tee)
    good = default_image()
    measured = {
        "tpm": (image.pcrs, good.pcrs),
        "snp": (image.launch_digest, good.launch_digest),
        "tdx": (image.rtmrs, good.rtmrs),
    }
    assert measured[tee][0] != measured[tee][1]
    assert AS_IT_SHOULD.image(tee) is good


@pytest.mark.parametrize("tee", TEES)
async def test_a_recording_answers_every_challenge_alike(tee: Tee) -> None:
    attester = await booted(Silicon(VENDOR, tee, serial=7), Conditions(replay=True))
    assert await attester.evidence(b"one") == await attester.evidence(b"two")
    live = await booted(Silicon(VENDOR, tee, serial=7))
    assert await live.evidence(b"one") != await live.evidence(b"two")


async def test_a_tpm_counts_its_boots() -> None:
    board = Silicon(VENDOR, "tpm", serial=7)
    machines = [(await booted(board)).machine for _ in range(2)]
    assert all(isinstance(machine, TpmMachine) for machine in machines)
    messages = [machine.attest(b"x")[0] for machine in machines if isinstance(machine, TpmMachine)]
    assert messages[0] != messages[1]


def test_a_real_tpm_is_told_the_events_of_the_boot_in_order_for_both_banks() -> None:
    arguments = extensions(default_image())
    assert len(arguments) == len(default_image().events)
    assert all(argument.split(":")[1].startswith("sha256=") and ",sha384=" in argument for argument in arguments)
    assert [int(argument.split(":")[0]) for argument in arguments] == [
        event.register for event in default_image().events
    ]


def test_what_is_not_installed_for_real_tpms_is_named_by_package() -> None:
    def nothing(program: str, path: str) -> str | None:
        return None

    assert swtpm.missing(nothing) == ["swtpm", "swtpm-tools", "tpm2-tools"]
    assert swtpm.missing(lambda program, path: f"/usr/bin/{program}") == []
