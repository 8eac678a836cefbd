"""An initial file system that dracut builds with our module, booted by a real kernel: it goes on, or it ends."""

from __future__ import annotations

import pytest

from tests.components import require_program, require_root
from tests.e2e.disks.test_initrd_units import FURTHER, STOP, in_order
from tests.initrd.dracut import DRACUT, DracutImage, booted, built
from tests.soaking import in_soak

pytestmark = [
    *in_soak("test_initrd_units.py boots the same units under systemd without a kernel"),
    pytest.mark.processes,
    pytest.mark.long("dracut builds an initial file system, and two machines boot it under emulation"),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> DracutImage:
    require_root("dracut")
    for path, package in DRACUT.items():
        require_program(path, package)
    return built(tmp_path_factory.mktemp("dracut"))


def test_a_good_boot_opens_the_volume_leaves_and_enters_its_root(image: DracutImage) -> None:
    console = booted(image)
    steps = ("agent: unlock is done", "agent: leave-initrd is done", "/dev/vdb on /var type ext4", "root: entered")
    assert in_order(console, *steps), console


@pytest.mark.parametrize("verb", ["unlock", "leave-initrd"])
def test_a_boot_whose_agent_refuses_ends_without_a_shell(image: DracutImage, verb: str) -> None:
    console = booted(image, f"test.{verb}=refuse")
    assert in_order(console, f"agent: {verb} refuses", STOP, "reboot: System halted"), console
    assert [words for words in (*FURTHER, "root: entered", "dracut:/#", "emergency mode") if words in console] == []
