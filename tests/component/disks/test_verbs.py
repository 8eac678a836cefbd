"""What people see of disks and decide about them: verbs, explanation, doctor."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio
from click.testing import CliRunner, Result

from fastness.agent.boot.prove import BrokerRefused
from fastness.cli.main import cli
from fastness.cli.support.cluster_health import disks as disk_finding
from fastness.kinds.trusted_execution.machine import REKEY
from fastness.kube.errors import NotFound
from tests.attesting import until
from tests.unlocking import DiskSite, Members, disk_site, leave_initrd, report

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DiskSite]:
    async with disk_site(tmp_path_factory.mktemp("disks")) as site:
        yield site


@pytest.fixture
def site(shared: DiskSite) -> DiskSite:
    return shared.apart(next(_numbers))


async def run(site: DiskSite, *words: str) -> Result:
    where = ["--kubeconfig", str(site.fortress.site.place.kubeconfig)]
    return await asyncio.to_thread(CliRunner().invoke, cli, [*words, *where], prog_name="fastness")


async def test_a_volume_is_listed_explained_and_given_a_new_key(site: DiskSite) -> None:
    machine = await site.first_boot("snp")
    name = (await site.machine(machine))["metadata"]["name"]
    listed = json.loads((await run(site, "machine", "disk", "list", "-o", "json")).stdout)
    (row,) = [row for row in listed if row["machine"] == name]
    assert (row["volume"], row["state"], row["key"]) == ("var", "Open", "k1")
    assert await site.count(machine, row["generation"]) == 1
    explained = (await run(site, "attest", "explain", name)).stdout
    assert f"disk var: encrypted, open, unlocked by {row['verdict']} at {row['unlocked']}, key k1" in explained
    assert "identity on an open disk" not in explained
    assert "var: encrypted, open" in (await run(site, "machine", "show", name)).stdout
    answer = await run(site, "machine", "disk", "rekey", name, "var")
    assert (answer.exit_code, "next boot" in answer.stdout) == (0, True)
    await site.until_status(machine, lambda disk: disk.get("nextKeyId") == "k2")
    wrong = await run(site, "machine", "disk", "rekey", name, "root")
    assert (wrong.exit_code, "has no volume root" in wrong.output) == (1, True)

    async def taken() -> bool:
        return REKEY not in ((await site.machine(machine))["metadata"].get("annotations") or {})

    await until(taken)


async def test_a_person_accepts_a_copy_that_is_in_doubt_and_only_that(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    words = ("machine", "disk", "accept", name, "var", "--reason", "restored")
    assert (await run(site, *words)).exit_code == 1
    again: Any = site.boot("tpm", 2)
    await site.unlocked(again, Members(identity=False))
    leave_initrd(again)
    with pytest.raises(BrokerRefused):
        await site.attested(again, report(2, after=0))
    assert "disk-rolled-back" in (await run(site, "attest", "explain", name)).stdout
    assert (await run(site, *words)).exit_code == 0
    assert (await site.attested(again, report(2, after=0)))["status"]["standing"].startswith("Proved")


async def test_deleting_a_machine_asks_and_says_which_disks_are_lost(site: DiskSite) -> None:
    machine = await site.first_boot("tpm")
    name = (await site.machine(machine))["metadata"]["name"]
    answer = await run(site, "machine", "delete", name, "--reason", "scrapped")
    assert (answer.exit_code, "what is on var cannot be read again" in answer.output) == (1, True)
    assert (await site.machine(machine))["metadata"]["name"] == name
    assert (await run(site, "machine", "delete", name, "--reason", "scrapped", "--yes")).exit_code == 0

    async def gone() -> bool:
        try:
            await site.machine(machine)
        except NotFound:
            return True
        return False

    await until(gone)


async def test_doctor_names_pools_whose_machines_keep_secrets_on_open_disks(site: DiskSite) -> None:
    machine = site.boot("snp")
    await site.enrolled(machine)
    await site.attested(machine)
    finding = await disk_finding(site.world.cluster)
    assert finding.state == "optional"
    assert "worker (" in finding.found
