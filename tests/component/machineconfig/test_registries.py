"""Registries in a cluster: configs for pools, what stops them, what is told to whom."""

from __future__ import annotations

import json
from typing import Any

from fastness.formats import data_url, toml
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType, WriteOptions
from tests.component.machineconfig.worker_pool import CONFIG, POOL, WorkerPool, config, until
from tests.unit.machineconfig.render.registries.build import icsp, idms, image, itms, signed

GROUP = "config.openshift.io"
RESOURCES = {
    kind.kind: kind.resource
    for kind in (
        find(GROUP, "v1", "images"),
        find(GROUP, "v1", "imagedigestmirrorsets"),
        find(GROUP, "v1", "imagetagmirrorsets"),
        find("operator.openshift.io", "v1alpha1", "imagecontentsourcepolicies"),
        find(GROUP, "v1", "clusterimagepolicies"),
        find(GROUP, "v1", "imagepolicies"),
        find(GROUP, "v1", "clusterversions"),
    )
}
EVENT = find("", "v1", "events").resource
NAMESPACE = find("", "v1", "namespaces").resource
NAME = "99-worker-generated-registries"
CONF = "/etc/containers/registries.conf"


async def create(workers: WorkerPool, obj: JsonObject) -> JsonObject:
    resource = RESOURCES[obj["kind"]]
    meta = {key: value for key, value in obj["metadata"].items() if key != "uid"}
    made = {**obj, "apiVersion": resource.api_version, "metadata": meta}
    return await workers.cluster.create(resource, made)


async def delete(workers: WorkerPool, obj: JsonObject) -> None:
    meta = obj["metadata"]
    await workers.cluster.delete(RESOURCES[obj["kind"]], meta["name"], meta.get("namespace", ""))


async def files(workers: WorkerPool, name: str = NAME) -> dict[str, str] | None:
    """The files of a config, by path; None while there is no config."""
    try:
        stored = await workers.cluster.get(CONFIG, name)
    except NotFound:
        return None
    entries = stored["spec"]["config"].get("storage", {}).get("files", ())
    return {entry["path"]: data_url.decode(entry["contents"]["source"]).decode() for entry in entries}


async def entries(workers: WorkerPool) -> dict[str, JsonObject]:
    text = (await files(workers) or {}).get(CONF, "")
    return {entry.get("prefix") or entry["location"]: entry for entry in toml.parse(text).get("registry", ())}


async def until_files(workers: WorkerPool, check: Any, name: str = NAME) -> dict[str, str]:
    async def there() -> list[dict[str, str]]:
        written = await files(workers, name)
        return [written] if written is not None and check(written) else []

    return dict((await until(there, f"{name} is not what it should be"))[0])


async def until_condition(workers: WorkerPool, status: str, pool: str = "worker") -> str:
    """Wait until a pool says whether its registries are degraded; what it says."""

    async def there() -> JsonObject | None:
        state = condition(await workers.cluster.get(POOL, pool), "RegistriesDegraded")
        return dict(state) if state is not None and state["status"] == status else None

    return str((await until(there, "the pool says nothing"))["message"])


async def until_event(workers: WorkerPool, reason: str, about: str) -> str:
    async def there() -> list[str]:
        events = (await workers.cluster.list(EVENT)).items
        return [
            event["message"]
            for event in events
            if event["reason"] == reason and event["involvedObject"]["name"] == about
        ]

    return str((await until(there, f"no event {reason}"))[0])


async def test_mirrors_of_all_three_kinds_reach_a_rendered_config(workers: WorkerPool) -> None:
    await create(workers, image(insecure=["m.example.com:5000"]))
    await create(workers, idms("a", {"quay.io/ns": ["m.example.com:5000/ns"]}))
    await create(workers, itms("b", {"quay.io/ns": ["t.example.com/ns"]}))
    await create(workers, icsp("c", {"quay.io/ns": ["o.example.com/ns"]}))

    async def all_there() -> bool:
        return len((await entries(workers)).get("quay.io/ns", {}).get("mirror", ())) == 3

    await until(all_there, "the mirrors are not merged")
    assert [mirror["location"] for mirror in (await entries(workers))["quay.io/ns"]["mirror"]] == [
        "m.example.com:5000/ns", "o.example.com/ns", "t.example.com/ns",
    ]  # fmt: skip
    stored = await workers.cluster.get(CONFIG, NAME)
    assert stored["metadata"]["labels"] == {names.ROLE_LABEL: "worker"}
    assert stored["metadata"]["ownerReferences"][0]["kind"] == "Image"

    async def rendered() -> bool:
        name = await workers.goal()
        source = (await workers.cluster.get(CONFIG, name))["spec"] if name else {}
        written = {entry["path"]: entry for entry in source.get("config", {}).get("storage", {}).get("files", ())}
        return CONF in written and b"t.example.com" in data_url.decode(written[CONF]["contents"]["source"])

    await until(rendered, "the pool is not rendered with it")
    assert await files(workers, "99-master-generated-registries") == await files(workers)


