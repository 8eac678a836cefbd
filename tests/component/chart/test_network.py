"""What the chart's NetworkPolicies mean: which pod reaches which port, evaluated over what helm renders."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastness.app.parts import INTERNAL_PORT, PORTS, Part
from tests.component.chart.reachability import Network, Outside, Pod
from tests.component.chart.test_chart import Documents, of_kind, rendered
from tests.realkube.fixtures import binaries_or_skip
from tools.realkube import CHARTS

HOME, METRICS = "fastness-system", 9090
ELSEWHERE = {"monitoring": {"team": "platform"}, "shop": {}}
WORLD = Outside("203.0.113.7")


@pytest.fixture(scope="module")
def helm() -> Path:
    return binaries_or_skip(os.environ, CHARTS) / "helm"


@pytest.fixture(scope="module")
def defaults(helm: Path) -> Documents:
    return rendered(helm)


def pods_of(documents: Documents) -> dict[str, Pod]:
    """A pod of each Deployment, by its role."""
    made = {}
    for name, deployment in of_kind(documents, "Deployment").items():
        template = deployment["spec"]["template"]
        (container,) = template["spec"]["containers"]
        ports = {entry["name"]: entry["containerPort"] for entry in container["ports"]}
        made[name.removeprefix("fastness-")] = Pod(HOME, template["metadata"]["labels"], ports)
    return made


def callers(pods: dict[str, Pod]) -> Iterator[tuple[str, Pod | Outside]]:
    """Everybody who might call: each role, and those who look like one without being it."""
    yield from pods.items()
    yield "a pod of somebody at home", Pod(HOME, {"app": "debug"})
    yield "a pod without labels at home", Pod(HOME, {})
    yield "the gate of another release", Pod(HOME, {**pods["gate"].labels, "app.kubernetes.io/instance": "other"})
    for role in ("gate", "broker"):
        yield f"who calls itself {role} elsewhere", Pod("shop", pods[role].labels)
    yield "Prometheus", Pod("monitoring", {"app.kubernetes.io/name": "prometheus"})
    yield "a machine", WORLD
    yield "a node", Outside("10.0.0.5")


def reached(network: Network, pods: dict[str, Pod], target: str, port: int) -> set[str]:
    return {name for name, caller in callers(pods) if network.allows(caller, pods[target], port)}


def everybody(pods: dict[str, Pod]) -> set[str]:
    return {name for name, _ in callers(pods)}


def test_the_internal_port_is_reached_by_gate_and_broker_of_this_release_and_by_nobody_else(
    defaults: Documents,
) -> None:
    network, pods = Network.of(defaults, ELSEWHERE), pods_of(defaults)
    assert reached(network, pods, "configserver", INTERNAL_PORT) == {"gate", "broker"}


def test_every_door_is_reached_by_everybody_at_its_own_port_and_at_no_other(defaults: Documents) -> None:
    network, pods = Network.of(defaults, ELSEWHERE), pods_of(defaults)
    assert set(pods) == set(Part)
    for role, pod in pods.items():
        opened = {METRICS} | ({PORTS[Part(role)]} if Part(role) in PORTS else set())
        inner = {INTERNAL_PORT} if role == Part.CONFIG_SERVER else set()
        assert set(pod.ports.values()) == opened | inner, role
        for port in opened:
            assert reached(network, pods, role, port) == everybody(pods), (role, port)
        for port in {22, 80, 443, 2379, 6443, 10250, 65535, *PORTS.values(), INTERNAL_PORT} - opened - inner:
            assert reached(network, pods, role, port) == set(), (role, port)
        assert not network.allows(WORLD, pod, METRICS, "UDP")


def test_what_the_evaluator_says_depends_on_the_policies(helm: Path, defaults: Documents) -> None:
    pods = pods_of(defaults)
    without = Network.of(rendered(helm, "--set", "networkPolicy.enabled=false"), ELSEWHERE)
    assert reached(without, pods, "configserver", INTERNAL_PORT) == everybody(pods)
    weakened: Documents = copy.deepcopy(defaults)
    policy = of_kind(weakened, "NetworkPolicy")["fastness-configserver"]
    for rule in policy["spec"]["ingress"]:
        rule.pop("from", None)
    assert reached(Network.of(weakened, ELSEWHERE), pods, "configserver", INTERNAL_PORT) == everybody(pods)


@pytest.mark.parametrize("kind", ["LoadBalancer", "NodePort"])
def test_no_service_carries_the_internal_port_to_where_machines_are(helm: Path, kind: str) -> None:
    services = of_kind(rendered(helm, "--set", f"configserver.service.type={kind}"), "Service")
    for name, service in services.items():
        inner = [port["port"] for port in service["spec"]["ports"] if port["targetPort"] == INTERNAL_PORT]
        assert not inner or service["spec"]["type"] == "ClusterIP", name
    outside = [name for name, service in services.items() if service["spec"]["type"] == kind]
    assert outside == ["fastness-configserver-machines"]
    assert [port["targetPort"] for port in services[outside[0]]["spec"]["ports"]] == [PORTS[Part.CONFIG_SERVER]]


A, B = Pod("one", {"app": "a"}, {"web": 8080}), Pod("two", {"app": "b"})


def policy(spec: dict[str, Any], namespace: str = "one") -> dict[str, Any]:
    return {"kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": namespace}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"podSelector": {"matchLabels": {"app": "other"}}}, True),  # it selects somebody else
        ({"podSelector": {}}, False),  # no rule at all
        ({"podSelector": {}, "ingress": [{}]}, True),
        ({"podSelector": {}, "ingress": [{"ports": [{"port": "web"}]}]}, True),
        ({"podSelector": {}, "ingress": [{"ports": [{"port": 8000, "endPort": 9000}]}]}, True),
        ({"podSelector": {}, "ingress": [{"ports": [{"port": 8080, "protocol": "UDP"}]}]}, False),
        ({"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}, False),  # its own namespace alone
        ({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]}, True),
        ({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"x": "y"}}}]}]}, False),
        (
            {
                "podSelector": {},
                "ingress": [{"from": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "c"}}}]}],
            },
            False,
        ),
        ({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.244.0.0/16"}}]}]}, True),
        (
            {
                "podSelector": {},
                "ingress": [{"from": [{"ipBlock": {"cidr": "10.244.0.0/16", "except": ["10.244.0.0/24"]}}]}],
            },
            False,
        ),
        ({"podSelector": {}, "policyTypes": ["Egress"]}, True),  # says nothing about what comes in
        ({"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}}, False),
        ({"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}}, True),
        ({"podSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}, True),
        ({"podSelector": {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}}, False),
    ],
)
def test_the_evaluator_reads_policies_as_kubernetes_defines_them(spec: dict[str, Any], allowed: bool) -> None:
    network = Network.of([policy(spec)], {"one": {}, "two": {}})
    assert network.allows(B, A, 8080) is allowed


def test_the_evaluator_asks_where_a_connection_begins_too() -> None:
    shut = policy({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 53}]}]}, "two")
    network = Network.of([shut], {"one": {}, "two": {}})
    assert not network.allows(B, A, 8080)
    assert network.allows(B, A, 53)
    assert network.allows(A, B, 8080)
