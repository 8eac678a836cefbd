"""Roles for people: what each may, and that the one which joins `view` shows nothing that may be a secret."""

from __future__ import annotations

import pytest

from fastness.kinds import registry
from fastness.kinds.crd.roles import (
    ADMINISTRATOR,
    APPROVER,
    DECIDER,
    FREE_CONTENT,
    GROUPS,
    LOOK,
    OPERATOR,
    READER,
    TO_VIEW,
    VIEW,
    roles,
)
from fastness.kinds.kind import JsonObject
from fastness.kube.access.defaults import default_objects

BY_NAME = {role["metadata"]["name"]: role for role in roles()}


def _covered(role: JsonObject, verb: str) -> set[tuple[str, str]]:
    return {
        (group, plural)
        for rule in role["rules"] if verb in rule["verbs"]
        for group in rule["apiGroups"] for plural in rule["resources"]
    }  # fmt: skip


def test_view_gets_every_kind_of_ours_except_those_with_free_content() -> None:
    ours = {(kind.group, kind.plural) for kind in registry.custom_kinds() if kind.group in GROUPS}
    assert _covered(BY_NAME[VIEW], "list") == {resource for resource in ours if resource[1] not in FREE_CONTENT}
    assert {plural for _, plural in ours} >= FREE_CONTENT, "a kind is left out that does not exist"


@pytest.mark.parametrize("secret", ["secrets", "machineconfigs", "controllerconfigs", "nodeoverlays"])
def test_view_shows_nothing_that_may_hold_a_secret(secret: str) -> None:
    assert secret not in {plural for _, plural in _covered(BY_NAME[VIEW], "get")}


def test_only_the_role_that_looks_joins_one_of_kubernetes_and_it_joins_view() -> None:
    labels = {name: role["metadata"].get("labels") for name, role in BY_NAME.items()}
    assert labels == {
        VIEW: {TO_VIEW: "true"}, READER: None, DECIDER: None, OPERATOR: None, APPROVER: None, ADMINISTRATOR: None,
    }  # fmt: skip
    view = next(
        entry for entry in default_objects() if entry["kind"] == "ClusterRole" and entry["metadata"]["name"] == "view"
    )
    assert {"matchLabels": {TO_VIEW: "true"}} in view["aggregationRule"]["clusterRoleSelectors"]


def test_who_looks_or_reads_changes_nothing_and_who_decides_changes_machines_only() -> None:
    for name in (VIEW, READER):
        assert {verb for rule in BY_NAME[name]["rules"] for verb in rule["verbs"]} == set(LOOK)
    assert _covered(BY_NAME[DECIDER], "patch") == {("trusted-execution-clusters.io", "machines")}
    assert {verb for rule in BY_NAME[DECIDER]["rules"] for verb in rule["verbs"]} == {*LOOK, "patch", "update"}


def test_who_runs_machines_says_nothing_about_what_counts_and_nobody_writes_the_record() -> None:
    record = {"auditbatches", "auditcheckpoints", "verdicts", "evidenceblobs", "spentchallenges", "seenlaunches"}
    runs = {plural for _, plural in _covered(BY_NAME[OPERATOR], "create")}
    says = {plural for _, plural in _covered(BY_NAME[APPROVER], "create")}
    assert not runs & {*says, "confidentialclusters"}
    assert not says & {"confidentialclusters", "machineconfigs", "jointickets"}
    governs = {plural for _, plural in _covered(BY_NAME[ADMINISTRATOR], "create")}
    assert governs >= {*runs, *says, "confidentialclusters"}
    assert not governs & record
