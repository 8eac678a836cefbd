"""The hardware of a virtual machine: what is switched on, and how it then speaks for what it booted.

    board = Silicon(vendor, "snp", serial=4)
    attester = await board.power_on(AS_IT_SHOULD)      # a boot: measured anew, under the same identity
    await board.power_off()
    Silicon(vendor, "tpm", serial=5, counted=directory / "boots")      # goes on counting after a restart of this process

`Conditions` are what somebody did to the machine before it booted. They hold for boots, not for chips: the same board boots well
again when they are gone. `swtpm.py` has a board with a real TPM in software.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, Protocol

from fastness.agent.boot.attester import Attester
from fastness.agent.host.errors import TpmFailure
from fastness.crypto.secret import SecretBytes
from fastness.keys.key_files import write_private
from fastness.sim.registry import INSTALLED_VERSION
from fastness.sim.tee import tamper
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage, default_image
from fastness.sim.tee.machine import BootedMachine
from fastness.sim.tee.snp import SnpChip
from fastness.sim.tee.tdx import TdxChip
from fastness.sim.tee.tpm import TpmChip
from fastness.sim.tee.vendor import SimVendor

Tee = Literal["tpm", "snp", "tdx"]
TEES: Final[tuple[Tee, ...]] = ("tpm", "snp", "tdx")
REPLAYED: Final = b"a challenge of last week"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a machine boots under."""

    boot_loader: bool = False
    old_firmware: bool = False
    debug: bool = False
    replay: bool = False
    version: str = INSTALLED_VERSION

    def image(self, tee: Tee) -> BootImage:
        """What is booted."""
        return tampered_image(tee, self.version) if self.boot_loader else default_image(self.version)


AS_IT_SHOULD: Final = Conditions()


@lru_cache(maxsize=2 * len(TEES))
def tampered_image(tee: Tee, version: str = INSTALLED_VERSION) -> BootImage:
    """The usual image, started by somebody else's boot loader.

    A TPM and a trust domain measure the boot loader. An SNP guest measures the firmware that it is started with, and that one has
    to be another to start something else.
    """
    image = default_image(version)
    return tamper.with_firmware(image) if tee == "snp" else tamper.with_boot_loader(image)


class Hardware(Protocol):
    """A board with one TEE."""

    @property
    def tee(self) -> Tee:
        """The kind of evidence."""

    async def power_on(self, conditions: Conditions) -> Attester:
        """Boot; who speaks for this boot; raises DriverError."""

    async def power_off(self) -> None:
        """Switch off; also one that is off."""


class Silicon:
    """A board with a chip of the simulated vendor, all of it in this process.

    A TPM counts its boots, each launch of an SNP guest has an id, and each boot of a trust domain a key: all come from a count in
    the file `counted`. A board that began anew with each process would look like a copy of itself.
    """

    def __init__(self, vendor: SimVendor, tee: Tee, serial: int, counted: Path | None = None) -> None:
        self.tee = tee
        self._vendor = vendor
        self._serial = serial
        self._chip: TpmChip | SnpChip | TdxChip | None = None
        self._counted = counted
        self._boots = 0

    async def power_on(self, conditions: Conditions) -> Attester:
        """Boot under these conditions; those that the TEE does not have change nothing; raises TpmFailure."""
        await asyncio.to_thread(self._count)
        machine = self._booted(conditions)
        if conditions.replay:
            return Recording(machine)
        return SimAttester(machine)

    async def power_off(self) -> None:
        """Nothing runs that would have to end."""

    def _count(self) -> None:
        """Write one more boot down, before anybody hears of it; raises TpmFailure."""
        path = self._counted
        if path is None:
            self._boots += 1
            return
        try:
            self._boots = int(path.read_text() if path.exists() else 0) + 1
            write_private(path, SecretBytes(f"{self._boots}\n".encode()))
        except (OSError, ValueError) as error:
            raise TpmFailure(f"{path} cannot count the boots of its machine: {error}") from error

    def _booted(self, conditions: Conditions) -> BootedMachine:
        chip = self._chip = self._chip or self._vendor.chip(self.tee, serial=self._serial)
        chip.boots = self._boots - 1
        if isinstance(chip, TpmChip):
            return chip.boot(conditions.image(self.tee))
        if conditions.old_firmware:
            chip = tamper.old_firmware(chip)
        # Always the same guest: its identity key belongs to the machine.
        return chip.boot(conditions.image(self.tee), debug=conditions.debug, guest=0)


class Recording(SimAttester):
    """A machine that answers every challenge with evidence that was recorded before; its identity is its own."""

    def __init__(self, machine: BootedMachine) -> None:
        super().__init__(machine)
        self._kept = machine.quote(REPLAYED)

    async def evidence(self, report_data: bytes) -> tamper.Evidence:
        """The recorded evidence, whatever is asked."""
        return self._kept
