"""`fastness machine image` on a directory: what it writes, that it does so once, and that nothing leads it out of the tree."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.images.check.layout import PHASES
from fastness.images.check.ways import MASKED_UNITS, WORDS
from fastness.protocol.pointer import SYSTEM_CONFIG, is_image_pointer
from fastness.runtime.deployed import deployed_files
from tests.components import require_program
from tests.imaging import trust_document

pytestmark = pytest.mark.processes

KUBEADM = """[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""
PACKAGED = {
    "usr/lib/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet\n",
    "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": KUBEADM,
}
RENDERED = """[Service]
ExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf \\
  --config-dir=/etc/openshift/kubelet.conf.d
"""
KUBELETS = {"debian": PACKAGED, "fcos": PACKAGED, "rhcos": {"etc/systemd/system/kubelet.service": RENDERED}}
UNIT = "[Service]\nExecStart=/usr/bin/listen\n[Install]\nWantedBy=multi-user.target\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a program that listens to its host, and settings of its own."""
    root = tmp_path / "root"
    for name, content in {
        "usr/lib/systemd/system/qemu-guest-agent.service": UNIT,
        "usr/lib/systemd/system/afterburn-sshkeys@.service": UNIT,
        "usr/bin/cloud-init": "#!/bin/sh\n",
        "usr/bin/ignition": "",
        "usr/lib/os-release": "ID=debian\n",
        "etc/kernel/cmdline": "quiet systemd.import_credentials=yes\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """An agent and a trust.json, as options."""
    program = tmp_path / "agent/bin/fastness-agent"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "trust.json").write_bytes(trust_document())
    return ["--agent", str(tmp_path / "agent"), "--trust", str(tmp_path / "trust.json"), "--platform", "qemu"]


def prepare(root: Path, *words: str, shape: str = "debian") -> Result:
    return CliRunner().invoke(cli, ["machine", "image", str(root), "--shape", shape, *words], prog_name="fastness")


def contents(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a directory: links by target, files by content, mode and the time of their last change."""
    return {
        str(path.relative_to(root)): (os.readlink(path),)
        if path.is_symlink()
        else (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("shape", ["debian", "fcos", "rhcos"])
def test_an_open_image_is_closed_and_holds_what_makes_a_machine_prove_itself(
    root: Path, given: list[str], shape: str
) -> None:
    before = prepare(root, "--check-only", shape=shape)
    assert before.exit_code == 1
    for way in ("user-data", "cloud-init", "afterburn", "guest-agents", "credentials"):
        assert f"fastness: open: {way}: " in before.stderr
    (root / "etc/kernel/cmdline").unlink()
    result = prepare(root, *given, "--strict", shape=shape)
    assert (result.exit_code, result.stderr) == (0, "")
    after = prepare(root, "--check-only", shape=shape)
    assert (after.exit_code, after.stderr) == (0, "")
    assert is_image_pointer((root / SYSTEM_CONFIG).read_bytes())
    assert (root / "usr/lib/fastness/agent/bin/fastness-agent").stat().st_mode & 0o777 == 0o755
    for name in (
        "dracut/50fastness/module-setup.sh",
        "systemd/fastness-attest.service",
        "systemd/fastness-agent.service",
    ):
        inside = {"dracut": "usr/lib/dracut/modules.d", "systemd": "usr/lib/systemd/system"}[name.partition("/")[0]]
        assert (root / inside / name.partition("/")[2]).read_bytes() == (deployed_files() / name).read_bytes()


def test_a_second_run_changes_nothing_and_says_so(root: Path, given: list[str]) -> None:
    assert prepare(root, *given).exit_code == 0
    first = contents(root)
    again = prepare(root, *given)
    assert (again.exit_code, again.stdout) == (0, f"{root}: nothing to change\n")
    assert contents(root) == first
    # The agent that the image has is enough for a run that changes something else.
    second = prepare(root, *given[2:4])
    assert (second.exit_code, second.stdout) == (0, f"{root}: nothing to change\n")


def test_what_differed_is_named_and_words_of_the_command_line_stay(root: Path, given: list[str]) -> None:
    pointer = root / SYSTEM_CONFIG
    pointer.parent.mkdir(parents=True)
    pointer.write_text('{"ignition": {"version": "3.0.0"}}')
    stale = root / "usr/lib/fastness/agent/lib/older.pyc"
    stale.parent.mkdir(parents=True)
    stale.write_bytes(b"")
    result = prepare(root, *given)
    assert f"/{SYSTEM_CONFIG}: replaced, it differed\n" in result.stdout
    assert "/etc/kernel/cmdline: replaced, it differed\n" in result.stdout
    assert "/usr/lib/fastness/agent/lib/older.pyc: removed, it is not part of the agent\n" in result.stdout
    assert not stale.exists()
    assert (root / "etc/kernel/cmdline").read_text() == f"quiet ignition.platform.id=qemu {' '.join(WORDS)}\n"


def test_check_only_writes_nothing(root: Path) -> None:
    before = contents(root)
    result = prepare(root, "--check-only", "-o", "json")
    assert result.exit_code == 1
    assert contents(root) == before
    report = json.loads(result.stdout)
    missing = {lack["path"]: lack["consequence"] for lack in report["missing"]}
    assert missing["/usr/lib/fastness/trust.json"] == "machines of this image prove nothing"
    assert "ignition.platform.id on the kernel command line" in missing
    assert {"user-data", "cloud-init", "guest-agents"} <= {way["way"] for way in report["open"]}
    assert all(way["reason"] and way["remedy"] and way["places"] for way in report["open"])


@pytest.mark.parametrize("target", ["{outside}", "../../../outside"], ids=["absolute", "relative"])
def test_a_link_in_the_tree_that_leads_out_is_refused_and_nothing_is_written_there(
    root: Path, given: list[str], tmp_path: Path, target: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "usr/lib/fastness").symlink_to(target.format(outside=outside))
    result = prepare(root, *given)
    assert result.exit_code == 2
    assert "leads out of the root" in result.stderr
    assert list(outside.iterdir()) == []


def test_a_link_at_the_end_of_a_path_is_replaced_and_not_written_through(
    root: Path, given: list[str], tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (root / "usr/lib/ignition").mkdir(parents=True)
    (root / SYSTEM_CONFIG).symlink_to(victim)
    assert prepare(root, *given).exit_code == 0
    assert victim.read_text() == "untouched"
    assert is_image_pointer((root / SYSTEM_CONFIG).read_bytes())


def test_what_is_no_agent_no_trust_or_no_directory_is_refused(root: Path, given: list[str], tmp_path: Path) -> None:
    before = contents(root)
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "disk.raw").write_bytes(bytes(512))
    for words, sentence in (
        (["--agent", str(root), *given[2:]], "has no bin/fastness-agent"),
        ([*given[:2], "--trust", str(tmp_path / "bad.json")], "the trust of the image"),
        (given[2:], "the image has no agent"),
        ([*given[:4], "--platform", "moon"], "'moon' is not a platform that the agent knows"),
    ):
        result = prepare(root, *words)
        assert (result.exit_code, sentence in result.stderr) == (2, True), result.output
    assert contents(root) == before
    refused = prepare(tmp_path / "disk.raw", *given)
    assert (refused.exit_code, "no root in it can be mounted" in refused.stderr) == (2, True)
    assert "give that directory" in refused.stderr


def test_systemd_itself_takes_every_mask_for_one(root: Path, given: list[str]) -> None:
    require_program(Path("/usr/bin/systemctl"), "systemd")
    assert prepare(root, *given).exit_code == 0
    # An instance is what is started, and the mask is on its template.
    units = [unit.replace("@.", "@core.") for unit in (*MASKED_UNITS, *PHASES)]
    result = subprocess.run(
        ["systemctl", f"--root={root}", "is-enabled", *units],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stdout.split() == ["masked" for _ in units]


@pytest.mark.parametrize("shape", ["debian", "fcos", "rhcos"])
def test_systemd_itself_would_start_every_unit_with_its_drop_ins(root: Path, given: list[str], shape: str) -> None:
    """The kubelet as its package ships it on Debian and Fedora, and the unit that a rendered configuration brings on RHCOS."""
    require_program(Path("/usr/bin/systemd-analyze"), "systemd")
    shutil.copytree("/usr/lib/systemd/system", root / "usr/lib/systemd/system", symlinks=True, dirs_exist_ok=True)
    for name, content in KUBELETS[shape].items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    for program in ("usr/bin/kubelet", "usr/bin/listen", "bin/sh"):
        (root / program).parent.mkdir(parents=True, exist_ok=True)
        (root / program).write_text("#!/bin/sh\n")
        (root / program).chmod(0o755)
    (root / "etc/kernel/cmdline").unlink()
    result = prepare(root, *given, "--strict", shape=shape)
    assert (result.exit_code, result.stderr) == (0, ""), result.stdout
    for unit in ("fastness-agent", "fastness-attest", "fastness-identity", "kubelet"):
        verified = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={root}", f"{unit}.service"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert [line for line in verified.stderr.splitlines() if unit in line or "fastness" in line] == []


def disk_with(root: Path, place: Path, *, table: bool) -> Path:
    """A raw disk with the root as an ext4 file system, alone or behind a partition table and a smaller partition."""
    require_program(Path("/usr/sbin/mkfs.ext4"), "e2fsprogs")
    bare, size = place / "bare.raw", 32 * 1024**2
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-d", root, bare, f"{size // 1024}k"], check=True)
    if not table:
        return bare
    disk, first = place / "disk.raw", 4096
    rows = [(2048, first - 2048), (first, size // 512)]
    entries = b"".join(struct.pack("<4sB3sII", bytes(4), 0x83, bytes(3), start, count) for start, count in rows)
    head = bytes(446) + entries.ljust(64, b"\0") + b"\x55\xaa"
    disk.write_bytes(head.ljust(first * 512, b"\0") + bare.read_bytes())
    return disk


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="this host has no loop devices")
@pytest.mark.parametrize("table", [False, True], ids=["file system", "partitions"])
def test_a_raw_disk_is_prepared_like_a_directory(root: Path, given: list[str], tmp_path: Path, table: bool) -> None:
    (root / "etc/os-release").write_text("ID=debian\n")
    disk = disk_with(root, tmp_path, table=table)
    assert prepare(disk, "--check-only").exit_code == 1
    assert prepare(disk, *given, "--strict").exit_code == 0
    assert prepare(disk, *given).stdout == f"{disk}: nothing to change\n"
    assert prepare(disk, "--check-only").exit_code == 0
    assert str(disk) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def test_an_image_that_adds_to_its_registers_after_the_boot_is_said_to_fail_later_proofs(root: Path) -> None:
    unit = root / "usr/lib/systemd/system/systemd-pcrphase.service"
    unit.write_text("[Service]\nExecStart=/usr/lib/systemd/systemd-pcrphase ready\n")
    result = prepare(root, "--check-only")
    assert "a mask for systemd-pcrphase.service: missing, it changes PCR 11 after the boot" in result.stdout
