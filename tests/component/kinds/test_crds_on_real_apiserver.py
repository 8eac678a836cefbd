"""A real API server takes every definition in `deploy/crds`, and judges objects by it as we say it should.

The definitions come from the files, as a user would apply them. Every example must be accepted, and every refusal must be refused
at the field or with the words that it names; whether a schema, a CEL rule or a transition rule does it is up to the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds import registry
from fastness.kinds.crd.roles import roles
from fastness.kinds.kind import JsonObject
from tests.component.kinds.conftest import APPLY, conditions
from tests.unit.kinds.examples import EXAMPLES, NOW, SELECTIONS, Refusal
from tests.unit.kinds.refusals import REFUSALS

MERGE = {"Content-Type": "application/merge-patch+json"}


def path_of(obj: JsonObject, name: str = "", subresource: str = "") -> str:
    """Where an example is served; namespaced ones live in `default`."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return registry.find(group, version, obj["kind"]).resource.path("default", name, subresource)


@pytest.fixture
def stored(api: httpx.Client, request: pytest.FixtureRequest) -> Iterator[JsonObject]:
    """The example of the definition that the test names, stored until the test ends."""
    example = EXAMPLES[request.param]
    location = path_of(example, example["metadata"]["name"])
    created = api.post(path_of(example), json=example)
    assert created.status_code == 201, created.text
    yield created.json()
    api.delete(location).raise_for_status()


def complaints(answer: httpx.Response) -> str:
    """All that a refusal says."""
    status: dict[str, Any] = answer.json()
    causes = status.get("details", {}).get("causes", [])
    return "\n".join(
        [status.get("message", ""), *(f"{cause.get('field')}: {cause.get('message')}" for cause in causes)]
    )


def test_every_definition_is_established_under_its_names_with_a_structural_schema(api: httpx.Client) -> None:
    states = conditions(api)
    for kind in registry.custom_kinds():
        state = states[kind.crd_name]
        assert state["NamesAccepted"] == "True", kind.crd_name
        assert state["Established"] == "True", kind.crd_name
        assert "NonStructuralSchema" not in state, kind.crd_name


@pytest.mark.row("003-64")
def test_every_kind_is_in_discovery_with_its_short_names(api: httpx.Client) -> None:
    for kind in registry.custom_kinds():
        resources = api.get(f"/apis/{kind.group}/{kind.version}").raise_for_status().json()["resources"]
        served = next(entry for entry in resources if entry["name"] == kind.plural)
        assert tuple(served.get("shortNames", ())) == kind.short_names
        assert served["namespaced"] == kind.namespaced
        assert served["kind"] == kind.kind
        children = {
            entry["name"].partition("/")[2] for entry in resources if entry["name"].startswith(f"{kind.plural}/")
        }
        assert children == set(kind.subresources)


@pytest.mark.row("003-64")
def test_tables_have_our_columns(api: httpx.Client) -> None:
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    for kind in registry.custom_kinds():
        answer = api.get(kind.resource.path(), headers=table).raise_for_status().json()
        names = [column["name"] for column in answer["columnDefinitions"]]
        assert names == ["Name", *(column.name for column in kind.columns)], kind.crd_name


@pytest.mark.parametrize("stored", EXAMPLES, indirect=True, ids=str)
def test_example_is_stored_with_every_field(stored: JsonObject) -> None:
    example = EXAMPLES[crd_of(stored)]
    assert survives(without_nulls(example["spec"]), stored["spec"]), stored["spec"]


def crd_of(obj: JsonObject) -> str:
    """The name of the definition of an object."""
    group, _, version = obj["apiVersion"].rpartition("/")
    return registry.find(group, version, obj["kind"]).crd_name


def without_nulls(value: Any) -> Any:
    """The value without members that are null, which a server may drop."""
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def survives(sent: Any, got: Any) -> bool:
    """Whether everything that was sent is there; the server may have added defaults."""
    if isinstance(sent, dict):
        return isinstance(got, dict) and all(key in got and survives(member, got[key]) for key, member in sent.items())
    if isinstance(sent, list):
        return isinstance(got, list) and len(sent) == len(got) and all(map(survives, sent, got))
    return bool(sent == got)


@pytest.mark.parametrize("refusal", [refused for refused in REFUSALS if refused.by != "transition"], ids=str)
def test_wrong_object_is_refused(api: httpx.Client, refusal: Refusal) -> None:
    changed = apply_merge_patch(EXAMPLES[refusal.crd], refusal.change)
    answer = api.post(path_of(changed), params={"dryRun": "All"}, json=changed)
    assert answer.status_code == 422, answer.text
    assert refusal.field in complaints(answer)


