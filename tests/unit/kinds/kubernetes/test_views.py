"""Typed views show what raw objects say, and nothing that a view does not know is ever lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds.fastness_dev import trust_model as trustmodel
from fastness.kinds.fastness_dev.cluster import MODES, TRUST_MODELS, ConfidentialCluster
from fastness.kinds.fastness_dev.join_ticket import JoinTicket
from fastness.kinds.fastness_dev.verdict import Verdict
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.apiextensions import CustomResourceDefinition
from fastness.kinds.kubernetes.core import Lease, Namespace, Node, Pod, PodDisruptionBudget
from fastness.kinds.kubernetes.rbac import Binding, Role
from fastness.kinds.machineconfiguration.config import MachineConfig
from fastness.kinds.machineconfiguration.pool import MachineConfigPool
from fastness.kinds.objects import View, holds, view, with_condition
from fastness.kinds.trusted_execution.machine import Machine
from tests.unit.kinds.examples import EXAMPLES, NOW, THUMBPRINT, UID

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": NOW}

NATIVE: dict[type[View], JsonObject] = {
    Namespace: {
        "metadata": {"name": "blue", "deletionTimestamp": NOW},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Terminating"},
    },
    Node: {
        "metadata": {"name": "worker-0", "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {
            "unschedulable": True,
            "providerID": "sim:///worker-0",
            "taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}],
        },
        "status": {"conditions": [READY], "capacity": {"cpu": "4"}},
    },
    Pod: {
        "metadata": {
            "name": "web-1",
            "namespace": "blue",
            "labels": {"app": "web"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": UID, "controller": True}
            ],
        },
        "spec": {"nodeName": "worker-0", "containers": [{"name": "web", "image": "x"}], "runtimeClassName": "kata-cc"},
        "status": {"phase": "Running", "conditions": [READY]},
    },
    PodDisruptionBudget: {
        "metadata": {"name": "web", "namespace": "blue", "generation": 2},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": {"web-0": NOW}},
    },
    Role: {
        "metadata": {"name": "reader"},
        "rules": [
            {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get"], "resourceNames": ["web-1"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    },
    Binding: {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "blue"}],
    },
    Lease: {
        "metadata": {"name": "leader", "namespace": "fastness-system"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-11-15T20:00:00.000001Z"},
    },
    CustomResourceDefinition: {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "things", "kind": "Thing"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True}],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]},
    },
}

OURS: dict[type[View], JsonObject] = {
    MachineConfig: EXAMPLES["machineconfigs.machineconfiguration.openshift.io"],
    MachineConfigPool: EXAMPLES["machineconfigpools.machineconfiguration.openshift.io"],
    ConfidentialCluster: EXAMPLES["confidentialclusters.fastness.dev"],
    JoinTicket: EXAMPLES["jointickets.fastness.dev"],
    Verdict: EXAMPLES["verdicts.fastness.dev"],
    Machine: {
        **EXAMPLES["machines.trusted-execution-clusters.io"],
        "status": {
            "pool": "worker",
            "nodeName": "worker-0",
            "keyThumbprint": THUMBPRINT,
            "conditions": [READY],
            "tee": "tpm",
            "endorsedBy": "trust-on-first-use",
            "endorsement": {"key": f"sha256:{'a' * 64}"},
        },
    },
}

RAW = {**NATIVE, **OURS}


def test_node_shows_taints_cordon_and_readiness() -> None:
    node = view(RAW[Node], Node)
    assert node.ready
    assert node.spec.unschedulable
    assert node.spec.provider_id == "sim:///worker-0"
    assert node.spec.taints is not None
    assert [(taint.key, taint.effect) for taint in node.spec.taints] == [
        ("node.kubernetes.io/unschedulable", "NoSchedule")
    ]


def test_pod_shows_owner_node_and_phase() -> None:
    pod = view(RAW[Pod], Pod)
    assert pod.owner is not None
    assert (pod.owner.kind, pod.spec.node_name, pod.finished, pod.ready, pod.mirrored) == (
        "ReplicaSet", "worker-0", False, True, False,
    )  # fmt: skip


def test_static_pod_is_mirrored() -> None:
    assert view({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, Pod).mirrored


def test_budget_keeps_percentages_and_numbers_apart() -> None:
    assert view(RAW[PodDisruptionBudget], PodDisruptionBudget).spec.min_available == "50%"
    assert view({"spec": {"maxUnavailable": 1}}, PodDisruptionBudget).spec.max_unavailable == 1


def test_role_shows_resources_and_paths() -> None:
    role = view(RAW[Role], Role)
    assert role.rules is not None
    assert role.rules[0].resource_names == ("web-1",)
    assert role.rules[1].non_resource_urls == ("/metrics",)


def test_machine_config_shows_its_fields_and_role() -> None:
    raw = apply_merge_patch(
        RAW[MachineConfig], {"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}}}
    )
    config = view(raw, MachineConfig)
    assert config.role == "worker"
    assert config.spec.os_image_url.startswith("quay.example.com/")
    assert config.spec.kernel_arguments is None
    assert config.spec.config is not None
    assert config.spec.config["ignition"]["version"] == "3.5.0"


def test_pool_shows_selectors_and_budget() -> None:
    pool = view(RAW[MachineConfigPool], MachineConfigPool)
    assert pool.spec.max_unavailable == "30%"
    assert pool.spec.machine_config_selector is not None
    assert pool.spec.machine_config_selector.match_expressions[0].values == ("worker", "infra")
    assert [source.name for source in pool.spec.configuration.source] == ["00-worker"]


def test_cluster_shows_its_mode_pools_and_roots() -> None:
    spec = view(RAW[ConfidentialCluster], ConfidentialCluster).spec
    assert (spec.mode, spec.simulated, spec.join.approval) == ("Enforce", True, "Manual")
    assert [(pool.name, pool.trust_model) for pool in spec.pools] == [
        ("worker", "ConfidentialCluster"), ("infra", "None"), ("kata-oc", "ContainersHost"),
    ]  # fmt: skip
    assert spec.attestation.extra_roots[0].used_for == "tpm"
    assert view({"spec": {}}, ConfidentialCluster).spec.attestation.challenge_lifetime == "60s"


def test_schema_and_decisions_know_the_same_modes_and_trust_models() -> None:
    assert set(trustmodel.Mode) == set(MODES)
    assert set(trustmodel.TrustModel) == set(TRUST_MODELS)


def test_ticket_verdict_and_machine_show_their_identities() -> None:
    assert not view(RAW[JoinTicket], JoinTicket).unlimited
    assert view(RAW[Verdict], Verdict).spec.checks[0].code == "tdx.mrtd.mismatch"
    machine = view(RAW[Machine], Machine)
    assert (machine.spec.id, machine.status.node_name, machine.status.key_thumbprint) == (UID, "worker-0", THUMBPRINT)
    assert machine.spec.approval == "Approved"
    assert machine.status.endorsement is not None
    assert machine.status.endorsed_by == "trust-on-first-use"
    assert holds(machine.status.conditions, "Ready")
    assert not holds(machine.status.conditions, "Attested")


def test_wrong_type_is_an_error_that_names_the_field() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.paused"):
        view({"spec": {"paused": {"by": "me"}}}, MachineConfigPool)


def test_views_cannot_be_changed() -> None:
    node = view(RAW[Node], Node)
    with pytest.raises(AttributeError):
        node.spec.unschedulable = False  # type: ignore[misc]  # the point of the test


json_values = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def mappings(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of objects with known fields, where a newer version could have added one; free maps are left alone."""
    free = {"labels", "annotations", "matchLabels", "disruptedPods", "trustVector", "config", "minimumTcb"}
    if not isinstance(value, dict):
        return []
    return [
        path,
        *(mapping for key, child in value.items() if key not in free for mapping in mappings(child, (*path, key))),
    ]


