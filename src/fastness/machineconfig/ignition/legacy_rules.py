"""The rules of spec 2.2, the language of old boot images and old stubs.

Looser than spec 3: paths need only be absolute, entries may repeat, a file names the filesystem it belongs to. The same
severities as its reader: deprecated forms and missing modes are warnings.
"""

from fastness.formats import data_url
from fastness.formats.errors import DataUrlError
from fastness.machineconfig.ignition import urls
from fastness.machineconfig.ignition.problems import Path, Report
from fastness.machineconfig.ignition.rules import UNIT_SUFFIXES, suffix
from fastness.machineconfig.ignition.rules_disks import (
    FORMATS,
    GUID,
    PARTITION_LABEL_BYTES,
    RAID_LEVELS,
    WITHOUT_SPARES,
    overlapping,
)
from fastness.machineconfig.ignition.shape import JsonObject
from fastness.machineconfig.ignition.unit_file import UnitSyntax, sections

_ALIGNMENT = 2048
_CREATE_EXCLUDES = (
    "gecos", "groups", "homeDir", "noCreateHome", "noLogInit", "noUserGroup", "primaryGroup", "shell", "system",
)  # fmt: skip
_NETWORK_SUFFIXES = frozenset({".link", ".netdev", ".network"})


def check(config: JsonObject, report: Report) -> None:
    """Apply every rule of spec 2.2."""
    ignition: JsonObject = config.get("ignition", {})
    path: Path = (None, "ignition")
    references: JsonObject = ignition.get("config", {})
    for index, reference in enumerate(references.get("append", ())):
        _check_resource(reference, (((path, "config"), "append"), index), report)
    _check_resource(references.get("replace", {}), ((path, "config"), "replace"), report)
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    for index, authority in enumerate(authorities):
        _check_resource(authority, ((((path, "security"), "tls"), "certificateAuthorities"), index), report)
    _check_storage(config.get("storage", {}), (None, "storage"), report)
    for index, unit in enumerate(config.get("systemd", {}).get("units", ())):
        _check_unit(unit, (((None, "systemd"), "units"), index), UNIT_SUFFIXES, report)
    for index, unit in enumerate(config.get("networkd", {}).get("units", ())):
        _check_unit(unit, (((None, "networkd"), "units"), index), _NETWORK_SUFFIXES, report)
    for index, user in enumerate(config.get("passwd", {}).get("users", ())):
        _check_user(user, (((None, "passwd"), "users"), index), report)


def _check_resource(resource: JsonObject, path: Path, report: Report) -> None:
    bad = urls.legacy_problem(resource.get("source", ""))
    if bad is not None:
        report.error((path, "source"), *bad)
    if resource.get("compression", "") not in ("", "gzip"):
        report.error((path, "compression"), "invalid-compression", "the compression must be gzip or absent")
    text = resource.get("verification", {}).get("hash")
    if text is None:
        return
    where: Path = ((path, "verification"), "hash")
    # Its reader does not know the word and refuses the config at boot.
    if text.startswith("sha256-"):
        report.error(where, "hash-unrecognised", "spec 2 knows sha512 only")
        return
    try:
        data_url.verification(text)
    except DataUrlError as error:
        tell = report.warn if error.code == "hash-not-hexadecimal" else report.error
        tell(where, error.code, error.message)


def _check_storage(storage: JsonObject, path: Path, report: Report) -> None:
    for index, disk in enumerate(storage.get("disks", ())):
        _check_disk(disk, ((path, "disks"), index), report)
    for index, raid in enumerate(storage.get("raid", ())):
        _check_raid(raid, ((path, "raid"), index), report)
    # Predefined in spec 2: the root of the machine itself.
    names = {"root"}
    for index, filesystem in enumerate(storage.get("filesystems", ())):
        here: Path = ((path, "filesystems"), index)
        _check_filesystem(filesystem, here, report)
        if filesystem.get("name", "") in names:
            report.warn(here, "shadowed-filesystem", "a filesystem of this name was defined before")
        names.add(filesystem.get("name", ""))
    for name in ("directories", "files", "links"):
        for index, node in enumerate(storage.get(name, ())):
            _check_node(node, ((path, name), index), name, names, report)


def _check_node(node: JsonObject, path: Path, name: str, filesystems: set[str], report: Report) -> None:
    _absolute(node.get("path", ""), (path, "path"), report)
    if not node.get("filesystem"):
        report.error((path, "filesystem"), "filesystem-required", "a filesystem is required")
    elif node["filesystem"] not in filesystems:
        report.warn((path, "filesystem"), "unknown-filesystem", "the filesystem is not defined in this config")
    for owner in ("user", "group"):
        if "id" in node.get(owner, {}) and node[owner].get("name"):
            report.error((path, owner), "id-and-name", "set the id or the name, not both")
    if name == "links":
        return
    if "mode" not in node:
        report.warn((path, "mode"), "mode-unset", "the mode is not set")
    elif not 0 <= node["mode"] <= 0o7777:
        report.error((path, "mode"), "illegal-mode", "the mode must be between 0 and 0o7777 (4095 in decimal)")
    if name == "files":
        if node.get("overwrite") and node.get("append"):
            report.error(path, "append-and-overwrite", "a file is appended to or overwritten, not both")
        _check_resource(node.get("contents", {}), (path, "contents"), report)


