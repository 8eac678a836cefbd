"""The first boot before the kubelet: a machine that is what its configuration asks for goes on, another one reboots once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply.first_boot import first_boot
from fastness.agent.apply.hosts import DirectoryMachine, PlainSystem
from fastness.agent.errors import BadConfig
from fastness.agent.host.boot_loader import LoaderUpdate
from fastness.agent.host.errors import ImageFailure
from fastness.agent.host.file_changes import PollingWatcher
from fastness.agent.host.states import ABSENT, File
from fastness.formats import json
from fastness.kinds.machineconfiguration import names
from fastness.runtime.clock import SystemClock
from tests.component.agent.directory_machine import any_image, rendered

IMAGE = "registry.example/os@sha256:" + 64 * "a"
INSTALLED = "registry.example/os@sha256:" + 64 * "0"


@pytest.fixture
def machine(tmp_path: Path) -> DirectoryMachine:
    watcher = PollingWatcher(tmp_path, SystemClock())
    return DirectoryMachine(tmp_path, watcher, lambda: "boot", installed=INSTALLED, pull=any_image)


def serve(machine: DirectoryMachine, path: str = names.ENCAPSULATED_FILE, **spec: Any) -> None:
    content = json.encode(rendered("rendered-worker-1", **spec))
    machine.host.root.put(path, File(content, 0o600, None, None))


def boot(machine: DirectoryMachine, path: str = names.ENCAPSULATED_FILE) -> tuple[str, ...]:
    return first_boot(machine.host.root, machine.system, machine.power, path)


def test_a_machine_that_has_everything_goes_on_and_is_not_asked_again(machine: DirectoryMachine) -> None:
    serve(machine)
    assert boot(machine) == ()
    assert machine.host.root.look(names.ENCAPSULATED_FILE) == ABSENT
    assert machine.power.reasons == []


def test_another_image_is_staged_and_the_machine_reboots_once(machine: DirectoryMachine) -> None:
    serve(machine, osImageURL=IMAGE, kernelArguments=["nosmt"])
    lacking = boot(machine)
    assert [part for part in lacking if IMAGE in part]
    assert [part for part in lacking if "nosmt" in part]
    assert len(machine.power.reasons) == 1
    machine.reboot()
    assert machine.system.booted().image == IMAGE
    assert boot(machine) == (), "the file is gone: it does not begin again"
    assert machine.host.root.look(names.BASE_IMAGE_FILE) == File(f"{INSTALLED}\n".encode(), 0o644, 0, 0)
    assert isinstance(machine.host.root.look(f"{names.ENCAPSULATED_FILE}.bak"), File)


class Loader:
    """Takes down whose boot loader was asked for."""

    def __init__(self) -> None:
        self.images: list[str] = []

    def update(self, image: str) -> LoaderUpdate:
        self.images.append(image)
        return LoaderUpdate("no EFI system partition", failed=True)


@pytest.mark.parametrize("word", [b"", b"update\n", b"leave\n"])
def test_the_boot_loader_comes_with_the_first_image_where_the_files_ask_for_it(
    machine: DirectoryMachine, word: bytes
) -> None:
    loader, root = Loader(), machine.host.root
    if word:
        root.put(names.BOOT_LOADER_FILE, File(word))
    serve(machine, osImageURL=IMAGE)
    lacking = first_boot(root, machine.system, machine.power, boot_loader=loader)
    assert loader.images == ([IMAGE] if word == b"update\n" else [])
    assert ("no EFI system partition" in lacking) == bool(loader.images)
    assert len(machine.power.reasons) == 1, "what fails of it holds nothing up"


def test_arguments_alone_bring_no_boot_loader(machine: DirectoryMachine) -> None:
    loader = Loader()
    machine.host.root.put(names.BOOT_LOADER_FILE, File(b"update\n"))
    serve(machine, kernelArguments=["nosmt"])
    assert first_boot(machine.host.root, machine.system, machine.power, boot_loader=loader)
    assert loader.images == []


def test_without_the_file_there_is_nothing_to_do(machine: DirectoryMachine) -> None:
    assert boot(machine) == ()


def test_the_way_back_from_an_image_has_a_file_of_its_own(machine: DirectoryMachine) -> None:
    serve(machine, "/etc/mco/machineconfig-revert.json", osImageURL=IMAGE)
    assert boot(machine) == ()
    assert boot(machine, "/etc/mco/machineconfig-revert.json") != ()


def test_a_host_that_deploys_nothing_says_so_and_the_file_stays(machine: DirectoryMachine) -> None:
    serve(machine, osImageURL=IMAGE)
    with pytest.raises(ImageFailure, match="cannot apply an OS image"):
        first_boot(machine.host.root, PlainSystem(), machine.power)
    assert isinstance(machine.host.root.look(names.ENCAPSULATED_FILE), File)
    assert machine.power.reasons == []


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"spec": {"kernelArguments": 3}}'])
def test_a_damaged_file_is_named(machine: DirectoryMachine, content: bytes) -> None:
    machine.host.root.put(names.ENCAPSULATED_FILE, File(content, 0o600, None, None))
    with pytest.raises(BadConfig, match="encapsulated"):
        boot(machine)
