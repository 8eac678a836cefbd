"""What a change would do, before it happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastness.cli.config.plan_view import plan_text
from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration.names import CURRENT_OVERLAY
from fastness.machineconfig.overlay.targets import laid_on
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.render.render import Rendered, render
from fastness.machineconfig.rollout.disruption import Act
from fastness.machineconfig.rollout.plan import NodePlan, Plan, PoolPlan, Proposal, State, plan, under_way
from fastness.machineconfig.rollout.plan_json import to_json
from tests.unit.machineconfig.build import file, ignition, mc, node, pool

BASE = mc("00-base", ignition(file("/etc/a", "one\ntwo\n")))
RELOAD = mc("50-policy", ignition(file("/etc/containers/policy.json", "{}\n")))


def world(*configs: dict[str, Any], nodes: int = 3, **more: Any) -> State:
    """A worker pool whose nodes all have what the configs render to."""
    spec = more.pop("pool", {})
    result = render(pool(), configs)
    assert isinstance(result, Rendered)
    running = result.manifest(pool(), Defaults())
    workers = pool("worker", configuration={"name": result.name}, **spec)
    made = [node(f"n{number}", "worker", current=result.name) for number in range(nodes)]
    return State([workers], [*configs, running], more.pop("nodes_", made), **more)


def only(plan: Plan) -> PoolPlan:
    [planned] = plan.pools
    return planned


def nodes_of(planned: PoolPlan) -> tuple[NodePlan, ...]:
    assert planned.nodes is not None
    return planned.nodes


def test_a_change_names_its_parts_sources_contents_and_actions() -> None:
    new = mc("60-more", ignition(file("/etc/a", "one\nthree\n"), units=[{"name": "x.service", "enabled": True}]))
    planned = only(plan(world(BASE), Proposal([new])))
    assert [(str(step.change), step.source, str(step.cause.actions[0])) for step in planned.steps] == [
        ("file /etc/a changed", "60-more", "Reboot"),
        ("unit x.service added", "60-more", "Reboot"),
    ]
    diff = to_json(Plan((planned,)))["pools"][0]["changes"][0]["diff"]
    assert "-two" in diff
    assert "+three" in diff


def test_a_removed_part_names_the_config_that_had_it() -> None:
    planned = only(plan(world(BASE, RELOAD), Proposal(delete=["50-policy"])))
    [step] = planned.steps
    assert (str(step.change), step.source) == ("file /etc/containers/policy.json removed", "50-policy")
    assert planned.decision.headline == "reload"
    assert not plan(world(BASE, RELOAD), Proposal(delete=["50-policy"])).reboots


def test_nodes_go_in_order_and_in_batches_of_the_budget() -> None:
    pool_plan = only(plan(world(BASE, nodes=5, pool={"maxUnavailable": "40%"}), Proposal([RELOAD])))
    assert [(step.name, step.batch) for step in nodes_of(pool_plan)] == [
        ("n0", 1),
        ("n1", 1),
        ("n2", 2),
        ("n3", 2),
        ("n4", 3),
    ]
    assert pool_plan.budget == 2


def test_nodes_on_other_configs_get_their_own_action() -> None:
    state = world(BASE)
    assert state.nodes is not None
    lost = node("lost", "worker", current="rendered-worker-gone")
    old = mc("rendered-worker-old", ignition(file("/etc/a", "one\ntwo\n", overwrite=True), file("/etc/b")))
    old["metadata"] |= {"labels": {}, "ownerReferences": [{"kind": "MachineConfigPool", "name": "worker"}]}
    behind = node("behind", "worker", current="rendered-worker-old")
    odd = State(state.pools, [*state.configs, old], [*state.nodes, lost, behind])
    node_plans = {node_plan.name: node_plan for node_plan in nodes_of(only(plan(odd, Proposal([RELOAD]))))}
    assert node_plans["n0"].decision.headline == "reload"
    assert node_plans["lost"].decision.reboot
    assert "not known here" in node_plans["lost"].note
    assert node_plans["behind"].decision.reboot
    assert plan(odd, Proposal([RELOAD])).reboots


def test_a_paused_pool_changes_but_disturbs_nobody() -> None:
    proposed_plan = plan(world(BASE, pool={"paused": True}), Proposal([mc("1", kernelArguments=["a"])]))
    assert proposed_plan
    assert not proposed_plan.reboots
    assert {node_plan.batch for node_plan in nodes_of(only(proposed_plan))} == {0}


def test_a_change_that_would_not_render_says_why_and_who() -> None:
    proposed_plan = plan(world(BASE), Proposal([mc("99-bad", kernelType="x")]))
    assert proposed_plan.fails
    assert only(proposed_plan).guilty == ("99-bad",)
    assert not proposed_plan.reboots


def test_a_confidential_pool_refuses_in_the_plan_too() -> None:
    cluster = {"spec": {"mode": "Enforce"}}
    proposed_plan = plan(world(BASE, cluster=cluster), Proposal([mc("99-k", kernelArguments=["a"])]))
    assert only(proposed_plan).trust is TrustModel.CONFIDENTIAL_CLUSTER
    assert "bake it into the image" in only(proposed_plan).failure


def test_what_cannot_be_reconciled_is_told() -> None:
    directory = mc("2", ignition(storage={"directories": [{"path": "/opt/x"}]}))
    pool_plan = only(plan(world(BASE), Proposal([directory])))
    assert [difference.field for difference in pool_plan.irreconcilable] == ["storage.directories"]
    assert pool_plan.failure
    disks = mc("2", ignition(storage={"disks": [{"device": "/dev/sdb", "wipeTable": True}]}))
    allowed = {"spec": {"irreconcilableValidationOverrides": {"storage": ["Disks"]}}}
    tolerated = only(plan(world(BASE, configuration=allowed), Proposal([disks])))
    assert [difference.overridden for difference in tolerated.irreconcilable] == [True]
    assert not tolerated.failure


def test_policies_of_the_cluster_decide() -> None:
    policies = {"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]}
    state = world(BASE, configuration={"spec": {"nodeDisruptionPolicy": policies}})
    pool_plan = only(plan(state, Proposal([mc("1", ignition(file("/etc/a", "new")))])))
    assert pool_plan.decision.headline == "nothing"


def pod(name: str, on: str, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "app", "labels": labels},
        "spec": {"nodeName": on},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def budget(least: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "db", "namespace": "app"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": "db"}}},
    }


def test_budgets_that_block_a_drain_are_named_with_the_pod() -> None:
    pods = [pod("db-0", "n0", app="db"), pod("db-1", "n1", app="db"), pod("web", "n2", app="web")]
    daemon = pod("agent", "n2", app="db")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet"}]
    reboot = Proposal([mc("1", ignition(file("/etc/x")))])
    node_plans = nodes_of(only(plan(world(BASE, pods=[*pods, daemon], budgets=[budget(3)]), reboot)))
    assert {node_plan.name: [(b.budget, b.pod) for b in node_plan.blockers] for node_plan in node_plans} == {
        "n0": [("app/db", "app/db-0")],
        "n1": [("app/db", "app/db-1")],
        "n2": [],
    }
    relaxed = nodes_of(only(plan(world(BASE, pods=pods, budgets=[budget(1)]), reboot)))
    assert not any(node_plan.blockers for node_plan in relaxed)
    gentle = nodes_of(only(plan(world(BASE, pods=pods, budgets=[budget(2)]), Proposal([RELOAD]))))
    assert not any(node_plan.blockers for node_plan in gentle), "without a drain no budget is asked"


def test_nodes_that_several_custom_pools_claim_are_told() -> None:
    state = world(BASE)
    both = node("both", "infra", "storage")
    odd = State([*state.pools, pool("infra"), pool("storage")], state.configs, [both])
    assert plan(odd, Proposal([RELOAD])).unclaimed == ("both",)


def test_a_plan_has_the_nodes_that_the_rollout_will_change_whatever_their_labels_say() -> None:
    state = world(mc("00-worker", ignition(file("/etc/a", "one"))), nodes=2, cluster={"spec": {"mode": "Enforce"}})
    assert state.nodes is not None
    first, second = (str(node["metadata"]["name"]) for node in state.nodes)
    machines = [{"status": {"nodeName": second, "pool": "infra"}}]
    change = Proposal([mc("50-new", ignition(file("/etc/b", "two")))])
    assert [node.name for node in nodes_of(only(plan(state, change)))] == [first, second]
    assert [node.name for node in nodes_of(only(plan(replace(state, machines=machines), change)))] == [first]


def test_one_pool_can_be_asked_for_and_a_custom_one_follows_the_workers_configs() -> None:
    state = world(BASE)
    both = State([*state.pools, pool("infra")], state.configs, [])
    assert [pool_plan.pool for pool_plan in plan(both, Proposal([RELOAD])).pools] == ["infra", "worker"]
    assert [pool_plan.pool for pool_plan in plan(both, Proposal([RELOAD]), "infra").pools] == ["infra"]


def test_without_knowing_nodes_the_pool_itself_says_whether_machines_would_go_down() -> None:
    state = world(BASE)
    blind = State(state.pools, state.configs)
    assert plan(blind, Proposal([mc("1", kernelArguments=["a"])])).reboots
    assert not plan(State(state.pools, state.configs, []), Proposal([mc("1", kernelArguments=["a"])])).reboots


def test_every_hard_change_names_its_config() -> None:
    hard = mc(
        "70-hard",
        kernelArguments=["a"],
        kernelType="realtime",
        fips=True,
        extensions=["usbguard"],
        osImageURL="x@sha256:1",
    )
    state = world(BASE)
    blind = State([pool()], [BASE])
    proposed_plan = plan(blind, Proposal([hard]))
    assert "fips" in only(proposed_plan).failure, "FIPS cannot follow on running machines"
    del hard["spec"]["fips"]
    steps = only(plan(state, Proposal([hard]))).steps
    assert {str(step.change.part): step.source for step in steps} == dict.fromkeys(
        ("osImageURL", "kernelArguments", "kernelType", "extensions"), "70-hard"
    )
    assert all(step.cause.actions[0].type is Act.REBOOT for step in steps)


def test_a_plan_says_what_becomes_of_the_boot_loader_where_the_image_changes() -> None:
    other = Proposal([mc("70-os", osImageURL="registry.example/os@sha256:" + "a" * 64)])
    ordinary = plan(world(BASE), other)
    assert "that of the new image comes too" in only(ordinary).boot_loader
    assert "  boot loader: that of the new image comes too" in plan_text(ordinary)
    confidential = plan(world(BASE, cluster={"spec": {"mode": "Enforce"}}), other)
    assert only(confidential).trust is TrustModel.CONFIDENTIAL_CLUSTER
    assert "stays as it is: it is part of what these machines prove" in plan_text(confidential)
    assert to_json(confidential)["pools"][0]["bootLoader"] == only(confidential).boot_loader
    assert only(plan(world(BASE), Proposal([RELOAD]))).boot_loader == ""


def test_json_has_everything_and_no_password() -> None:
    users = [{"name": "core", "passwordHash": "$6$secret", "sshAuthorizedKeys": ["ssh-ed25519 AAA"]}]
    document = to_json(plan(world(BASE), Proposal([mc("1", ignition(users=users))])))
    text = json.encode(document).decode()
    assert "ssh-ed25519 AAA" in text
    assert "$6$secret" not in text
    assert document["pools"][0]["nodes"][0]["causes"] == ["user core added"]


def test_binary_content_is_shown_by_digest() -> None:
    binary = {"path": "/opt/b", "contents": {"source": dataurl.encode(b"\0\1")}}
    [step] = to_json(plan(world(BASE), Proposal([mc("1", ignition(binary))])))["pools"][0]["changes"]
    assert step["diff"].startswith("content: absent -> sha256:")
    assert "(2 bytes)" in step["diff"]


def accepted(state: State, change: dict[str, Any]) -> State:
    """The same cluster after somebody applied a change and the controllers rendered it, before any machine has it."""
    workers = dict(state.pools[0])
    rendered = render(workers, [*state.configs, change])
    assert isinstance(rendered, Rendered)
    workers["status"] = {"configuration": workers["spec"]["configuration"]}
    workers["spec"] = {**workers["spec"], "configuration": {"name": rendered.name}}
    made = {"metadata": {"name": rendered.name}, "spec": rendered.spec}
    return replace(state, pools=[workers], configs=[*state.configs, change, made])


def test_a_change_that_was_accepted_is_told_as_it_was_planned() -> None:
    state, change = world(BASE), mc("50-mine", kernelArguments=["quiet"])
    before = only(plan(state, Proposal([change])))
    left = only(under_way(accepted(state, change)))
    assert (left.before, left.after, left.steps) == (before.before, before.after, before.steps)
    assert [(node.name, node.batch, node.decision.reboot) for node in nodes_of(left)] == [
        (node.name, node.batch, node.decision.reboot) for node in nodes_of(before)
    ]


def test_nothing_is_under_way_where_all_machines_have_what_is_wanted() -> None:
    assert not under_way(world(BASE))


def test_what_an_overlay_covers_up_changes_nothing_on_its_machine() -> None:
    state = world(BASE)
    machine = {
        "metadata": {"name": "m1", "uid": "u-1"},
        "status": {"nodeName": "n1", "pool": "worker", "keyThumbprint": "t", "properties": {}},
    }
    overlay = {
        "metadata": {"name": "rack", "uid": "o"},
        "spec": {"match": {"machines": ["u-1"]}, "config": ignition(file("/etc/a", "mine\n"))},
    }
    digest = laid_on([machine], [overlay])["n1"].digest
    nodes = [
        {**each, "metadata": {**each["metadata"], "annotations": {
            **each["metadata"]["annotations"], **({CURRENT_OVERLAY: digest} if each["metadata"]["name"] == "n1" else {})}}}
        for each in state.nodes or ()
    ]  # fmt: skip
    state = replace(state, nodes=nodes, machines=[machine], overlays=[overlay])
    planned = only(plan(state, Proposal([mc("00-base", ignition(file("/etc/a", "three\n")))])))
    assert planned.decision.reboot
    by_name = {each.name: each for each in nodes_of(planned)}
    assert [by_name[name].decision.reboot for name in ("n0", "n1", "n2")] == [True, False, True]
    assert (by_name["n0"].note, by_name["n1"].note) == ("", "with overlay rack on top")
    beside = only(plan(state, Proposal([mc("60-b", ignition(file("/etc/b", "x")))])))
    assert [each.decision.reboot for each in nodes_of(beside)] == [True, True, True]
