"""What a node is made of, read by those who read it on a node: Ignition, systemd, the kubelet, containerd."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.machineconfig.render.base.kubelet import kubelet_settings, kubelet_unit, settings_text
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.runtime import containerd_conf
from fastness.machineconfig.render.generated import Owners, base_configs
from fastness.machineconfig.render.render import Rendered, Setting, render
from fastness.machineconfig.serving import document
from fastness.runtime.deployed import deployed_files
from tests.component.machineconfig.ignition import real
from tests.components import require_program
from tests.unit.machineconfig.build import CERTIFICATE, controller_config, pool
from tests.unit.machineconfig.nodes import KINDS, PLAIN, PROXY

pytestmark = pytest.mark.processes
# Debian's Ignition knows no newer one.
VERSION: Final = "3.3.0"
PROGRAMS: Final = (
    "usr/bin/kubelet", "usr/bin/systemctl", "bin/mkdir", "bin/sh", "bin/rm", "usr/lib/fastness/agent/bin/fastness-agent",
)  # fmt: skip
FULL: Final = {
    **{f"{name}-plain": kind for name, kind in KINDS.items()},
    **{
        f"{name}-attested": replace(
            kind, trust=TrustModel.CONFIDENTIAL_CLUSTER, attested=True, proxy=PROXY, trust_bundle=CERTIFICATE
        )
        for name, kind in KINDS.items()
    },
}


def served(inputs: NodeInputs, version: str = VERSION) -> bytes:
    """What a machine with these inputs is sent."""
    configs = base_configs(inputs.role, inputs, Owners.of([], [], controller_config()), "v1")
    result = render(pool(inputs.role), configs, Setting(trust=inputs.trust))
    assert isinstance(result, Rendered), result
    return document(result.manifest(pool(), Setting().defaults), version)


@pytest.mark.parametrize("name", FULL)
def test_ignition_accepts_it(name: str) -> None:
    for version in ("3.2.0", VERSION):
        good, report = real.accepts(real.validator(), served(FULL[name], version))
        assert good, report


def machine(name: str, directory: Path) -> Path:
    """A root that Ignition wrote, with the distribution's units beside it and programs that do nothing."""
    root = real.provision(served(FULL[name]), directory)
    units = root / "usr/lib/systemd/system"
    shutil.copytree("/usr/lib/systemd/system", units, symlinks=True)
    for unit in (deployed_files() / "systemd").iterdir():
        shutil.copy(unit, units)
    for runtime in ("crio", "containerd"):
        (units / f"{runtime}.service").write_text("[Service]\nExecStart=/bin/sh\n")
    for program in PROGRAMS:
        (root / program).parent.mkdir(parents=True, exist_ok=True)
        (root / program).write_text("#!/bin/sh\n")
        (root / program).chmod(0o755)
    return root


def verify(root: Path, unit: str) -> str:
    """What systemd has to say about a unit below a root; empty when it is content."""
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", unit], capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr + (f"exit {done.returncode}" if done.returncode else "")


@pytest.mark.parametrize("name", FULL)
def test_systemd_understands_every_unit(name: str, tmp_path: Path) -> None:
    require_program(Path("/usr/bin/systemd-analyze"), "systemd")
    root = machine(name, tmp_path)
    written = [path.name for path in (root / "etc/systemd/system").iterdir() if path.suffix in (".service", ".target")]
    assert {"kubelet.service", "kubelet-dependencies.target", "firstboot-osupdate.target"} <= set(written)
    brought = ["fastness-agent.service", "fastness-attest.service"] if FULL[name].confidential else []
    for unit in [*written, *brought]:
        assert verify(root, unit) == ""


def test_systemd_would_say_what_is_wrong(tmp_path: Path) -> None:
    """The test above can fail: a directive that there is not, and a program that nobody brings."""
    require_program(Path("/usr/bin/systemd-analyze"), "systemd")
    root = machine("kubernetes-crio-plain", tmp_path)
    unit = root / "etc/systemd/system/kubelet.service"
    unit.write_text(unit.read_text().replace("RestartSec=", "RestartSecs="))
    assert "RestartSecs" in verify(root, "kubelet.service")
    (root / "usr/bin/kubelet").unlink()
    assert "/usr/bin/kubelet" in verify(root, "kubelet.service")


