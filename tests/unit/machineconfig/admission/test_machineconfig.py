"""Pools select a built-in role, and host fields are warned about by trust model."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.admission import Allowed, Answer, Denied
from fastness.machineconfig.admission.machineconfig import ROLE_LABEL
from fastness.protocol.files_of_others import DIRECTORY
from tests.unit.admission.writes import World, review, write

Object = dict[str, Any]
POOLS = "machineconfigpools.machineconfiguration.openshift.io"
CONFIGS = "machineconfigs.machineconfiguration.openshift.io"
OVERLAYS = "nodeoverlays.fastness.dev"


def pool(name: str, selector: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"machineConfigSelector": selector}}


def by_label(role: str) -> Object:
    return {"matchLabels": {ROLE_LABEL: role}}


def by_expression(operator: str, *values: str, key: str = ROLE_LABEL) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        (by_label("worker"), True),
        (by_label("master"), True),
        (by_label("arbiter"), True),
        (by_label("gpu"), False),
        (by_expression("In", "worker", "gpu"), True),
        (by_expression("In", "gpu"), False),
        (by_expression("NotIn", "gpu"), True),
        (by_expression("NotIn", "worker"), False),
        (by_expression("Exists"), False),
        (by_expression("In", "worker", key="other"), False),
        ({}, False),
        (None, False),
        (
            {"matchLabels": "x", "matchExpressions": [None, {"key": ROLE_LABEL, "operator": "In", "values": "worker"}]},
            False,
        ),
    ],
)
def test_custom_pool_must_take_in_a_built_in_role(selector: Any, allowed: bool) -> None:
    answer = review(write("CREATE", POOLS, pool("gpu", selector)), World())
    assert isinstance(answer, Allowed) is allowed
    if isinstance(answer, Denied):
        assert "In [worker, gpu]" in answer.message


def test_unchanged_selector_is_not_judged_again() -> None:
    old = pool("gpu", by_label("gpu"))
    assert review(write("UPDATE", POOLS, {**old, "metadata": {"name": "gpu", "labels": {}}}, old), World()) == Allowed()
    assert isinstance(review(write("UPDATE", POOLS, old, pool("gpu", by_label("worker"))), World()), Denied)


def test_machine_configuration_is_a_singleton() -> None:
    resource = "machineconfigurations.operator.openshift.io"
    assert review(write("CREATE", resource, {"metadata": {"name": "cluster"}}), World()) == Allowed()
    assert isinstance(review(write("CREATE", resource, {"metadata": {"name": "other"}}), World()), Denied)


WORLD = World(
    cluster={"spec": {"mode": "Enforce", "pools": [{"name": "hosts", "trustModel": "ContainersHost"},
                                                    {"name": "plain", "trustModel": "None"}]}},
    all_pools=[pool("worker", by_label("worker")), pool("hosts", by_label("hosts")), pool("plain", by_label("plain")),
               pool("all", by_expression("In", "worker", "hosts")), pool("broken", {"matchLabels": 5})],
)  # fmt: skip


def config(role: str, **spec: Any) -> Answer:
    new = {"metadata": {"name": "50-x", "labels": {ROLE_LABEL: role}}, "spec": spec}
    return review(write("CREATE", CONFIGS, new), WORLD)


def warnings(answer: Answer) -> tuple[str, ...]:
    assert isinstance(answer, Allowed)
    return answer.warnings


@pytest.mark.parametrize(
    "field", [{"kernelArguments": ["quiet"]}, {"kernelType": "realtime"}, {"fips": True}, {"extensions": ["usbguard"]}]
)
def test_host_fields_in_a_confidential_pool_are_accepted_with_a_warning(field: Object) -> None:
    messages = warnings(config("worker", **field))
    assert [text.split(":")[0] for text in messages] == ["pool worker is confidential", "pool all is confidential"]
    assert next(iter(field)) in messages[0]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"kernelArguments": {"shouldExist": ["quiet"]}}, "config.kernelArguments.shouldExist"),
        ({"storage": {"files": [{"path": "/etc/pivot/kernel-args"}]}}, "config.storage.files[0]"),
        ({"storage": {"files": [{"path": "/usr/lib/bootc/kargs.d/a.toml"}]}}, "config.storage.files[0]"),
    ],
)
def test_side_doors_give_the_same_warning(document: Object, place: str) -> None:
    messages = warnings(config("worker", config={"ignition": {"version": "3.5.0"}, **document}))
    assert place in messages[0]


def test_a_document_that_cannot_be_read_gives_no_warning_here() -> None:
    assert warnings(config("worker", config={"ignition": {"version": "9.9.9"}})) == ()


@pytest.mark.parametrize(
    "field",
    [{}, {"kernelArguments": []}, {"kernelType": "default"}, {"kernelType": ""}, {"fips": False}, {"config": {}}],
)
def test_fields_that_say_nothing_give_no_warning(field: Object) -> None:
    assert warnings(config("worker", **field)) == ()


def test_host_of_pod_vms_is_not_attested() -> None:
    messages = warnings(config("hosts", kernelArguments=["quiet"]))
    assert "hosts pod VMs and is not attested" in messages[0]
    assert "pool all is confidential" in messages[1]


def test_ordinary_pools_and_unselected_ones_give_no_warning() -> None:
    assert warnings(config("plain", kernelArguments=["quiet"])) == ()
    assert warnings(config("nobody", kernelArguments=["quiet"])) == ()


def test_all_fields_are_named_in_one_warning() -> None:
    messages = warnings(config("worker", kernelArguments=["a"], fips=True))
    assert "kernelArguments, fips" in messages[0]


def test_without_a_confidential_cluster_nothing_is_confidential() -> None:
    new = {"metadata": {"name": "x", "labels": {ROLE_LABEL: "worker"}}, "spec": {"fips": True}}
    assert review(write("CREATE", CONFIGS, new), World(all_pools=WORLD.all_pools)) == Allowed()


def overlay(**config: Any) -> Object:
    spec = {"match": {"machines": ["uid"]}, "config": {"ignition": {"version": "3.4.0"}, **config}}
    return {"metadata": {"name": "rack"}, "spec": spec}


def test_an_overlay_that_cannot_be_merged_is_warned_about_with_its_place_and_only_when_it_changes() -> None:
    bad = overlay(kernelArguments={"shouldExist": ["debug"]})
    decision = review(write("CREATE", OVERLAYS, bad), World())
    assert isinstance(decision, Allowed)
    assert len(decision.warnings) == 1
    assert "machines that match will wait: spec.config.kernelArguments.shouldExist" in decision.warnings[0]
    labelled = {**bad, "metadata": {"name": "rack", "labels": {"a": "b"}}}
    assert review(write("UPDATE", OVERLAYS, labelled, bad), World()) == Allowed()
    assert review(write("CREATE", OVERLAYS, overlay()), World()) == Allowed()


def test_a_mode_of_control_groups_that_no_pool_follows_is_warned_about_once() -> None:
    def nodes(mode: str) -> Object:
        return {"metadata": {"name": "cluster"}, "spec": {"cgroupMode": mode}}

    def warnings_of(new: str, old: str | None = None) -> tuple[str, ...]:
        operation = "UPDATE" if old is not None else "CREATE"
        before = nodes(old) if old is not None else None
        answer = review(write(operation, "nodes.config.openshift.io", nodes(new), before), World())
        assert isinstance(answer, Allowed)
        return answer.warnings

    assert warnings_of("v1") == (
        "unsupported cgroup mode 'v1': systemd and the kubelet have v2 alone, and another takes kernel arguments, "
        "which confidential pools refuse; set cgroupMode to v2; nothing will be rendered until then",
    )
    assert warnings_of("v1", "v2") == warnings_of("v1")
    assert (warnings_of("v1", "v1"), warnings_of("v2"), warnings_of("", "v1")) == ((), (), ())


@pytest.mark.parametrize(
    ("contents", "refused"),
    [
        ({"source": "data:,%7B%22owner%22:%22sriov%22,%22paths%22:%5B%22/etc/sriov%22%5D%7D"}, ""),
        (
            {"source": "data:,%7B%22owner%22:%22sriov%22,%22paths%22:%5B%22/usr/lib/sriov%22%5D%7D"},
            "/usr is the image's",
        ),
        ({"source": "data:,nonsense", "verification": None}, "it is no JSON"),
        ({"source": 1, "verification": []}, "it is no JSON"),
        (None, "it is no JSON"),
    ],
)
def test_a_declaration_of_files_that_no_agent_could_read_is_refused_with_its_field(contents: Any, refused: str) -> None:
    entry = {"path": f"{DIRECTORY}/a.json", "contents": contents}
    config = {"metadata": {"name": "50-a"}, "spec": {"config": {"storage": {"files": [{"path": "/etc/x"}, entry]}}}}
    answer = review(write("CREATE", CONFIGS, config), World())
    assert isinstance(answer, Denied) is bool(refused)
    if isinstance(answer, Denied):
        assert refused in answer.message
        assert "spec.config.storage.files[1].contents" in answer.message
        assert '"owner": "sriov-network-operator"' in answer.message
