"""The agent of one node against a real API: what it does when configs come and go, and what it tells."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.apply import disk
from fastness.agent.apply.apply import Applier
from fastness.agent.apply.desired import Desired
from fastness.agent.apply.journal import PATH, Begin, Doing
from fastness.agent.apply.update import Goal
from fastness.agent.host.errors import UnitFailure
from fastness.agent.host.states import Absent, File
from fastness.apiserver import LocalCluster
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.kubernetes.resources import EVENTS
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.names import Progress
from fastness.kube.errors import Unavailable
from tests.component.agent.cluster import NODE_NAME, Play
from tests.component.agent.directory_machine import apply, file, make_machine, plan, rendered, unit
from tests.embedded.fixtures import Embedded

NOTHING = Goal({}, Desired())
OLD = rendered("rendered-worker-old", files=[file("/etc/base.conf", "base\n")])
NEW = rendered("rendered-worker-new", files=[file("/etc/base.conf", "base\n"), file("/etc/motd", "new\n")])
QUIET = rendered("rendered-worker-quiet", files=[
    file("/etc/base.conf", "base\n"), file("/etc/containers/policy.json", "{}"),
])  # fmt: skip
BAD = rendered("rendered-worker-bad", files=[file("/etc/base.conf", "base\n"), file("/etc/passwd/x", "?")])
FOREIGN = rendered("rendered-worker-foreign", files=[file("/etc/base.conf", "base\n")], users=[
    {"name": "alice", "sshAuthorizedKeys": ["ssh-ed25519 A"]},
])  # fmt: skip
ALL = (OLD, NEW, QUIET, BAD, FOREIGN)


@pytest.fixture
async def play(embedded_server: Embedded, tmp_path: Path) -> Play:
    """A node with the old config, as its first boot left it."""
    machine = make_machine(tmp_path / "w0")
    machine.host.root.put("/etc/base.conf", File(b"base\n"))
    machine.host.root.put(
        names.NODE_ANNOTATIONS_FILE, File(b'{"%s": "rendered-worker-old"}' % names.CURRENT_CONFIG.encode())
    )
    play = Play(embedded_server, machine)
    await play.prepare(*ALL, current="rendered-worker-old")
    return play


def motd(play: Play) -> bytes:
    state = play.machine.host.root.look("/etc/motd")
    return state.content if isinstance(state, File) else b""


async def test_a_fresh_node_takes_over_what_its_first_boot_wrote(play: Play) -> None:
    async with play.alive():
        await play.settled()
    root = play.machine.host.root
    assert (disk.read_current(root) or {})["metadata"]["name"] == "rendered-worker-old"
    assert isinstance(root.look(names.NODE_ANNOTATIONS_FILE), Absent)
    assert play.requests == []
    assert (await play.mark(Progress.UPDATED, "True"))["message"] == "the node has rendered-worker-old"


async def test_a_machine_says_that_its_bootstrap_is_over_when_its_kubelet_runs_and_not_before(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = False
    play.machine.host.root.put("/etc/systemd/system/kubelet.service", File(b"[Install]\nWantedBy=multi-user.target\n"))
    play.machine.units.enable(["kubelet.service"])
    monkeypatch.setattr(type(play.machine.units), "is_running", lambda _units, _unit: runs)
    await play.annotate(**{names.CURRENT_CONFIG: None})
    async with play.alive():
        await play.state("Degraded")
        assert isinstance(play.machine.host.root.look(disk.BOOTSTRAPPED), Absent)
        runs = True
        await play.settled()

        async def written() -> bool:
            return isinstance(play.machine.host.root.look(disk.BOOTSTRAPPED), File)

        await play.when(written)


async def test_a_file_without_policy_drains_reboots_and_comes_back(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        notes = await play.done("rendered-worker-new")
        await play.settled()
    assert motd(play) == b"new\n"
    assert play.machine.power.reasons == ["update to rendered-worker-new"]
    assert play.requests == ["drain-rendered-worker-new", "uncordon-rendered-worker-new"]
    assert "Working" in play.states
    assert names.POST_CONFIG_ACTION not in notes
    assert "Reboot" in await play.events()
    drained, rebooted = [await play.mark(kind, "False") for kind in (Progress.DRAINED, Progress.REBOOTED_NODE)]
    assert drained["message"].startswith("Action during update to rendered-worker-new")
    assert rebooted["reason"] == "UpdatePostActionCompleteRebootedNode"


async def test_a_file_with_a_policy_reloads_a_service_without_drain_or_reboot(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-quiet")
        await play.done("rendered-worker-quiet")
    assert play.machine.units.calls == [("reload", "crio.service")]
    assert (play.requests, play.machine.power.reasons) == ([], [])


async def test_a_users_policy_decides_for_a_directory(play: Play) -> None:
    restart = [{"type": "DaemonReload"}, {"type": "Restart", "restart": {"serviceName": "chronyd.service"}}]
    await play.policies(files=[{"path": "/etc/motd", "actions": restart}])
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
    assert play.machine.units.calls == [("daemon-reload", ""), ("restart", "chronyd.service")]
    assert play.machine.power.reasons == []


async def test_going_back_brings_the_original_back(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    assert motd(play) == b"of the distribution\n"


async def test_a_config_that_cannot_be_written_degrades_and_going_back_recovers(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-bad")
        notes = await play.state("Degraded")
        assert "/etc/passwd" in notes[names.REASON]
        assert notes[names.CURRENT_CONFIG] == "rendered-worker-old"
        await play.mark(Progress.NODE_DEGRADED, "True")
        await play.want("rendered-worker-old")
        notes = await play.done("rendered-worker-old")
        assert notes[names.REASON] == ""
        await play.mark(Progress.NODE_DEGRADED, "False")


async def test_a_machine_whose_kubelet_does_not_run_has_not_arrived_and_goes_back(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollout would go on to the next machine, and to all of them; `tryFor` of a RolloutPolicy takes the config back."""
    play.machine.host.root.put("/etc/systemd/system/kubelet.service", File(b"[Install]\nWantedBy=multi-user.target\n"))
    play.machine.units.enable(["kubelet.service"])
    monkeypatch.setattr(play.machine.units, "is_running", lambda _: motd(play) != b"new\n")
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        notes = await play.state("Degraded")
        assert notes[names.REASON] == "kubelet.service does not run with rendered-worker-new"
        assert (notes[names.CURRENT_CONFIG], motd(play)) == ("rendered-worker-old", b"new\n")
        await play.want("rendered-worker-old")
        assert (await play.done("rendered-worker-old"))[names.REASON] == ""
    assert motd(play) == b"of the distribution\n"


