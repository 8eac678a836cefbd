"""rpm-ostree: the words it is given, in which order, and what is left when one of them fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.os_steps import DEFAULT_KERNEL, KERNELS
from fastness.agent.host.states import Deployment
from tests.component.agent.host.os_machines import BASE, EXTENSIONS, A, Pauses, machine_at, rpm_ostree
from tests.standins.os_engine import Machine

STATUS = ("rpm-ostree status", "systemd-run")
KERNEL = "rpm-ostree override remove " + " ".join(DEFAULT_KERNEL)
REALTIME = " ".join(f"--install={package}" for package in KERNELS["realtime"])
REBASE = f"rpm-ostree rebase --experimental ostree-unverified-registry:{A}"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_at(tmp_path / "machine")


def words(machine: Machine) -> list[str]:
    """What changed something; the plain `kargs` asks."""
    return [call for call in machine.calls(*STATUS) if call != "rpm-ostree kargs"]


def test_the_whole_sequence_comes_in_its_order(machine: Machine) -> None:
    driver = rpm_ostree(machine)
    driver.stage(
        Deployment(A, ("nosmt", "a=1"), "realtime", ("usbguard", "sysstat")), Deployment("", ("quiet",)), EXTENSIONS
    )
    assert words(machine) == [
        f"podman pull --quiet --authfile=/var/lib/kubelet/config.json {EXTENSIONS}",
        f"podman create --replace --net=none --name=fastness-os-extensions {EXTENSIONS} /unused",
        f"podman cp fastness-os-extensions:/ {machine.directory}/unpacked",
        "rpm-ostree cleanup -p",
        REBASE,
        "rpm-ostree kargs --unchanged-exit-77 --delete-if-present=quiet --append=nosmt --append=a=1",
        f"{KERNEL} {REALTIME}",
        "rpm-ostree update --unchanged-exit-77 --install=sysstat --install=usbguard",
        "podman rm --force fastness-os-extensions",
    ]
    assert any("EnvironmentFile=-/etc/mco/proxy.env" in call and " pull " in call for call in machine.calls())
    machine.reboot()
    assert driver.booted() == Deployment(A, ("root=UUID=1", "nosmt", "a=1"), "realtime", ("usbguard", "sysstat"))
    assert not (machine.directory / "unpacked").exists()
    assert not (machine.root / "etc/yum.repos.d/coreos-extensions.repo").exists()


def test_another_kernel_is_taken_back_before_the_image_changes(machine: Machine) -> None:
    driver = rpm_ostree(machine)
    old = Deployment(BASE, (), "realtime", ("usbguard",))
    driver.stage(old, Deployment(), EXTENSIONS)
    machine.reboot()
    machine.forget_calls()
    driver.stage(Deployment(A), old, EXTENSIONS)
    uninstall = " ".join(f"--uninstall={package}" for package in KERNELS["realtime"])
    changes = [call for call in words(machine) if call.startswith("rpm-ostree")]
    assert changes == [
        "rpm-ostree cleanup -p",
        f"rpm-ostree override reset {' '.join(DEFAULT_KERNEL)} {uninstall}",
        REBASE,
        "rpm-ostree update --unchanged-exit-77 --uninstall=usbguard",
    ]
    machine.reboot()
    assert driver.booted() == Deployment(A, ("root=UUID=1",))


def test_arguments_are_replaced_as_a_whole_and_those_of_others_stay(machine: Machine) -> None:
    driver = rpm_ostree(machine)
    driver.stage(Deployment(BASE, ("b=2", "a=1", "b=2")))
    machine.reboot()
    assert driver.booted().arguments == ("root=UUID=1", "b=2", "a=1", "b=2")
    driver.stage(Deployment(BASE, ("a=1",)), Deployment(BASE, ("b=2", "a=1", "b=2")))
    machine.reboot()
    assert driver.booted().arguments == ("root=UUID=1", "a=1")


def test_nothing_to_change_is_no_failure(machine: Machine) -> None:
    machine.fault("rpm-ostree", "--unchanged-exit-77", status=77, text="No changes.")
    machine.change(staged={"image": BASE, "packages": [], "removals": [], "kargs": ["root=UUID=1", "x"]})
    with pytest.raises(ImageFailure, match="lacks the kernel arguments y"):
        rpm_ostree(machine).stage(Deployment(BASE, ("y",)))
    assert machine.read()["staged"] is None


def test_a_daemon_that_is_busy_is_waited_for_and_one_that_stays_busy_is_told(machine: Machine) -> None:
    pauses = Pauses()
    machine.change(busyFor=3)
    rpm_ostree(machine, pauses).stage(Deployment(A))
    assert list(pauses) == [5.0] * 3
    machine.change(busyFor=1000)
    with pytest.raises(ImageFailure, match="busy with another transaction: upgrade somebody"):
        rpm_ostree(machine, Pauses()).stage(Deployment(BASE))


def test_packages_that_did_not_come_are_a_failure_and_nothing_is_left(machine: Machine) -> None:
    machine.change(forgets=["usbguard"])
    with pytest.raises(ImageFailure, match="the staged deployment lacks usbguard"):
        rpm_ostree(machine).stage(Deployment(A, (), "", ("usbguard",)), Deployment(), EXTENSIONS)
    assert words(machine)[-1] == "rpm-ostree cleanup -p"
    assert machine.read()["staged"] is None


@pytest.mark.parametrize("word", ["rebase", "kargs", "override", "update"])
def test_whichever_step_fails_the_next_boot_is_the_old_system(machine: Machine, word: str) -> None:
    machine.fault("rpm-ostree", word, times=100, text="error: no space left")
    with pytest.raises(ImageFailure, match="no space left"):
        rpm_ostree(machine).stage(Deployment(A, ("x",), "realtime", ("usbguard",)), Deployment(), EXTENSIONS)
    machine.reboot()
    assert machine.read()["booted"]["image"] == BASE
    assert machine.read()["booted"]["packages"] == []


@pytest.mark.parametrize(
    ("deployment", "why"),
    [
        (Deployment(A, (), "", ("no-such-thing",)), "extensions no-such-thing are not supported"),
        (Deployment(A, (), "rt"), "there is no kernel 'rt'"),
        (Deployment(A, (), "realtime", ("kernel-devel",)), "kernel-devel does not fit"),
        (Deployment(A, (), "64k-pages"), "aarch64 only"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_called(
    machine: Machine, deployment: Deployment, why: str
) -> None:
    with pytest.raises(ImageFailure, match=why):
        rpm_ostree(machine).stage(deployment, Deployment(), EXTENSIONS)
    assert machine.calls() == []


def test_packages_without_their_image_are_refused(machine: Machine) -> None:
    with pytest.raises(ImageFailure, match="no image with packages is known"):
        rpm_ostree(machine).stage(Deployment(A, (), "", ("usbguard",)))
    assert machine.calls() == []


def test_packages_that_no_config_brought_stay(machine: Machine) -> None:
    state = machine.read()
    machine.change(booted={**state["booted"], "packages": ["kata-containers", "htop"]})
    driver = rpm_ostree(machine)
    driver.stage(Deployment(A))
    machine.reboot()
    assert machine.read()["booted"]["packages"] == ["kata-containers", "htop"]


def test_a_boot_that_went_well_drops_what_it_would_fall_back_to(machine: Machine) -> None:
    driver = rpm_ostree(machine)
    driver.stage(Deployment(A))
    machine.reboot()
    driver.booted_well()
    assert machine.read()["rollback"] is None


def test_a_hanging_daemon_is_told_to_stop(machine: Machine) -> None:
    driver = rpm_ostree(machine, Pauses(), 1.5)
    machine.fault("rpm-ostree", "rebase", hangs=True)
    with pytest.raises(ImageFailure):
        driver.stage(Deployment(A))
    assert words(machine)[-2:] == ["rpm-ostree cancel", "rpm-ostree cleanup -p"]


def test_a_drop_in_that_another_agent_left_goes(machine: Machine) -> None:
    left = machine.root / "run/systemd/system/rpm-ostreed.service.d/temporal-policy-binding.conf"
    left.parent.mkdir(parents=True)
    left.write_text("[Service]\nBindReadOnlyPaths=/run/x:/etc/containers/policy.json\n")
    rpm_ostree(machine).stage(Deployment(A))
    assert not left.exists()


def test_a_status_that_cannot_be_read_is_said(machine: Machine) -> None:
    machine.change(booted={**machine.read()["booted"], "image": "registry.example/os@sha256:short"})
    with pytest.raises(ImageFailure, match="has the digest 'sha256:short'"):
        rpm_ostree(machine).booted()
