"""The rules for block devices: disks and partitions, arrays, encrypted volumes, filesystems.

Lengths are in bytes, as the tools on the machine count them. Partitions without a start or a size are placed by the machine,
so only those with both can be seen to overlap.
"""

import re
from typing import Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.machineconfig.ignition import urls
from fastness.machineconfig.ignition.paths import bad_path
from fastness.machineconfig.ignition.problems import Path, Report
from fastness.machineconfig.ignition.resources import check_resource
from fastness.machineconfig.ignition.shape import JsonObject

GUID: Final = re.compile(r"(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})?", re.ASCII)
# UEFI, 5.3.3: a GPT partition name has 36 code units; Ignition counts bytes.
PARTITION_LABEL_BYTES: Final = 36
_LUKS_LABEL_BYTES: Final = 47
FORMATS: Final = {"ext4": 16, "btrfs": 256, "xfs": 12, "swap": 15, "vfat": 11}
"""Filesystem formats and how long a label each of them takes."""

# No redundancy, so there is nothing that a spare could be rebuilt from.
WITHOUT_SPARES: Final = frozenset({"linear", "raid0", "0", "stripe"})
RAID_LEVELS: Final = WITHOUT_SPARES | {"raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6", "6", "raid10", "10"}
_PINS: Final = ("tpm2", "tang", "sss")


def check(storage: JsonObject, path: Path, minor: int, report: Report) -> None:
    """Apply the rules to the block devices of a storage section."""
    for index, disk in enumerate(storage.get("disks", ())):
        _check_disk(disk, ((path, "disks"), index), report)
    for index, raid in enumerate(storage.get("raid", ())):
        _check_raid(raid, ((path, "raid"), index), report)
    for index, volume in enumerate(storage.get("luks", ())):
        _check_luks(volume, ((path, "luks"), index), minor, report)
    disks = {disk.get("device", ""): disk for disk in storage.get("disks", ())}
    for index, filesystem in enumerate(storage.get("filesystems", ())):
        here: Path = ((path, "filesystems"), index)
        _check_filesystem(filesystem, here, minor, report)
        disk = disks.get(filesystem.get("device", ""))
        if disk is not None and disk.get("partitions"):
            report.warn(
                (here, "device"), "partitions-overwritten", "the filesystem overwrites the partitions of the disk"
            )
        elif disk is not None and disk.get("wipeTable") and not filesystem.get("wipeFilesystem"):
            report.warn((here, "device"), "implicit-wipe", "wiping the partition table wipes this filesystem too")


def _check_device(device: str, path: Path, report: Report) -> None:
    bad = bad_path(device)
    if bad is not None:
        report.error(path, *bad)


def _check_disk(disk: JsonObject, path: Path, report: Report) -> None:
    partitions: list[JsonObject] = disk.get("partitions", [])
    where: Path = (path, "partitions")
    for index, partition in enumerate(partitions):
        _check_partition(partition, (where, index), report)
    if not disk.get("device"):
        report.error((path, "device"), "device-required", "a disk needs a device")
        return
    _check_device(disk["device"], (path, "device"), report)
    overlap = overlapping(
        [(p["startMiB"], p["sizeMiB"]) if "startMiB" in p and "sizeMiB" in p else None for p in partitions]
    )
    if overlap is not None:
        report.error((where, overlap), "partitions-overlap", "the partition overlaps another one")
    absent = any(partition.get("shouldExist") is False for partition in partitions)
    # Number 0 means "the next free one"; with a deletion in the same list that may be the partition that was just deleted.
    if absent and any(not partition.get("number") for partition in partitions):
        report.error(where, "delete-with-zero", "with a partition to delete, every partition needs a number")
    labels: set[str] = set()
    for index, partition in enumerate(partitions):
        # Other parts of a config find the partition at /dev/disk/by-partlabel; of two equal labels the wrong one may be
        # formatted.
        if "label" in partition and partition["label"] in labels:
            report.error((where, index), "duplicate-label", "another partition of the disk has the same label")
        labels |= {partition["label"]} if "label" in partition else set()


def overlapping(extents: list[tuple[int, int] | None]) -> int | None:
    """The position of an extent (start, size) that overlaps another; start 0 is placed later, a size counts as one at least."""
    placed = sorted(
        (start, max(start, start + size - 1), index)
        for index, extent in enumerate(extents)
        if extent is not None and extent[0] != 0
        for start, size in (extent,)
    )
    furthest: int | None = None
    for start, end, index in placed:
        if furthest is not None and start <= furthest:
            return index
        furthest = end if furthest is None else max(furthest, end)
    return None


def _check_partition(partition: JsonObject, path: Path, report: Report) -> None:
    if partition.get("shouldExist") is False and (
        {"label", "startMiB", "sizeMiB"} & partition.keys() or partition.get("typeGuid") or partition.get("guid")
    ):
        report.error(path, "delete-with-others", "a partition that should not exist takes only its number")
    if not partition.get("number") and "label" not in partition:
        report.error(path, "label-or-number", "a partition needs a number of at least 1, or a label")
    label = partition.get("label", "")
    if len(label.encode()) > PARTITION_LABEL_BYTES:
        report.error((path, "label"), "label-too-long", f"a label has at most {PARTITION_LABEL_BYTES} bytes")
    # sgdisk, which Ignition calls, separates the parts of an argument by colons and has no way to escape one.
    elif ":" in label:
        report.error((path, "label"), "label-with-colon", "a label must not contain a colon")
    for name in ("guid", "typeGuid"):
        if not GUID.fullmatch(partition.get(name, "")):
            report.error((path, name), "invalid-guid", "must look like 01234567-89AB-CDEF-EDCB-A98765432101")


