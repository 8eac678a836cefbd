"""bootc: what it is told, what it cannot do, and that nothing of a change that failed waits for the next boot."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.host.bootc import COMPOSEFS_FINALIZER, OSTREE_FINALIZER
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.states import Deployment
from tests.component.agent.host.os_machines import BASE, A, B, bootc, machine_at
from tests.standins.os_engine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_at(tmp_path / "machine")


def test_a_switch_runs_in_a_unit_of_its_own_with_the_proxy_of_the_node(machine: Machine) -> None:
    bootc(machine).stage(Deployment(f"registry.example/os:9@{A.partition('@')[2]}"))
    [launched] = [call for call in machine.calls() if call.startswith("systemd-run")]
    assert launched.startswith("systemd-run --wait --collect --pipe --quiet -p EnvironmentFile=-/etc/mco/proxy.env")
    assert f"bootc switch {A}" in machine.calls(), "a tag beside a digest says nothing"


def test_signatures_are_enforced_where_the_policy_asks_for_them(machine: Machine) -> None:
    policy = machine.root / "etc/containers/policy.json"
    policy.parent.mkdir(parents=True)
    policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    bootc(machine).stage(Deployment(A))
    policy.write_text('{"default": [{"type": "reject"}]}')
    bootc(machine).stage(Deployment(B))
    switches = [call for call in machine.calls() if call.startswith("bootc switch")]
    assert switches == [f"bootc switch {A}", f"bootc switch --enforce-container-sigpolicy {B}"]


def test_arguments_are_set_by_their_source_and_keep_the_staged_image(machine: Machine) -> None:
    driver = bootc(machine)
    driver.stage(Deployment(A, ("nosmt", "a=1")))
    assert "bootc loader-entries set-options-for-source --source=fastness --options=nosmt a=1" in machine.calls()
    machine.reboot()
    assert driver.booted() == Deployment(A, ("root=UUID=1", "nosmt", "a=1"))
    driver.stage(Deployment(A), Deployment(A, ("nosmt", "a=1")))
    machine.reboot()
    assert driver.booted() == Deployment(A, ("root=UUID=1",))


def test_arguments_that_bootc_cannot_set_are_refused_before_the_image_is_fetched(machine: Machine) -> None:
    machine.change(loaderEntries=False)
    with pytest.raises(ImageFailure, match="loader-entries is missing"):
        bootc(machine).stage(Deployment(A, ("nosmt",)))
    assert [call for call in machine.calls() if "switch" in call] == []


def test_arguments_inside_a_signed_kernel_image_are_always_refused(machine: Machine) -> None:
    machine.change(composefs="Uki")
    with pytest.raises(ImageFailure, match="inside the signed kernel image"):
        bootc(machine).stage(Deployment(A, ("nosmt",)))
    bootc(machine).stage(Deployment(A))
    assert machine.read()["staged"]["image"] == A


@pytest.mark.parametrize("deployment", [Deployment(A, (), "realtime"), Deployment(A, (), "", ("usbguard",))])
def test_kernels_and_packages_belong_into_the_image(machine: Machine, deployment: Deployment) -> None:
    with pytest.raises(ImageFailure, match="bootc cannot change the kernel or add packages") as raised:
        bootc(machine).stage(deployment)
    assert raised.value.hint == "Bake it into the image of the pool."
    assert machine.calls() == []


def test_an_image_that_was_only_downloaded_is_not_staged(machine: Machine) -> None:
    machine.change(staged={**machine.read()["booted"], "image": A, "downloadOnly": True})
    driver = bootc(machine)
    assert driver.staged() is None
    driver.stage(Deployment(A))
    assert f"bootc switch {A}" in machine.calls()


def test_a_failure_after_the_switch_takes_the_staged_image_back(machine: Machine) -> None:
    machine.fault("bootc", "--source=fastness", text="error: writing loader entry")
    with pytest.raises(ImageFailure, match="writing loader entry"):
        bootc(machine).stage(Deployment(A, ("nosmt",)))
    assert bootc(machine).staged() is None
    assert machine.calls("systemd-run", "bootc status")[-1] == f"bootc switch {BASE}"
    machine.reboot()
    assert machine.read()["booted"]["image"] == BASE


def test_the_unit_that_finalizes_is_that_of_the_backend(machine: Machine) -> None:
    assert bootc(machine).finalizer == OSTREE_FINALIZER
    machine.change(composefs="Bls")
    assert bootc(machine).finalizer == COMPOSEFS_FINALIZER


def test_a_machine_that_bootc_did_not_boot_is_said(machine: Machine) -> None:
    machine.change(booted=None)
    with pytest.raises(ImageFailure, match="bootc did not boot this machine"):
        bootc(machine).booted()
