"""`fastness measure`: what a machine will measure when it boots an image, before any machine does.

    fastness measure image.efi --firmware-vars OVMF_VARS.fd --secure-boot -o json > manifest.json

Computed from the files alone. JSON is the manifest of an approval (`pcrs`, with the events of each register), and holds the
same as values of a ReferenceValueSet (`values`). Ways by which the host of such a machine could turn it are told beside
(`open`), with what was not looked at (`unseen`); `--root` shows the root of the image, too.

* 0: measured; 1: the image is good but would not boot, what it measures cannot be known from it, or, with `--strict`, its host
  could turn it; 2: a file cannot be read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from fastness.cli.errors import CliError, Exit
from fastness.cli.images.image_ways import look, refuse_open, warn, ways_options
from fastness.cli.output import output_option, show_json, table, tell
from fastness.formats.errors import ImageError
from fastness.formats.evidence.efi.variables import MAX_STORE
from fastness.formats.evidence.pe.image import MAX_IMAGE
from fastness.images.errors import OsImageError
from fastness.images.firmware import FirmwareVars
from fastness.images.measure import measure_uki
from fastness.images.measurement import Measurement

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("uki", type=_FILE)
@click.option(
    "--firmware-vars",
    type=_FILE,
    help="The variable store of the machine's firmware, such as OVMF_VARS.fd; without it, no keys are enrolled.",
)
@click.option("--secure-boot", is_flag=True, help="Measure as with Secure Boot on.")
@ways_options
@output_option
def measure(
    uki: Path, firmware_vars: Path | None, secure_boot: bool, root: Path | None, strict: bool, output: str
) -> None:
    """Compute the registers and events that booting UKI will measure."""
    firmware = _firmware(firmware_vars) if firmware_vars else FirmwareVars.blank()
    image = _read(uki, MAX_IMAGE)
    try:
        measurement = measure_uki(image, firmware, secure_boot=secure_boot)
    except ImageError as error:
        raise CliError(f"{uki}: {error} ({error.code})", error.hint, Exit.USAGE) from error
    except OsImageError as error:
        raise CliError(f"{uki}: {error} ({error.code})", error.hint, Exit.NO) from error
    ways = look(image, root)
    warn(ways)
    if strict:
        refuse_open(ways)
    for note in measurement.notes:
        tell(f"fastness: {note}")
    if output == "json":
        show_json({**_json(measurement, secure_boot=secure_boot), **ways})
    else:
        click.echo(_shown(measurement))


def _firmware(path: Path) -> FirmwareVars:
    try:
        return FirmwareVars.of_store(_read(path, MAX_STORE))
    except ImageError as error:
        raise CliError(f"{path}: {error} ({error.code})", error.hint, Exit.USAGE) from error


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}", code=Exit.USAGE) from error


def _json(measurement: Measurement, *, secure_boot: bool) -> dict[str, Any]:
    return {
        **measurement.to_manifest(),
        "values": measurement.reference_values(),
        "secureBoot": secure_boot,
        "notes": list(measurement.notes),
    }


def _shown(measurement: Measurement) -> str:
    registers = [("REGISTER", "SHA-256")]
    registers += [(f"PCR {pcr}", value.hex()) for pcr, value in measurement.registers.items()]
    events = [("REGISTER", "EVENT", "DIGEST", "WHAT")]
    events += [
        (f"PCR {event.pcr}", event.name, event.digest.hex(), event.description)
        for pcr in measurement.registers
        for event in measurement.of_register(pcr)
    ]
    return f"{table(registers)}\n\n{table(events)}"
