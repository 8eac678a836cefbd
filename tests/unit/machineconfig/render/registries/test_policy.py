"""policy.json: allowed, blocked, signatures; policies of namespaces; conflicts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.kinds.objects import ObjectName
from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries import policy as policies
from fastness.machineconfig.render.registries import requirements
from tests.unit.machineconfig.render.registries.build import (
    ACCEPT,
    KEY,
    OTHER_KEY,
    REJECT,
    image,
    settings,
    signed,
    trusted,
    written,
)

POLICY = "/etc/containers/policy.json"
REQUIRED = {"type": "sigstoreSigned", "keyData": KEY, "signedIdentity": {"type": "matchRepoDigestOrExact"}}
OTHER = {**REQUIRED, "keyData": OTHER_KEY}
DAEMON = {"": [ACCEPT]}


def policy(*given: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(written(*given)[POLICY])
    return document


def in_namespace(name: str, *given: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(written(*given)[f"/etc/crio/policies/{name}.json"])
    return document


def test_allowed_scopes_alone_are_accepted() -> None:
    assert policy(image(allowed=["a.io", "*.b.io"])) == {
        "default": [REJECT],
        "transports": {
            "docker": {"a.io": [ACCEPT], "*.b.io": [ACCEPT]},
            "atomic": {"a.io": [ACCEPT], "*.b.io": [ACCEPT]},
            "docker-daemon": DAEMON,
        },
    }


def test_blocked_scopes_are_rejected() -> None:
    document = policy(image(blocked=["a.io"]))
    assert document["default"] == [ACCEPT]
    assert document["transports"] == {
        "docker": {"a.io": [REJECT]},
        "atomic": {"a.io": [REJECT]},
        "docker-daemon": DAEMON,
    }


def test_insecure_registries_need_no_policy() -> None:
    assert POLICY not in written(image(insecure=["a.io"]))


def test_signatures_are_required_of_scopes() -> None:
    document = policy(None, signed("p", "a.io/ns", "b.io"))
    assert document["default"] == [ACCEPT]
    assert document["transports"]["docker"] == {"a.io/ns": [REQUIRED], "b.io": [REQUIRED]}


def test_all_policies_of_a_scope_must_pass_in_the_order_of_their_names() -> None:
    second, first = signed("b", "a.io", root=trusted(OTHER_KEY)), signed("a", "a.io")
    assert policy(None, second, first)["transports"]["docker"]["a.io"] == [REQUIRED, OTHER]
    assert policy(None, first, signed("c", "a.io"))["transports"]["docker"]["a.io"] == [REQUIRED], (
        "the same is said once"
    )


def test_a_policy_takes_the_place_of_acceptance_for_the_same_scope() -> None:
    assert policy(image(allowed=["a.io", "b.io"]), signed("p", "a.io", "b.io/ns"))["transports"]["docker"] == {
        "a.io": [REQUIRED], "b.io": [ACCEPT], "b.io/ns": [REQUIRED],
    }  # fmt: skip


def test_the_transport_of_openshift_gets_only_scopes_that_it_can_read() -> None:
    scopes = ["a.io", "a.io/n", "a.io/n/a", "a.io/n/a:t", "*.b.io"]
    beyond = ["a.io/n/a/x", "a.io/n:t", "a.io/n@sha256:" + "0" * 64]
    transports = policy(None, signed("p", *scopes, *beyond))["transports"]
    assert set(transports["docker"]) == {*scopes, *beyond}
    assert set(transports["atomic"]) == set(scopes)


@pytest.mark.parametrize("scope", ["b.io", "a.io"])
def test_a_policy_outside_the_allowed_scopes_is_refused(scope: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        settings(image(allowed=["a.io/ns"]), signed("p", "a.io/ns/app", scope))
    assert (
        refused.value.message
        == f"ClusterImagePolicy configured for the scope {scope} is not nested inside allowedRegistries"
    )
    assert refused.value.culprit.name == "p"


@pytest.mark.parametrize("scope", ["a.io", "a.io/ns", "r.b.io/x"])
def test_a_policy_inside_a_blocked_scope_is_refused(scope: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        settings(image(blocked=["a.io", "*.b.io"]), signed("p", scope))
    assert (
        refused.value.message
        == f"ClusterImagePolicy configured for the scope {scope} is nested inside blockedRegistries"
    )


def test_a_namespace_has_what_the_cluster_asks_for_and_its_own() -> None:
    given = (image(allowed=["a.io", "c.io"]), signed("p", "c.io"), signed("q", "a.io/x", "a.io", namespace="team"))
    document = in_namespace("team", *given)
    assert document["default"] == [REJECT]
    assert document["transports"]["docker"] == {"a.io": [REQUIRED], "c.io": [REQUIRED], "a.io/x": [REQUIRED]}
    assert document["transports"]["atomic"] == document["transports"]["docker"]
    assert policy(*given)["transports"]["docker"] == {"a.io": [ACCEPT], "c.io": [REQUIRED]}, "and nobody else does"


def test_a_namespace_alone_leaves_the_file_of_the_cluster_as_it_is() -> None:
    files = written(None, signed("q", "a.io", namespace="team"), signed("r", "b.io", namespace="other"))
    assert set(files) == {
        "/etc/crio/policies/team.json", "/etc/crio/policies/other.json",
        "/etc/containers/registries.d/sigstore-registries.yaml",
    }  # fmt: skip
    assert json.loads(files["/etc/crio/policies/team.json"])["transports"]["docker"] == {"a.io": [REQUIRED]}


def test_several_policies_of_a_namespace_come_together() -> None:
    second = signed("b", "a.io", namespace="team", root=trusted(OTHER_KEY))
    document = in_namespace("team", None, signed("a", "a.io", namespace="team"), second)
    assert document["transports"]["docker"] == {"a.io": [REQUIRED, OTHER]}


def test_a_scope_that_the_cluster_has_already_is_left_to_it_and_said() -> None:
    given = (
        None,
        signed("p", "a.io"),
        signed("q", "a.io/ns", "a.io", "b.io", namespace="team", root=trusted(OTHER_KEY)),
    )
    assert in_namespace("team", *given)["transports"]["docker"] == {"a.io": [REQUIRED], "b.io": [OTHER]}
    remark = settings(*given).remarks[ObjectName("team", "q")]
    assert remark.reason == "ConflictScopes"
    assert "a.io/ns, a.io" in remark.message


def test_a_namespace_whose_scopes_are_all_taken_has_no_file() -> None:
    given = (None, signed("p", "a.io"), signed("q", "a.io/ns", namespace="team"))
    assert "/etc/crio/policies/team.json" not in written(*given)
    assert ObjectName("team", "q") in settings(*given).remarks


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ({"allowed": ["a.io"]}, "not nested inside allowedRegistries"),
        ({"blocked": ["b.io"]}, "nested inside blockedRegistries"),
    ],
)
def test_a_namespace_cannot_open_what_the_cluster_closes_and_stops_nobody(
    lists: dict[str, list[str]], words: str
) -> None:
    given = (image(**lists), signed("q", "b.io/x", "a.io/x", namespace="team"))
    assert set(in_namespace("team", *given)["transports"]["docker"]) == {
        *lists.get("allowed", lists.get("blocked", [])),
        "a.io/x",
    }
    remark = settings(*given).remarks[ObjectName("team", "q")]
    assert remark.reason == "RegistryNotAdmitted"
    assert remark.message == f"ImagePolicy configured for the scope b.io/x is {words}"


def test_a_broken_policy_of_a_namespace_rejects_its_images_there_and_stops_nobody() -> None:
    broken = signed("q", "a.io", "not a scope", namespace="team", root=trusted("?"))
    given = (None, signed("p", "c.io"), broken, signed("r", "a.io", namespace="other"))
    assert in_namespace("team", *given)["transports"]["docker"] == {"c.io": [REQUIRED], "a.io": [REJECT]}
    assert in_namespace("other", *given)["transports"]["docker"]["a.io"] == [REQUIRED]
    remark = settings(*given).remarks[ObjectName("team", "q")]
    assert remark.reason == "InvalidPolicy"
    assert "spec.scopes[1]" in remark.message


def test_a_broken_policy_is_not_repaired_by_another_for_the_same_scope() -> None:
    broken = signed("q", "a.io", namespace="team", root=trusted("?"))
    document = in_namespace("team", None, broken, signed("r", "a.io", namespace="team"))
    assert document["transports"]["docker"]["a.io"] == [REJECT, REQUIRED], "all must pass, and one never does"


def test_policies_that_take_too_much_room_close_their_namespace_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_NAMESPACE_BYTES", 1500)
    given = (
        None,
        signed("q", *(f"a.io/{n}" for n in range(9)), namespace="big"),
        signed("r", "a.io", namespace="small"),
    )
    assert in_namespace("big", *given) == {"default": [REJECT]}
    assert in_namespace("small", *given)["transports"]["docker"]["a.io"] == [REQUIRED]
    assert settings(*given).remarks[ObjectName("big", "q")].reason == "TooLarge"
    assert ObjectName("small", "r") not in settings(*given).remarks


def test_where_all_together_take_too_much_room_those_that_came_last_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_NAMESPACES_BYTES", 1200)
    given = []
    for hour, namespace in enumerate(("z", "y", "x")):
        made = signed("q", "a.io", namespace=namespace)
        made["metadata"]["creationTimestamp"] = f"2026-01-01T0{hour}:00:00Z"
        given.append(made)
    closed = [name for name in "zyx" if in_namespace(name, None, *given) == {"default": [REJECT]}]
    assert closed == ["x"]


def test_scopes_of_the_cluster_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "MAX_POLICY_SCOPES", 2)
    settings(None, signed("a", "a.io", "b.io"))
    with pytest.raises(BadRegistries, match="more than 2 scopes"):
        settings(None, signed("a", "a.io", "b.io"), signed("b", "c.io"))
