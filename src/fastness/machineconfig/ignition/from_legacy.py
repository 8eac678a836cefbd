"""Spec 2.2 to the current spec.

Spec 2 allows what spec 3 forbids: the same file, unit or user again and again, the last one winning. So entries are brought
together first:

- files by path, the last wins; fragments to append stay, in order, after the last whole file;
- units by name, the last wins, drop-ins of earlier ones are kept unless a later one has the same name;
- users, all of whom must be `core`: the fields of the last, the keys of all, newest first, each once.

Refused, because spec 3 has no word for it: networkd units, the deprecated `create` forms, files on a filesystem other than
`root`, partitions that are not whole mebibytes. What else is wrong in terms of spec 3 (paths through a link, two entries at
one path) is found by its own rules, which run over the result.

An empty string, false and zero mean "not set" in spec 2, and are left out.
"""

from typing import Any, Final

from fastness.machineconfig.ignition.problems import Path, Report
from fastness.machineconfig.ignition.shape import JsonObject
from fastness.protocol.ignition_spec import CURRENT

SECTORS_PER_MIB: Final = 2048
ONLY_USER: Final = "core"
_ROOT: Final = "root"


def from_legacy(config: JsonObject, report: Report) -> JsonObject:
    """A spec 2.2 config in the current spec; what cannot be said there goes into the report."""
    # Dropped silently the machine would come up without its network, or with that of the image.
    if config.get("networkd", {}).get("units"):
        report.error((None, "networkd"), "networkd-unsupported", "spec 3 has no networkd units; write them as files")
    return _full(
        ignition=_ignition(config.get("ignition", {})),
        passwd=_passwd(config.get("passwd", {}), report),
        storage=_storage(config.get("storage", {}), report),
        systemd=_full(units=_units(config.get("systemd", {}).get("units", []))),
    )


def _full(**fields: Any) -> JsonObject:
    """An object of those fields that say something."""
    return {name: value for name, value in fields.items() if value or (value == 0 and name in ("uid", "gid", "id"))}


def _ignition(ignition: JsonObject) -> JsonObject:
    config = ignition.get("config", {})
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", [])
    timeouts = ignition.get("timeouts", {})
    result = _full(
        config=_full(merge=_references(config.get("append", [])), replace=_reference(config.get("replace", {}))),
        security=_full(tls=_full(certificateAuthorities=_references(authorities))),
    )
    return {"version": CURRENT, **result, **({"timeouts": timeouts} if timeouts else {})}


def _references(references: list[JsonObject]) -> list[JsonObject]:
    unique: dict[str, JsonObject] = {}
    for reference in references:
        # Spec 3 refuses two references with one source.
        unique.setdefault(reference.get("source", ""), _reference(reference))
    return list(unique.values())


def _reference(reference: JsonObject) -> JsonObject:
    return _full(source=reference.get("source"), verification=reference.get("verification"))


def _storage(storage: JsonObject, report: Report) -> JsonObject:
    used = {node.get("filesystem") for name in ("files", "directories", "links") for node in storage.get(name, ())}
    path: Path = (None, "storage")
    return _full(
        disks=[_disk(disk, ((path, "disks"), i), report) for i, disk in enumerate(storage.get("disks", ()))],
        raid=[_full(**raid) for raid in storage.get("raid", ())],
        filesystems=[
            made
            for i, filesystem in enumerate(storage.get("filesystems", ()))
            if (made := _filesystem(filesystem, used, ((path, "filesystems"), i), report)) is not None
        ],
        directories=_nodes(storage, "directories", report),
        files=_files(storage, report),
        links=_nodes(storage, "links", report),
    )


