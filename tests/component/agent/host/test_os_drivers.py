"""What every driver of an image-based host does, and which one a host gets; against programs with A/B state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fastness.agent.host.bootc import BootcOs
from fastness.agent.host.engine import AUTH_TARGETS, IMAGE_SECRET, MERGED_SECRETS, PAUSES
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.image_host import Choice, detect, driver_for
from fastness.agent.host.rpm_ostree_os import RpmOstreeOs
from fastness.agent.host.states import Deployment, File, Link, Pull
from fastness.formats.os_status import OsEntry
from tests.component.agent.host.os_machines import (
    ASKS,
    BASE,
    LOST,
    A,
    B,
    Pauses,
    bootc,
    commands,
    machine_at,
    rpm_ostree,
)
from tests.standins.os_engine import Machine

Driver = RpmOstreeOs | BootcOs
PULLS = {RpmOstreeOs: ("rpm-ostree", "rebase"), BootcOs: ("bootc", "switch")}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_at(tmp_path / "machine")


@pytest.fixture(params=[rpm_ostree, bootc])
def make(request: pytest.FixtureRequest) -> Callable[..., Driver]:
    made: Callable[..., Driver] = request.param
    return made


def test_an_image_is_staged_booted_and_read_back(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    driver.stage(Deployment(A))
    staged = driver.staged()
    assert staged is not None
    assert (driver.booted().image, staged.image) == (BASE, A)
    machine.reboot()
    assert (driver.booted().image, driver.staged()) == (A, None)
    assert machine.read()["rollback"]["image"] == BASE


def test_what_is_booted_or_staged_already_changes_nothing(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    driver.stage(Deployment(f"mirror.example/os:9@{BASE.partition('@')[2]}"))
    assert machine.calls(*ASKS) == []
    driver.stage(Deployment(A))
    machine.forget_calls()
    driver.stage(Deployment(A))
    assert machine.calls(*ASKS, "rpm-ostree kargs") == []


def test_what_is_staged_beside_the_booted_image_is_dropped(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    driver.stage(Deployment(A))
    driver.stage(Deployment(BASE))
    assert driver.staged() is None
    machine.reboot()
    assert driver.booted().image == BASE


def test_what_the_machine_could_fall_back_to_is_deployed_anew(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    driver.stage(Deployment(A))
    machine.reboot()
    machine.forget_calls()
    driver.stage(Deployment(BASE))
    program, word = PULLS[type(driver)]
    assert [call for call in machine.calls() if call.startswith(f"{program} {word}")]
    machine.reboot()
    assert driver.booted().image == BASE


def test_a_registry_that_fails_is_asked_again_with_longer_pauses(machine: Machine, make: Callable[..., Driver]) -> None:
    pauses = Pauses()
    driver = make(machine, pauses)
    machine.fault(*PULLS[type(driver)], times=3, text="503 Service Unavailable")
    driver.stage(Deployment(A))
    assert list(pauses) == [10.0, 20.0, 40.0]
    machine.reboot()
    assert driver.booted().image == A


def test_an_image_that_is_not_there_is_named_and_nothing_is_staged(
    machine: Machine, make: Callable[..., Driver]
) -> None:
    pauses = Pauses()
    driver = make(machine, pauses)
    driver.stage(Deployment(A))
    with pytest.raises(ImageFailure, match="manifest unknown"):
        driver.stage(Deployment(LOST))
    assert list(pauses) == list(PAUSES)
    assert driver.staged() is None, "what was staged before is no part of any config either"
    machine.reboot()
    assert driver.booted().image == BASE


def test_a_pull_that_hangs_is_ended_and_not_tried_again(machine: Machine, make: Callable[..., Driver]) -> None:
    pauses = Pauses()
    driver = make(machine, pauses, 1.5)
    machine.fault(*PULLS[type(driver)], hangs=True)
    with pytest.raises(ImageFailure, match="did not end within"):
        driver.stage(Deployment(A))
    assert (list(pauses), driver.staged()) == ([], None)


def test_another_image_than_was_asked_for_is_not_left_staged(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    machine.change(lies={A.partition("@")[2]: B.partition("@")[2]})
    with pytest.raises(ImageFailure, match=r"staged \S+b{64} instead of \S+a{64}"):
        driver.stage(Deployment(A))
    assert driver.staged() is None
    machine.reboot()
    assert driver.booted().image == BASE


# What each program says while it deploys an image that it has pulled already.
LATER = {
    RpmOstreeOs: "error: Writing deployment: No space left on device",
    BootcOs: "error: Switching: Staging: Writing deployment: No space left on device",
}


def failure_of(driver: Driver, deployment: Deployment) -> ImageFailure:
    with pytest.raises(ImageFailure) as caught:
        driver.stage(deployment)
    return caught.value


def test_a_failure_says_whether_its_image_was_pulled(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    assert failure_of(driver, Deployment(LOST)).pull is Pull.FAILED
    machine.fault(*PULLS[type(driver)], times=7, text="Get https://registry.example/v2/: connection refused")
    assert failure_of(driver, Deployment(A)).pull is Pull.FAILED
    machine.fault(*PULLS[type(driver)], times=7, text=LATER[type(driver)])
    assert failure_of(driver, Deployment(A)).pull is Pull.UNKNOWN, (
        "one program pulls and deploys, and does not say which"
    )
    machine.change(lies={A.partition("@")[2]: B.partition("@")[2]})
    assert failure_of(driver, Deployment(A)).pull is Pull.FAILED, "another image is not the image"


def test_what_fails_after_a_pull_does_not_unmake_it(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    program = PULLS[type(driver)][0]
    word = "kargs" if program == "rpm-ostree" else "--source=fastness"
    machine.fault(program, word, times=100, text="error: no space left")
    assert failure_of(driver, Deployment(A, ("nosmt",))).pull is Pull.DONE
    assert failure_of(driver, Deployment(BASE, ("nosmt",))).pull is Pull.DONE, "what is booted needs no pull"


def test_nobody_knows_what_became_of_a_pull_that_hung(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine, Pauses(), 1.5)
    machine.fault(*PULLS[type(driver)], hangs=True)
    assert failure_of(driver, Deployment(A)).pull is Pull.UNKNOWN


def test_what_the_finalizer_said_is_read_from_the_journal(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    driver.stage(Deployment(A))
    machine.reboot(finalizes=False)
    assert driver.booted().image == BASE
    assert driver.last_boot_log() == "error: Writing to /boot: No space left on device"
    assert any(f"--unit={driver.finalizer}" in call for call in machine.calls())


def test_pulls_use_the_secret_of_the_node_or_the_clusters_own(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    link = machine.root / ("run/ostree/auth.json" if isinstance(driver, RpmOstreeOs) else "etc/ostree/auth.json")
    driver.stage(Deployment(A))
    assert str(link.readlink()) == AUTH_TARGETS[1]
    secret = machine.root / AUTH_TARGETS[0].lstrip("/")
    secret.parent.mkdir(parents=True)
    secret.write_text("{")
    driver.stage(Deployment(B))
    assert str(link.readlink()) == AUTH_TARGETS[1], "a file that is cut off is no secret"
    secret.write_text("{}")
    driver.stage(Deployment(A))
    assert str(link.readlink()) == AUTH_TARGETS[0]


def test_the_credential_of_the_pool_s_image_is_used_beside_the_others_and_no_longer_when_it_is_gone(
    machine: Machine, make: Callable[..., Driver]
) -> None:
    driver = make(machine)
    link = machine.root / ("run/ostree/auth.json" if isinstance(driver, RpmOstreeOs) else "etc/ostree/auth.json")
    logins = {
        IMAGE_SECRET: {"r.example": {"auth": "bmV3"}},
        AUTH_TARGETS[1]: {"q.example": {}, "r.example": {"auth": "b2xk"}},
    }
    for path, auths in logins.items():
        (machine.root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (machine.root / path.lstrip("/")).write_text(json.dumps({"auths": auths}))
    driver.stage(Deployment(A))
    merged = machine.root / MERGED_SECRETS.lstrip("/")
    assert str(link.readlink()) == MERGED_SECRETS
    assert json.loads(merged.read_text()) == {"auths": {"q.example": {}, "r.example": {"auth": "bmV3"}}}
    assert merged.stat().st_mode & 0o777 == 0o600
    (machine.root / IMAGE_SECRET.lstrip("/")).write_text("\n")
    driver.stage(Deployment(B))
    assert str(link.readlink()) == AUTH_TARGETS[1]


@pytest.mark.parametrize(
    ("booted", "features", "prefer", "driver"),
    [
        (None, {"rust"}, False, "none"),
        (None, {"container"}, False, "rpm-ostree"),
        (OsEntry(BASE), set(), False, "bootc"),
        (OsEntry(BASE), {"container"}, False, "rpm-ostree"),
        (OsEntry(BASE), {"container"}, True, "bootc"),
        (OsEntry(BASE, composefs=True), {"container"}, False, "bootc"),
        (OsEntry(BASE, incompatible=True), {"container"}, True, "rpm-ostree"),
        (OsEntry(BASE, incompatible=True), set(), True, "none"),
    ],
)
def test_a_host_gets_the_driver_that_it_is_made_for(
    booted: OsEntry | None, features: set[str], prefer: bool, driver: str
) -> None:
    assert driver_for(booted, frozenset(features), prefer_bootc=prefer).driver == driver


def test_the_programs_themselves_are_asked_what_a_host_is(machine: Machine) -> None:
    runner = commands(machine, Pauses())
    programs = machine.program("bootc"), machine.program("rpm-ostree")

    def chosen() -> Choice:
        return detect(runner, bootc_program=programs[0], rpm_ostree_program=programs[1])

    assert chosen() == Choice("rpm-ostree", "rpm-ostree knows images here, and bootc is not preferred")
    machine.change(composefs="Bls")
    assert chosen().driver == "bootc"
    absent = detect(runner, bootc_program=("no-such-bootc",), rpm_ostree_program=("no-such-rpm-ostree",))
    assert absent.driver == "none"
    assert "package host" in absent.why


def test_a_file_of_somebody_elses_credentials_is_left(machine: Machine, make: Callable[..., Driver]) -> None:
    driver = make(machine)
    path = "/run/ostree/auth.json" if isinstance(driver, RpmOstreeOs) else "/etc/ostree/auth.json"
    own = File(b'{"auths": {}}')
    driver_root = driver._root
    driver_root.put(path, own)
    driver.stage(Deployment(A))
    assert not isinstance(driver_root.look(path), Link)
