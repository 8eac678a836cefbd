"""Boot images under the real loops: an upgrade brings new ones, and machine sets move with their user-data."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kinds.registry import find
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.boot_images.manage import DEGRADED, PROGRESSING, SKEW_ENFORCED
from tests.component.machineconfig.user_data_story import HERE, MACHINE_SET, Story, pointer, publish, publish_text
from tests.component.machineconfig.worker_pool import until
from tests.unit.machineconfig.boot_images.sets import OLD_RELEASE, RELEASE, aws, gcp, maker, virtual

SETTINGS = find("operator.openshift.io", "v1", "machineconfigurations").resource
INFRASTRUCTURE = find("config.openshift.io", "v1", "infrastructures").resource
VERSION = find("config.openshift.io", "v1", "clusterversions").resource
STATUS = WriteOptions(subresource="status")
ALL = {
    "machineManagers": [{"resource": "machinesets", "apiGroup": "machine.openshift.io", "selection": {"mode": "All"}}]
}


async def look_after(story: Story, **spec: Any) -> None:
    async def there() -> bool:
        return any((await story.cluster.list(SETTINGS)).items)

    assert await until(there, "there is no MachineConfiguration")
    await story.cluster.patch(SETTINGS, "cluster", {"spec": {"managedBootImages": ALL, **spec}}, PatchType.MERGE)


async def reported(story: Story, kind: str, status: str, words: str = "") -> JsonObject:
    async def there() -> JsonObject | None:
        obj = await story.cluster.get(SETTINGS, "cluster")
        conditions = (obj.get("status") or {}).get("conditions") or ()
        matching = [entry for entry in conditions if (entry["type"], entry["status"]) == (kind, status)]
        return obj if matching and words in matching[0]["message"] else None

    return await until(there, f"nobody says {kind} {status} {words}")  # type: ignore[no-any-return]


async def moved(story: Story, name: str, release: str) -> JsonObject:
    async def there() -> JsonObject | None:
        obj = await story.cluster.get(MACHINE_SET, name, HERE)
        return obj if annotations_of(obj).get(names.BOOT_IMAGE, "").startswith(f"{release} ") else None

    return await until(there, f"{name} does not get {release}")  # type: ignore[no-any-return]


def value(obj: JsonObject) -> Any:
    return obj["spec"]["template"]["spec"]["providerSpec"]["value"]


@pytest.mark.row("002-31")
@pytest.mark.row("002-17")
async def test_an_upgrade_moves_a_machine_set_to_the_new_image_and_to_managed_user_data_in_one_write(
    story: Story,
) -> None:
    await story.managed()
    await story.cluster.create(MACHINE_SET, maker(gcp(OLD_RELEASE)))
    await look_after(story)
    await reported(story, DEGRADED, "True", "nobody knows the boot images of the release")
    await publish(story, RELEASE)
    after = await moved(story, "workers-a", RELEASE)
    assert RELEASE.replace(".", "-") in value(after)["disks"][0]["image"]
    assert value(after)["userDataSecret"]["name"] == "worker-user-data-managed"
    assert after["metadata"]["generation"] == 2, "image and user-data came in one write"
    settings = await reported(story, PROGRESSING, "False", "Reconciled 1 of 1 MAPI MachineSets")
    await reported(story, DEGRADED, "False")
    assert settings["status"]["managedBootImagesStatus"] == ALL
    await story.event("BootImageUpdated")

    async def follows() -> bool:
        return bool(pointer(await story.managed())["ignition"]["version"] == "3.5.0")

    assert await until(follows, "the pointer does not follow the boot image")


async def wishes(story: Story) -> tuple[JsonObject, JsonObject | None]:
    """What the set asks for now; what others report about it is not looked at."""
    now = await story.cluster.get(MACHINE_SET, "workers-a", HERE)
    return now["spec"], now["metadata"].get("annotations")


async def test_nothing_moves_while_an_upgrade_is_under_way_or_where_nobody_asked(story: Story) -> None:
    await story.managed()
    history = [{"state": "Partial", "version": "4.21.0"}]
    meta = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"}}
    await story.cluster.create(VERSION, {**meta, "spec": {}})
    await story.cluster.patch(VERSION, "version", {"status": {"history": history}}, PatchType.MERGE, "", STATUS)
    made = await story.cluster.create(MACHINE_SET, maker(virtual(OLD_RELEASE), arch=""))
    await publish(story, RELEASE)
    await look_after(story)
    await reported(story, PROGRESSING, "True", "waiting: the upgrade to 4.21.0 to complete")
    assert await wishes(story) == (made["spec"], made["metadata"].get("annotations"))
    # It completes, and the set is left out before anybody can act on it: nothing is written either.
    done = [{"state": "Completed", "version": "4.21.0"}]
    await story.cluster.patch(
        SETTINGS, "cluster", {"spec": {"managedBootImages": {"machineManagers": []}}}, PatchType.MERGE
    )
    await reported(story, PROGRESSING, "False", "Reconciled 0 of 0 MAPI MachineSets")
    await story.cluster.patch(VERSION, "version", {"status": {"history": done}}, PatchType.MERGE, "", STATUS)
    assert await wishes(story) == (made["spec"], made["metadata"].get("annotations"))
    await look_after(story)
    assert value(await moved(story, "workers-a", RELEASE))["bootImage"] == {"release": RELEASE}


async def test_a_set_that_somebody_puts_back_is_left_after_the_third_time_and_that_is_told(story: Story) -> None:
    await story.managed()
    await publish(story, RELEASE)
    old = maker(gcp(OLD_RELEASE))
    await story.cluster.create(MACHINE_SET, old)
    await look_after(story)
    for _ in range(3):
        await moved(story, "workers-a", RELEASE)
        back = {"metadata": {"annotations": {names.BOOT_IMAGE: None}}, "spec": old["spec"]}
        await story.cluster.patch(MACHINE_SET, "workers-a", back, PatchType.MERGE, HERE)
    await reported(story, DEGRADED, "True", "was written 3 times and somebody puts another one back")
    assert names.BOOT_IMAGE not in (await story.cluster.get(MACHINE_SET, "workers-a", HERE))["metadata"]["annotations"]


async def test_the_platform_decides_by_default_what_cannot_be_managed_says_why_and_skew_is_not_judged(
    story: Story,
) -> None:
    await story.managed()
    status = {"status": {"platformStatus": {"type": "AWS"}}}
    await story.cluster.patch(INFRASTRUCTURE, "cluster", status, PatchType.MERGE, "", STATUS)
    await publish(story, RELEASE)
    await story.cluster.create(MACHINE_SET, maker(aws("ami-mine")))
    settings = await reported(
        story, PROGRESSING, "False", "not managed: workers-a: ami-mine is not an image of the release"
    )
    modes = {
        each["resource"]: each["selection"]["mode"]
        for each in settings["status"]["managedBootImagesStatus"]["machineManagers"]
    }
    assert modes == {"machinesets": "All", "controlplanemachinesets": "None"}
    await story.event("BootImageSkipped")
    manual = {"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.18.0"}}
    await story.cluster.patch(SETTINGS, "cluster", {"spec": {"bootImageSkewEnforcement": manual}}, PatchType.MERGE)
    await reported(story, SKEW_ENFORCED, "False", "upgrades are not held back by it")


async def test_a_stream_that_cannot_be_read_degrades_and_says_where_it_is(story: Story) -> None:
    await story.managed()
    await story.cluster.create(MACHINE_SET, maker(gcp(OLD_RELEASE)))
    await look_after(story)
    await publish_text(story, "not a stream")
    await reported(
        story, DEGRADED, "True", "ConfigMap openshift-machine-config-operator/coreos-bootimages cannot be read"
    )
