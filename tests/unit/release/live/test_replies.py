"""Replies are encoded once, follow the pool, leave their sources alone and do not grow without bound."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastness.formats import data_url, json
from fastness.http.refusals import Refusal
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.serving import document
from fastness.protocol.kbs_path import pool_config
from fastness.protocol.node_trust import NodeTrust
from fastness.release.live import replies
from fastness.release.live.replies import NoConfig, RenderedConfigs, Replies
from tests.granting import grant_of


class Shelf:
    """What an informer holds: objects by name, replaced and never changed."""

    def __init__(self) -> None:
        self.objects: dict[str, JsonObject] = {}

    def get(self, _namespace: str, name: str) -> JsonObject | None:
        return self.objects.get(name)


class World:
    """Pools, configs, and a count of how often something was encoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pools, self.configs, self.encoded = Shelf(), Shelf(), list[tuple[str, str]]()
        self.trust: NodeTrust | None = None
        self.proven: NodeTrust | None = None
        self.replies = Replies(self.pools, self.configs, lambda pool="": self.proven if pool else self.trust)  # type: ignore[arg-type]

        def counted(config: Any, version: str, kubeconfig: str, trust: NodeTrust | None) -> bytes:
            self.encoded.append((config["metadata"]["name"], version))
            return document(config, version, kubeconfig, trust)

        monkeypatch.setattr(replies, "document", counted)

    def config(self, name: str, content: str = "x") -> None:
        files = [{"path": "/etc/motd", "contents": {"source": f"data:,{content}"}}]
        body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
        arguments = {"kernelArguments": {"shouldExist": ["quiet"]}}
        self.configs.objects[name] = {
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": name},
            "spec": {"config": {**body, **arguments}},
        }  # fmt: skip

    def pool(self, name: str, desired: str = "", running: str = "", updated: int = 0) -> None:
        spec = {"configuration": {"name": desired}} if desired else {}
        status = {"updatedMachineCount": updated, "configuration": {"name": running}}
        self.pools.objects[name] = {"metadata": {"name": name}, "spec": spec, "status": status}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_thousand_requests_encode_once_per_version(world: World) -> None:
    world.config("one")
    world.pool("worker", "one")
    for _ in range(500):
        assert world.replies.of("worker", "3.4.0") is world.replies.of("worker", "3.4.0")
        world.replies.of("worker", "3.3.0")
    assert world.encoded == [("one", "3.4.0"), ("one", "3.3.0")]


def test_what_is_served_changes_nothing_that_an_informer_holds(world: World) -> None:
    world.config("one")
    world.pool("worker", "one")
    before = copy.deepcopy((world.configs.objects, world.pools.objects))
    for version in ("2.2.0", "3.1.0", "3.2.0", "3.5.0"):  # older ones have kernel arguments moved
        world.replies.of("worker", version)
    assert (world.configs.objects, world.pools.objects) == before


def test_a_new_config_is_served_once_a_machine_has_proved_it_and_the_old_bytes_are_forgotten(world: World) -> None:
    world.config("old", "old")
    world.config("new", "new")
    world.pool("worker", "new", "old")
    first = world.replies.of("worker", "3.4.0")
    assert b"data:,old" in first.body
    world.pool("worker", "new", "old", updated=1)
    second = world.replies.of("worker", "3.4.0")
    assert b"data:,new" in second.body
    assert first.etag != second.etag
    assert list(world.replies._kept.values()) == [second]


def test_a_config_that_somebody_writes_to_is_encoded_anew(world: World) -> None:
    world.config("one", "good")
    world.pool("worker", "one")
    before = world.replies.of("worker", "3.4.0")
    world.config("one", "edited")
    after = world.replies.of("worker", "3.4.0")
    assert b"data:,edited" in after.body
    assert after.etag != before.etag