async def test_without_an_image_nothing_is_made_and_mirror_sets_are_told(workers: WorkerPool) -> None:
    await create(workers, idms("a", {"quay.io": ["m.example.com"]}))
    assert "no Image 'cluster'" in await until_event(workers, "NoImageConfig", "a")
    assert await files(workers) is None
    made = await create(workers, image())
    await until_files(workers, lambda written: CONF in written)
    await delete(workers, made)

    async def gone() -> bool:
        return await files(workers) is None

    await until(gone, "the config outlives the Image")


async def test_a_config_that_somebody_edits_or_deletes_is_put_back(workers: WorkerPool) -> None:
    await create(workers, image(blocked=["bad.example.com"]))
    before = await until_files(workers, lambda written: CONF in written)
    await workers.cluster.patch(CONFIG, NAME, {"spec": {"config": {"storage": {"files": []}}}}, PatchType.MERGE)
    await until_files(workers, lambda written: written == before)
    await workers.cluster.delete(CONFIG, NAME)
    await until_files(workers, lambda written: written == before)


async def test_a_wrong_object_stops_all_pools_which_keep_what_they_have_and_name_it(workers: WorkerPool) -> None:
    await create(workers, image())
    good = idms("good", {"quay.io": ["m.example.com"]})
    await create(workers, good)
    before = await until_files(workers, lambda written: "m.example.com" in written.get(CONF, ""))
    bad = icsp("bad", {"QUAY io": ["n.example.com"], "docker.io": ["n.example.com"]})
    await create(workers, bad)
    reason = 'ImageContentSourcePolicy bad: invalid format for source "QUAY io" (write *.domain or host[:port][/path]'
    for pool in ("worker", "master"):
        assert (await until_condition(workers, "True", pool)).startswith(reason)
    assert (await until_event(workers, "RegistriesRefused", "bad")).startswith(reason)
    assert await files(workers) == before

    async def degraded() -> bool:
        state = condition(await workers.pool(), "Degraded")
        return state is not None and state["status"] == "True"

    await until(degraded, "the pool is not degraded")
    # Other changes still reach machines: the pool goes on with the registries that it has.
    await workers.cluster.create(CONFIG, config("50-motd"))

    async def rendered() -> bool:
        sources = ((await workers.pool())["spec"].get("configuration") or {}).get("source") or ()
        return "50-motd" in {source["name"] for source in sources}

    await until(rendered, "another change is held up")
    await delete(workers, bad)
    assert await until_condition(workers, "False") == ""
    conflicting = idms("other", {"quay.io": ["n.example.com"]}, "NeverContactSource")
    await create(workers, conflicting)
    assert (await until_condition(workers, "True")).startswith(
        'ImageDigestMirrorSet other: conflicting mirrorSourcePolicy is set for the same source "quay.io" in '
        "imagedigestmirrorsets, imagetagmirrorsets, or imagecontentsourcepolicies (give it the same mirrorSourcePolicy as "
    )
    assert await files(workers) == before
    await delete(workers, conflicting)
    assert await until_condition(workers, "False") == ""
    assert await files(workers) == before


async def test_a_pool_that_never_had_a_config_about_registries_is_not_rendered_without(workers: WorkerPool) -> None:
    await create(workers, image(blocked=["*"]))
    await workers.cluster.create(
        POOL,
        {
            "apiVersion": names.API_VERSION, "kind": "MachineConfigPool",
            "metadata": {"name": "arbiter", "labels": {names.BUILT_IN_LABEL: ""}},
            "spec": {"machineConfigSelector": {"matchLabels": {names.ROLE_LABEL: "arbiter"}}, "nodeSelector": {}},
        },
    )  # fmt: skip

    async def refused() -> bool:
        state = condition(await workers.cluster.get(POOL, "arbiter"), "RenderDegraded")
        return state is not None and 'invalid entry for blocked registries "*"' in state["message"]

    await until(refused, "it is rendered without")
    assert not (await workers.cluster.get(POOL, "arbiter"))["spec"].get("configuration")