def _check_disk(disk: JsonObject, path: Path, report: Report) -> None:
    if not disk.get("device"):
        report.error((path, "device"), "device-required", "a disk needs a device")
    else:
        _absolute(disk["device"], (path, "device"), report)
    partitions: list[JsonObject] = disk.get("partitions", [])
    where: Path = (path, "partitions")
    overlap = overlapping([(p.get("start", 0), p.get("size", 0)) for p in partitions])
    if overlap is not None:
        report.error((where, overlap), "partitions-overlap", "the partition overlaps another one")
    numbers: set[int] = set()
    for index, partition in enumerate(partitions):
        here: Path = (where, index)
        number = partition.get("number", 0)
        if number and number in numbers:
            report.error((here, "number"), "duplicate", "the partition number was used before")
        numbers.add(number)
        if partition.get("start", 0) % _ALIGNMENT:
            report.error(
                (here, "start"), "partition-misaligned", f"the start must be a multiple of {_ALIGNMENT} sectors"
            )
        label = partition.get("label", "")
        if len(label.encode()) > PARTITION_LABEL_BYTES:
            report.error((here, "label"), "label-too-long", f"a label has at most {PARTITION_LABEL_BYTES} bytes")
        if ":" in label:
            report.warn((here, "label"), "label-with-colon", "the label is cut at the colon")
        for name in ("guid", "typeGuid"):
            if not GUID.fullmatch(partition.get(name, "")):
                report.error((here, name), "invalid-guid", "must look like 01234567-89AB-CDEF-EDCB-A98765432101")


def _check_raid(raid: JsonObject, path: Path, report: Report) -> None:
    level = raid.get("level", "")
    if level not in RAID_LEVELS:
        report.error((path, "level"), "unknown-level", "the level is not known")
    elif level in WITHOUT_SPARES and raid.get("spares", 0) != 0:
        report.error((path, "level"), "spares-unsupported", "this level takes no spares")
    for index, device in enumerate(raid.get("devices", ())):
        _absolute(device, ((path, "devices"), index), report)


def _check_filesystem(filesystem: JsonObject, path: Path, report: Report) -> None:
    mount = filesystem.get("mount")
    if "path" in filesystem:
        _absolute(filesystem["path"], (path, "path"), report)
    if mount is None:
        if "path" not in filesystem:
            report.error(path, "mount-or-path", "a filesystem needs a mount or a path")
        return
    if "path" in filesystem:
        report.error(path, "mount-and-path", "a filesystem has a mount or a path, not both")
    where: Path = (path, "mount")
    _absolute(mount.get("device", ""), (where, "device"), report)
    form = mount.get("format", "")
    if form not in FORMATS:
        report.error((where, "format"), "unknown-format", f"the format must be one of {', '.join(FORMATS)}")
    elif len(mount.get("label", "").encode()) > FORMATS[form]:
        report.error((where, "label"), "label-too-long", f"a label of {form} has at most {FORMATS[form]} bytes")
    if "create" in mount:
        report.warn((where, "create"), "deprecated", "create is deprecated; use wipeFilesystem and options")
        for name in ("wipeFilesystem", "options"):
            if mount.get(name):
                report.error((where, name), "create-with-others", f"create excludes {name}")


def _check_unit(unit: JsonObject, path: Path, suffixes: frozenset[str], report: Report) -> None:
    if suffix(unit.get("name", "")) not in suffixes:
        report.error((path, "name"), "unit-suffix", "the unit name does not end in a known type")
    sections = _parse(unit.get("contents", ""), (path, "contents"), report)
    if (
        (unit.get("enable") or unit.get("enabled"))
        and unit.get("contents")
        and sections is not None
        and "Install" not in sections
    ):
        report.warn(
            (path, "contents"), "no-install", "the unit is enabled but has no Install section, so nothing happens"
        )
    for index, dropin in enumerate(unit.get("dropins", ())):
        here: Path = ((path, "dropins"), index)
        _parse(dropin.get("contents", ""), (here, "contents"), report)
        if suffix(dropin.get("name", "")) != ".conf":
            report.error((here, "name"), "dropin-suffix", "the name of a drop-in must end in .conf")


def _check_user(user: JsonObject, path: Path, report: Report) -> None:
    if "create" not in user:
        return
    report.warn((path, "create"), "deprecated", "create is deprecated; set its fields on the user")
    for name in _CREATE_EXCLUDES:
        if user.get(name):
            report.error((path, name), "create-with-others", f"create excludes {name}")
    if "uid" in user:
        report.error((path, "uid"), "create-with-others", "create excludes uid")


def _parse(contents: str, path: Path, report: Report) -> frozenset[str] | None:
    try:
        return sections(contents)
    except UnitSyntax as error:
        report.error(path, "unit-syntax", f"not a unit file: {error}")
        return None


def _absolute(path: str, where: Path, report: Report) -> None:
    if not path.startswith("/"):
        report.error(where, "path-relative", "the path must be absolute")
