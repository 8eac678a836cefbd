"""The steps of the runtime's DaemonSets on a directory that stands for a machine, and on `rpm-ostree` as it answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.handlers import lacking
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.host.errors import CommandFailed, ImageFailure
from fastness.agent.host.file_changes import PollingWatcher
from fastness.agent.host.memory_os import MemoryOs, MemoryPackages
from fastness.agent.host.rpm_ostree import LayeredPackages
from fastness.agent.host.states import File
from fastness.agent.kata.step import RuntimeSteps
from fastness.formats import json
from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds.kata import names, runtime
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, labels_of
from fastness.runtime.clock import SystemClock


class Node:
    """A machine with its Node, as far as these steps go."""

    def __init__(self, directory: Path) -> None:
        self.machine = DirectoryMachine(directory, PollingWatcher(directory, SystemClock()), lambda: "boot")
        self.packages = MemoryPackages(self.machine.system, names.EXTENSION)
        self.reboots = 0
        host = self.machine.host
        self.steps = RuntimeSteps(host.root, host.units, self.packages, self._reboot)
        self.node: JsonObject = {"metadata": {"name": "n", "labels": {}}}

    def _reboot(self, _reason: str) -> None:
        self.reboots += 1
        self.machine.reboot()

    def install(self) -> str:
        return self._take(self.steps.install(self.node))

    def uninstall(self) -> str:
        return self._take(self.steps.uninstall(self.node))

    def turn(self, state: InstallState) -> None:
        self.node["metadata"]["labels"][names.STATE_LABEL] = str(state)

    def _take(self, report: Any) -> str:
        if report is not None:
            self.node = apply_merge_patch(self.node, report.patch(self.node))
        return labels_of(self.node).get(names.STATE_LABEL, "")

    def file(self, path: str) -> str | None:
        place = self.machine.root / path.lstrip("/")
        return place.read_text() if place.exists() else None


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A machine with a container runtime."""
    machine_node = Node(tmp_path)
    unit = machine_node.machine.root / "usr/lib/systemd/system/crio.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    return machine_node


def test_a_node_waits_for_its_turn_installs_and_leaves_with_a_boot(node: Node) -> None:
    assert node.install() == InstallState.WAITING_TO_INSTALL
    assert node.install() == InstallState.WAITING_TO_INSTALL
    assert not node.packages.installed()
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    assert node.packages.installed()
    assert node.machine.system.booted().extensions == (names.EXTENSION,)
    assert 'log_level = "info"' in (node.file(names.LOG_LEVEL_FILE) or "")
    assert "kata-tdx" in (node.file(names.RUNTIME_FILE) or "")
    assert node.reboots == 0
    assert node.steps.install(node.node) is None
    node.turn(InstallState.WAITING_TO_UNINSTALL)
    assert node.steps.uninstall(node.node) is None
    node.turn(InstallState.UNINSTALLING)
    assert node.uninstall() == InstallState.WAITING_FOR_REBOOT
    assert node.packages.installed()
    node.uninstall()
    assert node.reboots == 1
    assert node.uninstall() == InstallState.UNINSTALLED
    assert node.file(names.RUNTIME_FILE) is None
    assert node.machine.system.booted().extensions == ()


def test_a_node_that_has_everything_says_so_without_a_turn(node: Node) -> None:
    node.turn(InstallState.INSTALLING)
    node.install()
    node.node["metadata"]["labels"] = {}
    assert node.install() == InstallState.INSTALLED


def test_what_somebody_removed_is_installed_again_when_the_turn_comes(node: Node) -> None:
    node.turn(InstallState.INSTALLING)
    node.install()
    (node.machine.root / names.RUNTIME_FILE.lstrip("/")).unlink()
    assert node.install() == InstallState.WAITING_TO_INSTALL


def test_another_log_level_is_installed_in_turn(node: Node) -> None:
    node.turn(InstallState.INSTALLING)
    node.install()
    node.steps.level = "debug"
    assert node.install() == InstallState.WAITING_TO_INSTALL
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    assert 'log_level = "debug"' in (node.file(names.LOG_LEVEL_FILE) or "")


def test_a_failure_is_told_takes_back_what_it_wrote_and_is_tried_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_service: str) -> None:
        raise ImageFailure("crio does not start")

    node.turn(InstallState.INSTALLING)
    with monkeypatch.context() as broken:
        broken.setattr(node.machine.units, "restart", fails)
        assert node.install() == InstallState.FAILED
    assert annotations_of(node.node)[names.FAILURE] == "crio does not start"
    assert node.file(names.RUNTIME_FILE) is None
    assert node.install() == InstallState.WAITING_TO_INSTALL
    assert names.FAILURE in annotations_of(node.node)
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    assert names.FAILURE not in annotations_of(node.node)


def test_a_failed_removal_is_told_and_tried_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> bool:
        raise ImageFailure("no space")

    node.turn(InstallState.INSTALLING)
    node.install()
    node.turn(InstallState.UNINSTALLING)
    with monkeypatch.context() as broken:
        broken.setattr(node.packages, "uninstall", fails)
        assert node.uninstall() == InstallState.FAILED_TO_UNINSTALL
    assert node.uninstall() == InstallState.WAITING_TO_UNINSTALL


