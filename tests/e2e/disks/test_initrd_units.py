"""The units of the initial file system under a real systemd: in which order, and what happens when one of them fails.

The dracut module's own `install` puts them where they belong; `test_dracut.py` has a kernel and the whole of dracut.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components import require_program, require_root
from tests.initrd.boots import ENTERED, STOPPED, InitrdBoot, why_not

pytestmark = pytest.mark.processes
STOP = "fastness: this boot stops here; what failed is said above"
# What a boot that stopped must not have done.
FURTHER = ("Switching root", "Started emergency", "Started rescue", "sulogin", "Give root password", "root password")


@pytest.fixture(autouse=True)
def _parts() -> None:
    require_root("systemd as a first process")
    require_program(Path("/usr/lib/systemd/systemd"), "systemd")
    missing = why_not()
    if missing:
        pytest.skip(missing)


def in_order(console: str, *words: str) -> bool:
    """Whether the console says all of these, each after the one before."""
    place = 0
    for each in words:
        place = console.find(each, place)
        if place < 0:
            return False
    return True


def assert_stopped(boot: InitrdBoot) -> None:
    assert boot.end() == STOPPED, boot.console
    assert STOP in boot.console, boot.console
    assert [words for words in FURTHER if words in boot.console] == []


def test_a_boot_opens_mounts_leaves_and_enters_in_this_order(tmp_path: Path) -> None:
    with InitrdBoot(tmp_path).running() as boot:
        assert boot.end() == ENTERED, boot.console
    steps = (
        "agent: unlock begins", "agent: unlock is done", "Mounted sysroot.mount", "Mounted sysroot-var.mount",
        "agent: leave-initrd begins", "agent: leave-initrd is done", "Switching root",
    )  # fmt: skip
    assert in_order(boot.console, *steps), boot.console
    assert " /var ext4 rw,nosuid,nodev," in (boot.given / "entered").read_text(), "the volume is /var of the root"


def test_an_unlock_that_fails_ends_the_boot_without_a_shell(tmp_path: Path) -> None:
    with InitrdBoot(tmp_path, unlock="refuse").running() as boot:
        assert_stopped(boot)
    assert in_order(boot.console, "volumes stay closed (header-refused)", STOP), "the reason is on the console"
    assert "leave-initrd begins" not in boot.console, "the register stays as it is"
    assert "Mounting sysroot" not in boot.console


def test_a_broker_that_is_away_is_waited_for_and_then_the_boot_goes_on(tmp_path: Path) -> None:
    with InitrdBoot(tmp_path, unlock="wait").running() as boot:
        boot.until("waiting for the keys of this machine's volumes (unreachable)")
        shown = boot.show("fastness-unlock.service", "ActiveState", "TimeoutStartUSec", "JobTimeoutUSec")
        assert shown == {"ActiveState": "activating", "TimeoutStartUSec": "infinity", "JobTimeoutUSec": "infinity"}
        for unit in ("sysroot.mount", "sysroot-var.mount", "initrd-root-fs.target", "initrd-switch-root.service"):
            state = boot.show(unit, "ActiveState", "JobTimeoutUSec", "JobRunningTimeoutUSec")
            assert state["ActiveState"] == "inactive", unit
            # A job with a bound would fail, and for good, before the broker is there.
            assert {state["JobTimeoutUSec"], state["JobRunningTimeoutUSec"]} == {"infinity"}, unit
        boot.let_go()
        assert boot.end() == ENTERED, boot.console
    assert in_order(boot.console, "agent: unlock is done", "Mounting sysroot", "leave-initrd is done", "Switching root")


def test_a_volume_that_is_not_open_after_the_unlock_ends_the_boot(tmp_path: Path) -> None:
    with InitrdBoot(tmp_path, unlock="nothing").running() as boot:
        assert_stopped(boot)
    assert "Failed to mount sysroot-var.mount" in boot.console
    assert "leave-initrd begins" not in boot.console


def test_a_register_that_does_not_move_keeps_the_root_from_being_entered(tmp_path: Path) -> None:
    with InitrdBoot(tmp_path, leave="refuse").running() as boot:
        assert_stopped(boot)
    assert in_order(boot.console, "Mounted sysroot-var.mount", "the register did not move", STOP)


@pytest.mark.parametrize("unit", ["fastness-unlock.service", "fastness-leave-initrd.service", "sysroot-var.mount"])
def test_an_image_that_masks_one_of_them_does_not_boot(tmp_path: Path, unit: str) -> None:
    with InitrdBoot(tmp_path, masked=(unit,)).running() as boot:
        boot.until(STOP)
        assert_stopped(boot)
