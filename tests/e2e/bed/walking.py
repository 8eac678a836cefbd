"""A control plane on the bed as `docs/how-to/from-an-empty-machine-to-a-node.md` starts it, and machines that boot by themselves.

The commands are the page's, run in the bed's network. What the page takes for granted is made here: an image with a kubelet, a
TPM with its maker, what the image measures, the power button. At the end nothing of it is left in the bed, which others share.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from fastness.app.accounts import everything
from fastness.crypto.silicon.registers import hashed
from fastness.kinds.crd import manifests
from fastness.kinds.machineconfiguration import names
from fastness.sim.tee.images import BootImage, default_image
from tests.bed import Bed, machine_image
from tests.bed.bed import ADDRESS
from tests.bed.kubectl import Kubectl
from tests.bed.machine import Machine
from tests.e2e.docs.transcript import Shell, Step, matches, steps
from tests.e2e.live import environment, run
from tests.swtpm import Maker, Swtpm

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/how-to/from-an-empty-machine-to-a-node.md"
STARTS = "<!-- the machine starts here -->"
CHANGES = "## 5. Change it"
PAUSE = "bed.invalid/bed/pause:1"


@dataclass
class Walk:
    """A session of the page, and the machine that it is about."""

    bed: Bed
    kubectl: Kubectl
    shell: Shell
    directory: Path
    machines: list[Machine] = field(default_factory=list)

    @property
    def machine(self) -> Machine:
        """The machine of the page."""
        return self.machines[0]

    @property
    def node(self) -> str:
        """The name of its node."""
        (line,) = self.shell.run(Step("echo $NODE"))
        return line

    def read(self, text: str) -> None:
        """Run what a part of the page says; what is printed is what it shows."""
        for step in steps(text):
            printed = self.shell.run(step)
            expected = "\n".join(step.expected)
            assert matches(step.expected, printed), self.report(step.command, expected, "\n".join(printed))

    def report(self, command: str, expected: str, printed: str) -> str:
        """What one needs who must find out why a step failed."""
        lines = [f"$ {command}", "--- expected", expected, "--- printed", printed]
        for log in sorted(self.directory.glob("*.log")):
            lines += [f"--- {log.name}", log.read_text(errors="replace")[-2000:]]
        for machine in self.machines:
            lines += ["--- console", machine.console[-3000:]]
            with suppress(Exception):
                lines += [
                    "--- journal",
                    machine.run("journalctl", "--no-pager", "-b", "-p", "warning", "-n", "60").stdout,
                ]
        return "\n".join(lines)

    def build(self, tpm: Swtpm, image: BootImage | None = None) -> Machine:
        """A machine that boots the image of the page, or measures another."""
        booted = image or default_image()

        def firmware(chip: Swtpm) -> bytes:
            chip.tool(
                "pcrextend",
                *(f"{event.register}:sha256={hashed('sha256', event.subject).hex()}" for event in booted.events),
            )
            return booted.event_log

        machine = Machine(self.bed, self.directory / "root", tpm, firmware)
        self.machines.append(machine)
        return machine

    def user_data(self) -> bytes:
        """What the page gave to its machine, with a ticket that is good now."""
        printed = self.shell.run(Step("fastness userdata worker > user-data"))
        assert printed == [], printed
        return (self.directory / "user-data").read_bytes()


@contextmanager
def walking(bed: Bed, maker: Maker, tpm: Swtpm, directory: Path) -> Iterator[Walk]:
    """The page up to a node that runs a pod, for the time of the block."""
    with Kubectl.in_new_namespace(bed.kube.kubeconfig) as kubectl:
        forget(bed)
        walk = Walk(bed, kubectl, Shell(directory, _environment(bed, maker, kubectl, directory), bed.enter), directory)
        _furnish(bed, maker, directory)
        try:
            before, after = PAGE.read_text().split(STARTS)
            walk.read(before)
            machine_image.lend(directory / "root")
            walk.build(tpm).switch_on((directory / "user-data").read_bytes())
            walk.read(after.split(CHANGES)[0])
            yield walk
        finally:
            for machine in walk.machines:
                machine.switch_off()
            for pid_file in directory.glob("*.pid"):
                with suppress(ProcessLookupError):
                    os.kill(int(pid_file.read_text()), signal.SIGTERM)
            walk.shell.close()
            forget(bed)


def _environment(bed: Bed, maker: Maker, kubectl: Kubectl, directory: Path) -> dict[str, str]:
    """What the page needs: a kubeconfig that is good in the bed's network, in a namespace of this test's own, and three facts."""
    settings = bed.kube.kubeconfig.read_text().replace(bed.kube.url, bed.inner_url)
    (directory / "kubeconfig").write_text(settings)
    (directory / "kubeconfig").chmod(0o600)
    env = environment(
        directory, KUBECONFIG=str(directory / "kubeconfig"), ADDRESS=ADDRESS, MAKER=maker.root, PAUSE=PAUSE
    )
    words = ["kubectl", "config", "set-context", "--current", "--namespace", kubectl.namespace]
    changed = run(words, env, cwd=directory)
    assert changed.code == 0, changed.err
    return env


def _furnish(bed: Bed, maker: Maker, directory: Path) -> None:
    """What lies in the directory in which the page begins."""
    (directory / "fastness").symlink_to(ROOT)
    (directory / "maker.pem").write_text("".join(certificate.pem.decode() for certificate in maker.certificates))
    (directory / "manifest.json").write_text(json.dumps(default_image().manifest()))
    registry = bed.registry.replace("127.0.0.1", ADDRESS)
    machine_image.begin(directory / "root", bed.binaries / "kubelet", registry, "10.244.200.0/24")


def forget(bed: Bed) -> None:
    """Take everything of ours out of the bed: definitions with their objects, accounts, namespaces, nodes."""
    with bed.kube.client() as admin:
        accounts, definitions = everything(), list(manifests())
        for document in [*accounts, *definitions]:
            admin.delete(_path(document))
        admin.delete("/api/v1/namespaces/kube-public/configmaps/cluster-info")
        admin.delete("/api/v1/nodes", params={"labelSelector": names.WORKER_LABEL})
        for document in [*definitions, *(document for document in accounts if document["kind"] == "Namespace")]:
            bed.until(partial(_is_gone, admin, _path(document)))


def _is_gone(admin: httpx.Client, path: str) -> bool:
    return admin.get(path).status_code == 404


def _path(document: Mapping[str, Any]) -> str:
    version, kind, meta = document["apiVersion"], document["kind"], document["metadata"]
    plural = f"{kind[:-1]}ies" if kind.endswith("Policy") else f"{kind}s"
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{root}{space}/{plural.lower()}/{meta['name']}"
