"""Blocking the repository of the release image: left out without a mirror, possible with one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.machineconfig.render.errors import BadRegistries
from tests.unit.machineconfig.render.registries.build import (
    ACCEPT,
    REJECT,
    entries,
    idms,
    image,
    itms,
    settings,
    signed,
    written,
)

PAYLOAD = "quay.io/release/ocp@sha256:" + "a" * 64
REPOSITORY = "quay.io/release/ocp"
CONF, POLICY = "/etc/containers/registries.conf", "/etc/containers/policy.json"


def blocked(*scopes: str, sets: tuple[Any, ...] = ()) -> tuple[set[str], dict[str, Any], list[str]]:
    """Scopes that are blocked in registries.conf, scopes of policy.json, scopes that are left out."""
    of_image = image(blocked=list(scopes))
    conf = entries(of_image, *sets, payload=PAYLOAD)
    policy = json.loads(written(of_image, *sets, payload=PAYLOAD)[POLICY])
    left_out = settings(of_image, *sets, payload=PAYLOAD).left_out
    assert policy["default"] == [ACCEPT]
    docker = policy["transports"].get("docker", {})
    return {scope for scope, entry in conf.items() if entry.get("blocked")}, docker, list(left_out)


@pytest.mark.parametrize("scope", [REPOSITORY, "quay.io/release", "quay.io", "*.io"])
def test_without_a_mirror_the_scope_is_left_out(scope: str) -> None:
    assert blocked(scope, "bad.org") == ({"bad.org"}, {"bad.org": [REJECT]}, [scope])


@pytest.mark.parametrize("scope", ["quay.io/other", "quay.iox", "quay.io/release/ocp2"])
def test_other_scopes_are_blocked(scope: str) -> None:
    assert blocked(scope) == ({scope}, {scope: [REJECT]}, [])


def test_with_a_mirror_exactly_the_repository_is_blocked_but_not_rejected() -> None:
    sets = (idms("a", {"quay.io/release": ["m.org/release"]}),)
    assert blocked(REPOSITORY, sets=sets) == ({REPOSITORY}, {REPOSITORY: [ACCEPT]}, [])
    assert entries(image(blocked=[REPOSITORY]), *sets, payload=PAYLOAD)[REPOSITORY]["mirror"] == [
        {"location": "m.org/release/ocp", "pull-from-mirror": "digest-only"}
    ]


def test_with_a_mirror_a_wider_scope_is_rejected_and_the_repository_accepted() -> None:
    sets = (idms("a", {"quay.io/release": ["m.org/release"]}),)
    assert blocked("quay.io", sets=sets) == (
        {"quay.io", "quay.io/release"}, {"quay.io": [REJECT], REPOSITORY: [ACCEPT]}, [],
    )  # fmt: skip


def test_a_mirror_that_is_blocked_itself_does_not_count() -> None:
    sets = (idms("a", {"quay.io/release": ["m.org/release"]}),)
    assert blocked("quay.io", "m.org", sets=sets)[2] == ["quay.io"]
    assert blocked("quay.io", "m.org/release/ocp", sets=sets)[2] == ["quay.io"]


def test_one_open_mirror_is_enough() -> None:
    sets = (idms("a", {"quay.io/release": ["m.org/release", "n.org/x"]}),)
    assert blocked("quay.io", "m.org", sets=sets)[2] == []


def test_a_mirror_for_tags_does_not_count_because_releases_are_named_by_digest() -> None:
    assert blocked("quay.io", sets=(itms("a", {"quay.io/release": ["m.org/release"]}),))[2] == ["quay.io"]


def test_a_wildcard_with_a_mirror_counts() -> None:
    assert blocked("quay.io", sets=(idms("a", {"*.io": ["m.org"]}),))[2] == ["quay.io"], "the blocked entry hides it"
    assert blocked("*.io", sets=(idms("a", {"*.io": ["m.org"]}),))[2] == []


def test_without_a_release_everything_is_blocked() -> None:
    assert entries(image(blocked=["quay.io"])) == {"quay.io": {"location": "quay.io", "blocked": True}}


def test_a_tag_of_the_release_is_no_part_of_its_repository() -> None:
    assert settings(image(blocked=["quay.io:5000"]), payload="quay.io:5000/ocp:4.20").left_out == ("quay.io:5000",)


@pytest.mark.parametrize("reference", ["ocp", "quay.io/OCP@sha256:00", "not an image", "quay.io/"])
def test_a_release_image_that_is_none_is_refused(reference: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        settings(image(blocked=["a.io"]), payload=reference)
    assert str(refused.value).startswith("ClusterVersion version: ")
    assert reference in refused.value.message


def test_a_release_image_matters_only_where_something_is_blocked() -> None:
    assert settings(image(insecure=["a.io"]), payload="not an image").registries


def test_allowed_and_blocked_together_are_refused() -> None:
    with pytest.raises(BadRegistries) as refused:
        settings(image(allowed=["a.io"], blocked=["b.io"]), payload=PAYLOAD)
    assert refused.value.message == (
        "invalid images config: only one of AllowedRegistries or BlockedRegistries may be specified"
    )


def test_allowing_just_the_release_beside_blocked_scopes_is_fine() -> None:
    policy = json.loads(written(image(allowed=[REPOSITORY], blocked=["b.io"]), payload=PAYLOAD)[POLICY])
    assert policy["default"] == [ACCEPT]
    assert policy["transports"]["docker"] == {REPOSITORY: [ACCEPT], "b.io": [REJECT]}
    with pytest.raises(BadRegistries, match="only one of"):
        settings(image(allowed=[REPOSITORY, "c.io"], blocked=["b.io"]), payload=PAYLOAD)
    with pytest.raises(BadRegistries, match="only one of"):
        settings(image(allowed=[REPOSITORY], blocked=["b.io"]))


def test_a_policy_for_the_blocked_release_is_carried_out() -> None:
    sets = (idms("a", {"quay.io/release": ["m.org/release"]}), signed("p", REPOSITORY))
    policy = json.loads(written(image(blocked=[REPOSITORY]), *sets, payload=PAYLOAD)[POLICY])
    assert [entry["type"] for entry in policy["transports"]["docker"][REPOSITORY]] == ["sigstoreSigned"]
