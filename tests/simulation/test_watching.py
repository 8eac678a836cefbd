"""Every invariant can fail: each is broken once, in the product or in front of the watch, and the watch sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fastness.apiserver.store.records import Key, LogEntry, Record
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import Done
from fastness.kube.port import EventType
from fastness.machineconfig.rollout.nodes import NodeFacts
from fastness.machineconfig.rollout.rollout import Choice
from tests.simulation.budget import Budget, disturbed
from tests.simulation.invariants import CANARY, Broken, Watch
from tests.simulation.loop import run
from tests.simulation.machines import TEES
from tests.simulation.network import Exchange
from tests.simulation.story import Story, tell
from tests.simulation.whole_cluster import MemoryTiles, World, world

Tamper = Callable[[World], Awaitable[None]]


def watch(why: str = "") -> Watch:
    """A watch over nothing, to be shown what must not happen."""
    tiles = MemoryTiles()
    return Watch(None, tiles, lambda _: why, lambda caller: caller, simulated=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "recorded", "expected"),
    [("it was revoked", 1, "it was revoked"), ("", 0, "not on the record"), ("", 1, "")],
)
def test_the_watch_sees_a_release_that_must_not_be(why: str, recorded: int, expected: str) -> None:
    made = watch(why)
    made.recorded["1"] = recorded
    made.exchange(Exchange("1", "gate-a", "/config/worker", 200, b"{}", True))
    assert expected in "".join(made.broken) if expected else not made.broken


def test_the_watch_sees_a_secret_in_an_answer_and_in_the_log() -> None:
    made = watch()
    made.exchange(Exchange("1", "gate-a", "/config/worker", 401, CANARY.encode(), True))
    made.line(f"gate.refused {{'detail': '{CANARY}'}}")
    assert len(made.broken) == 2


@pytest.mark.parametrize(
    ("plural", "expected"), [("events", 1), ("nodes", 1), ("machineconfigpools", 1), ("machineconfigs", 0)]
)
def test_the_watch_sees_a_secret_in_every_object_but_the_configuration_itself(plural: str, expected: int) -> None:
    made = watch()
    body = json.encode({"metadata": {"name": "x"}, "status": {"message": f"cannot write {CANARY}"}})
    made.writes([LogEntry(EventType.ADDED, Record(Key("", plural, "", "x"), 1, 1, body), None)])
    assert len(made.broken) == expected


def test_a_door_that_writes_the_credential_of_its_caller_to_the_log_is_found() -> None:
    async def story() -> None:
        async with world(1) as here:
            here.add("tpm", await here.ticket())
            await here.pass_time(30)
            used = max(here.watch.secrets, key=len)
            here.watch.line(f"request.done {{'authorization': 'DPoP {used.decode()}'}}")
            await here.watch.step()

    with pytest.raises(Broken, match="a secret is in the log"):
        run(story())


def test_a_door_that_forgets_the_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None:
        """Forget."""

    monkeypatch.setattr("tests.simulation.plane.ClusterRecord.append", nothing)
    with pytest.raises(Broken, match="not on the record"):
        run(tell(3))


def test_a_release_to_a_machine_that_should_be_revoked_is_found() -> None:
    """The world knows that the machine is revoked, and nobody told the doors."""

    async def revoke(here: World) -> None:
        here.revoked[here.identity("0")] = here.now
        await here.pass_time(5)
        await here.reinstall(here.machines[0])
        await here.pass_time(30)

    with pytest.raises(Broken, match="it was revoked"):
        run(_one_machine(revoke))


def test_a_release_to_a_machine_whose_image_counts_no_more_is_found() -> None:
    async def withdraw(here: World) -> None:
        here.withdrawn["42.1"] = here.now - 3600
        await here.reinstall(here.machines[0])
        await here.pass_time(30)

    with pytest.raises(Broken, match="its image was withdrawn"):
        run(_one_machine(withdraw))


@pytest.mark.parametrize("tee", TEES)
def test_a_machine_that_is_taken_for_an_earlier_boot_of_itself_is_found(tee: str) -> None:
    """Its hardware counts anew, as that of a simulation without a memory does."""

    async def boot_backwards(here: World) -> None:
        machine = here.machines[0]
        for boots in (1, 0):  # a second boot, and then the first one again
            await machine.switch_off()
            machine.boots = boots
            here.switch_on(machine)
            await here.pass_time(60)

    with pytest.raises(Broken, match=r"an earlier boot of itself.*that nobody copied is disputed"):
        run(_one_machine(boot_backwards, tee=tee))


@pytest.mark.parametrize("tee", TEES)
def test_reboots_are_silent_and_after_a_copy_was_ended_its_original_is_well(tee: str) -> None:
    async def copy(here: World) -> None:
        original = here.machines[0]
        for _ in range(2):
            await original.switch_off()
            here.switch_on(original)
            await here.pass_time(60)
        await here.watch.step()
        obj = await here.machine_object(original)
        assert obj is not None
        assert "disputes" not in obj["status"]
        here.add(tee, original.ticket, chip=original.chip, joins=False)
        await here.pass_time(2000)  # both prove themselves at their interval
        obj = await here.machine_object(original)
        assert obj is not None
        assert [dispute["over"] for dispute in obj["status"]["disputes"]] == ["Boot"]
        assert not here.good(original)
        disputed_boot = obj["status"]["boot"]
        await here.end_copies()
        await here.pass_time(60)
        assert here.good(original)
        obj = await here.machine_object(original)
        assert obj is not None
        assert obj["status"]["boot"] != disputed_boot

    run(_one_machine(copy, tee=tee))


def test_a_simulated_machine_that_is_shown_as_real_is_found() -> None:
    async def lie(here: World) -> None:
        listed = here.cluster.list

        async def as_real(resource: Any, *args: Any, **named: Any) -> Any:
            page = await listed(resource, *args, **named)
            for machine in page.items:
                if resource == MACHINE.resource and "lastVerdict" in machine["status"]:
                    machine["status"]["simulated"] = False
            return page

        here.watch.cluster.list = as_real  # type: ignore[method-assign]  # nothing that writes it would get past the schema

    with pytest.raises(Broken, match="shown as real"):
        run(_one_machine(lie))


def test_a_record_that_lost_an_entry_is_found() -> None:
    async def lose(here: World) -> None:
        here.watch.recorded["sha256:somebody"] += 1

    with pytest.raises(Broken, match="the record is not complete"):
        run(_one_machine(lose, complete=True))


def test_a_record_that_was_written_anew_is_found() -> None:
    async def rewrite(here: World) -> None:
        await here.watch.step()
        assert here.watch.size > 0
        here.watch._root = bytes(32)  # what somebody saw before is not what is there now
        here.add("snp", here.machines[0].ticket)
        await here.pass_time(120)

    with pytest.raises(Broken, match="does not continue"):
        run(_one_machine(rewrite))


async def _one_machine(tamper: Tamper, *, complete: bool = False, tee: str = "tpm") -> None:
    async with world(1) as here:
        here.add(tee, await here.ticket())
        await here.pass_time(60)
        await tamper(here)
        await (here.watch.complete() if complete else here.watch.step())


def node(
    name: str, *, current: str = "a", desired: str = "a", drain: str = "", cordoned: bool = False, state: str = "Done"
) -> JsonObject:
    notes = {
        names.CURRENT_CONFIG: current, names.DESIRED_CONFIG: desired, names.STATE: state, names.DESIRED_DRAIN: drain,
    }  # fmt: skip
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"unschedulable": True} if cordoned else {}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, False),
        ({"desired": "b"}, True),
        ({"desired": "b", "state": "Degraded"}, False),
        ({"desired": "b", "state": "Degraded", "cordoned": True, "drain": "drain-b"}, True),
        ({"cordoned": True}, False),
        ({"cordoned": True, "drain": "drain-b"}, True),
        ({"cordoned": True, "drain": "uncordon-b"}, False),
    ],
)
def test_a_node_is_out_of_service_because_of_us_from_its_target_until_it_arrived(
    given: dict[str, Any], expected: bool
) -> None:
    assert disturbed(node("n", **given)) is expected


def test_one_node_too_many_is_seen_at_the_write_that_takes_it() -> None:
    budget = Budget()

    def wrote(name: str, **more: Any) -> str:
        body = json.encode(node(name, **more))
        return budget.wrote(LogEntry(EventType.MODIFIED, Record(Key("", "nodes", "", name), 1, 1, body), None))

    assert not wrote("a") + wrote("b") + wrote("a", desired="b")
    assert "2 of at most 1 nodes" in wrote("b", desired="b")


def test_a_rollout_that_forgets_the_budget_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def everybody(nodes: list[NodeFacts], *_: object, **__: object) -> Choice:
        return Choice(tuple(nodes), len(nodes))

    monkeypatch.setattr("fastness.machineconfig.rollout.rollout.candidates", everybody)
    with pytest.raises(Broken, match="out of service because of us"):
        run(tell(3))


def test_a_machine_that_never_gets_its_configuration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nobody(*_: object) -> Done:
        return Done()

    monkeypatch.setattr("fastness.machineconfig.loops.updates.drain.Drains._drain", nobody)
    with pytest.raises(Broken, match="does not get to"):
        run(_quiet_story())


async def _quiet_story() -> None:
    async with world(2) as here:
        story = Story(here)
        await story.begin()
        await story.calm()


def test_without_faults_a_story_ends_well() -> None:
    run(_quiet_story())