def test_unknown_pools_and_pools_without_a_config_are_told_apart(world: World) -> None:
    world.pool("empty")
    world.pool("ahead", "not-there-yet")
    for name, exists in (("missing", False), ("empty", True), ("ahead", True)):
        with pytest.raises(NoConfig) as caught:
            world.replies.of(name, "3.4.0")
        assert caught.value.pool_exists is exists


def test_a_rendered_config_is_given_by_its_name_and_one_that_is_not_there_is_none(world: World) -> None:
    world.config("rendered-worker-1")
    reply = world.replies.rendered("rendered-worker-1")
    assert reply is not None
    assert json.decode(reply.body)["metadata"]["name"] == "rendered-worker-1"
    assert world.replies.rendered("rendered-worker-2") is None


@pytest.mark.parametrize(
    ("pool", "rendered", "refusal"),
    [
        ("empty", "", (503, "not-rendered")),
        ("ahead", "", (503, "not-rendered")),
        ("worker", "rendered-worker-2", (503, "not-rendered")),
        ("missing", "", (404, "unknown-pool")),
    ],
)
async def test_what_is_not_rendered_yet_passes_and_a_pool_that_is_none_does_not(
    world: World, pool: str, rendered: str, refusal: tuple[int, str]
) -> None:
    """Ignition ends at the first 4xx: a machine that boots before its pool is rendered must be asked to come again."""
    world.config("rendered-worker-1")
    world.pool("worker", "rendered-worker-1")
    world.pool("empty")
    world.pool("ahead", "not-there-yet")
    with pytest.raises(Refusal) as refused:
        path = pool_config(pool)
        await RenderedConfigs(world.replies).read(grant_of(path), path, {"rendered": rendered})
    assert (refused.value.status, refused.value.code) == refusal


def test_what_was_asked_for_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_REPLIES", 3)
    world = World(monkeypatch)
    world.config("one")
    for name in ("a", "b", "c", "d"):
        world.pool(name, "one")
    for name in ("a", "b", "c", "a", "d"):
        world.replies.of(name, "3.4.0")
    world.encoded.clear()
    world.replies.of("a", "3.4.0")
    assert world.encoded == []
    world.replies.of("b", "3.4.0")
    assert len(world.encoded) == 1


def test_bytes_are_bounded_but_one_reply_is_always_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_KEPT_BYTES", 10)
    world = World(monkeypatch)
    world.config("one", "y" * 100)
    for name in ("a", "b"):
        world.pool(name, "one")
        reply = world.replies.of(name, "3.4.0")
        assert list(world.replies._kept.values()) == [reply]
    assert json.decode(world.replies.of("b", "3.4.0").body)["ignition"]["version"] == "3.4.0"


def test_a_machine_that_boots_gets_whom_it_shall_believe_as_it_is_now(world: World) -> None:
    world.config("rendered-a")
    world.pool("worker", desired="rendered-a")
    for number, text in enumerate((b"first\n", b"second\n"), 1):
        world.trust = NodeTrust(kubelet_ca=text.decode())
        files = json.decode(world.replies.of("worker", "3.4.0").body)["storage"]["files"]
        [served] = [entry for entry in files if entry["path"] == names.KUBELET_CA]
        assert data_url.contents(served["contents"]) == text
        world.replies.of("worker", "3.4.0")
        assert len(world.encoded) == number, "it is made once for each"


def test_who_has_not_proved_itself_gets_nothing_of_what_the_pool_s_proven_machines_get(world: World) -> None:
    world.config("rendered-a")
    world.pool("worker", desired="rendered-a")
    world.trust = NodeTrust(kubelet_ca="x")
    world.proven = NodeTrust(kubelet_ca="x", image_pull_secret='{"auths":{}}')
    plain, proven = world.replies.of("worker", "3.4.0"), world.replies.of("worker", "3.4.0", proven=True)
    assert b"image-pull-secret.json" not in plain.body
    assert b"/etc/fastness/image-pull-secret.json" in proven.body
    assert world.replies.of("worker", "3.4.0") is plain
    assert world.replies.of("worker", "3.4.0", proven=True) is proven
