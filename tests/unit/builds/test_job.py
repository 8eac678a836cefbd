"""The Job of a build: what its containers get, and how its end is read."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.builds import job
from fastness.builds.build_objects import named
from fastness.builds.job import JobOutcome, JobSettings
from fastness.formats import json

MADE = job.job("worker-1", "uid-1", JobSettings("ghcr.io/fastness/fastness-builder@sha256:" + "0" * 64))


def containers(made: dict[str, Any] = MADE) -> dict[str, dict[str, Any]]:
    spec = made["spec"]["template"]["spec"]
    return {each["name"]: each for each in (*spec["initContainers"], *spec["containers"])}


def test_the_container_that_builds_is_given_no_credential_and_no_token() -> None:
    spec = MADE["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    secrets = {each["name"] for each in spec["volumes"] if "secret" in each}
    given = {name: {mount["name"] for mount in each["volumeMounts"]} for name, each in containers().items()}
    assert given["pull"] & secrets == {"pull"}
    assert given["push"] & secrets == {"push"}
    assert not given["build"] & (secrets | {"known"}), "nor can it say which base was pulled"
    assert not any("env" in each for each in containers().values())


def test_with_user_namespaces_nothing_is_privileged_and_without_only_the_container_that_builds() -> None:
    assert MADE["spec"]["template"]["spec"]["hostUsers"] is False
    assert not any(each["securityContext"].get("privileged") for each in containers().values())
    shared = job.job("worker-1", "uid-1", JobSettings("x", user_namespaces=False))
    privileged = [name for name, each in containers(shared).items() if each["securityContext"].get("privileged")]
    assert privileged == ["build"]
    for name in ("pull", "push"):
        assert containers()[name]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}


def test_long_names_fit_into_a_label() -> None:
    long = "a" * 200
    assert len(named("build", long)) <= 63
    assert named("build", long) != named("build", long + "b")
    assert named("build", "worker-1") == "build-worker-1"


def pod(name: str = "p", **ended: tuple[int, dict[str, str]]) -> dict[str, Any]:
    statuses = [
        {"name": step, "state": {"terminated": {"exitCode": code, "message": json.encode(said).decode()}}}
        for step, (code, said) in ended.items()
    ]
    return {"metadata": {"name": name, "creationTimestamp": name}, "status": {"initContainerStatuses": statuses}}


def ended(kind: str, message: str = "") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "message": message}]}}


@pytest.mark.row("003-52")
def test_how_a_job_ended_is_what_its_containers_say() -> None:
    good = pod(pull=(0, {}), build=(0, {}), push=(0, {"image": "r/os@sha256:1"}))
    assert job.outcome({"status": {}}, [good]) is None
    assert job.outcome({"status": {"failed": 2}}, [pod(pull=(3, {"error": "away"}))]) is None, "Kubernetes tries again"
    assert job.outcome(ended("Complete"), [good]) == JobOutcome("r/os@sha256:1")
    assert job.outcome(ended("Complete"), []) == JobOutcome(reason="the Job ended well and named no image")
    failed = [
        pod("1", pull=(3, {"error": "away"})),
        pod("2", pull=(0, {}), build=(1, {"error": "buildah ended with 1"})),
    ]
    assert job.outcome(ended("Failed", "backoff"), failed) == JobOutcome(reason="buildah ended with 1", step="build")
    assert job.outcome(ended("Failed", "deadline"), []) == JobOutcome(reason="deadline")


def test_a_container_that_says_nothing_or_nonsense_is_told_by_its_exit_code() -> None:
    killed = pod(build=(137, {}))
    killed["status"]["initContainerStatuses"][0]["state"]["terminated"].update(message="{", reason="OOMKilled")
    assert job.failure(killed) == ("build", "build ended with 137 (OOMKilled)")


def test_why_a_pod_does_not_begin_is_told_in_kubernetes_words() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    stuck = {"metadata": {"name": "p"}, "status": {"initContainerStatuses": [{"name": "pull", "state": waiting}]}}
    assert job.waits_for(stuck) == "pull: ImagePullBackOff: not found"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    assert (
        job.waits_for({"metadata": {"name": "p"}, "status": {"conditions": [condition]}}) == "Unschedulable: 0/2 nodes"
    )
