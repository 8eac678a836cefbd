"""What evidence must hold and must not allow, however genuine it is, asked over the wire."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import PCRS
from fastness.sim.tee.writers.tdx_quote import SEPT_VE_DISABLE
from tests.component.attacks.outsider import Fortress, fortress

MIGRATABLE = 1 << 29


async def refused(site: Fortress, machine: SimAttester) -> tuple[int, str]:
    """What the broker answers to a machine that enrolled, and that the record has it."""
    assert (await site.enrol(machine)).status_code == 201
    status, code = await site.attest(machine)
    assert any((entry.get("detail") or {}).get("code") == code for entry in await site.record())
    return status, code


async def test_a_quote_that_leaves_out_what_is_judged_is_refused(tmp_path: Path) -> None:
    async with fortress(tmp_path, simulated=True) as site:
        for register in (4, 7, 8, 11, 12, 14):
            chip = site.site.world.vendor.chip("tpm")
            machine = SimAttester(chip.boot(registers=[number for number in range(PCRS) if number != register]))
            assert await refused(site, machine) == (403, "register-missing"), register


async def test_a_domain_that_may_be_migrated_is_refused(tmp_path: Path) -> None:
    async with fortress(tmp_path, simulated=True) as site:
        chip = site.site.world.vendor.chip("tdx")
        machine = SimAttester(chip.boot(attributes=SEPT_VE_DISABLE | MIGRATABLE))
        assert await refused(site, machine) == (403, "migration-allowed")


async def test_a_domain_that_another_domain_serves_is_refused(tmp_path: Path) -> None:
    async with fortress(tmp_path, simulated=True) as site:
        booted = site.site.world.vendor.chip("tdx").boot(version=5)
        booted.domain = replace(booted.domain, mr_servicetd=b"\x01" * 48)
        assert await refused(site, SimAttester(booted)) == (403, "service-domain-bound")
