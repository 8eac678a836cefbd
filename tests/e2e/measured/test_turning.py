"""A host tries to turn a machine: a stock Debian image, and the same image after the guide.

The stock image is the systemd that is installed here, as its package ships it. The prepared one went through the commands of
docs/how-to/make-an-image-that-its-host-cannot-turn.md. Both boot in QEMU with the host's words in SMBIOS, in fw_cfg and on disks
with labels that cloud-init and Ignition know, and both measure exactly what was predicted from their files: the registers cannot
tell a turned machine from another. The stock one boots in the long run only; in the short one the other shows that the words did
arrive.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.protocol.pointer import IMAGE_SOURCE
from tests.e2e.docs.transcript import Shell, matches, steps
from tests.e2e.live import environment, run
from tests.imaging import trust_document
from tests.measuredboot import machine, stockroot

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs/how-to/make-an-image-that-its-host-cannot-turn.md"
SUDOERS = "ALL ALL=(ALL) NOPASSWD: ALL"
TMPFILES = f"d /etc/sudoers.d 0755 root root\nf {stockroot.PLANTED} 0440 root root - {SUDOERS}\n"
USER_DATA = {
    "ignition": {"version": "3.0.0"},
    "systemd": {"units": [{"name": "host.service", "enabled": True, "contents": "[Service]\nExecStart=/bin/sh\n"}]},
}
CREDENTIAL = "opt/io.systemd.credentials/sysusers.extra"
CONFIG = "opt/com.coreos/config"
CLOUD_CONFIG = b"#cloud-config\nbootcmd: [[sh, -c, 'echo host > /etc/sudoers.d/host']]\n"
HOST_SAYS = stockroot.HostSays(
    smbios=[f"io.systemd.credential.binary:tmpfiles.extra={base64.b64encode(TMPFILES.encode()).decode()}"],
    fw_cfg={CREDENTIAL: b"u host 0 host\n", CONFIG: json.dumps(USER_DATA).encode()},
    disks={"cidata": CLOUD_CONFIG, "config-2": CLOUD_CONFIG, "ignition": json.dumps(USER_DATA).encode()},
)


@dataclass(frozen=True)
class Built:
    """A root, its boot image, and the directory that both lie in."""

    home: Path
    uki: bytes

    @property
    def root(self) -> Path:
        """The root of the image."""
        return self.home / "root"


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The image as distributions make it; it has a machine-id, or its first boot would wait for somebody at the console."""
    machine.require_machine()
    home = tmp_path_factory.mktemp("stock")
    stockroot.build(home / "root")
    (home / "root/etc/kernel").mkdir()
    (home / "root/etc/kernel/cmdline").write_text("console=ttyS0 quiet\n")
    (home / "root/etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    uki = stockroot.image(home / "root")
    (home / "image.efi").write_bytes(uki)
    return Built(home, uki)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, stock: Built) -> Built:
    """The same image by the commands of the guide; nobody enrols here: its agent is a name, its trust.json of no cluster."""
    home = tmp_path_factory.mktemp("prepared")
    shutil.copytree(stock.root, home / "root", symlinks=True)
    (home / "root/etc/machine-id").unlink()
    (home / "trust.json").write_bytes(trust_document())
    (home / "agent/bin").mkdir(parents=True)
    (home / "agent/bin/fastness-agent").write_text("#!/bin/sh\n")
    shell = Shell(home, environment(home))
    for step in steps(GUIDE.read_text()):
        if not step.command.startswith(("fastness image trust", "python fastness/tools/agent_image.py")):
            printed = shell.run(step)
            assert matches(step.expected, printed), (step.command, printed)
    uki = stockroot.image(home / "root")
    (home / "image.efi").write_bytes(uki)
    return Built(home, uki)


def units(serial: bytes) -> dict[str, str]:
    return dict(line.split() for line in machine.part(serial, "units").decode().splitlines())


def assert_measures_what_was_approved(serial: bytes, uki: bytes) -> None:
    variables = FirmwareVars.of_store((machine.FIRMWARE / machine.PLAIN[1]).read_bytes())
    predicted = measure_uki(uki, variables, secure_boot=False).registers
    measured = [line.split() for line in machine.part(serial, "registers").decode().splitlines()]
    assert {int(index): bytes.fromhex(value) for index, value in measured} == {
        index: predicted[index] for index in stockroot.REGISTERS
    }


@pytest.mark.skipif(not os.environ.get("FASTNESS_SOAK"), reason="one boot of these is enough in the short run")
def test_a_stock_image_does_what_its_host_says_while_its_registers_are_the_approved_ones(stock: Built) -> None:
    serial = stockroot.boot(stock.uki, HOST_SAYS)
    assert machine.part(serial, "planted").decode() == SUDOERS
    credentials = machine.part(serial, "credentials").decode().split()
    assert {"tmpfiles.extra", "sysusers.extra"} <= set(credentials), "by SMBIOS, and by fw_cfg"
    assert units(serial) == dict.fromkeys(stockroot.LOADED, "loaded")
    assert_measures_what_was_approved(serial, stock.uki)


