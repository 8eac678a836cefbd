"""What OLM decides: targets, approvals, phases, and the words for what is wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.names import qualified_name
from fastness.kinds.kind import JsonObject
from fastness.workloads.olm import catalog, phases, plans
from fastness.workloads.olm.resolve import (
    UNHEALTHY,
    UNRESOLVED,
    Problem,
    Resolved,
    component_label,
    install_plan,
    plan_name,
    resolve,
    version_object,
)

NS = "openshift-sandboxed-containers-operator"
PACKAGE = "sandboxed-containers-operator"
NEW, OLD = f"{PACKAGE}.v1.12.0", f"{PACKAGE}.v1.11.1"
SOURCES = [catalog.catalog_source(source) for source in catalog.SOURCES]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = [
    "name", "channel", "source", "sourceNamespace", "startingCSV", "phase", "conditions", "installedCSV", "approved", "replaces",
    "clusterServiceVersionNames", "targetNamespaces", "requirementStatus", "type", "status",
]  # fmt: skip
CRD = "kataconfigs.kataconfiguration.openshift.io"


def subscription(called: str = "sub", status: JsonObject | None = None, **spec: Any) -> JsonObject:
    fields = {
        "channel": "stable",
        "name": PACKAGE,
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
    }
    meta = {"name": called, "namespace": NS, "uid": f"uid-{called}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "Subscription", "metadata": meta, "spec": {**fields, **spec}, "status": status or {}}


def version(name: str, phase: str = "", **spec: Any) -> JsonObject:
    return {"metadata": {"name": name, "namespace": NS}, "spec": spec, "status": {"phase": phase} if phase else {}}


def group(*targets: str) -> JsonObject:
    return {"metadata": {"name": "og", "namespace": NS}, "spec": {"targetNamespaces": list(targets)} if targets else {}}


def resolved(*args: Any) -> Resolved:
    answer = resolve(*args)
    assert isinstance(answer, Resolved), answer
    return answer


def refused(*args: Any) -> Problem:
    answer = resolve(*args)
    assert isinstance(answer, Problem), answer
    return answer


def test_nothing_installed_gets_the_head_of_the_channel_or_the_version_that_was_named() -> None:
    head = resolved(subscription(), SOURCES, []).target
    named = resolved(subscription(startingCSV=OLD), SOURCES, []).target
    assert head is not None
    assert head.csv == NEW
    assert head.replaces == OLD
    assert named is not None
    assert named.csv == OLD


def test_what_is_installed_is_followed_to_its_successor_and_no_further() -> None:
    step = resolved(subscription(startingCSV=OLD), SOURCES, [version(OLD)])
    assert step.installed is not None
    assert step.target is not None
    assert step.target.csv == NEW
    assert resolved(subscription(), SOURCES, [version(OLD), version(NEW)]).target is None


def test_a_version_that_a_person_deleted_is_not_brought_back() -> None:
    answer = resolved(subscription(status={"installedCSV": NEW}), SOURCES, [])
    assert answer.installed is None
    assert answer.target is None


@pytest.mark.parametrize(
    ("spec", "condition", "words"),
    [
        ({"source": "elsewhere"}, UNHEALTHY, "targeted catalogsource openshift-marketplace/elsewhere missing"),
        ({"sourceNamespace": "default"}, UNHEALTHY, "catalogsource default/redhat-operators missing"),
        ({"name": "sandbox-containers-operator"}, UNRESOLVED, f"did you mean {PACKAGE}?"),
        ({"name": 7}, UNRESOLVED, "no operators found in package 7"),
        ({"channel": "beta"}, UNRESOLVED, "its channels are: stable"),
        ({"startingCSV": "x.v9"}, UNRESOLVED, f"it has: {OLD}, {NEW}"),
    ],
)
def test_what_cannot_be_resolved_says_why_and_what_there_is(spec: JsonObject, condition: str, words: str) -> None:
    problem = refused(subscription(**spec), SOURCES, [])
    assert problem.condition == condition
    assert words in problem.message


def test_a_foreign_catalog_that_exists_is_named_as_unreadable() -> None:
    foreign = {"metadata": {"name": "mine", "namespace": "default"}}
    problem = refused(subscription(source="mine", sourceNamespace="default"), [*SOURCES, foreign], [])
    assert "not one that this control plane can read" in problem.message


def test_of_two_subscriptions_for_one_package_the_older_is_served() -> None:
    first, second = subscription("a"), subscription("b")
    assert plans.conflict(first, [first, second]) is None
    problem = plans.conflict(second, [first, second])
    assert problem is not None
    assert "already subscribed to by a" in problem.message


def test_a_plan_has_one_name_belongs_to_its_subscription_and_waits_for_a_person_if_told_to() -> None:
    release = catalog.SOURCES[0].packages[0].channels["stable"][-1]
    manual = install_plan(subscription(installPlanApproval="Manual"), release, 1)
    assert manual["metadata"]["name"] == plan_name(subscription(), release)
    assert manual["metadata"]["ownerReferences"][0]["kind"] == "Subscription"
    assert (manual["spec"]["approval"], manual["spec"]["approved"]) == ("Manual", False)
    assert install_plan(subscription(), release, 1)["spec"]["approved"] is True
    assert plans.next_step(manual, [group()], []).phase == plans.APPROVAL


def test_an_approved_plan_installs_then_creates_then_is_complete() -> None:
    release = catalog.SOURCES[0].packages[0].channels["stable"][-1]
    plan = install_plan(subscription(), release, 1)
    assert plans.next_step(plan, [group()], []).phase == plans.INSTALLING
    plan["status"] = {"phase": plans.INSTALLING}
    step = plans.next_step(plan, [group()], [])
    assert [release.csv for _, release in step.creates] == [NEW]
    assert plans.next_step(plan, [group()], [NEW]).phase == plans.COMPLETE
    plan["status"] = {"phase": plans.COMPLETE}
    assert plans.plan_status(plan, plans.next_step(plan, [], []), NOW) is None


@pytest.mark.parametrize(("groups", "words"), [([], "no operator group"), ([group(), group()], "more than one")])
def test_a_plan_without_exactly_one_group_waits_and_says_so(groups: list[JsonObject], words: str) -> None:
    plan = {
        "metadata": {},
        "spec": {"approved": True, "clusterServiceVersionNames": [NEW]},
        "status": {"phase": "Installing"},
    }
    step = plans.next_step(plan, groups, [])
    assert step.phase == plans.INSTALLING
    assert words in step.message
    assert not step.creates


def test_a_plan_for_a_version_that_nobody_offers_fails() -> None:
    plan = {"metadata": {}, "spec": {"approved": True, "clusterServiceVersionNames": ["x.v1"]}}
    assert plans.next_step(plan, [group()], []).phase == plans.FAILED


def walked(version: JsonObject, groups: list[JsonObject], served: list[str], others: list[JsonObject]) -> list[str]:
    """The phases that a version goes through until it rests."""
    phases_seen: list[str] = []
    package = catalog.package_of(version["metadata"]["name"])
    for _ in range(10):
        phase = phases.next_phase(version, package, groups, served, others)
        status = phases.with_phase(version, phase, NOW)
        if status is None:
            return phases_seen
        version["status"] = status
        phases_seen.append(phase.phase)
    raise AssertionError(phases_seen)


def test_a_version_goes_through_its_phases_one_at_a_time() -> None:
    assert walked(version(NEW), [group(NS)], [CRD], []) == ["Pending", "InstallReady", "Installing", "Succeeded"]


def test_a_version_without_its_definition_waits_and_falls_back_when_it_goes() -> None:
    csv = version(NEW)
    assert walked(csv, [group(NS)], [], []) == ["Pending"]
    assert csv["status"]["requirementStatus"][0]["status"] == "NotPresent"
    assert walked(csv, [group(NS)], [CRD], [])[-1] == "Succeeded"
    assert walked(csv, [group(NS)], [], []) == ["Pending"]


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([], "NoOperatorGroup"),
        ([group(), group()], "TooManyOperatorGroups"),
        ([group("a", "b")], "UnsupportedOperatorGroup"),
    ],
)
def test_a_group_that_is_missing_one_of_several_or_does_not_fit_fails_and_recovers(
    groups: list[JsonObject], reason: str
) -> None:
    csv = version(NEW)
    assert walked(csv, groups, [CRD], []) == ["Failed"]
    assert csv["status"]["reason"] == reason
    assert walked(csv, [group(NS)], [CRD], []) == ["Pending", "InstallReady", "Installing", "Succeeded"]


def test_a_replaced_version_waits_for_its_successor_and_then_goes() -> None:
    old, new = version(OLD, "Succeeded"), version(NEW, "Installing", replaces=OLD)
    assert walked(old, [group(NS)], [CRD], [old, new]) == ["Replacing"]
    new["status"]["phase"] = "Succeeded"
    assert walked(old, [group(NS)], [CRD], [old, new]) == ["Deleting"]


def test_a_version_of_somebody_else_is_not_claimed_to_be_installed() -> None:
    csv = version("etcdoperator.v0.9.4")
    assert walked(csv, [group(NS)], [CRD], []) == ["Pending"]
    assert "nothing in this control plane" in csv["status"]["message"]


@pytest.mark.parametrize(
    ("targets", "mode"),
    [((), "AllNamespaces"), ((NS,), "OwnNamespace"), (("x",), "SingleNamespace"), (("x", NS), "MultiNamespace")],
)
def test_the_mode_follows_from_the_namespaces_of_the_group(targets: tuple[str, ...], mode: str) -> None:
    assert phases.mode_of(NS, group(*targets)) == mode


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(spec=ANYTHING, status=ANYTHING, other=ANYTHING)
def test_whatever_users_write_is_decided_and_never_a_defect(spec: Any, status: Any, other: Any) -> None:
    meta = {"name": NEW, "namespace": NS, "uid": "u"}
    obj = {"metadata": meta, "spec": spec, "status": status}
    groups = [{"metadata": {"name": "og", "namespace": NS}, "spec": other}]
    assert isinstance(resolve(obj, SOURCES, [obj]), Problem | Resolved)
    plans.conflict(obj, [{"metadata": {"name": "a"}, "spec": other}])
    plans.plan_status(obj, plans.next_step(obj, groups, []), NOW)
    package = catalog.package_of(NEW)
    phases.with_phase(obj, phases.next_phase(obj, package, groups, [CRD], [{**obj, "spec": other}]), NOW)


def test_every_release_names_the_one_before_it_and_labels_are_legal() -> None:
    for source in catalog.SOURCES:
        for package in source.packages:
            assert not qualified_name(component_label(package.name, package.namespace))
            for releases in package.channels.values():
                assert [release.replaces for release in releases] == ["", *(release.csv for release in releases[:-1])]
                made = version_object(package, releases[-1], package.namespace, group())
                assert made["spec"]["version"] in made["metadata"]["name"]