async def test_what_cannot_be_reconciled_is_called_so_and_nothing_is_touched(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-foreign")
        notes = await play.state("Unreconcilable")
    assert "rendered-worker-foreign" in notes[names.REASON]
    assert play.requests == []
    assert "FailedToReconcile" in await play.events()


async def test_a_config_that_does_not_exist_is_named(play: Play) -> None:
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-gone")
        notes = await play.state("Degraded")
    assert "machineconfig rendered-worker-gone not found" in notes[names.REASON]


async def test_a_drain_that_never_ends_is_left_when_the_config_is_taken_back(play: Play) -> None:
    play.drain_allowed = False
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-new")
        await play.until(lambda notes: notes.get(names.DESIRED_DRAIN) == "drain-rendered-worker-new")
        await play.want("rendered-worker-old")
        notes = await play.done("rendered-worker-old")
    assert notes[names.DESIRED_DRAIN] == "uncordon-rendered-worker-old"
    assert motd(play) == b"of the distribution\n"


async def test_a_service_that_fails_to_restart_takes_the_files_back(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reload(service: str) -> None:
        raise UnitFailure(f"{service} does not come up")

    monkeypatch.setattr(play.machine.units, "reload", reload)
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-quiet")
        notes = await play.state("Degraded")
        assert "crio.service does not come up" in notes[names.REASON]
    assert isinstance(play.machine.host.root.look("/etc/containers/policy.json"), Absent)
    assert (disk.read_current(play.machine.host.root) or {})["metadata"]["name"] == "rendered-worker-old"


async def test_drift_is_seen_at_once_reported_with_the_difference_and_gone_when_restored(play: Play) -> None:
    path = play.machine.root / "etc/base.conf"
    async with play.alive():
        await play.settled()
        await asyncio.sleep(0.05)
        path.write_text("tampered\n")
        notes = await play.state("Degraded")
        assert "unexpected on-disk state validating against rendered-worker-old: /etc/base.conf" in notes[names.REASON]
        assert "-base\n+tampered" in notes[names.REASON]
        path.write_text("base\n")
        await play.done("rendered-worker-old")
    assert "ConfigDriftDetected" in await play.events()


async def test_drift_is_repaired_where_that_is_the_policy(play: Play) -> None:
    path = play.machine.root / "etc/base.conf"
    await play.annotate(**{"fastness.dev/drift-policy": "repair"})
    async with play.alive():
        await play.settled()
        await asyncio.sleep(0.05)
        path.write_text("tampered\n")
        await play.wait_for_event("ConfigDriftDetected")
        await play.until(lambda _: path.read_text() == "base\n")
        await play.done("rendered-worker-old")


async def test_a_drifted_machine_is_not_updated_until_it_is_repaired(play: Play) -> None:
    path = play.machine.root / "etc/base.conf"
    path.write_text("tampered\n")
    async with play.alive():
        await play.state("Degraded")
        await play.want("rendered-worker-new")
        await play.wait_for_event("PreflightConfigDriftCheckFailed")
        assert motd(play) == b"of the distribution\n"
        await play.annotate(**{"fastness.dev/drift-policy": "repair"})
        await play.done("rendered-worker-new")


async def test_the_content_of_a_private_file_is_not_told(play: Play) -> None:
    secret = rendered("rendered-worker-secret", files=[file("/etc/secret", "hunter2", 0o600)])
    await play.admin.create(MACHINE_CONFIG.resource, secret)
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-secret")
        await play.done("rendered-worker-secret")
        await asyncio.sleep(0.1)
        (play.machine.root / "etc/secret").write_text("hunter3")
        notes = await play.state("Degraded")
        assert "hunter" not in notes[names.REASON]
        assert "sha256" in notes[names.REASON]
        events = str((await play.admin.list(EVENTS)).items)
    assert "hunter" not in events


async def test_an_update_that_was_cut_off_is_undone_before_anything_is_said(play: Play) -> None:
    applier = Applier(play.machine.host)
    old = apply(play.machine, NOTHING, OLD)
    applier.note(Begin("rendered-worker-old", "rendered-worker-new"))
    for step in plan(play.machine, old, NEW)[:3]:
        applier.note(Doing(applier._carrier.undo_of(step)))
        applier._carrier.carry_out(step)
    async with play.alive():
        await play.until(lambda notes: notes.get(names.REASON) == "")
        await play.done("rendered-worker-old")
    assert motd(play) == b"of the distribution\n"


async def test_an_update_that_was_committed_is_completed_with_its_reboot(play: Play) -> None:
    old = apply(play.machine, NOTHING, OLD)
    await play.want("rendered-worker-new")
    begin = Begin("rendered-worker-old", "rendered-worker-new", ({"type": "Reboot"},), True)
    Applier(play.machine.host).apply(begin, plan(play.machine, old, NEW))
    async with play.alive():
        await play.done("rendered-worker-new")
    assert play.machine.power.reasons == ["update to rendered-worker-new"]


async def test_the_force_file_updates_a_drifted_machine_once(play: Play) -> None:
    apply(play.machine, NOTHING, OLD)
    (play.machine.root / "etc/base.conf").write_text("tampered\n")
    play.machine.host.root.put(names.FORCE_FILE, File(b""))
    async with play.alive():
        await play.done("rendered-worker-old")
        await play.until(lambda notes: notes.get(names.LAST_APPLIED_DRAIN, "").startswith("uncordon"))
    assert (play.machine.root / "etc/base.conf").read_text() == "base\n"
    assert len(play.machine.power.reasons) == 1
    assert isinstance(play.machine.host.root.look(names.FORCE_FILE), Absent)


async def test_a_node_that_vanishes_and_comes_back_goes_on(play: Play) -> None:
    async with play.alive():
        await play.settled()
        saved = await play.admin.get(NODE.resource, NODE_NAME)
        play.paused = True
        await play.admin.delete(NODE.resource, NODE_NAME)
        await asyncio.sleep(0.05)
        metadata = {key: saved["metadata"][key] for key in ("name", "annotations", "labels")}
        await play.admin.create(NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        play.paused = False
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")


async def test_kernel_arguments_are_there_after_the_reboot(play: Play) -> None:
    arguments = rendered(
        "rendered-worker-args", files=[file("/etc/base.conf", "base\n")], kernelArguments=["nosmt"],
        units=[unit("x.service")],
    )  # fmt: skip
    await play.admin.create(MACHINE_CONFIG.resource, arguments)
    async with play.alive():
        await play.settled()
        await play.want("rendered-worker-args")
        await play.done("rendered-worker-args")
        assert play.machine.system.booted().arguments == ("nosmt",)
        assert play.machine.units.is_enabled("x.service") == "enabled"
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    assert play.machine.system.booted().arguments == ()
    assert play.machine.units.is_enabled("x.service") == "not-found"


async def test_a_unit_that_somebody_disabled_is_found_by_the_look_at_everything_and_repaired(play: Play) -> None:
    units = rendered("rendered-worker-unit", files=[file("/etc/base.conf", "base\n")], units=[unit("x.service")])
    await play.admin.create(MACHINE_CONFIG.resource, units)
    apply(play.machine, NOTHING, units)
    play.machine.units.disable(["x.service"])
    await play.annotate(**{
        names.CURRENT_CONFIG: "rendered-worker-unit", names.DESIRED_CONFIG: "rendered-worker-unit",
    })  # fmt: skip
    async with play.alive():
        notes = await play.state("Degraded")
        assert "x.service: unit is disabled, expected enabled" in notes[names.REASON]
        await play.annotate(**{"fastness.dev/drift-policy": "repair"})
        await play.done("rendered-worker-unit")
    assert play.machine.units.is_enabled("x.service") == "enabled"


class Flaky:
    """A cluster that cannot answer every third time, as during a rolling restart of its API servers."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._cluster, name)
        if name not in ("get", "create", "patch"):
            return method

        async def sometimes(*arguments: Any, **options: Any) -> Any:
            self._count += 1
            if self._count % 3 == 0:
                raise Unavailable("the server is restarting")
            return await method(*arguments, **options)

        return sometimes


async def test_an_api_that_comes_and_goes_delays_an_update_and_nothing_else(play: Play) -> None:
    play.as_node = Flaky(play.as_node)  # type: ignore[assignment]
    async with play.alive():
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
        await play.want("rendered-worker-old")
        await play.done("rendered-worker-old")
    assert motd(play) == b"of the distribution\n"
    assert play.machine.power.reasons == ["update to rendered-worker-new", "update to rendered-worker-old"]


async def test_a_damaged_journal_is_told_and_set_aside_and_the_node_goes_on(play: Play) -> None:
    play.machine.host.state.put(PATH, File(b"rubbish\n"))
    async with play.alive():
        await play.wait_for_event(names.Event.JOURNAL_SET_ASIDE)
        [event] = [
            event for event in (await play.admin.list(EVENTS)).items if event["reason"] == names.Event.JOURNAL_SET_ASIDE
        ]
        assert "line 1 of the journal cannot be read" in event["message"]
        assert motd(play) == b"of the distribution\n"
        await play.want("rendered-worker-new")
        await play.done("rendered-worker-new")
    assert motd(play) == b"new\n"
