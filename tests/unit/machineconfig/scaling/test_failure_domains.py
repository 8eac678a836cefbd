"""Failure domains: what each platform writes, who is in which, and how a control plane is spread and stays spread."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.objects import condition
from fastness.machineconfig.scaling.control_plane import MACHINE_TYPE, MADE_AS, plan, refused, wanted_shapes
from fastness.machineconfig.scaling.failure_domains import FailureDomain, failure_domains, spread
from fastness.machineconfig.scaling.sets import Refused

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LABELS = {"role": "master"}
AWS, AZURE, GCP = "AWSMachineProviderConfig", "AzureMachineProviderSpec", "GCPMachineProviderSpec"
STACK, VSPHERE, NUTANIX = "OpenstackProviderSpec", "VSphereMachineProviderSpec", "NutanixMachineProviderConfig"
TOPOLOGY = {"datacenter": "dc", "datastore": "/dc/ds", "computeCluster": "dc/host/c1", "networks": ["lan"]}
INFRASTRUCTURE = {
    "spec": {"platformSpec": {
        "vsphere": {"failureDomains": [
            {"name": "east", "server": "v1", "region": "r", "zone": "z", "topology": TOPOLOGY},
            {"name": "bare", "server": "v1", "topology": {}},
        ]},
        "nutanix": {"failureDomains": [
            {"name": "n1", "cluster": {"type": "UUID", "uuid": "u"}, "subnets": [{"type": "Name", "name": "s"}]}
        ]},
    }},
    "status": {"infrastructureName": "prod-x1"},
}  # fmt: skip


def template(kind: str, platform: str, *entries: Any, **value: Any) -> dict[str, Any]:
    domains = {"platform": platform, platform.lower(): list(entries)}
    return {"failureDomains": domains, "spec": {"providerSpec": {"value": {"kind": kind, **value}}}}


@pytest.mark.parametrize(
    ("given_template", "written"),
    [
        (
            template(AWS, "AWS", {"placement": {"availabilityZone": "a"}, "subnet": {"type": "ID", "id": "s-1"}},
                     placement={"region": "eu", "tenancy": "host"}, subnet={"filters": [{"name": "n"}]}),
            {"placement": {"region": "eu", "tenancy": "host", "availabilityZone": "a"}, "subnet": {"id": "s-1"}},
        ),
        (template(AZURE, "Azure", {"zone": "2", "subnet": "inner"}, subnet="outer"), {"zone": "2", "subnet": "inner"}),
        (template(AZURE, "Azure", {"zone": "2"}, subnet="outer"), {"zone": "2", "subnet": "outer"}),
        (template(GCP, "GCP", {"zone": "eu-1"}, zone="eu-9"), {"zone": "eu-1"}),
        (
            template(STACK, "OpenStack",
                     {"availabilityZone": "nova1", "rootVolume": {"availabilityZone": "c1", "volumeType": "fast"}},
                     rootVolume={"diskSize": 100, "volumeType": "slow"}),
            {"availabilityZone": "nova1",
             "rootVolume": {"diskSize": 100, "volumeType": "fast", "availabilityZone": "c1"}},
        ),
        (
            template(VSPHERE, "VSphere", {"name": "east"}, workspace={"server": "v0", "folder": "/x"}, template="old",
                     network={"devices": [{"addressesFromPools": [{"name": "p"}]}]}),
            {"workspace": {"server": "v1", "datacenter": "dc", "datastore": "/dc/ds", "folder": "/dc/vm/prod-x1",
                           "resourcePool": "/dc/host/c1/resources"},
             "network": {"devices": [{"addressesFromPools": [{"name": "p"}], "networkName": "lan"}]},
             "template": "/dc/vm/prod-x1/prod-x1-rhcos-r-z"},
        ),
        (
            template(NUTANIX, "Nutanix", {"name": "n1"}, cluster={"type": "name", "name": "c0"}),
            {"failureDomain": {"name": "n1"}, "cluster": {"type": "uuid", "uuid": "u"},
             "subnets": [{"type": "name", "name": "s"}]},
        ),
    ],
)  # fmt: skip
def test_a_domain_is_written_over_the_template_in_the_words_of_its_provider(
    given_template: dict[str, Any], written: dict[str, Any]
) -> None:
    domains = failure_domains(given_template, INFRASTRUCTURE)
    assert not isinstance(domains, Refused)
    value = given_template["spec"]["providerSpec"]["value"]
    placed = domains[0].placed(value)
    assert placed == {"kind": value["kind"], **written}
    assert domains[0].holds(placed)
    assert not domains[0].holds({**value, "zone": "elsewhere", "failureDomain": {}, "workspace": {}, "placement": {}})


@pytest.mark.parametrize(
    ("given_template", "words"),
    [
        (template(AWS, "PowerVS", {}), "nothing is known of domains of PowerVS"),
        (template("BareMetalMachineProviderSpec", "AWS", {}), "cannot be written into a BareMetalMachineProviderSpec"),
        ({"failureDomains": {"aws": []}}, "no platform is named"),
        (template(AWS, "AWS"), "no domain is named"),
        (template(AWS, "AWS", {}), "aws[0]: neither placement nor subnet is set"),
        (template(AWS, "AWS", {"placement": {"zone": "a"}}), "placement.availabilityZone is missing"),
        (template(AWS, "AWS", {"subnet": {"type": "ID", "arn": "x"}}), "subnet names nothing by its type"),
        (template(AZURE, "Azure", {"zone": "1"}, {"zone": "1"}), "azure[1]: the same domain is named twice"),
        (template(GCP, "GCP", "text"), "gcp[0]: zone is missing"),
        (template(STACK, "OpenStack", {"availabilityZone": "a", "rootVolume": {"volumeType": "t"}}),
         "rootVolume.availabilityZone is required when availabilityZone is set"),
        (template(STACK, "OpenStack", {"rootVolume": {"volumeType": "t"}}), "no rootVolume.diskSize"),
        (template(VSPHERE, "VSphere", {"name": "west"}), "Infrastructure cluster defines no domain west"),
        (template(VSPHERE, "VSphere", {"name": "bare"}), "topology.datacenter in the Infrastructure is missing"),
        (template(NUTANIX, "Nutanix", {"name": "n9"}), "defines no domain n9"),
        ({**template(AWS, "AWS"), "failureDomains": {"platform": "AWS", "aws": [{}] * 101}}, "at most 100"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_named_with_its_reason(given_template: dict[str, Any], words: str) -> None:
    wrong = failure_domains(given_template, INFRASTRUCTURE)
    assert isinstance(wrong, Refused)
    assert words in str(wrong)
    machine_set = {
        "metadata": {"name": "cluster"},
        "spec": {"replicas": 3, "template": {"machineType": MACHINE_TYPE, MACHINE_TYPE: given_template}},
    }
    assert words in str(refused(machine_set, INFRASTRUCTURE))


def test_a_vsphere_domain_whose_names_follow_from_an_empty_name_is_refused() -> None:
    unnamed = {"spec": INFRASTRUCTURE["spec"]}
    wrong = failure_domains(template(VSPHERE, "VSphere", {"name": "east"}), unnamed)
    assert "status.infrastructureName" in str(wrong)


def test_openstack_may_have_no_domain_at_all() -> None:
    assert failure_domains(template(STACK, "OpenStack"), {}) == ()
    assert failure_domains({"spec": {}}, {}) == ()


def zones(*names: str) -> list[FailureDomain]:
    return [FailureDomain(name, {"zone": name}) for name in names]


def names_of(placed: dict[int, FailureDomain]) -> list[str]:
    return [placed[index].name for index in sorted(placed)]


@pytest.mark.parametrize(
    ("present", "domains", "spread_over"),
    [
        ([None, None, None], ["a", "b", "c"], ["a", "b", "c"]),
        (["c", None, "a"], ["a", "b", "c"], ["c", "b", "a"]),
        (["a", "a", "b"], ["a", "b", "c"], ["a", "c", "b"]),
        (["a", "a", "b"], ["a", "b"], ["a", "a", "b"]),
        (["a", "a", "a"], ["a"], ["a", "a", "a"]),
        (["x", "b", "b"], ["a", "b"], ["a", "b", "b"]),
        (["a", "a", "a", "b", "b"], ["a", "b", "c"], ["a", "a", "c", "b", "b"]),
    ],
)
def test_an_index_keeps_its_domain_while_none_has_more_than_its_share(
    present: list[str | None], domains: list[str], spread_over: list[str]
) -> None:
    values = {index: None if zone is None else {"zone": zone} for index, zone in enumerate(present)}
    assert names_of(spread(values, values, zones(*domains))) == spread_over


@given(st.sampled_from([3, 5]), st.integers(1, 7), st.lists(st.integers(0, 8), min_size=5, max_size=5))
def test_a_spread_is_even_and_a_second_one_moves_nobody(size: int, many: int, where: list[int]) -> None:
    domains = zones(*map(str, range(many)))
    values: dict[int, Any] = {index: {"zone": str(where[index])} for index in range(size)}
    first = spread(values, values, domains)
    shares = [names_of(first).count(domain.name) for domain in domains]
    assert max(shares) - min(shares) <= 1
    moved = {index: domain.placed({}) for index, domain in first.items()}
    assert spread(moved, moved, domains) == first


def a_set(*names: str, size: str = "m", strategy: str = "RollingUpdate") -> dict[str, Any]:
    part = {"metadata": {"labels": LABELS}, **template(GCP, "GCP", *({"zone": name} for name in names), type=size)}
    return {
        "metadata": {"name": "cluster", "namespace": "ns", "uid": "set"},
        "apiVersion": "machine.openshift.io/v1", "kind": "ControlPlaneMachineSet",
        "spec": {"state": "Active", "replicas": 3, "strategy": {"type": strategy}, "selector": {"matchLabels": LABELS},
                 "template": {"machineType": MACHINE_TYPE, MACHINE_TYPE: part}},
    }  # fmt: skip


def machine(index: int, zone: str, *, deleted: bool = False, size: str = "m", **meta: Any) -> dict[str, Any]:
    name = f"m-{index}"
    meta = {"name": name, "labels": LABELS, "uid": name, **meta} | ({"deletionTimestamp": "now"} if deleted else {})
    value = {"kind": GCP, "type": size, "zone": zone}
    return {"metadata": meta, "spec": {"providerSpec": {"value": value}}, "status": {"nodeRef": {"name": name}}}


def zone_of(each: dict[str, Any] | None) -> str:
    assert each is not None
    return str(each["spec"]["providerSpec"]["value"]["zone"])


def all_ready(_name: str) -> bool:
    return True


def test_a_machine_is_replaced_in_its_own_domain_and_the_set_says_where() -> None:
    machines = [machine(0, "b"), machine(1, "c"), machine(2, "a")]
    assert plan(a_set("a", "b", "c"), machines, all_ready, NOW, {}).create is None
    bigger = plan(a_set("a", "b", "c", size="xl"), machines, all_ready, NOW, {})
    assert zone_of(bigger.create) == "b"
    progressing = condition({"status": bigger.status}, "Progressing") or {}
    assert progressing["message"] == "index 0 is replaced in failure domain b"
    lost = [machines[0], machine(1, "c", deleted=True), machines[2]]
    assert zone_of(plan(a_set("a", "b", "c", strategy="OnDelete"), lost, all_ready, NOW, {}).create) == "c"
    missing = plan(a_set("a", "b", "c"), [machines[0], machines[2]], all_ready, NOW, {}).create
    assert zone_of(missing) == "c", "an index without a Machine goes where nobody is"


def test_who_is_one_too_many_in_a_domain_is_replaced_in_another_once() -> None:
    machines = [machine(0, "a"), machine(1, "a"), machine(2, "b")]
    three = a_set("a", "b", "c")
    decided = plan(three, machines, all_ready, NOW, {})
    assert zone_of(decided.create) == "c"
    assert decided.create is not None
    assert decided.create["metadata"]["name"].endswith("-1")
    coming = machine(1, "c", name="new-1", creationTimestamp="2026-06-01T00:00:00Z")
    assert plan(three, [*machines, coming], all_ready, NOW, {}).delete == "m-1"
    settled = plan(three, [machines[0], coming, machines[2]], all_ready, NOW, {})
    assert (settled.create, settled.delete) == (None, "")


def test_defaults_that_a_cloud_fills_in_are_no_other_shape_and_an_edit_is() -> None:
    machine_set, before = a_set("a", "b", "c", size="xl"), [machine(0, "a"), machine(1, "b"), machine(2, "c")]
    made = plan(machine_set, before, all_ready, NOW, {}).create
    assert made is not None
    made["spec"]["providerSpec"]["value"] |= {"credentialsSecret": {"name": "cloud"}}
    assert wanted_shapes(machine_set, [made], {}).fits(made)
    made["spec"]["providerSpec"]["value"] |= {"type": "s"}
    assert not wanted_shapes(machine_set, [made], {}).fits(made)
    stranger = machine(0, "a", size="xl", annotations={MADE_AS: "other"})
    stranger["spec"]["providerSpec"]["value"] |= {"preemptible": True}
    assert not wanted_shapes(machine_set, [stranger], {}).fits(stranger)
