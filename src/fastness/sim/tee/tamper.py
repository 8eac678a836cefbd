"""The faults: what an attacker, a careless host or a cable would do to machines and their evidence.

    vendor.chip("snp").boot(tamper.with_boot_loader(image))            # something else was started
    vendor.chip("tpm").boot(tamper.with_word(image, "init=/bin/sh"))   # a word more on the command line
    tamper.old_firmware(vendor.chip("tdx")).boot(image)                # the host stopped updating
    vendor.chip("tdx").boot(image, debug=True)                         # the host can look inside
    tamper.Replayed(machine)                                           # answers every challenge with its first answer
    tamper.with_certificates_of(mine, others)                          # another chip's papers
    tamper.with_log_of(bad, good)                                      # a log that hides what was booted

Each leaves everything else genuine, so that a test shows which check stops it.
"""

from __future__ import annotations

import base64
from functools import singledispatch
from typing import Any, Final

from fastness.formats.evidence.tdx.quote import parse_quote
from fastness.sim.tee.firmware import OLD_TCB
from fastness.sim.tee.images import BootImage, changed
from fastness.sim.tee.machine import BootedMachine, IdentityKey
from fastness.sim.tee.snp import SnpChip
from fastness.sim.tee.tdx import TdxChip
from fastness.sim.tee.writers.tdx_quote import with_chain

Evidence = dict[str, Any]
_SIGNED: Final = {"tpm": ("tpm_quote", "message"), "snp": ("attestation_report",), "tdx": ("quote",)}
_LOGS: Final = ("event_log", "cc_eventlog")


def with_boot_loader(image: BootImage, content: bytes = b"somebody else's boot loader") -> BootImage:
    """The image with another boot loader: one event has another digest."""
    return changed(image, boot_loader=content)


def with_firmware(image: BootImage, content: bytes = b"somebody else's firmware") -> BootImage:
    """The image started by other firmware of the same size: the launch measurement of a confidential VM differs."""
    return changed(image, firmware=content.ljust(len(image.firmware), b"\0"))


def with_word(image: BootImage, word: str = "systemd.debug-shell") -> BootImage:
    """The image with one word more on the command line inside it."""
    return changed(image, command_line=f"{image.command_line} {word}")


def with_options(image: BootImage, word: str = "systemd.debug-shell") -> BootImage:
    """The same image, started with options from outside: the file is genuine, its command line is not used."""
    return changed(image, load_options=f"{image.command_line} {word}")


def without_secure_boot(image: BootImage) -> BootImage:
    """The same image on a machine whose owner switched Secure Boot off."""
    return changed(image, secure_boot=False)


@singledispatch
def old_firmware(chip: object) -> Any:
    """The same chip on a host that stopped updating; chips of SNP and TDX."""
    raise TypeError(f"{type(chip).__name__} has no firmware that evidence tells of")


@old_firmware.register
def _(chip: SnpChip) -> SnpChip:
    return chip.with_firmware(OLD_TCB[chip.generation])


@old_firmware.register
def _(chip: TdxChip) -> TdxChip:
    return chip.with_firmware("old")


class Replayed:
    """A machine that answers every challenge with its first answer."""

    def __init__(self, machine: BootedMachine) -> None:
        self._machine = machine
        self._kept: Evidence | None = None

    @property
    def tee(self) -> str:
        """The kind of evidence."""
        return self._machine.tee

    @property
    def image(self) -> BootImage:
        """What was booted."""
        return self._machine.image

    @property
    def identity_key(self) -> IdentityKey:
        """The key of the machine."""
        return self._machine.identity_key

    @property
    def thumbprint(self) -> str:
        """`sha256:…` of that key."""
        return self._machine.thumbprint

    @property
    def event_log(self) -> bytes:
        """The log of the machine."""
        return self._machine.event_log

    def measure(self, event: bytes) -> None:
        """What the machine does."""
        self._machine.measure(event)

    def quote(self, report_data: bytes) -> Evidence:
        """Evidence over the bytes of the first challenge, whatever is asked now."""
        if self._kept is None:
            self._kept = self._machine.quote(report_data)
        return self._kept


def with_certificates_of(evidence: Evidence, other: Evidence) -> Evidence:
    """The evidence with the papers of another chip: SNP's chain, TDX's platform certificate, a TPM's attestation key."""
    if "cert_chain" in evidence:
        return {**evidence, "cert_chain": other["cert_chain"]}
    if "ak_public" in evidence:
        return {**evidence, "ak_public": other["ak_public"]}
    mine, theirs = (parse_quote(base64.b64decode(entry["quote"])) for entry in (evidence, other))
    return {**evidence, "quote": base64.b64encode(with_chain(mine, theirs.pck_chain)).decode()}


def with_log_of(evidence: Evidence, other: Evidence) -> Evidence:
    """The evidence with the event log of another boot."""
    return {**evidence, **{name: other[name] for name in _LOGS if name in evidence}}


def with_flipped_bit(tee: str, evidence: Evidence, bit: int) -> Evidence:
    """The evidence with one bit of its signed structure flipped."""
    *outer, last = _SIGNED[tee]
    inner = evidence[outer[0]] if outer else evidence
    raw = bytearray(base64.b64decode(inner[last]))
    raw[bit // 8] ^= 1 << bit % 8
    flipped = {**inner, last: base64.b64encode(raw).decode()}
    return {**evidence, outer[0]: flipped} if outer else flipped