TRANSITIONS = [refused for refused in REFUSALS if refused.by == "transition"]


@pytest.mark.parametrize(
    ("stored", "refusal"),
    [(refused.crd, refused) for refused in TRANSITIONS],
    indirect=["stored"],
    ids=map(str, TRANSITIONS),
)
def test_forbidden_change_is_refused(api: httpx.Client, stored: JsonObject, refusal: Refusal) -> None:
    answer = api.patch(path_of(stored, stored["metadata"]["name"]), headers=MERGE, json=refusal.change)
    assert answer.status_code == 422, answer.text
    assert refusal.field in complaints(answer)


@pytest.mark.parametrize("stored", ["verdicts.fastness.dev"], indirect=True)
def test_verdicts_can_be_selected_by_machine_and_result(api: httpx.Client, stored: JsonObject) -> None:
    for selector, names in SELECTIONS.items():
        query = {"fieldSelector": selector.format(machine=stored["spec"]["subject"]["machine"])}
        verdicts = api.get(path_of(stored), params=query).raise_for_status().json()["items"]
        assert [item["metadata"]["name"] for item in verdicts] == names, selector
    assert api.get(path_of(stored), params={"fieldSelector": "spec.reason=x"}).status_code == 400


def condition(kind: str, status: str = "True") -> JsonObject:
    """A condition as a controller writes it."""
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": NOW}


STATUSES = [
    (
        "machines.trusted-execution-clusters.io",
        {"nodeName": "worker-0"},
        {"nodeName": "worker-1"},
        "nodeName is immutable",
    ),
    ("machines.trusted-execution-clusters.io", {"nodeName": "worker-0"}, {"nodeName": None}, "nodeName is immutable"),
    ("machines.trusted-execution-clusters.io", {"nodeName": "worker-0"}, None, "status cannot be removed"),
    (
        "machines.trusted-execution-clusters.io",
        {"pool": "worker"},
        {"pool": "infra"},
        "status.pool changes only to the pool",
    ),
]


@pytest.mark.parametrize(
    ("stored", "before", "after", "words"),
    STATUSES,
    indirect=["stored"],
    ids=[f"{row[0]}: {row[3]}" for row in STATUSES],
)
def test_status_keeps_its_promises(
    api: httpx.Client, stored: JsonObject, before: JsonObject, after: JsonObject | None, words: str
) -> None:
    location = path_of(stored, stored["metadata"]["name"], "status")
    api.patch(location, headers=MERGE, json={"status": before}).raise_for_status()
    answer = api.patch(location, headers=MERGE, json={"status": after})
    assert answer.status_code == 422, answer.text
    assert words in complaints(answer)


def test_defaults_are_filled_in(api: httpx.Client) -> None:
    kata = {**EXAMPLES["kataconfigs.kataconfiguration.openshift.io"]}
    del kata["spec"]
    created = api.post(path_of(kata), params={"dryRun": "All"}, json=kata).raise_for_status().json()
    assert created["spec"] == {
        "checkNodeEligibility": False,
        "logLevel": "info",
        "enablePeerPods": False,
        "enableMixedCluster": False,
    }
    cluster = {**EXAMPLES["confidentialclusters.fastness.dev"], "spec": {}}
    created = api.post(path_of(cluster), params={"dryRun": "All"}, json=cluster).raise_for_status().json()
    assert created["spec"] == {
        "mode": "Disabled",
        "simulated": False,
        "delivery": {"via": "Gate", "sync": "OnDemand"},
        "attestation": {
            "reattestInterval": "15m",
            "tokenLifetime": "10m",
            "challengeLifetime": "60s",
            "collateralStaleness": "24h",
            "missed": {"cordonAfter": "15m"},
            "tdx": {"allowSeptVe": False},
        },
        "join": {"approval": "Automatic", "trustOnFirstUse": False},
        "images": {"approval": "Manual"},
    }


@pytest.mark.parametrize("role", roles(), ids=lambda role: str(role["metadata"]["name"]))
def test_roles_for_people_are_taken_as_they_are(api: httpx.Client, role: JsonObject) -> None:
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role['metadata']['name']}"
    taken = api.patch(path, params={"fieldManager": "fastness-crds", "dryRun": "All"}, headers=APPLY, json=role)
    assert taken.is_success, taken.text
    assert taken.json()["rules"] == role["rules"]
    assert taken.json()["metadata"].get("labels") == role["metadata"].get("labels")