def at(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path."""
    for step in path:
        value = value[step]
    return value


@st.composite
def objects_with_unknown_fields(draw: st.DrawFn) -> tuple[type[View], JsonObject, dict[tuple[str, ...], Any]]:
    """A raw object with fields that no view knows, and where they are."""
    kind = draw(st.sampled_from(list(RAW)))
    raw = orjson.loads(orjson.dumps(RAW[kind]))
    unknown = {}
    for number, place in enumerate(draw(st.lists(st.sampled_from(mappings(raw)), min_size=1, max_size=4))):
        name = f"zz{number}{draw(st.text(st.characters(categories=['Ll', 'Lu']), max_size=6))}"
        at(raw, place)[name] = draw(json_values)
        unknown[(*place, name)] = at(raw, place)[name]
    return kind, raw, unknown


@given(sample=objects_with_unknown_fields())
def test_unknown_fields_do_not_change_what_a_view_shows(
    sample: tuple[type[View], JsonObject, dict[tuple[str, ...], Any]],
) -> None:
    kind, raw, _ = sample
    assert view(raw, kind) == view(RAW[kind], kind)


@given(sample=objects_with_unknown_fields(), reason=st.text(max_size=10), value=json_values)
def test_unknown_fields_survive_every_read_modify_write(
    sample: tuple[type[View], JsonObject, dict[tuple[str, ...], Any]], reason: str, value: Any
) -> None:
    kind, raw, unknown = sample
    before = orjson.dumps(raw)
    view(raw, kind)
    conditions = with_condition(
        raw.get("status", {}).get("conditions", []),
        kind="Ready", status="False", reason=reason, message="", now=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    patch = {
        "metadata": {"annotations": {"example.com/seen": "yes"}},
        "status": {"conditions": conditions, "owned": value},
    }
    written = apply_merge_patch(raw, patch)
    assert orjson.dumps(raw) == before, "reading and patching leave the original alone"
    for path, expected in unknown.items():
        assert at(written, path) == expected
    assert written["metadata"]["annotations"]["example.com/seen"] == "yes"
    assert written["status"]["conditions"] == conditions


def test_setting_a_condition_keeps_the_fields_that_nobody_here_knows() -> None:
    conditions = [{**READY, "severity": "Info", "observedGeneration": 4}, {"type": "Other", "status": "True", "x": 1}]
    changed = with_condition(
        conditions, kind="Ready", status="True", reason="Again", message="m", now=datetime(2027, 1, 1, tzinfo=UTC)
    )
    assert changed == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Again",
            "message": "m",
            "lastTransitionTime": NOW,
            "severity": "Info",
        },
        {"type": "Other", "status": "True", "x": 1},
    ]
