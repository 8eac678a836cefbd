"""Of which Ignition version a pool's pointer is: what its boot images read, what the pool says, and what is refused."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kube.port import PatchType
from tests.component.machineconfig.user_data_story import (
    HERE,
    MACHINE_SET,
    NEW_CA,
    Story,
    ca_of,
    pointer,
    publish,
)
from tests.component.machineconfig.worker_pool import POOL, until
from tests.unit.machineconfig.boot_images.sets import OLD_RELEASE, RELEASE, ami, aws, gcp, maker


async def condition_of(story: Story, reason: str) -> JsonObject:
    async def there() -> JsonObject | None:
        conditions = ((await story.workers.pool()).get("status") or {}).get("conditions") or ()
        held = [entry for entry in conditions if entry["type"] == "UserDataDegraded" and entry["reason"] == reason]
        return held[0] if held else None

    return await until(there, f"the pool does not say {reason}")  # type: ignore[no-any-return]


async def version_becomes(story: Story, version: str) -> None:
    async def there() -> bool:
        return bool(pointer(await story.managed())["ignition"]["version"] == version)

    assert await until(there, f"the pointer does not become {version}")


@pytest.mark.row("002-17")
@pytest.mark.row("002-32")
async def test_the_pointer_is_of_the_version_that_the_boot_images_of_its_machine_sets_read(story: Story) -> None:
    assert pointer(await story.managed())["ignition"]["version"] == "3.2.0"
    value = gcp(OLD_RELEASE, user_data="worker-user-data-managed")
    await story.cluster.create(MACHINE_SET, maker(value))
    await version_becomes(story, "3.4.0")
    known = await condition_of(story, "AsExpected")
    assert known["status"] == "False"
    assert known["message"] == f"Ignition 3.4.0: the newest that machine set workers-a ({OLD_RELEASE}) reads"
    # An upgrade gives the set the image of the new release, and the pointer follows without a person.
    newer = maker(gcp(RELEASE, user_data="worker-user-data-managed"))["spec"]
    await story.cluster.patch(MACHINE_SET, "workers-a", {"spec": newer}, PatchType.MERGE, HERE)
    await version_becomes(story, "3.5.0")
    # An AMI is a number; the stream metadata of the release tells what it is, as soon as it is there.
    mystery = maker(aws(ami(OLD_RELEASE), "worker-user-data-managed"), "workers-b")
    await story.cluster.create(MACHINE_SET, mystery)
    await version_becomes(story, "3.2.0")
    assert f"workers-b ({ami(OLD_RELEASE)})" in (await condition_of(story, "BootImageUnknown"))["message"]
    await story.event("BootImageUnknown")
    await publish(story, OLD_RELEASE)
    await version_becomes(story, "3.4.0")


@pytest.mark.row("002-16")
@pytest.mark.row("002-18")
@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("2.2.0", "a pointer cannot be of version 2.2.0: it shows its ticket in a header"),
        ("9", "there is no Ignition spec '9' that this control plane can write"),
    ],
)
async def test_a_version_that_cannot_be_is_refused_in_a_condition_with_its_reason(
    story: Story, version: str, reason: str
) -> None:
    await annotate_pool(story, "3.4.0")
    await version_becomes(story, "3.4.0")
    await annotate_pool(story, version)
    refused = await condition_of(story, "BadPointerVersion")
    assert refused["status"] == "True"
    assert reason in refused["message"]

    async def degraded() -> bool:
        held = {entry["type"]: entry["status"] for entry in (await story.workers.pool())["status"]["conditions"]}
        return bool(held["Degraded"] == held.get("UserDataDegraded") == "True")

    assert await until(degraded, "the pool does not show it")
    await version_becomes(story, "3.2.0")
    # Authorities go on changing while the annotation is wrong, and taking it away heals the pool.
    await story.rotate(NEW_CA)

    async def refreshed() -> bool:
        return ca_of(await story.managed()) == NEW_CA

    assert await until(refreshed, "a wrong annotation stops the rotation of the CA")
    await annotate_pool(story, None)

    async def healed() -> bool:
        held = {entry["type"]: entry["status"] for entry in (await story.workers.pool())["status"]["conditions"]}
        return "True" not in (held.get("UserDataDegraded"), held["Degraded"])

    assert await until(healed, "the pool stays degraded")


async def annotate_pool(story: Story, version: str | None) -> None:
    note = {"metadata": {"annotations": {names.POINTER_VERSION: version}}}
    await story.cluster.patch(POOL, "worker", note, PatchType.MERGE)
