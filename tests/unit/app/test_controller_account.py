"""The account of the controllers says as much as their declarations, and no more."""

from __future__ import annotations

from fastness.app.accounts import CONTROLLERS, manifests
from fastness.app.controller_account import LIMITED, SECRETS, WRITES, declared
from fastness.kinds.fastness_dev import NAMESPACE

RULES = [rule for document in manifests(CONTROLLERS) for rule in document.get("rules", ())]


def test_every_kind_that_a_loop_declares_has_its_verbs_and_no_other_kind_has() -> None:
    written = {(resource.group, resource.plural) for loop in declared() for resource in loop.writes}
    assert written == WRITES.keys() | LIMITED


def test_nothing_is_granted_by_a_wildcard_and_nobody_is_raised() -> None:
    for rule in RULES:
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        assert not {"escalate", "impersonate"} & set(rule["verbs"])
        assert "bind" not in rule["verbs"] or rule["resourceNames"]


def test_loops_follow_secrets_at_home_by_name_and_those_of_the_account_alone() -> None:
    """A loop that watches all of them would need the right to read the keys of every door."""
    sources = [source for loop in declared() for source in loop.sources if source.resource.plural == "secrets"]
    fields = {source.scope.fields for source in sources if source.scope.namespace == NAMESPACE}
    assert fields <= {f"metadata.name={name}" for name in SECRETS}


def test_secrets_are_granted_in_namespaces_and_never_in_the_whole_cluster() -> None:
    [cluster] = [document for document in manifests(CONTROLLERS) if document["kind"] == "ClusterRole"]
    assert not [rule for rule in cluster["rules"] if "secrets" in rule["resources"]]
