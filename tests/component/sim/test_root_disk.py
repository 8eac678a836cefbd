"""The disk of a machine with a root of its own: what goes onto it, what is refused, and that its hash covers every byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from fastness.cli.main import cli
from fastness.images.check.programs import HELPERS
from fastness.images.verity import BLOCK, hash_tree
from fastness.sim.vms import guest, parts, root_disk
from fastness.sim.vms.parts import NoRealMachine
from tests.components import require_program
from tests.elves import elf
from tests.imaging import trust_document

RELEASE = "6.1.0-test"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="owners go onto the disk: needs root")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root that `fastness machine image` prepared with the programs of a node."""
    root, node, agent = tmp_path / "root", tmp_path / "node", tmp_path / "agent/bin/fastness-agent"
    for name in (*HELPERS, "/usr/lib/os-release"):
        write(root / name.lstrip("/"), b"")
    for name in ("kubelet", "containerd", "containerd-shim-runc-v2", "runc", "cni/loopback"):
        write(node / name, elf(), 0o755)
    write(agent, b"#!/bin/sh\n", 0o755)
    write(tmp_path / "trust.json", trust_document())
    given = ["--agent", str(tmp_path / "agent"), "--trust", str(tmp_path / "trust.json"), "--platform", "qemu"]
    words = ["machine", "image", str(root), "--shape", "debian", *given, "--with-node", str(node), "--strict"]
    result = CliRunner().invoke(cli, words, prog_name="fastness")
    assert result.exit_code == 0, result.output
    return root


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The modules of a kernel: none, which depmod lists as well."""
    tree = tmp_path / RELEASE
    for name in ("modules.order", "modules.builtin"):
        write(tree / name, b"")
    monkeypatch.setattr(parts, "module_tree", lambda: tree)
    return tree


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def listed(root: Path) -> dict[str, bytes]:
    """The files of a directory."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_prepared_root_is_sealed_whole_and_stays_as_it_was(root: Path, modules: Path, tmp_path: Path) -> None:
    for path, package in parts.ROOT_PACKAGES.items():
        require_program(path, package)
    root_disk.check_root(root)
    before = listed(root)
    disk = root_disk.write_root_disk(root, tmp_path / "disk")
    assert listed(root) == before
    words = dict(word.split("=", 1) for word in disk.command_line.decode().split() if "=" in word)
    blocks, content = int(words[guest.ROOT_BLOCKS]), disk.path.read_bytes()
    data = [content[first : first + BLOCK] for first in range(0, blocks * BLOCK, BLOCK)]
    assert hash_tree(data).root.hex() == words[guest.ROOT_HASH]
    assert hash_tree(data).content == content[blocks * BLOCK :]
    # The words that close the ways into the image are on the line that is measured.
    assert words["systemd.import_credentials"] == "no"
    for name in (
        guest.FORWARDER,
        f"usr/lib/systemd/system/{guest.DOORS_UNIT}",
        f"usr/lib/modules/{RELEASE}/modules.dep",
    ):
        shown = subprocess.run(
            ["/usr/sbin/debugfs", "-R", f"stat /{name}", disk.path], capture_output=True, text=True, check=True
        )
        assert "Type: regular" in shown.stdout, name
    assert [path.name for path in tmp_path.glob("root-*")] == [], "nothing is left of the work"


def test_a_root_that_nobody_prepared_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    with pytest.raises(NoRealMachine, match="is no prepared root") as raised:
        root_disk.check_root(tmp_path / "bare")
    assert "fastness machine image" in raised.value.hint


def test_a_root_without_a_kubelet_is_refused(root: Path) -> None:
    (root / "usr/bin/kubelet").unlink()
    with pytest.raises(NoRealMachine, match=r"has no kubelet"):
        root_disk.check_root(root)


def test_a_root_that_would_change_its_registers_after_the_boot_is_refused(root: Path) -> None:
    (root / "etc/systemd/system/systemd-pcrphase.service").unlink()
    write(root / "usr/lib/systemd/system/systemd-pcrphase.service", b"[Service]\n")
    with pytest.raises(NoRealMachine, match=r"systemd-pcrphase.service .*no later proof"):
        root_disk.check_root(root)


def test_a_root_that_its_host_can_turn_is_refused(root: Path) -> None:
    write(root / "etc/kernel/cmdline", b"quiet ignition.platform.id=qemu\n")
    with pytest.raises(NoRealMachine, match="the host can take"):
        root_disk.check_root(root)


def test_a_root_of_somebody_else_is_refused(root: Path) -> None:
    os.chown(root, 1000, 1000)
    with pytest.raises(NoRealMachine, match="do not belong to root"):
        root_disk.check_root(root)


def test_a_root_that_is_too_large_is_refused(
    root: Path, modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root_disk, "MAX_BYTES", 1000)
    with pytest.raises(NoRealMachine, match="more than 1000"):
        root_disk.write_root_disk(root, tmp_path / "disk")
    assert not (tmp_path / "disk").exists()
