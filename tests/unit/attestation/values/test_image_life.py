"""No machine that follows the plan is refused, and no value outlives its need: any order of updates, reboots and failures.

The model drives the functions of the product: `rollout.candidates` with the hold of `values_missing`, `advanced` for the life of
images, `ReferenceValues` for what the verifier accepts. The two loops that carry the decisions out run whenever the test says, on
what their caches last saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.values.image_life import (
    LEFT,
    SOAK,
    STAGE,
    Life,
    Need,
    Stage,
    Uses,
    advanced,
    digest_of,
    life_of,
    values_missing,
    with_stage,
)
from fastness.attestation.values.measured import COMPARED
from fastness.attestation.values.values import ReferenceValues, set_version
from fastness.attestation.verdict.conclude import properties_of
from fastness.kinds.trusted_execution.properties import images_in
from fastness.machineconfig.rollout import rollout
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts

START = datetime(2026, 1, 1, tzinfo=UTC)
IMAGES = tuple(f"registry.example/os@sha256:{digit * 64}" for digit in "abc")
REGISTERS = tuple(compared.name for compared in COMPARED["tpm"])
SHARED = {"tpm_pcr7", "tpm_pcr14"}
NODES = 3


def value(image: int, register: str) -> str:
    return ("shared" if register in SHARED else f"{image}") + register


def values_of(image: int) -> list[dict[str, Any]]:
    """What an approval says: the image, and as named states of an update its boot loader with another kernel."""
    listed: list[dict[str, Any]] = [
        {"name": register, "value": value(image, register), "state": "Current"}
        for register in REGISTERS
        if register != "tpm_pcr11"
    ]
    for kernel in range(len(IMAGES)):
        variant = "whole" if kernel == image else f"kernel-{kernel}"
        listed.append(
            {"name": "tpm_pcr11", "value": value(kernel, "tpm_pcr11"), "variants": [variant], "state": "Current"}
        )
    return listed


@dataclass
class World:
    """Pools, nodes, sets, and what the two loops last saw of them."""

    goal: int = 0
    now: datetime = START
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    booted: dict[str, dict[str, int]] = field(default_factory=dict)
    sets: list[dict[str, Any]] = field(default_factory=list)
    seen_goal: int = 0
    seen_nodes: dict[str, NodeFacts] = field(default_factory=dict)
    proved: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(NODES):
            self.nodes[f"n{number}"] = NodeFacts(f"n{number}", True, "c0", "c0", "Done", created=str(number))
            self.booted[f"n{number}"] = dict.fromkeys(REGISTERS, 0)
        self.sets = [
            {"metadata": {"name": f"image-{number}"}, "spec": {"source": "image", "image": image, "values": values_of(number)}}
            for number, image in enumerate(IMAGES)
        ]  # fmt: skip
        self.observe()

    def observe(self) -> None:
        self.seen_goal, self.seen_nodes = self.goal, dict(self.nodes)

    def book(self) -> ReferenceValues:
        return ReferenceValues.of(self.sets, self.now)

    def uses(self) -> Uses:
        configs = {config for node in self.seen_nodes.values() for config in (node.current, node.desired)}
        return Uses(
            frozenset({digest_of(IMAGES[self.seen_goal])}),
            frozenset(digest_of(IMAGES[int(config[1:])]) for config in configs),
            frozenset(digest_of(image) for proved in self.proved.values() for image in images_in(proved)),
        )

    def attest(self) -> None:
        """Every machine proves what it booted; the verifier keeps what that says."""
        book = self.book()
        for name, measured in self.booted.items():
            claims = {
                "tpm": {f"pcr{int(register[7:]):02d}": value(image, register) for register, image in measured.items()}
            }
            self.proved[name] = properties_of("tpm", claims, book)

    # What happens.

    def retarget(self, image: int) -> None:
        self.goal = image

    def look(self) -> None:
        """The loop that follows images, on its caches."""
        for value_set in self.sets:
            life = advanced(life_of(value_set), value_set["spec"]["image"], self.uses(), self.now)
            notes = {key: text for key, text in life.to_json().items() if text}
            value_set["metadata"] = {**value_set["metadata"], "annotations": notes}

    def publish(self) -> None:
        """The loop that writes the values."""
        for number, value_set in enumerate(self.sets):
            stage = life_of(value_set).stage
            spec = with_stage({"source": "image", "image": IMAGES[number], "values": values_of(number)}, stage)
            if stage is Stage.RETIRED:
                spec["withdrawn"] = {"at": self.now.isoformat()}
            value_set["spec"] = spec

    def roll(self) -> None:
        goal = Goal(f"c{self.goal}")
        missing = values_missing(
            IMAGES[self.goal], self.sets, self.book(), self.now, tees={"tpm"}, approved=frozenset(IMAGES)
        )
        choice = rollout.candidates(
            self.nodes.values(), goal, 2, hold=lambda node: None if node.current == goal.config else missing
        )
        for node in choice.nodes:
            state = "Done" if node.current == goal.config else "Working"
            self.nodes[node.name] = replace(node, desired=goal.config, state=state)

    def boot(self, name: str, between: bool) -> None:
        """Start what the node aims at; between two images the boot loader is new and the kernel old."""
        node = self.nodes[name]
        old, new = int(node.current[1:]), int(node.desired[1:])
        self.booted[name] = {register: old if between and register == "tpm_pcr11" else new for register in REGISTERS}

    def finish(self, name: str) -> None:
        self.boot(name, between=False)
        self.nodes[name] = replace(self.nodes[name], current=self.nodes[name].desired, state="Done")

    def fail(self, name: str) -> None:
        """The new image does not come up: the node starts the old one again and says so."""
        node = self.nodes[name]
        self.booted[name] = dict.fromkeys(REGISTERS, int(node.current[1:]))
        if node.current != node.desired:
            self.nodes[name] = replace(node, state="Degraded")

    def tick(self, minutes: int) -> None:
        # Caches are seconds behind, not hours: the loops see what is and do their work before time goes on.
        self.attest()
        self.observe()
        self.look()
        self.publish()
        self.now += timedelta(minutes=minutes)

    def refused(self) -> list[str]:
        book = self.book()
        return [
            name
            for name, measured in self.booted.items()
            if not any(
                candidate.whole
                for candidate in book.candidates(
                    "tpm", {register: value(n, register) for register, n in measured.items()}
                )
            )
        ]


NAME = st.sampled_from([f"n{number}" for number in range(NODES)])
EVENTS = st.one_of(
    st.tuples(st.just("retarget"), st.integers(0, len(IMAGES) - 1)),
    st.tuples(st.just("roll")),
    st.tuples(st.just("roll")),
    st.tuples(st.just("boot"), NAME, st.booleans()),
    st.tuples(st.just("finish"), NAME),
    st.tuples(st.just("fail"), NAME),
    st.tuples(st.just("tick"), st.integers(1, 90)),
    st.tuples(st.just("observe")),
    st.tuples(st.just("look")),
    st.tuples(st.just("publish")),
)


@given(st.lists(EVENTS, max_size=60))
def test_no_machine_that_follows_the_plan_is_refused_and_no_value_outlives_its_need(events: list[Any]) -> None:
    world = World()
    for number, (what, *arguments) in enumerate(events):
        getattr(world, what)(*arguments)
        assert world.refused() == [], (events[: number + 1], world)
    settle(world)
    assert world.refused() == []
    on_nodes = {int(config[1:]) for node in world.nodes.values() for config in (node.current, node.desired)}
    running = {image for proved in world.proved.values() for image in images_in(proved)}
    needed = {IMAGES[number] for number in on_nodes | {world.goal}} | running
    fresh = {value_set["spec"]["image"] for value_set in world.sets if life_of(value_set).stage is Stage.FRESH}
    counting = {value_set["spec"]["image"] for value_set in world.sets if "withdrawn" not in value_set["spec"]}
    assert counting == needed | fresh


def settle(world: World) -> None:
    """Let every update end and every soak pass."""
    for _ in range(12):
        for name, node in world.nodes.items():
            if node.current != node.desired:
                world.finish(name)
        world.tick(1)
        world.roll()
    assert {node.current for node in world.nodes.values()} == {f"c{world.goal}"}
    world.tick(int(SOAK.total_seconds() / 60) + 1)
    world.tick(0)


def test_a_rollout_waits_for_values_and_says_what_it_waits_for() -> None:
    world = World()
    world.look()
    world.sets[1]["spec"]["withdrawn"] = {"at": START.isoformat()}
    world.retarget(1)
    world.roll()
    assert {node.desired for node in world.nodes.values()} == {"c0"}
    missing = values_missing(IMAGES[1], world.sets, world.book(), world.now, tees={"tpm"}, approved=frozenset(IMAGES))
    assert missing is not None
    assert "Withdrawn" in missing
    world.tick(0)
    world.roll()
    assert {node.desired for node in world.nodes.values()} == {"c0", "c1"}


@pytest.mark.parametrize(
    ("image", "tees", "approved", "phrase"),
    [
        ("registry.example/os:latest", {"tpm"}, IMAGES, "names no digest"),
        (f"registry.example/os@sha256:{'d' * 64}", {"tpm"}, IMAGES, "no ApprovedImage"),
        (IMAGES[0], {"tpm"}, (), "NotApproved"),
        (IMAGES[0], {"snp"}, IMAGES, "snp_launch_measurement"),
        (IMAGES[0], {"tpm"}, IMAGES, None),
        (IMAGES[0], set(), IMAGES, None),
        (IMAGES[2], {"tpm"}, IMAGES, "not held"),
    ],
)
def test_what_is_missing_is_named(image: str, tees: set[str], approved: tuple[str, ...], phrase: str | None) -> None:
    world = World()
    world.look()
    missing = values_missing(image, world.sets, world.book(), world.now, tees=tees, approved=frozenset(approved))
    if phrase is None or missing is None:
        assert missing is phrase
    else:
        assert phrase in missing


def test_values_that_somebody_imported_do_not_stand_for_an_image() -> None:
    world = World()
    world.look()
    for value_set in world.sets:
        value_set["spec"]["source"] = "import"
    broken = [*world.sets, {"metadata": {"name": "broken"}, "spec": None}]
    missing = values_missing(IMAGES[0], broken, world.book(), world.now, tees={"tpm"}, approved=frozenset(IMAGES))
    assert missing is not None
    assert "no ApprovedImage" in missing


def test_distrust_holds_a_rollout_back() -> None:
    world = World()
    world.look()
    missing = values_missing(
        IMAGES[0], world.sets, world.book(), world.now, tees={"tpm"}, approved=frozenset(IMAGES), distrusted={IMAGES[0]}
    )
    assert missing is not None
    assert "Distrusted" in missing


def test_what_no_config_named_is_left_alone_for_ever() -> None:
    nobody, later = Uses(), START + 100 * SOAK
    assert advanced(Life(), IMAGES[0], nobody, later) == Life()
    started = Uses(booted=frozenset({digest_of(IMAGES[0])}))
    assert advanced(Life(), IMAGES[0], started, later) == Life()


def test_a_kept_image_never_retires_and_a_new_approval_brings_one_back() -> None:
    retired = Life(Stage.RETIRED, START)
    later = START + 2 * SOAK
    assert advanced(retired, IMAGES[0], Uses(), later, keep=True).stage is Stage.CURRENT
    assert advanced(retired, IMAGES[0], Uses(), later, renewed=True) == Life()
    assert advanced(retired, IMAGES[0], Uses(), later) == retired


def test_what_a_machine_still_runs_or_nobody_can_tell_is_kept() -> None:
    life = Life(Stage.CURRENT)
    assert Uses(uncertain=True).need(IMAGES[0]) is Need.USED
    for uses in (Uses(uncertain=True), Uses(booted=frozenset({digest_of(IMAGES[0])}))):
        assert advanced(life, IMAGES[0], uses, START + 9 * SOAK) == Life(Stage.RETIRING)


def test_a_life_survives_as_annotations_and_nonsense_is_none() -> None:
    life = Life(Stage.RETIRING, START)
    assert life_of({"metadata": {"annotations": life.to_json()}}) == life
    for notes in ({STAGE: "Gone"}, {STAGE: "Retiring", LEFT: "soon"}):
        assert life_of({"metadata": {"annotations": notes}}) == Life()


def test_the_state_of_values_does_not_change_the_version_that_verdicts_name() -> None:
    spec: dict[str, Any] = {"source": "image", "image": IMAGES[0], "values": values_of(0)}
    assert set_version(with_stage(spec, Stage.RETIRING)) == set_version(spec)
    assert with_stage(spec, Stage.RETIRING)["values"][0]["state"] == "Retiring"