def _check_raid(raid: JsonObject, path: Path, report: Report) -> None:
    level = raid.get("level", "")
    if not level:
        report.error((path, "level"), "level-required", "an array needs a level")
    elif level not in RAID_LEVELS:
        report.error((path, "level"), "unknown-level", "the level is not known")
    elif level in WITHOUT_SPARES and raid.get("spares", 0) != 0:
        report.error((path, "level"), "spares-unsupported", "this level takes no spares")
    if not raid.get("devices"):
        report.error((path, "devices"), "devices-required", "an array needs devices")
    for index, device in enumerate(raid.get("devices", ())):
        _check_device(device, ((path, "devices"), index), report)


def _check_filesystem(filesystem: JsonObject, path: Path, minor: int, report: Report) -> None:
    _check_device(filesystem.get("device", ""), (path, "device"), report)
    if filesystem.get("path"):
        _check_device(filesystem["path"], (path, "path"), report)
    form = filesystem.get("format", "")
    if not form:
        others = ("path", "label", "uuid", "wipeFilesystem", "mountOptions", "options")
        if any(filesystem.get(name) for name in others):
            report.error((path, "format"), "format-required", "path, label, uuid and options need a format")
    elif form not in FORMATS and (form != "none" or minor < 3):
        formats = ", ".join(FORMATS) + (", none" if minor >= 3 else "")
        report.error((path, "format"), "unknown-format", f"the format must be one of {formats}")
    label = filesystem.get("label", "")
    if label and not form:
        report.error((path, "label"), "format-required", "a label needs a format")
    elif len(label.encode()) > FORMATS.get(form, len(label.encode())):
        report.error((path, "label"), "label-too-long", f"a label of {form} has at most {FORMATS[form]} bytes")


def _check_luks(volume: JsonObject, path: Path, minor: int, report: Report) -> None:
    # The name becomes /dev/mapper/<name>.
    if "/" in volume.get("name", ""):
        report.error((path, "name"), "name-with-slash", "the name must not contain a slash")
    if len(volume.get("label", "").encode()) > _LUKS_LABEL_BYTES:
        report.error((path, "label"), "label-too-long", f"a label has at most {_LUKS_LABEL_BYTES} bytes")
    if not volume.get("device"):
        report.error((path, "device"), "device-required", "a volume needs a device")
    else:
        _check_device(volume["device"], (path, "device"), report)
    clevis: JsonObject = volume.get("clevis", {})
    custom: JsonObject = clevis.get("custom", {})
    others = bool(clevis.get("tang") or clevis.get("tpm2") or clevis.get("threshold"))
    # Before 3.3 the object alone counted, whatever it held.
    if others and (custom.get("pin") if minor >= 3 else "custom" in clevis):
        report.error((path, "clevis"), "custom-with-others", "a custom pin excludes the other clevis options")
    _check_custom(custom, ((path, "clevis"), "custom"), minor, report)
    for index, tang in enumerate(clevis.get("tang", ())):
        _check_tang(tang, (((path, "clevis"), "tang"), index), report)
    check_resource(volume.get("keyFile", {}), (path, "keyFile"), minor, report)
    if volume.get("cex", {}).get("enabled"):
        # Two ways to the key: the disk would be as safe as the weaker one.
        if others or custom.get("pin"):
            report.error((path, "cex"), "cex-with-clevis", "cex excludes clevis")
        if volume.get("keyFile", {}).get("source"):
            report.error((path, "cex"), "cex-with-key-file", "cex excludes a key file")


def _check_custom(custom: JsonObject, path: Path, minor: int, report: Report) -> None:
    pin, config = custom.get("pin", ""), custom.get("config", "")
    if not pin and not config and not (minor >= 3 and custom.get("needsNetwork")):
        return
    if not pin and minor >= 3:
        report.error((path, "pin"), "pin-required", "a pin is required")
    elif pin not in _PINS:
        report.error((path, "pin"), "unknown-pin", f"the pin must be one of {', '.join(_PINS)}")
    if not config:
        report.error((path, "config"), "pin-config-required", "a pin needs a config")


def _check_tang(tang: JsonObject, path: Path, report: Report) -> None:
    url = urls.split(tang.get("url", ""))
    if url is None:
        report.error((path, "url"), "invalid-url", "the URL cannot be understood")
    elif url.scheme not in ("http", "https"):
        report.error((path, "url"), "invalid-scheme", "the scheme must be http or https")
    # Without it clevis would trust whatever key answers first (clevis-encrypt-tang(1)), and Ignition cannot ask anybody at boot.
    if not tang.get("thumbprint"):
        report.error((path, "thumbprint"), "thumbprint-required", "a thumbprint is required")
    if tang.get("advertisement"):
        try:
            json.decode(tang["advertisement"].encode())
        except JsonError as error:
            report.error((path, "advertisement"), "invalid-advertisement", f"not JSON: {error.message}")