@pytest.mark.parametrize("name", FULL)
def test_first_boot_enables_what_makes_a_node(name: str, tmp_path: Path) -> None:
    root = real.provision(served(FULL[name]), tmp_path)
    presets = (root / "etc/systemd/system-preset/20-ignition.preset").read_text()
    for unit in ("kubelet.service", "kubelet-cleanup.service", "fastness-agent.service", "fastness-firstboot.service"):
        assert f"enable {unit}\n" in presets


def kubelet_says(binaries: Path, directory: Path, settings: str) -> str:
    """The log of a real kubelet that is given settings and nothing else, up to its end."""
    (directory / "kubelet.conf").write_text(settings)
    command = [
        str(binaries / "kubelet"), f"--config={directory}/kubelet.conf", f"--root-dir={directory}/root",
        f"--cert-dir={directory}/pki", f"--kubeconfig={directory}/none", f"--bootstrap-kubeconfig={directory}/none",
        f"--config-dir={directory}/conf.d", "--hostname-override=node", "--v=2",
    ]  # fmt: skip
    (directory / "conf.d").mkdir(exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0, "it has no cluster to join"
    return done.stdout + done.stderr


@pytest.mark.parametrize("role", ["worker", "master"])
@pytest.mark.parametrize("name", FULL)
def test_the_real_kubelet_reads_its_settings_strictly(
    name: str, role: str, real_kube_binaries: Path, tmp_path: Path
) -> None:
    # Machines of tests may have control groups of the first version, which a kubelet refuses before it looks further.
    settings = {**kubelet_settings(replace(FULL[name], role=role)), "failCgroupV1": False}
    log = kubelet_says(real_kube_binaries, tmp_path, settings_text(settings))
    assert "lenient decoding" not in log
    assert "failed to validate kubelet configuration" not in log
    assert "failed to run Kubelet" in log, "it ended for want of a cluster, not for what it was told"
    unknown = kubelet_says(real_kube_binaries, tmp_path, settings_text({**settings, "nonsense": 1}))
    assert "lenient decoding" in unknown, "the test can fail"


def test_no_flag_of_plain_kubernetes_is_deprecated(real_kube_binaries: Path) -> None:
    help_text = subprocess.run(
        [real_kube_binaries / "kubelet", "--help"], capture_output=True, text=True, check=True
    ).stdout
    described = dict(re.findall(r"^\s+(?:-\w, )?(--[a-z0-9-]+) (.*)$", help_text, re.MULTILINE))
    for inputs in FULL.values():
        if not inputs.openshift:
            for flag in re.findall(r"(--[a-z0-9-]+)=", kubelet_unit(inputs).partition("ExecStart=")[2]):
                assert "DEPRECATED" not in described[flag], flag


@pytest.mark.parametrize("pause", ["", "registry.example/pause:3.10"])
def test_containerd_reads_its_configuration(pause: str, tmp_path: Path) -> None:
    program = require_program(Path("/usr/bin/containerd"), "containerd")
    text = containerd_conf(replace(PLAIN, pause_image=pause))
    (tmp_path / "config.toml").write_text(text)
    done = subprocess.run(
        [program, "--config", tmp_path / "config.toml", "config", "dump"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    cri = tomllib.loads(done.stdout)["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    assert cri["registry"]["config_path"] == "/etc/containerd/certs.d:/etc/docker/certs.d"
    assert cri["cni"]["bin_dir"] == "/opt/cni/bin"
    assert not pause or cri["sandbox_image"] == pause
    assert cri["sandbox_image"], "without a choice it is containerd's own"


@pytest.mark.parametrize("name", FULL)
def test_every_toml_and_shell_file_can_be_read(name: str, tmp_path: Path) -> None:
    root = real.provision(served(FULL[name]), tmp_path)
    tables = [
        *root.glob("etc/containers/*.conf"),
        *root.glob("etc/crio/crio.conf.d/*"),
        *root.glob("etc/containerd/*.toml"),
    ]
    assert tables
    for path in tables:
        tomllib.loads(path.read_text())
    for path in (*root.glob("usr/local/bin/*"), *root.glob("usr/local/sbin/*")):
        subprocess.run(["sh", "-n", path], check=True, timeout=60)