class RpmOstree:
    """A program that remembers what it was told."""

    def __init__(self, *layered: str, broken: bool = False) -> None:
        self.layered = list(layered)
        self.asked: list[str] = []
        self.broken = broken

    def __call__(self, command: Sequence[str]) -> str:
        self.asked.append(" ".join(command))
        if self.broken:
            raise CommandFailed("`rpm-ostree` ended with 1: no such package")
        return json.encode({"deployments": [{"booted": True, "packages": self.layered}]}).decode()


def test_packages_of_an_image_are_layered_by_its_program() -> None:
    program = RpmOstree()
    packages = LayeredPackages("kata-containers", program)
    assert not packages.installed()
    packages.install()
    program.layered = ["kata-containers"]
    assert packages.installed()
    assert packages.uninstall()
    assert program.asked[1] == "rpm-ostree install --idempotent --apply-live --assumeyes kata-containers"
    assert program.asked[3] == "rpm-ostree uninstall kata-containers"


@pytest.mark.parametrize("output", ["", "no", "{}", '{"deployments": 3}', '{"deployments": [7]}'])
def test_an_answer_that_cannot_be_read_is_a_failure_of_the_host(output: str) -> None:
    with pytest.raises(ImageFailure):
        LayeredPackages("kata-containers", lambda _command: output).installed()


def test_a_program_that_fails_is_told_in_its_own_words() -> None:
    with pytest.raises(ImageFailure, match="no such package"):
        LayeredPackages("kata-containers", RpmOstree(broken=True)).install()


def test_peer_pods_bring_two_files_that_go_when_nobody_asks_any_more(node: Node) -> None:
    node.steps.peer_pods = True
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    assert "kata-remote" in (node.file(names.REMOTE_RUNTIME_FILE) or "")
    assert "hypervisor.remote" in (node.file(names.REMOTE_FILE) or "")
    assert node.install() == InstallState.INSTALLED
    node.steps.peer_pods = False
    assert node.install() == InstallState.WAITING_TO_INSTALL
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    assert node.file(names.REMOTE_RUNTIME_FILE) is None
    assert node.file(names.REMOTE_FILE) is None
    assert node.file(names.RUNTIME_FILE) is not None


def test_a_configuration_of_peer_pods_that_somebody_else_wrote_stays(node: Node) -> None:
    theirs = node.machine.root / names.REMOTE_FILE.lstrip("/")
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    assert node.file(names.REMOTE_FILE) == "theirs"


def test_files_of_peer_pods_go_when_the_runtime_goes(node: Node) -> None:
    node.steps.peer_pods = True
    node.turn(InstallState.INSTALLING)
    node.install()
    node.turn(InstallState.UNINSTALLING)
    assert node.uninstall() == InstallState.WAITING_FOR_REBOOT
    assert node.file(names.REMOTE_FILE) is None
    assert node.file(names.REMOTE_RUNTIME_FILE) is None


def test_packages_that_are_listed_and_brought_no_program_are_no_runtime(node: Node) -> None:
    node.packages = MemoryPackages(MemoryOs(), names.EXTENSION)
    host = node.machine.host
    node.steps = RuntimeSteps(host.root, host.units, node.packages, lambda _reason: None)
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.FAILED
    assert node.packages.installed()
    assert annotations_of(node.node)[names.FAILURE] == (
        f"the packages are installed, but {runtime.SHIM}: the program that runs such pods is missing"
    )
    assert node.file(names.RUNTIME_FILE) is None


def test_an_installed_node_whose_program_is_gone_says_that_it_waits_again(node: Node) -> None:
    node.turn(InstallState.INSTALLING)
    assert node.install() == InstallState.INSTALLED
    (node.machine.root / runtime.SHIM.lstrip("/")).unlink()
    assert node.install() == InstallState.WAITING_TO_INSTALL


@pytest.mark.parametrize(
    ("drop_in", "missing"),
    [
        (b"", "handlers kata, kata-tdx, kata-snp"),
        (b"[crio", "handlers kata, kata-tdx, kata-snp"),
        (b"\xff", "handlers kata, kata-tdx, kata-snp"),
        (b"crio = 3", "handlers kata, kata-tdx, kata-snp"),
        (b"[crio.runtime]\nruntimes = 3", "handlers kata, kata-tdx, kata-snp"),
        (b"[crio.runtime.runtimes]\nkata = 3", "handlers kata, kata-tdx, kata-snp"),
        (runtime.DROP_IN.replace(b"kata-snp", b"other"), "handler kata-snp"),
        (runtime.DROP_IN.replace(b"/usr/bin/", b""), "the program that runs such pods is missing"),
        (runtime.DROP_IN.replace(b"/usr/bin/", b"/opt/"), "the program that runs such pods is missing"),
    ],
)
def test_drop_ins_are_read_as_the_container_runtime_reads_them(node: Node, drop_in: bytes, missing: str) -> None:
    node.packages.install()
    files = node.machine.host.root
    assert list(lacking(files)) == []
    files.put(names.RUNTIME_FILE, File(drop_in))
    ((_, reason),) = lacking(files)
    assert reason.endswith(missing)
    files.put(f"{names.RUNTIME_FILE}-more", File(runtime.DROP_IN))
    assert list(lacking(files)) == []
