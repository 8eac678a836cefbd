"""Which kinds of machines a cluster has, as its administrator says: the variables of their firmware, and Secure Boot.

    platforms, problems = platforms_for(cluster.images.platforms, pools)
    expect(boot_files, platforms)

What firmware measures about its keys (PCR 7) is in no image: it is the same for every image and differs from platform to
platform. So it is said once, in the ConfidentialCluster, and every image is measured for each platform of its pools.

* A platform without pools is one of every pool. Where a pool has none, images are measured as firmware without keys boots them.
* Variables that cannot be read make a platform nobody's, with the reason: values of half of a platform would match no machine.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

from fastness.formats import json
from fastness.formats.errors import ImageError
from fastness.images.firmware import KEYS, FirmwareVars
from fastness.images.whole_image import Platform
from fastness.kinds.fastness_dev.image_approval import ImagePlatform

EFIVARS_ATTRIBUTES: Final = 4
"""What Linux puts before the value of a variable in efivarfs."""


def platforms_for(
    settings: Sequence[ImagePlatform], pools: frozenset[str]
) -> tuple[tuple[Platform, ...], tuple[str, ...]]:
    """The platforms of some pools, of every pool where none is named, and what is wrong with others; total."""
    platforms, problems = [], []
    for each in settings_for(settings, pools):
        try:
            firmware = firmware_of(each.variables)
        except (binascii.Error, ValueError, ImageError) as error:
            problems.append(f"the variables of platform {each.name} cannot be read: {error}")
            continue
        platforms.append(Platform(each.name, firmware, each.secure_boot))
    return tuple(platforms), tuple(problems)


def settings_for(settings: Sequence[ImagePlatform], pools: frozenset[str]) -> list[ImagePlatform]:
    """What the cluster says of the machines of some pools; of all pools where none is named."""
    named = pools - {""}
    return [each for each in settings if not each.pools or not named or named & set(each.pools)]


def digest_of(settings: Sequence[ImagePlatform]) -> str:
    """Another text for other platforms: images are read again then. Empty for none."""
    said = [[each.name, each.secure_boot, sorted(each.variables.items())] for each in settings]
    return sha256(json.canonical(sorted(said))).hexdigest() if said else ""


def firmware_of(variables: Mapping[str, str]) -> FirmwareVars:
    """Variables by name, in base64; raises ValueError, ImageError."""
    firmware = FirmwareVars(
        {
            (vendor, name): base64.b64decode(variables[name], validate=True)
            for name, vendor, _ in KEYS
            if name in variables
        }
    )
    _ = firmware.allowed, firmware.forbidden  # they are read here, once, and not for each image
    return firmware


def variables_of(firmware: FirmwareVars) -> dict[str, str]:
    """What a ConfidentialCluster holds of the variables of a machine."""
    return dict(_written(firmware))


def _written(firmware: FirmwareVars) -> Iterator[tuple[str, str]]:
    for name, vendor, _ in KEYS:
        if value := firmware.variables.get((vendor, name)):
            yield name, base64.b64encode(value).decode()
