"""The pool of a node that has a Machine: labels decide only where nothing is enforced."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.rollout.assigned import names_config, pool_of_node
from fastness.machineconfig.rollout.nodes import selector_keys
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership

ROLE = "node-role.kubernetes.io/"
PLAIN = f"rendered-plain-{'0' * 32}"


def pool(name: str) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"nodeSelector": {"matchLabels": {f"{ROLE}{name}": ""}}}}


SELECTORS = PoolSelectors([pool(name) for name in ("worker", "infra", "plain")])


def node(*roles: str, **notes: str) -> JsonObject:
    return {"metadata": {"name": "n", "labels": {f"{ROLE}{role}": "" for role in roles}, "annotations": notes}}


def primary(own: str, *roles: str, enforced: str) -> str:
    return machine_membership(node(*roles), SELECTORS, own, lambda name: name in enforced.split()).primary


@pytest.mark.parametrize(
    ("own", "roles", "enforced", "pool"),
    [
        ("worker", ("worker", "infra"), "worker infra", "worker"),
        ("worker", ("worker", "plain"), "worker", "worker"),  # out of a pool that enforces
        ("worker", ("worker", "infra"), "infra", "worker"),  # into one
        ("worker", ("infra", "plain"), "infra", "worker"),  # two at once, one of which enforces
        ("worker", (), "worker", "worker"),
        ("worker", ("worker", "infra"), "", "infra"),  # nothing is enforced: as in any cluster
        ("", ("worker", "infra"), "worker infra", "infra"),  # no Machine: it gets nothing there without one
    ],
)
def test_where_attestation_is_enforced_the_machine_decides(
    own: str, roles: tuple[str, ...], enforced: str, pool: str
) -> None:
    assert primary(own, *roles, enforced=enforced) == pool


def test_several_pools_claim_a_node_where_none_enforces() -> None:
    with pytest.raises(SeveralPools):
        primary("worker", "infra", "plain", enforced="")


def test_a_label_opens_no_config_of_a_pool_without_attestation() -> None:
    """The machine of an enforcing pool, labelled into one whose configs leave for the certificate of a node."""
    cluster = {"spec": {"mode": "Enforce", "pools": [{"name": "plain", "trustModel": "None"}]}}
    moved = node("worker", "plain", **{names.DESIRED_CONFIG: PLAIN})
    assert pool_of_node(moved, SELECTORS, cluster, "worker") == "worker"
    assert pool_of_node(moved, SELECTORS, cluster, "plain") == "plain"
    assert pool_of_node(moved, SELECTORS, cluster) == "plain", "a node that never had a Machine"
    assert names_config(moved, "plain", PLAIN)
    assert not names_config(moved, "worker", PLAIN), "a name of another pool's config opens nothing"


def test_every_label_of_a_selector_counts() -> None:
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["x"]}]}
    assert selector_keys({"spec": {"nodeSelector": selector}}) == {"a", "b"}
    assert selector_keys({"spec": {}}) == frozenset()