@pytest.mark.long("a machine boots under emulation once for each way in which its host can speak to it")
def test_an_image_by_the_guide_hears_nothing_of_what_its_host_says(prepared: Built) -> None:
    serial = stockroot.boot(prepared.uki, HOST_SAYS)
    assert b"io.systemd.credential.binary:tmpfiles.extra=" in machine.part(serial, "smbios")
    assert {CREDENTIAL, CONFIG} <= set(machine.part(serial, "fw_cfg").decode().split()), "the words did arrive"
    disks = machine.part(serial, "disks").decode().upper().splitlines()
    assert {f"{label} {label}".upper() for label in HOST_SAYS.disks} <= set(disks)
    assert b"/dev/vd" not in machine.part(serial, "mounts")
    assert machine.part(serial, "planted") == b""
    assert machine.part(serial, "credentials") == b""
    assert set(machine.part(serial, "started").decode().splitlines()) == {
        f"{unit} multi-user.target" for unit in stockroot.STARTED
    }
    assert units(serial) == dict.fromkeys(stockroot.LOADED, "masked")
    assert b"Please configure your system" not in serial
    assert_measures_what_was_approved(serial, prepared.uki)


def measured(built: Built, *words: str) -> tuple[int, list[str]]:
    """How `fastness measure` ends, and the ways that it names."""
    command = ["fastness", "measure", "image.efi", "--root", "root", *words]
    outcome = run(command, environment(built.home), cwd=built.home)
    return outcome.code, [
        line.split(": ")[2] for line in outcome.err.splitlines() if line.startswith("fastness: open: ")
    ]


def test_measuring_names_the_ways_that_were_used_and_refuses_the_image_only_while_they_are_open(
    stock: Built, prepared: Built
) -> None:
    code, ways = measured(stock)
    assert code == 0
    assert {"user-data", "credentials", "console"} <= set(ways)
    assert measured(stock, "--strict") == (1, ways)
    assert measured(prepared, "--strict") == (0, [])


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the root needs root")
@pytest.mark.parametrize("platform", ["file", "qemu"], ids=["file", "fw_cfg"])
def test_ignition_takes_a_unit_from_user_data_in_the_stock_image_and_asks_the_agent_in_the_other(
    stock: Built, prepared: Built, platform: str
) -> None:
    config, log = fetched(stock, platform)
    assert "host.service" in json.dumps(config), log
    config, log = fetched(prepared, platform)
    assert "host.service" not in json.dumps(config)
    # Nobody listens there now; what matters is that Ignition went nowhere else.
    assert IMAGE_SOURCE in log
    assert "/user-data.ign" not in log
    assert "QEMU firmware config" not in log


def fetched(built: Built, platform: str) -> tuple[object, str]:
    """What the image's own Ignition would apply, and its log; in its root, without a network, with the host's user-data."""
    root = built.root
    lent = {
        "dev/urandom": os.urandom(65536), "proc/cmdline": (root / "etc/kernel/cmdline").read_bytes(),
        "user-data.ign": json.dumps(USER_DATA).encode(),
        # As the kernel shows fw_cfg; the driver counts as loaded.
        f"sys/firmware/qemu_fw_cfg/by_name/{CONFIG}/size": f"{len(json.dumps(USER_DATA))}\n".encode(),
        f"sys/firmware/qemu_fw_cfg/by_name/{CONFIG}/raw": json.dumps(USER_DATA).encode(), "usr/bin/modprobe": b"#!/bin/sh\n",
        "dev/null": b"",
    }  # fmt: skip
    for name, content in lent.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
        (root / name).chmod(0o755)
    command = [
        "unshare", "--net", "chroot", str(root), "/usr/bin/ignition", "-platform", platform, "-stage", "fetch", "-log-to-stdout",
        "-fetch-timeout", "2s", "-config-cache", "/cache.json", "-state-file", "/state", "-neednet", "/neednet",
    ]  # fmt: skip
    surroundings = {"PATH": os.environ["PATH"], "IGNITION_CONFIG_FILE": "/user-data.ign"}
    log = ""
    with subprocess.Popen(
        command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as ignition:
        assert ignition.stdout is not None
        # Ignition asks the agent for ever; one request is enough.
        while IMAGE_SOURCE not in log and (line := ignition.stdout.readline()):
            log += line
        ignition.kill()
    cache = root / "cache.json"
    config = json.loads(cache.read_text()) if cache.exists() else None
    for name in (*lent, "cache.json", "state", "neednet"):
        (root / name).unlink(missing_ok=True)
    return config, log
