"""A machine with overlays: its agent holds it to them, goes to others when its node is told, and back when they are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.apply import disk
from fastness.agent.apply.disk_check import DRIFT_POLICY, REPAIR
from fastness.agent.errors import BadConfig
from fastness.agent.host.states import ABSENT, File
from fastness.apiserver import LocalCluster
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.overlay.merged import merged_object, overlay_bytes, overlay_in
from fastness.machineconfig.overlay.overlay import examine
from fastness.machineconfig.overlay.targets import overlays_of
from fastness.machineconfig.serving import document, rendered_object
from fastness.protocol.node_trust import NodeTrust
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
MOVED = examine({
    "metadata": {"name": "rack-7"},
    "spec": {"match": {"machines": ["uid"]}, "config": {**FRAGMENT, "storage": {"files": [file("/etc/rack", "8\n")]}}},
})  # fmt: skip
DIGEST, MOVED_DIGEST = overlays_of([OVERLAY]) or "", overlays_of([MOVED]) or ""


class DoorConfigs:
    """What doors hand out: rendered configs with the overlays that are asked for on top."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def fetch(self, name: str, overlay: str = "") -> JsonObject:
        """As the config server makes it."""
        self.asked.append(names.target_of(name, overlay))
        layers = {"": [], DIGEST: [OVERLAY], MOVED_DIGEST: [MOVED]}[overlay]
        body = rendered_object({OLD["metadata"]["name"]: OLD, NEW["metadata"]["name"]: NEW}[name])
        config: JsonObject = json.decode(merged_object(body, layers))
        return config

    async def trust(self, pool: str, named: str = "") -> NodeTrust:
        """Nothing beside the configs."""
        return NodeTrust()


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    """A node whose first boot laid down the pool's config with an overlay on top."""
    machine = make_machine(tmp_path / "w0")
    lay_down(machine, json.decode(overlay_bytes(document(OLD, "3.5.0"), [OVERLAY])))
    play = Play(embedded_server, machine)
    play.configs = DoorConfigs()
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
    notes = await node_of(play.admin)
    assert (notes[names.OVERLAYS], notes[names.CURRENT_OVERLAY]) == (OVERLAY.version, DIGEST)
    assert play.requests == []
    assert play.machine.host.root.look(names.OVERLAY_FILE) == ABSENT, (
        "its secrets live in the record of the config alone"
    )


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
    assert overlay_in(disk.read_current(play.machine.host.root) or {}) == DIGEST


async def arrived(play: Play, overlay: str) -> None:
    await play.until(
        lambda notes: notes.get(names.CURRENT_OVERLAY, "") == overlay and notes[names.STATE] == "Done"
        and not notes.get(names.DESIRED_DRAIN, "").startswith("drain-")
    )  # fmt: skip


async def test_a_node_that_is_told_other_overlays_drains_goes_there_and_says_so(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.annotate(**{names.DESIRED_OVERLAY: MOVED_DIGEST})
        await arrived(play, MOVED_DIGEST)
        await play.settled()
        updated = await play.mark("Updated", "True")
    assert MOVED.version in updated["message"]
    assert content(play, "/etc/rack") == b"8\n"
    assert content(play, "/etc/a.conf") == b"pool\n", "what the overlay covered up before is back"
    assert any(request.startswith("drain-rendered-worker-old") for request in play.requests)
    assert (await node_of(play.admin))[names.CURRENT_CONFIG] == "rendered-worker-old"


async def test_deleting_the_overlay_undoes_all_of_it(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.annotate(**{names.DESIRED_OVERLAY: ""})
        await arrived(play, "")
        await play.settled()
    assert content(play, "/etc/a.conf") == b"pool\n"
    assert play.machine.host.root.look("/etc/rack") == ABSENT
    assert play.machine.host.units.is_enabled("rack.service") != "enabled"
    assert names.OVERLAYS not in await node_of(play.admin)


async def test_config_and_overlays_change_in_one_update(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.annotate(**{names.DESIRED_CONFIG: "rendered-worker-new", names.DESIRED_OVERLAY: MOVED_DIGEST})
        await play.done("rendered-worker-new")
        await arrived(play, MOVED_DIGEST)
    assert isinstance(play.configs, DoorConfigs)
    assert play.configs.asked == [f"rendered-worker-new@{MOVED_DIGEST}"]
    assert (content(play, "/etc/a.conf"), content(play, "/etc/rack")) == (b"newer pool\n", b"8\n")


async def test_an_agent_that_reads_the_api_has_no_overlays_to_go_to_and_says_what_to_do(play: Play) -> None:
    play.configs = None
    async with play.alive():
        await play.settled()
        await play.annotate(**{names.DESIRED_OVERLAY: MOVED_DIGEST})
        notes = await play.state("Degraded")
    assert "the API has no overlays" in notes[names.REASON]
    assert content(play, "/etc/rack") == b"7\n"


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
        disk.read_overlays(machine.host.root)