async def test_blocking_the_release_itself_is_left_out_and_said(workers: WorkerPool) -> None:
    version = await create(workers, {"kind": "ClusterVersion", "metadata": {"name": "version"}, "spec": {}})
    desired = {"status": {"desired": {"image": "quay.io/release/ocp@sha256:" + "a" * 64}}}
    await workers.cluster.patch(
        RESOURCES["ClusterVersion"], version["metadata"]["name"], desired, PatchType.MERGE, "",
        WriteOptions(subresource="status"),
    )  # fmt: skip
    await create(workers, image(blocked=["quay.io", "bad.example.com"]))
    message = await until_event(workers, "PayloadNotBlocked", "cluster")
    assert (
        message == 'error adding "quay.io" to blocked registries, cannot block the repository being used by the payload'
    )
    await until_files(workers, lambda written: "bad.example.com" in written.get(CONF, ""))
    assert set(await entries(workers)) == {"bad.example.com"}
    await create(workers, idms("a", {"quay.io/release": ["m.example.com/release"]}))

    async def blocked() -> bool:
        return bool((await entries(workers)).get("quay.io", {}).get("blocked"))

    await until(blocked, "with a mirror it is not blocked")


async def test_a_policy_of_a_namespace_gives_way_to_the_cluster_and_says_so(workers: WorkerPool) -> None:
    await workers.cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await create(workers, image())
    wide = signed("wide", "quay.io")
    await create(workers, wide)
    await create(workers, signed("own", "quay.io/team", "docker.io", namespace="team"))

    async def pending() -> JsonObject | None:
        state = condition(await workers.cluster.get(RESOURCES["ImagePolicy"], "own", "team"), "Pending")
        return dict(state) if state else None

    state = await until(pending, "nothing is said")
    assert (state["status"], state["reason"]) == ("False", "ConflictScopes")
    assert state["message"].endswith("quay.io/team")
    written = await until_files(workers, lambda written: "/etc/crio/policies/team.json" in written)
    assert set(json.loads(written["/etc/crio/policies/team.json"])["transports"]["docker"]) == {"quay.io", "docker.io"}
    assert "docker.io" in written["/etc/containers/registries.d/sigstore-registries.yaml"]
    await delete(workers, wide)

    async def taken_back() -> bool:
        return await pending() is None

    await until(taken_back, "the condition stays")


async def test_a_pool_with_containerd_gets_its_files_or_says_what_it_cannot_be_told(workers: WorkerPool) -> None:
    await create(workers, image())
    await create(workers, idms("a", {"quay.io": ["m.example.com"]}))
    await until_files(workers, lambda written: CONF in written)
    notes = {"metadata": {"annotations": {names.CONTAINER_RUNTIME: "containerd"}}}
    await workers.cluster.patch(POOL, "worker", notes, PatchType.MERGE)
    hosts = "/etc/containerd/certs.d/quay.io/hosts.toml"
    before = await until_files(workers, lambda written: set(written) == {hosts})
    assert CONF in (await files(workers, "99-master-generated-registries") or {})
    await create(workers, itms("b", {"docker.io": ["t.example.com"]}))
    assert "ImageTagMirrorSet b: containerd cannot be told this" in await until_condition(workers, "True")
    assert await files(workers) == before, "it keeps what it has"
    await until_files(workers, lambda written: "t.example.com" in written[CONF], "99-master-generated-registries")
    assert condition(await workers.cluster.get(POOL, "master"), "RegistriesDegraded") is None


async def test_a_pool_that_loses_the_label_loses_its_config(workers: WorkerPool) -> None:
    await create(workers, image())
    labels = {names.BUILT_IN_LABEL: "", f"{names.POOL_LABEL_PREFIX}extra": ""}
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "extra"]}]}
    body = {"machineConfigSelector": selector, "nodeSelector": {"matchLabels": {"no": "such"}}}
    meta = {"name": "extra", "labels": labels}
    await workers.cluster.create(
        POOL, {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": meta, "spec": body}
    )
    await until_files(workers, lambda written: written == {}, "99-extra-generated-registries")
    await workers.cluster.patch(POOL, "extra", {"metadata": {"labels": {names.BUILT_IN_LABEL: None}}}, PatchType.MERGE)

    async def gone() -> bool:
        return await files(workers, "99-extra-generated-registries") is None

    await until(gone, "the config stays")


async def test_a_config_of_such_a_name_that_is_not_ours_is_left_alone(workers: WorkerPool) -> None:
    name = "99-mine-generated-registries"
    await workers.cluster.create(CONFIG, config(name))
    made = await create(workers, image())
    await until_files(workers, lambda _written: True)
    await delete(workers, made)

    async def gone() -> bool:
        return await files(workers) is None

    await until(gone, "nothing is cleaned up")
    assert await files(workers, name) == {"/etc/motd": "hello"}
