"""Which host a Machine takes, what is written on it, and when it is free again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.scaling.metal3 import (
    DETACHED,
    PAUSED,
    addresses,
    choose,
    claim,
    held,
    is_released,
    node_of,
    own_host,
    provider_id,
    release,
    scarcity,
    trouble,
    unfit,
    wrong,
)
from fastness.machineconfig.scaling.providers import METAL3, VIRTUAL, unmanaged

IMAGE = {"url": "http://images.example/i", "checksum": "http://images.example/s"}


def machine(name: str = "m", **value: Any) -> dict[str, Any]:
    full = {"kind": METAL3, "image": IMAGE, "userData": {"name": "worker-user-data-managed"}, **value}
    meta = {"name": name, "namespace": "ns"}
    return {"metadata": meta, "spec": {"providerSpec": {"value": {k: v for k, v in full.items() if v is not None}}}}


def host(name: str = "h", state: str = "available", *, notes: Any = (), **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "7", "labels": {"rack": "7"}}
    return {
        "metadata": {**meta, "annotations": dict.fromkeys(notes, "")},
        "spec": spec,
        "status": {"provisioning": {"state": state}},
    }


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"spec": {"consumerRef": {"name": "x"}}}, "in use"),
        ({"spec": {"externallyProvisioned": True}}, "provisioned by somebody else"),
        ({"status": {"provisioning": {"state": "available"}, "errorMessage": "no power"}}, "with an error"),
        ({"status": {"provisioning": {"state": "inspecting"}}}, "in state inspecting"),
        ({"status": None}, "in state unknown"),
        ({"metadata": {"name": "h", "labels": {"rack": "8"}}}, "not selected"),
        ({"metadata": {"name": "h", "labels": {"rack": "7"}, "deletionTimestamp": "now"}}, "being deleted"),
        ({"metadata": {"name": "h", "labels": {"rack": "7"}, "annotations": {PAUSED: ""}}}, "paused or detached"),
        ({"metadata": {"name": "h", "labels": {"rack": "7"}, "annotations": {DETACHED: ""}}}, "paused or detached"),
    ],
)
def test_a_host_that_cannot_be_had_says_why(changed: dict[str, Any], why: str) -> None:
    order = machine(hostSelector={"matchLabels": {"rack": "7"}})
    assert unfit(order, {**host(), **changed}) == why
    assert unfit(order, host()) is unfit(order, host(state="ready")) is None
    assert choose(order, [{**host(), **changed}]) is None
    assert why in scarcity(order, [{**host(), **changed}])


def test_the_first_by_name_is_taken_and_one_that_is_ours_already_is_known_by_its_consumer() -> None:
    assert (choose(machine(), [host("b"), host("a")]) or {})["metadata"]["name"] == "a"
    reference = {"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "namespace": "ns", "name": "m"}
    mine = host("b", consumerRef=reference)
    assert own_host(machine(), [host("a"), mine]) is mine
    for other in ({"name": "n"}, {"namespace": "other"}, {"kind": "Metal3Machine"}, {"apiVersion": "x.example/v1"}):
        assert own_host(machine(), [host("b", consumerRef={**reference, **other})]) is None


def test_a_claim_is_one_write_for_the_version_that_was_looked_at() -> None:
    patch = claim(machine(), host())
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["spec"]["image"] == IMAGE
    assert patch["spec"]["online"]
    assert patch["spec"]["userData"] == {"name": "worker-user-data-managed", "namespace": "ns"}
    deployed = claim(machine(image=None, customDeploy={"method": "install_coreos"}), host())["spec"]
    assert (deployed["customDeploy"], "image" in deployed) == ({"method": "install_coreos"}, False)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"image": None}, "spec.providerSpec.value:"),
        ({"image": {"url": "u"}}, "spec.providerSpec.value:"),
        ({"image": "text"}, "spec.providerSpec.value:"),
        ({"userData": None}, "userData.name"),
        ({"hostSelector": {"matchExpressions": [{"key": "a", "operator": "Perhaps"}]}}, "hostSelector"),
        ({"hostSelector": {"matchExpressions": "text"}}, "hostSelector"),
    ],
)
def test_a_machine_that_nothing_can_become_names_the_field(value: dict[str, Any], field: str) -> None:
    assert field in str(wrong(machine(**value)))
    assert wrong(machine()) is wrong(machine(image=None, customDeploy={"method": "install_coreos"})) is None


def test_a_host_is_asked_to_be_emptied_once_and_is_free_when_nothing_is_left() -> None:
    running = host(state="provisioned", image=IMAGE, userData={"name": "s"}, online=True)
    emptied = {"image": None, "customDeploy": None, "userData": None, "online": False}
    assert release(running) == {"spec": emptied}
    assert release({**running, "spec": {"online": False}}) is None
    shared = release({**running, "spec": {**running["spec"], "disablePowerOff": True}}) or {}
    assert shared["spec"]["online"] is True
    for state in ("provisioning", "provisioned", "deprovisioning"):
        assert not is_released(host(state=state))
    assert is_released(host())
    assert not is_released(host(image=IMAGE)), "who has not been asked yet is not free"


def test_a_node_is_known_by_the_providers_name_else_by_the_only_address() -> None:
    metal = host(state="provisioned")
    metal["status"]["hardware"] = {"hostname": "h", "nics": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}, {"mac": "x"}]}
    assert addresses(metal) == [
        {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"},
        {"type": "InternalDNS", "address": "h"},
    ]  # fmt: skip

    def node(name: str, address: str = "", provider: str = "") -> dict[str, Any]:
        found = [{"type": "InternalIP", "address": address}]
        return {
            "metadata": {"name": name},
            "spec": {"providerID": provider} if provider else {},
            "status": {"addresses": found},
        }

    named, near = node("a", "10.9.9.9", provider_id(metal)), node("b", "10.0.0.1")
    assert node_of(metal, [near, named]) is named
    assert node_of(metal, [node("c", "10.0.0.2"), near]) is near
    assert node_of(metal, [near, node("liar", "10.0.0.1")]) is None
    assert node_of(metal, [node("d", "10.0.0.1", "baremetalhost:///ns/other/u")]) is None
    assert provider_id(metal) == "baremetalhost:///ns/h/uid-h"


def test_words_about_a_host_are_those_of_its_operator() -> None:
    broken = host()
    broken["status"] |= {"errorMessage": "no route", "errorType": "registration error", "errorCount": 3}
    assert trouble(broken) == "host h: registration error, 3 times: no route"
    assert trouble(host()) == ""
    assert held(host(notes=[PAUSED])) == "host h is paused"
    assert held(host(notes=[DETACHED])) == "host h is detached"
    assert held(host()) is None
    assert "there are none" in scarcity(machine(), [])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("AWSMachineProviderConfig", "not managed by Fastness: provider aws (AWSMachineProviderConfig); its own"),
        ("Unheard", "provider Unheard; it makes machines of BareMetalMachineProviderSpec"),
        ("", "providerSpec.value.kind is missing"),
        (VIRTUAL, "no virtual machines run beside this control plane"),
    ],
)
def test_a_set_that_others_move_says_who(kind: str, words: str) -> None:
    template = {"spec": {"providerSpec": {"value": {"kind": kind}}}}
    assert words in str(unmanaged(template, (METAL3,)))
    assert unmanaged({"spec": {"providerSpec": {"value": {"kind": METAL3}}}}, (METAL3,)) is None


@given(st.lists(st.sampled_from(["free", "used", "paused", "busy"]), max_size=8), st.integers(1, 6))
def test_any_machines_over_any_hosts_never_share_one(states: list[str], machines: int) -> None:
    made = {
        "free": lambda name: host(name), "used": lambda name: host(name, consumerRef={"name": "x"}),
        "paused": lambda name: host(name, notes=[PAUSED]), "busy": lambda name: host(name, state="deprovisioning"),
    }  # fmt: skip
    hosts = [made[state](f"h{number}") for number, state in enumerate(states)]
    taken: list[str] = []
    for number in range(machines):
        order = machine(f"m{number}")
        chosen = choose(order, hosts)
        if chosen is None:
            continue
        taken.append(chosen["metadata"]["name"])
        next(each for each in hosts if each is chosen)["spec"].update(claim(order, chosen)["spec"])
        assert own_host(order, hosts) is chosen
    assert len(taken) == len(set(taken)) == min(machines, states.count("free"))
