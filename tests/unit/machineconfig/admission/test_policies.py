"""Streams on offer, boot images by platform, and a daemon that reports for its own node alone."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.admission.table import BEHIND_WEBHOOK
from fastness.kube.access.user import User
from fastness.kube.admission import Allowed, Answer, Denied
from fastness.machineconfig.admission.policies import DAEMON, NODE_CLAIM
from tests.unit.admission.writes import World, review, write

Object = dict[str, Any]
MCO = "machineconfiguration.openshift.io"
POOLS = f"machineconfigpools.{MCO}"
STREAMS = f"osimagestreams.{MCO}"
NODES = f"machineconfignodes.{MCO}"
CONFIGURATIONS = "machineconfigurations.operator.openshift.io"
NOT_OFFERED = "The specified osImageStream name must reference a valid stream from the cluster OSImageStream resource"
PLATFORM = "This feature is only supported on these platforms: GCP, AWS, VSphere, Azure"
CONTROL_PLANE = (
    "The control plane machineset boot image update feature is only supported on these platforms: GCP, AWS, Azure"
)


def refusal(answer: Answer) -> str:
    """Why a write is refused; empty when it is not."""
    return answer.message if isinstance(answer, Denied) else ""


def pool(stream: Any, **more: Any) -> Object:
    selector = {"matchLabels": {f"{MCO}/role": "worker"}}
    follows = {} if stream is None else {"osImageStream": stream}
    return {"metadata": {"name": "worker"}, "spec": {"machineConfigSelector": selector, **follows, **more}}


OFFER = World(streams={"status": {"availableStreams": [{"name": "rhel-9"}, {"name": "rhel-10"}, None, "x"]}})


@pytest.mark.parametrize(
    ("world", "stream", "allowed"),
    [
        (OFFER, None, True),
        (OFFER, {"name": "rhel-10"}, True),
        (OFFER, {"name": "rhel-11"}, False),
        (OFFER, {}, False),
        (World(), {"name": "rhel-9"}, False),
        (World(), None, True),
        (World(streams={"status": {"availableStreams": "rhel-9"}}), {"name": "rhel-9"}, False),
    ],
)
def test_a_pool_follows_a_stream_that_is_on_offer(world: World, stream: Any, allowed: bool) -> None:
    answer = review(write("CREATE", POOLS, pool(stream)), world)
    assert (answer == Allowed()) is allowed
    assert allowed or NOT_OFFERED in refusal(answer)
    assert (review(write("UPDATE", POOLS, pool(stream), pool(None)), world) == Allowed()) is allowed


def test_a_stream_that_a_pool_follows_already_is_not_judged_again() -> None:
    old = pool({"name": "gone"})
    assert review(write("UPDATE", POOLS, pool({"name": "gone"}, paused=True), old), OFFER) == Allowed()
    assert review(write("UPDATE", POOLS, pool(None), old), OFFER) == Allowed()
    assert "rhel-11 is not on offer (there are: rhel-9, rhel-10)" in refusal(
        review(write("UPDATE", POOLS, pool({"name": "rhel-11"}), old), OFFER)
    )


def test_the_stream_is_never_deleted() -> None:
    answer = review(write("DELETE", STREAMS, None, {"metadata": {"name": "cluster"}}), World())
    assert refusal(answer).endswith("is forbidden: Deletion of OSImageStream resources is not allowed")
    assert review(write("UPDATE", STREAMS, {"metadata": {"name": "cluster"}}), World()) == Allowed()


def configuration(*resources: str) -> Object:
    managers = [{"resource": resource, "selection": {"mode": "All"}} for resource in resources]
    return {"metadata": {"name": "cluster"}, "spec": {"managedBootImages": {"machineManagers": managers}}}


def on(platform: str) -> World:
    return World(platform={"status": {"infrastructureName": "one-x7k2p", "platformStatus": {"type": platform}}})


@pytest.mark.parametrize("platform", ["GCP", "AWS", "VSphere", "Azure", "BareMetal"])
def test_boot_images_are_looked_after_where_somebody_can(platform: str) -> None:
    assert review(write("CREATE", CONFIGURATIONS, configuration("machinesets")), on(platform)) == Allowed()
    answer = review(write("CREATE", CONFIGURATIONS, configuration("controlplanemachinesets")), on(platform))
    assert (answer == Allowed()) is (platform != "VSphere")
    assert CONTROL_PLANE in refusal(answer) or answer == Allowed()


@pytest.mark.parametrize("platform", ["OpenStack", "None", "", "External"])
def test_boot_images_are_refused_elsewhere(platform: str) -> None:
    plain = {"metadata": {"name": "cluster"}, "spec": {}}
    for new, old in ((configuration(), None), (configuration("machinesets"), plain)):
        assert PLATFORM in refusal(review(write("UPDATE" if old else "CREATE", CONFIGURATIONS, new, old), on(platform)))
    assert review(write("CREATE", CONFIGURATIONS, plain), on(platform)) == Allowed()


def test_what_is_configured_already_is_not_judged_again() -> None:
    old = configuration("machinesets")
    new = {**old, "metadata": {"name": "cluster", "labels": {}}}
    assert review(write("UPDATE", CONFIGURATIONS, new, old), on("OpenStack")) == Allowed()


def test_a_cluster_without_infrastructure_has_machines_of_our_own() -> None:
    both = configuration("machinesets", "controlplanemachinesets")
    assert review(write("CREATE", CONFIGURATIONS, both), World()) == Allowed()
    embedded = World(platform={"status": {"platformStatus": {"type": "None"}}})
    assert review(write("CREATE", CONFIGURATIONS, both), embedded) == Allowed(), "no installer named it"
    older = World(platform={"status": {"platform": "OpenStack"}})
    assert PLATFORM in refusal(review(write("CREATE", CONFIGURATIONS, both), older))


def daemon(*claims: str) -> User:
    return User(DAEMON, ("system:serviceaccounts",), extra={NODE_CLAIM: claims} if claims else {})


@pytest.mark.parametrize("resource", [NODES, f"{NODES}/status"])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_daemon_reports_for_the_node_that_it_runs_on(resource: str, operation: str) -> None:
    node = {"metadata": {"name": "worker-0"}}
    old = node if operation == "UPDATE" else None

    def answer(user: User) -> str:
        return refusal(BEHIND_WEBHOOK.review(write(operation, resource, node, old, user=user), World()))

    assert answer(daemon("worker-0")) == ""
    assert answer(daemon("worker-0", "worker-1")) == ""
    assert "updates to MCN worker-0 can only be done from the MCN's owner node" in answer(
        daemon("worker-1", "worker-0")
    )
    assert f'this user must have a "{NODE_CLAIM}" claim' in answer(daemon())
    assert answer(User("alice")) == ""
