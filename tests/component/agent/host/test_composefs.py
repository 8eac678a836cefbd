"""Sealed hosts: an image is booted once beside the one that runs, and whatever goes wrong a boot leads back to that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fastness.agent.host.boot_entries import entry_of
from fastness.agent.host.errors import AnotherImage, ImageFailure
from fastness.agent.host.states import Deployment, Pull
from fastness.formats.composefs import tag_of
from tests.component.agent.host.sealed_machines import (
    LOST,
    ROOTS,
    WRONG,
    A,
    B,
    C,
    driver,
    kernel_image,
    line_of,
    sealed_machine,
)
from tests.standins.sealed_engine import SealedMachine, set_variable


class PowerCut(BaseException):
    """The machine is off."""


@pytest.fixture
def machine(tmp_path: Path) -> SealedMachine:
    return sealed_machine(tmp_path / "machine")


def test_an_image_is_booted_once_and_kept_when_it_proved_itself(machine: SealedMachine) -> None:
    system = driver(machine, processes=True)
    assert system.booted().image == A
    system.stage(Deployment(B))
    waiting = system.staged()
    assert waiting is not None
    assert waiting.image == B
    assert machine.variable("LoaderEntryDefault") == entry_of(A)
    assert machine.boot() == entry_of(B)
    assert system.booted().image == B
    assert system.staged() is None
    assert system.on_trial()
    system.booted_well()
    assert not system.on_trial()
    assert machine.boot() == entry_of(B)


def test_a_machine_that_does_not_keep_it_is_back_after_the_next_boot(machine: SealedMachine) -> None:
    system = driver(machine)
    system.stage(Deployment(B))
    machine.boot()
    assert machine.boot() == entry_of(A)
    assert system.booted().image == A
    assert not system.on_trial()


def test_going_back_is_the_same_way(machine: SealedMachine) -> None:
    system = driver(machine)
    for image in (B, A):
        system.stage(Deployment(image))
        machine.boot()
        system.booted_well()
    assert system.booted().image == A


def test_it_is_pulled_by_digest_with_verity_in_a_unit_of_its_own(machine: SealedMachine) -> None:
    driver(machine).stage(Deployment(f"registry.example/os:9@{B.partition('@')[2]}"))
    (launched,) = [call for call in machine.calls() if call.startswith("systemd-run")]
    assert "-p EnvironmentFile=-/etc/mco/proxy.env" in launched
    assert "-p Environment=REGISTRY_AUTH_FILE=/etc/containers/auth.json" in launched
    assert f"--require-verity oci pull --bootable docker://{B} {tag_of(B)}" in launched


def test_what_runs_is_never_collected_however_it_was_installed(tmp_path: Path) -> None:
    machine = SealedMachine(tmp_path / "machine")
    for image in (A, B):
        machine.publish(image, ROOTS[image], kernel_image(line_of(image)), line_of(image))
    machine.install(A, tag_of(A), entry_of(A), bootable=False)
    machine.boot()
    driver(machine).stage(Deployment(B))
    assert machine.boot() == entry_of(B)
    assert machine.boot() == entry_of(A)


@pytest.mark.parametrize("word", ["set-default", "gc", "pull", "prepare-boot", "set-oneshot"])
def test_after_a_power_cut_before_any_step_a_boot_leads_to_the_image_that_works(
    machine: SealedMachine, word: str
) -> None:
    set_variable(machine.directory, "LoaderEntryDefault", "")

    def cut(command: Sequence[str]) -> None:
        if word in command:
            raise PowerCut

    with pytest.raises(PowerCut):
        driver(machine, cut).stage(Deployment(B))
    assert machine.boot() == entry_of(A)
    system = driver(machine)
    system.stage(Deployment(B))
    assert machine.boot() == entry_of(B)
    assert machine.boot() == entry_of(A), "it was not kept"


@pytest.mark.parametrize("size", [0, 1, 700])
def test_a_kernel_image_that_was_half_written_is_written_anew(machine: SealedMachine, size: int) -> None:
    place = machine.boot_partition / "EFI" / "Linux" / entry_of(B)
    place.write_bytes(kernel_image(line_of(B))[:size])
    assert machine.boot() == entry_of(A)
    driver(machine).stage(Deployment(B))
    assert machine.boot() == entry_of(B)


def test_a_full_data_disk_leaves_the_machine_where_it_is_with_nothing_of_the_image(machine: SealedMachine) -> None:
    machine.change(dataSize=1500)
    with pytest.raises(ImageFailure, match="No space left") as raised:
        driver(machine).stage(Deployment(B))
    assert raised.value.pull is not Pull.DONE
    assert machine.boot() == entry_of(A)
    machine.change(dataSize=2000)
    driver(machine).stage(Deployment(B))
    assert machine.boot() == entry_of(B)


def test_an_image_of_before_gives_its_room_to_a_new_one(machine: SealedMachine) -> None:
    machine.change(dataSize=2000)
    system = driver(machine)
    for image in (B, C):
        system.stage(Deployment(image))
        assert machine.boot() == entry_of(image)
        system.booted_well()
    assert machine.entries() == [entry_of(B), entry_of(C)]
    assert {each["name"] for each in machine.read()["stored"]} == {tag_of(B), tag_of(C)}


def test_a_system_partition_that_is_too_small_is_said_and_nothing_is_booted(machine: SealedMachine) -> None:
    machine.change(espSize=len(kernel_image(line_of(A))) + 100)
    with pytest.raises(ImageFailure, match="No space left") as raised:
        driver(machine).stage(Deployment(B))
    assert raised.value.pull is Pull.DONE
    assert machine.entries() == [entry_of(A)], "no part of it stays"
    assert machine.boot() == entry_of(A)


def test_a_kernel_image_for_another_root_is_refused_when_the_boot_is_prepared(machine: SealedMachine) -> None:
    with pytest.raises(ImageFailure, match="wrong composefs"):
        driver(machine).stage(Deployment(WRONG))
    assert machine.variable("LoaderEntryOneShot") == ""
    assert machine.boot() == entry_of(A)


def test_it_is_refused_all_the_same_where_the_program_does_not_notice(machine: SealedMachine) -> None:
    machine.publish(WRONG, ROOTS[WRONG], kernel_image(line_of(C)), line_of(C), sloppy=True)
    with pytest.raises(AnotherImage, match="names another root"):
        driver(machine).stage(Deployment(WRONG))
    assert machine.entries() == [entry_of(A)]
    assert machine.boot() == entry_of(A)


@pytest.mark.parametrize("line", ["quiet", "composefs.digest=?v1-sha512-12:{root}", "{root}", "{karg} {karg}"])
def test_a_line_that_does_not_bind_its_root_is_no_seal(machine: SealedMachine, line: str) -> None:
    written = line.format(root=ROOTS[B], karg=line_of(B).split()[0])
    machine.publish(B, ROOTS[B], kernel_image(written), written, sloppy=True)
    with pytest.raises(AnotherImage, match="names another root"):
        driver(machine).stage(Deployment(B))


def test_another_manifest_than_the_one_that_was_asked_for_is_not_booted(machine: SealedMachine) -> None:
    machine.change(lies={B.partition("@")[2]: C.partition("@")[2]})
    with pytest.raises(AnotherImage, match="instead of"):
        driver(machine).stage(Deployment(B))
    assert machine.boot() == entry_of(A)


def test_an_image_that_is_not_in_its_registry_is_said(machine: SealedMachine) -> None:
    with pytest.raises(ImageFailure, match="manifest unknown") as raised:
        driver(machine).stage(Deployment(LOST))
    assert raised.value.pull is Pull.FAILED


def test_a_registry_that_fails_for_a_while_is_asked_again(machine: SealedMachine) -> None:
    machine.fault("cfsctl", "pull", times=2, text="error: pinging container registry: connection refused")
    driver(machine).stage(Deployment(B))
    assert machine.boot() == entry_of(B)


@pytest.mark.parametrize("verb", ["set-default", "set-oneshot"])
def test_a_variable_that_firmware_does_not_keep_is_noticed(machine: SealedMachine, verb: str) -> None:
    set_variable(machine.directory, "LoaderEntryDefault", "")
    machine.change(forgets=[verb])
    with pytest.raises(ImageFailure, match=f"after `bootctl {verb}"):
        driver(machine).stage(Deployment(B))


def test_a_tag_alone_is_not_enough(machine: SealedMachine) -> None:
    with pytest.raises(ImageFailure, match="names no digest"):
        driver(machine).stage(Deployment("registry.example/os:9"))
    assert not [call for call in machine.calls() if "pull" in call]


def test_arguments_are_those_of_the_image(machine: SealedMachine) -> None:
    system = driver(machine)
    with pytest.raises(ImageFailure, match="inside of the measured image"):
        system.stage(Deployment(A, ("nosmt",)))
    with pytest.raises(ImageFailure, match="lacks nosmt on its line"):
        system.stage(Deployment(B, ("nosmt",)))
    machine.publish(B, ROOTS[B], kernel_image(line_of(B, "nosmt")), line_of(B, "nosmt"))
    system.stage(Deployment(B, ("nosmt",)))
    machine.boot()
    assert "nosmt" in system.booted().arguments


@pytest.mark.parametrize("deployment", [Deployment(B, (), "realtime"), Deployment(B, (), "", ("usbguard",))])
def test_kernels_and_packages_belong_into_the_image(machine: SealedMachine, deployment: Deployment) -> None:
    with pytest.raises(ImageFailure, match="its own kernel and packages"):
        driver(machine).stage(deployment)


def test_what_waits_is_dropped_and_replaced(machine: SealedMachine) -> None:
    system = driver(machine)
    system.stage(Deployment(B))
    system.stage(Deployment(C))
    waiting = system.staged()
    assert waiting is not None
    assert waiting.image == C
    system.discard()
    assert system.staged() is None
    assert machine.boot() == entry_of(A)


def test_a_third_image_does_not_keep_one_that_is_on_trial(machine: SealedMachine) -> None:
    system = driver(machine)
    system.stage(Deployment(B))
    machine.boot()
    system.stage(Deployment(C))
    assert machine.variable("LoaderEntryDefault") == entry_of(A)
    assert machine.boot() == entry_of(C)
    assert machine.boot() == entry_of(A)


def test_the_first_image_may_have_any_name(tmp_path: Path) -> None:
    machine = SealedMachine(tmp_path / "machine")
    for image in (A, B):
        machine.publish(image, ROOTS[image], kernel_image(line_of(image)), line_of(image))
    machine.install(A, "installer", "linux-a.efi")
    machine.boot()
    system = driver(machine)
    assert system.booted().image.endswith(A.partition("@")[2])
    assert not system.on_trial()
    system.stage(Deployment(B))
    assert machine.variable("LoaderEntryDefault") == "linux-a.efi"
    assert machine.boot() == entry_of(B)
    assert machine.boot() == "linux-a.efi"


def test_a_machine_without_a_root_on_its_line_is_no_sealed_host(machine: SealedMachine) -> None:
    machine.change(running="quiet")
    with pytest.raises(ImageFailure, match="no sealed image is booted"):
        driver(machine).booted()


def test_a_root_that_the_repository_lacks_is_said(machine: SealedMachine) -> None:
    machine.change(stored=[])
    with pytest.raises(ImageFailure, match="not in the repository"):
        driver(machine).booted()
