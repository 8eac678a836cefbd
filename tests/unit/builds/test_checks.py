"""What is told about a MachineOSConfig before anything is built."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from fastness.builds.checks import NODE_PULL, PULL, PUSH, checked
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import IMAGE_PULL

AGES = (("worker", "2026-01-01T00:00:00Z"), ("a-second-one", "2026-01-02T00:00:00Z"))
REGISTRY = {"data": {".dockerconfigjson": base64.b64encode(b'{"auths": {}}').decode()}}


def described(name: str = "worker", pool: str = "worker", **spec: Any) -> JsonObject:
    return {
        "metadata": {"name": name},
        "spec": {
            "machineConfigPool": {"name": pool}, "renderedImagePushSecret": {"name": "push"},
            "renderedImagePushSpec": "registry.example/os/worker:latest", **spec,
        },
    }  # fmt: skip


def reasons(
    config: JsonObject, secrets: dict[str, Any] | None = None, others: tuple[JsonObject, ...] = ()
) -> list[str]:
    given = {PUSH: REGISTRY, PULL: REGISTRY} if secrets is None else secrets
    return [problem.reason for problem in checked(config, (config, *others), ("master", "worker"), given)]


def test_one_that_is_good_is_told_nothing() -> None:
    assert reasons(described(containerFile=[{"content": "RUN true"}])) == []


@pytest.mark.parametrize("value", ["nothing", "registry.example/os@sha256:" + "a" * 64, "short:1"])
def test_a_place_that_nothing_can_be_pushed_to_is_named(value: str) -> None:
    assert reasons(described(renderedImagePushSpec=value)) == ["PushSpecInvalid"]


def test_secrets_must_be_there_and_of_a_registry() -> None:
    both = described(baseImagePullSecret={"name": "pull"})
    assert reasons(both, {PUSH: None, PULL: None}) == ["SecretNotFound", "SecretNotFound"]
    for bad in ({"data": {"password": "eA=="}}, {"data": {".dockerconfigjson": "%"}}, {}):
        assert reasons(both, {PUSH: bad, PULL: REGISTRY}) == ["SecretNotOfRegistry"]
    old = {"data": {".dockercfg": base64.b64encode(json.dumps({"registry.example": {}}).encode()).decode()}}
    assert reasons(both, {PUSH: old, PULL: REGISTRY}) == []


def test_the_pool_must_be_there_and_have_no_other() -> None:
    assert reasons(described(pool="infra")) == ["PoolNotFound"]
    older, younger = ({**described(name), "metadata": {"name": name, "creationTimestamp": time}} for name, time in AGES)
    assert reasons(younger, others=(older,)) == ["PoolTaken"]
    assert reasons(older, others=(younger,)) == []
    assert reasons(described("aa"), others=(older,)) == ["PoolTaken"], "one that is only planned comes last"


@pytest.mark.row("003-44")
def test_every_problem_of_a_containerfile_is_told_with_its_field() -> None:
    texts = [{"content": "NONSENSE\nFROM x"}, {"containerfileArch": "ARM64", "content": "RUN a"}]
    problems = checked(described(containerFile=texts), (), ("worker",), {PUSH: REGISTRY})
    assert [(problem.reason, problem.field) for problem in problems] == [
        ("ContainerfileInvalid", "spec.containerFile[0].content"),
        ("ContainerfileInvalid", "spec.containerFile[0].content"),
        ("ContainerfileInvalid", "spec.containerFile[1].containerfileArch"),
    ]


def login(text: str, registry: str = "registry.example") -> JsonObject:
    auth = base64.b64encode(text.encode()).decode()
    content = json.dumps({"auths": {registry: {"auth": auth}}}).encode()
    return {"data": {".dockerconfigjson": base64.b64encode(content).decode()}}


@pytest.mark.parametrize(
    ("secret", "enforcing", "reason"),
    [
        (login("nodes:read"), True, []), (login("nodes:read"), False, ["PullSecretUnproven"]),
        (None, True, ["SecretNotFound"]), ({"data": {}}, True, ["SecretNotOfRegistry"]),
        (login("nodes:read", "other.example"), True, ["PullSecretOfOtherRegistry"]),
        (login("builder:write"), True, ["PullSecretPushes"]),
    ],
)  # fmt: skip
def test_the_credential_of_nodes_is_for_that_registry_reads_and_is_for_proven_nodes(
    secret: JsonObject | None, enforcing: bool, reason: list[str]
) -> None:
    config = described()
    config["metadata"]["annotations"] = {IMAGE_PULL: "nodes"}
    given = {PUSH: login("builder:write"), NODE_PULL: secret}
    problems = checked(config, (config,), ("worker",), given, enforcing=enforcing)
    assert [problem.reason for problem in problems] == reason
    assert all(problem.hint and problem.field.startswith("metadata.annotations[") for problem in problems)
    assert "read" not in " ".join(problem.message for problem in problems if problem.reason != "PullSecretPushes")
