"""`fastness image platform`: tell the cluster what firmware its machines have, so that Secure Boot is part of their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from fastness.cli.errors import CliError, Exit
from fastness.cli.output import show_json
from fastness.formats.errors import ImageError
from fastness.formats.evidence.efi.signature_lists import guid_text
from fastness.formats.evidence.efi.variables import MAX_STORE
from fastness.images.firmware import KEYS, FirmwareVars
from fastness.images.platforms import EFIVARS_ATTRIBUTES, firmware_of, variables_of
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME

MAX_VARIABLE: Final = 96 * 1024


@click.command("platform")
@click.argument("name")
@click.option(
    "--firmware-vars",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The variable store of a virtual machine's firmware, such as OVMF_VARS.fd.",
)
@click.option(
    "--efivars",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The variables of a machine that runs: a copy of its /sys/firmware/efi/efivars.",
)
@click.option("--secure-boot/--no-secure-boot", default=True, help="Whether these machines boot with Secure Boot.")
@click.option("--pool", "pools", multiple=True, help="A pool with such machines; all if none is given.")
def platform(
    name: str, firmware_vars: Path | None, efivars: Path | None, secure_boot: bool, pools: Sequence[str]
) -> None:
    """Print what tells a cluster that machines have this firmware, for `kubectl apply --server-side -f -`.

    From then on PCR 7 is part of the values that are computed for images, and an image that this firmware would not start gets
    none. Take the variables from a machine that you trust.
    """
    if (firmware_vars is None) == (efivars is None):
        raise CliError("say once where the variables are", "Give one of --firmware-vars and --efivars.", Exit.USAGE)
    try:
        firmware = _store(firmware_vars) if firmware_vars is not None else _directory(efivars or Path())
        variables = variables_of(firmware)
        firmware_of(variables)
    except (ImageError, ValueError) as error:
        raise CliError(f"{firmware_vars or efivars}: {error}", code=Exit.USAGE) from error
    if secure_boot and not firmware.owned:
        hint = "Secure Boot cannot be on there: enrol keys first, or say --no-secure-boot."
        raise CliError(f"{firmware_vars or efivars}: no platform key is enrolled", hint, Exit.NO)
    entry = {
        "name": name,
        "secureBoot": secure_boot,
        "variables": variables,
        **({"pools": list(pools)} if pools else {}),
    }
    show_json({
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"images": {"platforms": [entry]}},
    })  # fmt: skip


def _store(path: Path) -> FirmwareVars:
    return FirmwareVars.of_store(_read(path, MAX_STORE))


def _directory(place: Path) -> FirmwareVars:
    """Variables as Linux shows them, each behind its attributes; one that is not there is not enrolled."""
    variables = {}
    for name, vendor, _ in KEYS:
        file = place / f"{name}-{guid_text(vendor)}"
        if file.is_file():
            variables[vendor, name] = _read(file, MAX_VARIABLE)[EFIVARS_ATTRIBUTES:]
    return FirmwareVars(variables)


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise CliError(f"{path}: {error.strerror or error}", code=Exit.USAGE) from error
    if len(content) > most:
        raise CliError(f"{path}: larger than {most} bytes", code=Exit.USAGE)
    return content
