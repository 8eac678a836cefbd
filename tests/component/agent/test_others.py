"""Files of other operators on a node: no drift, never replaced, and there again after a boot with another /etc."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fastness.agent.apply import others
from fastness.agent.host.states import File
from fastness.kinds.machineconfiguration import names
from fastness.protocol.files_of_others import DIRECTORY, FilesOfOthers
from tests.component.agent.cluster import Play
from tests.component.agent.directory_machine import file, make_machine, rendered
from tests.embedded.fixtures import Embedded

BASE, A = (f"registry.example/os@sha256:{digit * 64}" for digit in "0a")
DECLARED = file(
    f"{DIRECTORY}/sriov.json", json.dumps({"owner": "sriov", "paths": ["/etc/sriov", "/etc/nic.conf"]}), 0o644
)
FIRST = file("/etc/nic.conf", "first\n", 0o644)
PLAIN = rendered("rendered-worker-plain", files=[DECLARED, FIRST, file("/etc/mine", "mine\n")])
IMAGE = rendered("rendered-worker-image", files=[DECLARED, file("/etc/mine", "mine\n")], osImageURL=A)
BARE = rendered("rendered-worker-bare")


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    """A node that is to have the declaration, and the first content of a file that it is about."""
    machine = make_machine(tmp_path / "w0", installed=BASE)
    play = Play(embedded_server, machine)
    await play.prepare(PLAIN, IMAGE, BARE, current="rendered-worker-bare")
    notes = b'{"%s": "rendered-worker-bare"}' % names.CURRENT_CONFIG.encode()
    machine.host.root.put(names.NODE_ANNOTATIONS_FILE, File(notes))
    return play


@pytest.mark.row("003-34")
async def test_what_another_operator_keeps_is_no_drift_and_outlives_a_switch_to_a_system_with_its_own_etc(
    play: Play,
) -> None:
    root, files = play.machine.root, play.machine.host.root
    reboot = play.machine.reboot

    def with_another_etc() -> None:
        """As a sealed system boots: of /etc only what the image and the agent bring."""
        for name in ("etc/sriov", "etc/nic.conf"):
            place = root / name
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        reboot()

    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-plain")
        await play.done("rendered-worker-plain")
        assert (root / "etc/nic.conf").read_text() == "first\n", "a config may bring the first content"
        files.put("/etc/sriov/pci/0000.json", File(b"{}", 0o600))
        (root / "etc/nic.conf").write_text("by the operator\n")
        (root / "etc/mine").write_text("by hand\n")
        notes = await play.state("Degraded")
        assert "/etc/mine" in notes[names.REASON]
        assert "nic.conf" not in notes[names.REASON]
        (root / "etc/mine").write_text("mine\n")
        await play.state("Done")

        play.machine.reboot = with_another_etc  # type: ignore[method-assign]
        await play.want("rendered-worker-image")
        await play.done("rendered-worker-image")
    assert play.machine.system.booted().image == A
    assert (root / "etc/nic.conf").read_text() == "by the operator\n", "also where the config no longer has the file"
    assert files.look("/etc/sriov/pci/0000.json") == File(b"{}", 0o600, *_owner(files.look("/etc/mine")))


def _owner(state: object) -> tuple[int | None, int | None]:
    assert isinstance(state, File)
    return state.uid, state.gid


def test_what_its_owner_takes_away_does_not_come_back_and_bounds_hold(tmp_path: Path) -> None:
    host = make_machine(tmp_path / "w0").host
    declared = FilesOfOthers.of([(f"{DIRECTORY}/a.json", b'{"owner": "a", "paths": ["/etc/a", "/var/a"]}')])
    host.root.put("/etc/a/one", File(b"1", 0o600))
    host.root.put("/etc/a/large", File(b"x" * (others.MOST_BYTES + 1)))
    host.root.put("/var/a/two", File(b"2"))
    others.keep(host, declared)
    host.root.put("/etc/a/one", File(b"other", 0o600))
    assert others.bring_back(host, declared) == (), "what stands there stays as it is"
    for path in ("/etc/a/one", "/etc/a/large", "/var/a/two"):
        host.root.put(path, File(b""))
        (tmp_path / "w0" / "root" / path.lstrip("/")).unlink()
    assert others.bring_back(host, declared) == ("/etc/a/one",), "too large, and /var is the machine's"
    assert others.bring_back(host, FilesOfOthers()) == ()
    (tmp_path / "w0" / "root/etc/a/one").unlink()
    others.keep(host, declared)
    assert others.bring_back(host, declared) == ()