def _disk(disk: JsonObject, path: Path, report: Report) -> JsonObject:
    partitions = []
    for index, partition in enumerate(disk.get("partitions", ())):
        here: Path = ((path, "partitions"), index)
        for name in ("size", "start"):
            # Rounding would move a partition, perhaps into its neighbour, on a disk that may hold data.
            if partition.get(name, 0) % SECTORS_PER_MIB:
                report.error((here, name), "not-whole-mebibytes", f"must be a multiple of {SECTORS_PER_MIB} sectors")
        made = _full(**{name: partition.get(name) for name in ("number", "label", "typeGuid", "guid")})
        size, start = (partition.get(name, 0) // SECTORS_PER_MIB for name in ("size", "start"))
        partitions.append({**made, **_full(sizeMiB=size, startMiB=start)})
    return _full(device=disk.get("device"), wipeTable=disk.get("wipeTable"), partitions=partitions)


def _filesystem(filesystem: JsonObject, used: set[Any], path: Path, report: Report) -> JsonObject | None:
    mount = filesystem.get("mount")
    name = filesystem.get("name", "")
    if mount is None:
        if filesystem.get("path") != "/sysroot" and name in used and name != _ROOT:
            report.error(path, "filesystem-unmapped", f"only the filesystem {_ROOT} has a place in spec 3")
        return None
    if "create" in mount:
        report.error(((path, "mount"), "create"), "deprecated", "use wipeFilesystem and options instead of create")
    fields = {key: value for key, value in mount.items() if key != "create"}
    return _full(**fields, path="/" if name == _ROOT and mount.get("format") != "swap" else None)


def _place(node: JsonObject, path: Path, report: Report) -> JsonObject:
    if node.get("filesystem") != _ROOT:
        report.error((path, "filesystem"), "filesystem-unmapped", f"only the filesystem {_ROOT} has a place in spec 3")
    owners = {name: _full(**node[name]) for name in ("user", "group") if name in node}
    return {"path": node.get("path", ""), **_full(**owners)}


def _nodes(storage: JsonObject, name: str, report: Report) -> list[JsonObject]:
    nodes = []
    for index, node in enumerate(storage.get(name, ())):
        made = _place(node, (((None, "storage"), name), index), report)
        for field in ("mode", "overwrite"):
            if field in node:
                made[field] = node[field]
        nodes.append({**made, **_full(target=node.get("target"), hard=node.get("hard"))})
    return nodes


def _files(storage: JsonObject, report: Report) -> list[JsonObject]:
    files: dict[str, JsonObject] = {}
    for index, file in enumerate(storage.get("files", ())):
        made = _place(file, (((None, "storage"), "files"), index), report)
        if "mode" in file:
            made["mode"] = file["mode"]
        contents = file.get("contents", {})
        resource = _full(compression=contents.get("compression"), verification=contents.get("verification"))
        resource["source"] = contents.get("source", "")
        if file.get("append"):
            earlier = files.get(made["path"], {**made, "overwrite": False})
            files[made["path"]] = {**earlier, "append": [*earlier.get("append", []), resource]}
        else:
            # Left out means yes in spec 2 and no in spec 3, so it is said.
            made["overwrite"] = file.get("overwrite", True)
            files[made["path"]] = {**made, "contents": resource}
    return list(files.values())


def _units(units: list[JsonObject]) -> list[JsonObject]:
    merged: dict[str, JsonObject] = {}
    for unit in units:
        name = unit.get("name", "")
        dropins = {dropin.get("name", ""): dropin for dropin in merged.get(name, {}).get("dropins", ())}
        dropins |= {dropin.get("name", ""): _full(**dropin) for dropin in unit.get("dropins", ())}
        made = _full(contents=unit.get("contents"), mask=unit.get("mask"), dropins=list(dropins.values()))
        if "enabled" in unit or unit.get("enable"):
            made["enabled"] = unit.get("enabled", True)
        merged[name] = {"name": name, **made}
    return list(merged.values())


def _passwd(passwd: JsonObject, report: Report) -> JsonObject:
    users: dict[str, JsonObject] = {}
    keys: list[str] = []
    for index, user in enumerate(passwd.get("users", ())):
        here: Path = (((None, "passwd"), "users"), index)
        if "create" in user:
            report.error((here, "create"), "deprecated", "set the fields of create on the user")
        # Machines manage this one account afterwards; another one would be made at first boot and never be changed or removed
        # again.
        if user.get("name") != ONLY_USER:
            report.error((here, "name"), "only-core", f"only the user {ONLY_USER} can be configured")
        keys = [*user.get("sshAuthorizedKeys", []), *keys]
        made = _full(**{name: value for name, value in user.items() if name not in ("create", "passwordHash")})
        made["name"] = user.get("name", "")
        if "groups" in made:
            made["groups"] = list(dict.fromkeys(made["groups"]))
        # Past the filter for empty values: an empty hash is a statement about the account, not the absence of one.
        if "passwordHash" in user:
            made["passwordHash"] = user["passwordHash"]
        users[made["name"]] = {**made, **_full(sshAuthorizedKeys=list(dict.fromkeys(keys)))}
    groups = {
        group.get("name", ""): {"name": group.get("name", ""), **_full(**group)} for group in passwd.get("groups", ())
    }
    return _full(users=list(users.values()), groups=list(groups.values()))
