"""The scripts that run on a machine before its kubelet, run here by the shell that Debian calls sh."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from fastness.machineconfig.render.base.host import script

pytestmark = pytest.mark.processes
ENVIRONMENT = "NODE_SIZING_ENABLED={}\nSYSTEM_RESERVED_MEMORY=3Gi\nSYSTEM_RESERVED_CPU=250m\nSYSTEM_RESERVED_ES=2Gi\n"
GIB = 1024 * 1024


def run(directory: Path, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script with programs of a directory before those of the machine."""
    program = directory / name
    program.write_text(script(name))
    around = {"PATH": f"{directory / 'bin'}:{os.environ['PATH']}", **environment}
    return subprocess.run(
        ["sh", str(program), *arguments], env=around, capture_output=True, text=True, check=False, timeout=60
    )


def fake(directory: Path, name: str, text: str) -> None:
    """A program that plays another."""
    path = directory / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def reserve(directory: Path, kib: int, cpus: int, enabled: str = "true", version: str = "") -> dict[str, str]:
    """What the system of a machine of some size gets."""
    (directory / "meminfo").write_text(f"MemTotal:       {kib} kB\nMemFree: 1 kB\n")
    (directory / "sizing.env").write_text(ENVIRONMENT.format(enabled))
    if version:
        (directory / "version.json").write_text(version)
    done = run(
        directory, "auto-node-size.sh", str(directory / "sizing.env"), str(directory / "conf.d"),
        MEMINFO=str(directory / "meminfo"), CPUS=str(cpus), SIZING_VERSION=str(directory / "version.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [written] = (directory / "conf.d").iterdir()
    assert written.name == "20-auto-sizing.conf", "the kubelet reads names that end in .conf and no others"
    settings = yaml.safe_load(written.read_text())
    assert (settings["kind"], settings["apiVersion"]) == ("KubeletConfiguration", "kubelet.config.k8s.io/v1beta1")
    reserved: dict[str, str] = settings["systemReserved"]
    return reserved


@pytest.mark.parametrize(
    ("gib", "memory"),
    [
        (2, "1Gi"),
        (8, "1Gi"),
        (9, "1Gi"),
        (16, "1Gi"),
        (17, "2Gi"),
        (64, "4Gi"),
        (128, "8Gi"),
        (129, "8Gi"),
        (512, "16Gi"),
    ],
)
def test_memory_is_reserved_by_the_size_of_the_machine(tmp_path: Path, gib: int, memory: str) -> None:
    assert reserve(tmp_path, gib * GIB + 5, 4)["memory"] == memory


@pytest.mark.parametrize(("cpus", "reserved"), [(1, "0.50"), (4, "0.50"), (64, "0.82"), (128, "1.58")])
def test_processors_are_reserved_by_their_number(tmp_path: Path, cpus: int, reserved: str) -> None:
    assert reserve(tmp_path, 16 * GIB, cpus)["cpu"] == reserved
    assert (tmp_path / "version.json").read_text() == '{"version": 2}\n'


def test_what_is_configured_holds_where_sizing_is_off_and_storage_always(tmp_path: Path) -> None:
    assert reserve(tmp_path, 512 * GIB, 64, "false") == {"cpu": "250m", "memory": "3Gi", "ephemeral-storage": "2Gi"}
    assert reserve(tmp_path, 512 * GIB, 64)["ephemeral-storage"] == "2Gi"


def test_a_node_of_the_first_formula_keeps_its_processors(tmp_path: Path) -> None:
    assert reserve(tmp_path, 64 * GIB, 64, version='{"version": 1}')["cpu"] == "250m"


def test_a_machine_that_does_not_say_its_memory_is_not_sized(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("nothing\n")
    (tmp_path / "sizing.env").write_text(ENVIRONMENT.format("true"))
    done = run(
        tmp_path, "auto-node-size.sh", str(tmp_path / "sizing.env"), str(tmp_path / "conf.d"),
        MEMINFO=str(tmp_path / "meminfo"), SIZING_VERSION=str(tmp_path / "version"),
    )  # fmt: skip
    assert done.returncode == 1
    assert "MemTotal" in done.stderr
    assert not (tmp_path / "conf.d").exists()


@pytest.mark.parametrize(("name", "valid"), [("node-1.example.", "node-1.example"), ("node-1", "node-1")])
def test_a_name_becomes_the_lasting_one_without_its_last_dot(tmp_path: Path, name: str, valid: str) -> None:
    fake(tmp_path, "hostname", f"echo {name}\n")
    fake(tmp_path, "hostnamectl", f'echo "$@" >> {tmp_path}/calls\n')
    done = run(tmp_path, "valid-hostname.sh", "0", ROOT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text() == f"set-hostname --static {valid}\nset-hostname --transient {valid}\n"


@pytest.mark.parametrize(("name", "calls"), [("node-1", False), ("node-1.", True)])
def test_a_name_that_lasts_already_needs_no_service_that_may_come_late(tmp_path: Path, name: str, calls: bool) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "hostname").write_text("node-1\n")
    fake(tmp_path, "hostname", f"echo {name}\n")
    fake(tmp_path, "hostnamectl", f"touch {tmp_path}/calls\n")
    done = run(tmp_path, "valid-hostname.sh", "0", ROOT=str(tmp_path))
    assert (done.returncode, "called node-1\n" in done.stdout) == (0, True), done.stderr
    assert (tmp_path / "calls").exists() == calls


@pytest.mark.parametrize("name", ["localhost", "localhost.localdomain", "localhost.", ""])
def test_a_machine_without_a_name_is_told_how_to_get_one(tmp_path: Path, name: str) -> None:
    fake(tmp_path, "hostname", f"echo '{name}'\n")
    done = run(tmp_path, "valid-hostname.sh", "0")
    assert done.returncode == 1
    assert "give it a name" in done.stderr


def test_a_name_that_comes_late_is_waited_for(tmp_path: Path) -> None:
    fake(
        tmp_path,
        "hostname",
        f"[ -e {tmp_path}/looked ] && echo late || {{ touch {tmp_path}/looked; echo localhost; }}\n",
    )
    fake(tmp_path, "hostnamectl", "exit 0\n")
    fake(tmp_path, "sleep", "exit 0\n")
    assert "called late" in run(tmp_path, "valid-hostname.sh", "5", ROOT=str(tmp_path)).stdout


ROUTES = {
    "4": "default via 10.0.2.2 dev eth1 proto dhcp src 10.0.2.15 metric 100 \\n"
    "default via 10.9.9.1 dev eth2 proto dhcp src 10.9.9.9 metric 200 \\n",
    "6": "default via fe80::2 dev eth1 proto ra metric 100 pref medium\\n",
}
NETWORK = f"""
case "$1 $3 $4" in
    "-4 route show") printf '{ROUTES["4"]}' ;;
    "-6 route show") printf '{ROUTES["6"]}' ;;
    "-4 route get") echo "$5 dev eth2 src 10.9.9.9 uid 0 " ;;
    "-6 address show") echo "2: eth1    inet6 fd00::15/64 scope global dynamic \\\\   valid_lft 86000sec" ;;
esac
"""


def address(directory: Path, *families: str, **environment: str) -> subprocess.CompletedProcess[str]:
    fake(directory, "systemctl", f'echo "$@" >> {directory}/calls\n')
    return run(directory, "node-ip.sh", *families, ROOT=str(directory / "root"), NODEIP_SECONDS="0", **environment)


@pytest.mark.parametrize(
    ("families", "hint", "addresses"),
    [
        (["4"], "", ["10.0.2.15"]), (["6"], "", ["fd00::15"]), (["4", "6"], "", ["10.0.2.15", "fd00::15"]),
        (["6", "4"], "", ["fd00::15", "10.0.2.15"]), (["4"], "10.9.9.1", ["10.9.9.9"]),
        (["6", "4"], "10.9.9.1", ["fd00::15", "10.9.9.9"]),
    ],
)  # fmt: skip
def test_the_address_of_a_node_is_that_of_its_default_route_or_of_the_hint(
    tmp_path: Path, families: list[str], hint: str, addresses: list[str]
) -> None:
    fake(tmp_path, "ip", NETWORK)
    done = address(tmp_path, *families, NODEIP_HINT=hint)
    assert done.returncode == 0, done.stderr
    dropin = (tmp_path / "root/etc/systemd/system/kubelet.service.d/20-nodenet.conf").read_text()
    assert f'"KUBELET_NODE_IP={addresses[0]}" "KUBELET_NODE_IPS={",".join(addresses)}"' in dropin
    assert (tmp_path / "root/run/nodeip-configuration/primary-ip").read_text() == f"{addresses[0]}\n"
    assert (tmp_path / "calls").read_text() == "daemon-reload\n"


def test_without_a_route_nothing_is_written_and_the_way_out_is_told(tmp_path: Path) -> None:
    fake(tmp_path, "ip", "exit 0\n")
    done = address(tmp_path, "4")
    assert done.returncode == 1
    assert "NODEIP_HINT" in done.stderr
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("program", "place", "count"),
    [
        ("update-ca-trust", "etc/pki/ca-trust/source/anchors", 1),
        ("update-ca-certificates", "usr/local/share/ca-certificates", 2),
    ],
)
def test_certificates_go_where_the_distribution_looks(tmp_path: Path, program: str, place: str, count: int) -> None:
    certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
    (tmp_path / "bundle").write_text(certificate + certificate)
    fake(tmp_path, program, f": > {tmp_path}/updated\n")
    for tool in ("sh", "mkdir", "cp", "rm", "awk"):
        (tmp_path / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
    text = tmp_path / "ca-trust.sh"
    text.write_text(script("ca-trust.sh"))
    around = {"PATH": str(tmp_path / "bin"), "ROOT": str(tmp_path / "root")}
    for _ in range(2):
        subprocess.run(["sh", str(text), str(tmp_path / "bundle")], env=around, check=True, timeout=60)
    assert len([path for path in (tmp_path / "root" / place).rglob("*.crt") if path.is_file()]) == count
    assert (tmp_path / "updated").exists()
