"""A machine that booted with overlays: its agent holds it to them, and no config of the pool takes them away."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.apply import disk
from fastness.agent.apply.node import DRIFT_POLICY, REPAIR
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import File
from fastness.apiserver import LocalCluster
from fastness.formats import json
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.overlay.merged import overlay_bytes
from fastness.machineconfig.overlay.overlay import examine
from fastness.machineconfig.serving import document
from fastness.sim.first_boot import lay_down
from tests.component.agent.cluster import NODE_NAME, Play
from tests.component.agent.directory_machine import UNIT, file, make_machine, rendered, unit
from tests.embedded.fixtures import Embedded

OLD = rendered("rendered-worker-old", files=[file("/etc/a.conf", "pool\n"), file("/etc/base.conf", "base\n")])
NEW = rendered("rendered-worker-new", files=[file("/etc/a.conf", "newer pool\n"), file("/etc/base.conf", "newer\n")])
FRAGMENT = {
    "ignition": {"version": "3.4.0"},
    "storage": {"files": [file("/etc/a.conf", "mine\n"), file("/etc/rack", "7\n")]},
    "systemd": {"units": [unit("rack.service", UNIT)]},
}
OVERLAY = examine({"metadata": {"name": "rack-7"}, "spec": {"match": {"machines": ["uid"]}, "config": FRAGMENT}})


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    """A node whose first boot laid down the pool's config with an overlay on top."""
    machine = make_machine(tmp_path / "w0")
    lay_down(machine, json.decode(overlay_bytes(document(OLD, "3.5.0"), [OVERLAY])))
    play = Play(embedded_server, machine)
    await play.prepare(OLD, NEW, current="rendered-worker-old")
    return play


def content(play: Play, path: str) -> bytes:
    state = play.machine.host.root.look(path)
    return state.content if isinstance(state, File) else b""


async def node_of(cluster: LocalCluster) -> dict[str, str]:
    return dict(annotations_of(await cluster.get(NODE.resource, NODE_NAME)))


async def test_an_overlay_is_no_drift_and_the_node_says_that_it_has_it(play: Play) -> None:
    async with play.alive():
        await play.settled()
    assert content(play, "/etc/a.conf") == b"mine\n"
    assert content(play, "/etc/rack") == b"7\n"
    assert (await node_of(play.admin))[names.OVERLAYS] == OVERLAY.version
    assert play.requests == []


async def test_an_update_of_the_pool_leaves_the_overlay_on_top(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
        await play.settled()
    assert content(play, "/etc/a.conf") == b"mine\n"
    assert content(play, "/etc/rack") == b"7\n"
    assert content(play, "/etc/base.conf") == b"newer\n"
    assert play.machine.host.units.is_enabled("rack.service") == "enabled"
    assert (disk.read_current(play.machine.host.root) or {})["spec"] == NEW["spec"]  # the record stays the pool's


async def test_a_file_of_an_overlay_that_somebody_changes_is_drift_and_repaired(play: Play) -> None:
    await play.annotate(**{DRIFT_POLICY: REPAIR})
    async with play.alive():
        await play.settled()
        play.machine.host.root.put("/etc/rack", File(b"8\n"))

        async def repaired() -> bool:
            return content(play, "/etc/rack") == b"7\n"

        await play.when(repaired)
    assert content(play, "/etc/a.conf") == b"mine\n"


def test_a_damaged_record_of_overlays_is_told_and_nothing_is_undone(tmp_path: Path) -> None:
    machine = make_machine(tmp_path / "w0")
    machine.host.root.put(names.OVERLAY_FILE, File(b"{", 0o600))
    with pytest.raises(BadConfig, match=r"overlays\.json"):
        disk.goal(machine.host.root, OLD)
