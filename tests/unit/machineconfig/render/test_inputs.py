"""Which system a pool runs, and what a render waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.generated import Owners, base_configs, with_bases
from fastness.machineconfig.render.inputs import (
    COMPLETED,
    FAILING,
    RUNNING,
    Defaults,
    Obstacle,
    is_complete,
    major,
    obstacle,
    stream_name,
    stream_of_image,
    with_stream,
)
from fastness.machineconfig.render.render import RenderFailure, Setting, render
from tests.unit.machineconfig.build import controller_config, file, ignition, mc, pool

STREAMS = {
    "spec": {},
    "status": {
        "defaultStream": "rhel-9",
        "availableStreams": [
            {"name": "rhel-9", "osImage": "os9@sha256:9", "osExtensionsImage": "ext9@sha256:9"},
            {"name": "rhel-10", "osImage": "os10@sha256:1", "osExtensionsImage": "ext10@sha256:1"},
        ],
    },
}
TEN: dict[str, Any] = {"osImageStream": {"name": "rhel-10"}}


@pytest.mark.parametrize(
    ("own", "workers", "expected"),
    [
        (pool("infra", **TEN), pool(), "rhel-10"),
        (pool("infra"), pool(**TEN), "rhel-10"),
        (pool("infra"), pool(), "rhel-9"),
        (pool("master"), pool(**TEN), "rhel-9"),
        (pool("arbiter"), pool(**TEN), "rhel-9"),
        (pool("worker", **TEN), pool(**TEN), "rhel-10"),
    ],
    ids=["own", "of the workers", "default", "master inherits nothing", "nor does an arbiter", "worker itself"],
)
def test_the_stream_of_a_pool(own: JsonObject, workers: JsonObject, expected: str) -> None:
    assert stream_name(own, [own, workers], STREAMS) == expected


def test_a_stream_decides_images_and_the_major_version() -> None:
    defaults, name, missing = with_stream(Defaults(os_image="base"), pool(**TEN), [], STREAMS)
    assert (defaults.os_image, defaults.extensions_image, defaults.os_major) == ("os10@sha256:1", "ext10@sha256:1", 10)
    assert (name, missing) == ("rhel-10", "")


def test_systems_on_offer_are_known_by_the_digests_of_their_images() -> None:
    defaults, _, _ = with_stream(Defaults(), pool(), [], STREAMS)
    assert defaults.major_of("mirror.example.com/os@sha256:1") == 10
    assert defaults.major_of("mirror.example.com/os@sha256:9") == 9
    assert defaults.major_of("os10:latest") == 0
    assert defaults.major_of("") == 0


def test_without_streams_the_controller_config_decides() -> None:
    assert with_stream(Defaults(os_image="base"), pool(), [], None) == (Defaults(os_image="base"), "", "")


def test_a_stream_that_is_not_on_offer_renders_nothing_and_says_what_is() -> None:
    odd = pool(osImageStream={"name": "rhel-11"})
    defaults, _, missing = with_stream(Defaults(), odd, [], STREAMS)
    result = render(odd, [mc("00-a")], Setting(defaults=defaults, obstacle=missing))
    assert isinstance(result, RenderFailure)
    assert "rhel-11, which is not on offer (there are: rhel-9, rhel-10)" in result.message


def test_runc_is_refused_in_a_pool_that_inherits_a_system_without_it() -> None:
    infra, workers = pool("infra"), pool(**TEN)
    dropin = mc("50-runc", ignition(file("/etc/crio/crio.conf.d/50-x", '[crio.runtime]\ndefault_runtime = "runc"\n')))
    ten, _, _ = with_stream(Defaults(), infra, [infra, workers], STREAMS)
    nine, _, _ = with_stream(Defaults(), infra, [infra, pool()], STREAMS)
    assert isinstance(render(infra, [dropin], Setting(defaults=ten)), RenderFailure)
    assert not isinstance(render(infra, [dropin], Setting(defaults=nine)), RenderFailure)


@pytest.mark.parametrize(
    ("name", "number"),
    [("rhel-10", 10), ("rhel-9", 9), ("rhel-10.2", 10), ("stable", 0), ("centos-10-dev", 10), ("", 0)],
)
def test_the_major_version_is_in_the_name(name: str, number: int) -> None:
    assert major(name) == number


def base(controller: JsonObject, version: str = "fastness-2") -> list[JsonObject]:
    """The base configs of the workers."""
    owners = Owners.of([], [], controller, pools=[POOL])
    return base_configs("worker", owners.inputs("worker")[0], owners, version)


def controller(version: str = "fastness-2", observed: int = 1, statuses: dict[str, str] | None = None) -> JsonObject:
    truth = {COMPLETED: "True", RUNNING: "False", FAILING: "False", **(statuses or {})}
    conditions = [{"type": kind, "status": status} for kind, status in truth.items()]
    status = {"observedGeneration": observed, "conditions": conditions}
    made = controller_config(notes={names.CONTROLLER_VERSION: version}, status=status)
    noted, _ = with_bases(Owners.of([], [], made), base(made))
    assert noted.controller is not None
    return dict(noted.controller)


def obstacle_in(configs: list[JsonObject], owners: Owners) -> Obstacle | None:
    """What a render waits for, with the base of the role there unless these configs bring it."""
    brought = {config["metadata"]["name"] for config in configs}
    missing = [config for config in base(controller()) if config["metadata"]["name"] not in brought]
    return obstacle(POOL, [*missing, *configs], replace(owners, pools={"worker": POOL}), "fastness-2", "fastness-")


POOL = pool()
POOL["metadata"]["labels"] = {f"{names.POOL_LABEL_PREFIX}worker": ""}
READY = Owners.of([], [], controller())


def test_with_everything_in_place_nothing_is_waited_for() -> None:
    assert obstacle_in(base(controller()), READY) is None
    assert is_complete(controller())


@pytest.mark.parametrize(
    ("controller_config", "why"),
    [
        (None, "no ControllerConfig"),
        (controller("fastness-1"), "is of fastness-1, this is fastness-2"),
        (controller(""), "is of nobody"),
        (controller(observed=0), "not complete"),
        (controller(statuses={COMPLETED: "False"}), "not complete"),
        (controller(statuses={RUNNING: "True"}), "not complete"),
        (controller(statuses={FAILING: "True"}), "not complete"),
    ],
)
def test_the_base_of_a_role_comes_first(controller_config: JsonObject | None, why: str) -> None:
    blocked = obstacle_in([], Owners.of([], [], controller_config))
    assert blocked is not None
    assert why in blocked.why
    assert not blocked.lasting


def kubelet(observed: int, **status: Any) -> JsonObject:
    selector = {"matchLabels": POOL["metadata"]["labels"]}
    return {
        "metadata": {"name": "pods", "generation": 2}, "spec": {"machineConfigPoolSelector": selector},
        "status": {"observedGeneration": observed, **status},
    }  # fmt: skip


def test_settings_are_waited_for_until_somebody_looked_at_them_and_a_refusal_lasts() -> None:
    waiting = obstacle_in([], Owners.of([kubelet(1)], [], controller()))
    assert waiting == Obstacle("KubeletConfig pods was not looked at yet")
    refused = [{"type": "Failure", "status": "True", "message": "no"}]
    blocked = obstacle_in([], Owners.of([], [kubelet(2, conditions=refused)], controller()))
    assert blocked == Obstacle("ContainerRuntimeConfig pods is refused: no", lasting=True)
    made = mc("99-worker-generated-kubelet")
    assert obstacle_in([made], Owners.of([kubelet(2)], [], controller())) is None


def test_what_follows_from_settings_and_the_base_of_the_role_must_be_there_in_its_present_form() -> None:
    missing = obstacle_in([], Owners.of([kubelet(2)], [], controller()))
    assert missing == Obstacle("MachineConfig 99-worker-generated-kubelet is not there yet")
    bare = obstacle(POOL, [], READY, "fastness-2", "fastness-")
    assert bare == Obstacle("MachineConfig 00-worker is not there yet")
    edited = base(controller())
    edited[0]["spec"] = {"config": {}}
    assert obstacle_in(edited, READY) == Obstacle("MachineConfig 00-worker is not what its owner says now")


def test_settings_that_go_or_are_for_another_pool_are_not_waited_for() -> None:
    going = kubelet(1)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert obstacle_in([], Owners.of([going], [], controller())) is None
    other = kubelet(1)
    other["spec"]["machineConfigPoolSelector"] = {"matchLabels": {"no": "such"}}
    assert obstacle_in([], Owners.of([other], [], controller())) is None


def test_two_versions_of_ours_do_not_mix() -> None:
    old = base(controller(), "fastness-1")
    blocked = obstacle_in(old, READY)
    assert blocked == Obstacle("MachineConfig 00-worker is of fastness-1, this is fastness-2")


def test_what_others_generated_or_only_claim_to_be_ours_holds_up_nothing() -> None:
    foreign = mc("97-worker-generated-kubelet")
    foreign["metadata"]["annotations"] = {names.GENERATED_BY: "0c5a1b"}
    copied = mc("50-mine")
    copied["metadata"]["annotations"] = {names.GENERATED_BY: "fastness-1"}
    assert obstacle_in([foreign, copied], READY) is None


def about_registries(version: str = "fastness-2", spec: JsonObject | None = None) -> JsonObject:
    config = mc(REGISTRIES_CONFIG)
    config["metadata"]["annotations"] = {names.GENERATED_BY: version}
    config["metadata"]["ownerReferences"] = [{"kind": "Image", "name": "cluster"}]
    return {**config, "spec": spec or SPEC}


REGISTRIES_CONFIG = "99-worker-generated-registries"
SPEC: JsonObject = {"config": ignition()}
REGISTRIES = replace(READY, registries={REGISTRIES_CONFIG: SPEC})
REFUSED = replace(READY, registries_refused={"worker": "Image cluster: no"})


def test_the_config_about_registries_is_waited_for_in_its_present_form() -> None:
    assert obstacle_in([], REGISTRIES) == Obstacle(f"MachineConfig {REGISTRIES_CONFIG} is not there yet")
    assert obstacle_in([about_registries()], REGISTRIES) is None
    stale = obstacle_in([about_registries(spec={"config": {}})], REGISTRIES)
    assert stale == Obstacle(f"MachineConfig {REGISTRIES_CONFIG} is not what its owner says now")
    older = obstacle_in([about_registries("fastness-1")], REGISTRIES)
    assert older == Obstacle(f"MachineConfig {REGISTRIES_CONFIG} is of fastness-1, this is fastness-2")


def test_a_pool_goes_on_with_the_config_about_registries_that_it_has_and_is_blocked_without() -> None:
    assert obstacle_in([about_registries(spec={"config": {}})], REFUSED) is None
    assert obstacle_in([], REFUSED) == Obstacle("registries cannot be configured: Image cluster: no", lasting=True)
    assert obstacle_in([], replace(READY, registries_refused={"master": "no"})) is None


def test_the_stream_of_an_image_is_the_one_on_offer_with_the_same_digest() -> None:
    digest = "@sha256:" + "a" * 64
    offers = [
        {"name": "rhel-9", "osImage": "quay.example/nine@sha256:" + "b" * 64},
        {"name": "rhel-10", "osImage": f"x/ten{digest}"},
    ]
    streams = {"status": {"availableStreams": offers, "defaultStream": "rhel-9"}}
    assert stream_of_image(f"mirror.example/ten{digest}", streams) == "rhel-10"
    assert stream_of_image("quay.example/custom:latest", streams) == ""
    assert (stream_of_image("", streams), stream_of_image(f"x/ten{digest}", None)) == ("", "")
