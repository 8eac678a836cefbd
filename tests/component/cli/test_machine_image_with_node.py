"""`fastness machine image --with-node`: the programs of a node go into the image once, and what could not run is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.images import node_files
from fastness.cli.main import cli
from fastness.images.check.programs import HELPERS
from tests.elves import AARCH64, elf
from tests.imaging import trust_document

LOADER = "/lib64/ld-linux-x86-64.so.2"
PROGRAMS = ("kubelet", "containerd", "containerd-shim-runc-v2", "runc", "ctr", "cni/loopback", "cni/bridge")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root that has what a node's programs call, and the C library."""
    root = tmp_path / "root"
    libraries = ("/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu/libc.so.6")
    for name in (*HELPERS, *libraries, "/usr/lib/os-release"):
        write(root / name.lstrip("/"), b"")
    (root / "lib64").symlink_to("usr/lib64")
    return root


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The programs of a node."""
    node = tmp_path / "node"
    for name in PROGRAMS:
        write(node / name, elf(["libc.so.6"], LOADER), 0o755)
    write(node / "net.d/10-pods.conflist", b'{"cniVersion": "1.0.0", "plugins": []}')
    return node


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def prepare(root: Path, node: Path) -> Result:
    place = root.parent
    write(place / "agent/bin/fastness-agent", b"#!/bin/sh\n", 0o755)
    if not (place / "trust.json").exists():
        write(place / "trust.json", trust_document())
    given = ["--agent", str(place / "agent"), "--trust", str(place / "trust.json"), "--platform", "qemu"]
    words = ["machine", "image", str(root), "--shape", "debian", *given, "--with-node", str(node), "--strict"]
    return CliRunner().invoke(cli, words, prog_name="fastness")


def test_the_image_holds_the_programs_and_a_second_run_changes_nothing(root: Path, node: Path) -> None:
    first = prepare(root, node)
    assert (first.exit_code, first.stderr) == (0, "")
    for path in ("usr/bin/kubelet", "usr/bin/containerd", "usr/sbin/runc", "opt/cni/bin/loopback"):
        assert (root / path).read_bytes() == elf(["libc.so.6"], LOADER)
        assert (root / path).stat().st_mode & 0o777 == 0o755
    assert (root / "etc/cni/net.d/10-pods.conflist").exists()
    assert (root / "usr/lib/systemd/system/containerd.service").exists()
    again = prepare(root, node)
    assert (again.exit_code, again.stdout) == (0, f"{root}: nothing to change\n")


def test_a_program_longer_than_what_updates_read_is_written_once_and_replaced_when_it_differs(
    root: Path, node: Path
) -> None:
    write(node / "kubelet", elf() + bytes(33 * 1024 * 1024), 0o755)
    assert prepare(root, node).exit_code == 0
    assert prepare(root, node).stdout == f"{root}: nothing to change\n"
    write(node / "kubelet", elf(), 0o755)
    assert "/usr/bin/kubelet: replaced, it differed\n" in prepare(root, node).stdout
    assert (root / "usr/bin/kubelet").read_bytes() == elf()


def test_without_the_option_no_program_goes_in(root: Path, node: Path) -> None:
    prepare(root, node)
    words = ["machine", "image", str(root), "--shape", "debian", "--trust", str(root.parent / "trust.json")]
    (root / "usr/bin/kubelet").unlink()
    assert CliRunner().invoke(cli, words, prog_name="fastness").exit_code == 0
    assert not (root / "usr/bin/kubelet").exists()


@pytest.mark.parametrize(
    ("name", "content", "mode", "sentence", "hint"),
    [
        ("kubelet", None, 0, "there is no kubelet", "Put it there"),
        ("kubelet", b"#!/bin/sh\n", 0o755, "kubelet: it is no program of Linux (ELF)", "not an archive or a script"),
        ("runc", elf(machine=AARCH64), 0o755, "runc is for aarch64, and machines are x86-64", "for amd64"),
        ("cni/loopback", elf(), 0o644, "cni/loopback is not executable", "chmod +x cni/loopback"),
        ("runc", elf(["libseccomp.so.2"], LOADER), 0o755, "runc needs libseccomp.so.2", "Install the package"),
        ("notes.txt", b"", 0o644, "nobody knows what notes.txt is for", "Take it away"),
        ("net.d/10-pods.conflist", b"{", 0o644, "net.d/10-pods.conflist", "as JSON"),
    ],
)
def test_what_makes_no_node_is_refused_and_nothing_is_written(
    root: Path, node: Path, name: str, content: bytes | None, mode: int, sentence: str, hint: str
) -> None:
    if content is None:
        (node / name).unlink()
    else:
        write(node / name, content, mode)
    result = prepare(root, node)
    assert (result.exit_code, sentence in result.stderr, hint in result.stderr) == (2, True, True), result.output
    assert not (root / "usr/bin/containerd").exists()
    assert not (root / "usr/lib/fastness").exists()


def test_what_is_too_large_is_refused_before_it_is_read(
    root: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_files, "MAX_PROGRAM", 100)
    result = prepare(root, node)
    assert (result.exit_code, "bytes, more than 100" in result.stderr) == (2, True), result.output


def test_a_directory_or_more_files_than_a_node_has_are_refused(
    root: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node / "bin").mkdir()
    assert "bin is no file" in prepare(root, node).stderr
    (node / "bin").rmdir()
    monkeypatch.setattr(node_files, "MAX_FILES", 3)
    assert "more than 3" in prepare(root, node).stderr


def test_a_root_without_mount_is_refused_with_the_package(root: Path, node: Path) -> None:
    (root / "usr/bin/mount").unlink()
    result = prepare(root, node)
    assert (result.exit_code, "the image lacks what a node needs: mount" in result.stderr) == (2, True), result.output
