"""Whether the system that is about to start stands on the volumes of its image: the last look before its root is entered.

    check_mounted(names, mapper)     # raises DiskRefused

Units order, require and can be masked; what an image is built of differs from distribution to distribution. So the agent does not
rely on them alone: before it says that the initial file system is over, every volume must be open, encrypted as the kernel says,
and mounted where the system expects it. A boot in which that is not so must not go on, whatever led there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.ports import DeviceMapper

NEW_ROOT: Final = Path("/sysroot")
MOUNTED: Final = Path("/proc/self/mountinfo")
MAPPINGS: Final = Path("/dev/mapper")
# Below the new root.
PLACES: Final = {"root": "", "var": "var"}
_HINT: Final = (
    "The machine stops here. Its console says what went wrong before; the image needs the units of deploy/dracut."
)
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")


def check_mounted(
    volumes: Iterable[str], mapper: DeviceMapper, *, new_root: Path = NEW_ROOT, mounted: Path = MOUNTED, mappings: Path = MAPPINGS
) -> None:  # fmt: skip
    """Raises DiskRefused unless all volumes are open, encrypted, and where the system uses them."""
    devices = _devices(mounted)
    for volume in volumes:
        name = f"fastness-{volume}"
        try:
            kinds = [target.kind for target in mapper.table(name)]
            number = os.stat(mappings / name).st_rdev
        except DiskError as error:
            raise _refused(volume, f"is not open: {error.message}") from error
        except OSError as error:
            raise _refused(volume, f"is not open: {mappings / name}: {error.strerror}") from error
        if kinds != ["crypt"]:
            raise _refused(volume, f"is not encrypted: the kernel maps it as {' '.join(kinds) or 'nothing'}")
        if volume not in PLACES:
            continue
        place = new_root / PLACES[volume]
        if devices.get(str(place)) != f"{os.major(number)}:{os.minor(number)}":
            raise _refused(volume, f"is open, and not mounted at {place}")


def _devices(mounted: Path) -> dict[str, str]:
    """By place, the device that is mounted there; the last one where several lie upon each other."""
    try:
        lines = mounted.read_bytes().splitlines()
    except OSError as error:
        raise DiskRefused("volume-not-mounted", f"{mounted}: {error.strerror}", _HINT) from error
    entries = (line.split(b" ", 5) for line in lines)
    return {
        os.fsdecode(_ESCAPED.sub(lambda octal: bytes([int(octal[1], 8) & 0xFF]), entry[4])): entry[2].decode("ascii", "replace")
        for entry in entries
        if len(entry) == 6
    }  # fmt: skip


def _refused(volume: str, message: str) -> DiskRefused:
    return DiskRefused("volume-not-mounted", f"volume {volume} {message}", _HINT)
