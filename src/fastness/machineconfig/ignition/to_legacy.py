"""The current spec to spec 2.2, for boot images from before spec 3.

Each loss is named, with the same meaning as for a translation within spec 3: the rest is still a good 2.2 config, and whether
it may be used is for the caller to say.

- A file belongs to the filesystem with the longest path above it, or else to `root`.
- Not saying whether to overwrite means no in spec 3 and yes in spec 2, so it is always said.
- Fragments to append become entries of their own after the file.
- Lost: encrypted volumes, kernel arguments, proxies, headers, mount options, entries that should not exist, sha256, schemes
  younger than spec 2, compression of anything but files, and the fine print of partitions.
"""

from collections.abc import Callable
from typing import Any, Final

from fastness.machineconfig.ignition.from_legacy import SECTORS_PER_MIB
from fastness.machineconfig.ignition.problems import Path
from fastness.machineconfig.ignition.rules_disks import FORMATS
from fastness.machineconfig.ignition.shape import JsonObject
from fastness.machineconfig.ignition.urls import legacy_problem
from fastness.protocol.ignition_spec import LEGACY

Lose = Callable[[Path, str, str], None]
_ROOT: Final = "root"
_NO_WORD: Final = "spec 2.2 has no word for it"


def to_legacy(config: JsonObject, lose: Lose) -> JsonObject:
    """A config of the current spec in 2.2; `lose` hears of everything that stays behind."""
    if any(config.get("kernelArguments", {}).values()):
        lose((None, "kernelArguments"), "field-too-young", _NO_WORD)
    result: JsonObject = {"ignition": _ignition(config["ignition"], (None, "ignition"), lose)}
    if passwd := _passwd(config.get("passwd", {}), (None, "passwd"), lose):
        result["passwd"] = passwd
    if storage := _storage(config.get("storage", {}), (None, "storage"), lose):
        result["storage"] = storage
    if units := config.get("systemd", {}).get("units"):
        result["systemd"] = {"units": units}
    return result


def _ignition(ignition: JsonObject, path: Path, lose: Lose) -> JsonObject:
    result: JsonObject = {"version": LEGACY}
    if any(ignition.get("proxy", {}).values()):
        lose((path, "proxy"), "field-too-young", _NO_WORD)
    config = ignition.get("config", {})
    where: Path = (path, "config")
    references = {"append": _references(config.get("merge", ()), (where, "merge"), lose)}
    replace = _resource(config.get("replace", {}), (where, "replace"), lose, compressed=False)
    if references["append"] or replace:
        result["config"] = {name: value for name, value in (*references.items(), ("replace", replace)) if value}
    authorities = ignition.get("security", {}).get("tls", {}).get("certificateAuthorities", ())
    authority_references = _references(authorities, (((path, "security"), "tls"), "certificateAuthorities"), lose)
    if authority_references:
        result["security"] = {"tls": {"certificateAuthorities": authority_references}}
    if ignition.get("timeouts"):
        result["timeouts"] = ignition["timeouts"]
    return result


def _references(references: Any, path: Path, lose: Lose) -> list[JsonObject]:
    made = (_resource(item, (path, index), lose, compressed=False) for index, item in enumerate(references))
    return [reference for reference in made if reference]


def _resource(resource: JsonObject, path: Path, lose: Lose, compressed: bool = True) -> JsonObject:
    source = resource.get("source", "")
    if legacy_problem(source) is not None:
        lose((path, "source"), "value-too-young", _NO_WORD)
        return {}
    result = {"source": source} if source else {}
    if resource.get("compression"):
        if compressed:
            result["compression"] = resource["compression"]
        else:
            # Without its compression the reference would be read as something that it is not.
            lose((path, "compression"), "field-too-young", _NO_WORD)
            return {}
    if resource.get("httpHeaders"):
        # A header often is the credential of the request; without it the server answers something else, or nothing.
        lose((path, "httpHeaders"), "field-too-young", _NO_WORD)
    digest = resource.get("verification", {}).get("hash")
    # Spec 2 knows this digest only. Another one is named as lost, because without it the content is taken as it comes.
    if digest is not None and digest.startswith("sha512-"):
        result["verification"] = {"hash": digest}
    elif digest is not None:
        lose(((path, "verification"), "hash"), "value-too-young", _NO_WORD)
    return result


def _passwd(passwd: JsonObject, path: Path, lose: Lose) -> JsonObject:
    result: JsonObject = {}
    for name in ("users", "groups"):
        users = []
        for index, account in enumerate(passwd.get(name, ())):
            # The whole account goes: without the field spec 2 would make the one that was to be removed.
            if account.get("shouldExist") is False:
                lose((((path, name), index), "shouldExist"), "field-too-young", _NO_WORD)
            else:
                users.append({field: value for field, value in account.items() if field != "shouldExist"})
        if users:
            result[name] = users
    return result


def _storage(storage: JsonObject, path: Path, lose: Lose) -> JsonObject:
    filesystems = [
        made
        for index, item in enumerate(storage.get("filesystems", ()))
        if (made := _filesystem(item, index, ((path, "filesystems"), index), lose)) is not None
    ]
    names = {
        item["path"]: _filesystem_name(item, i)
        for i, item in enumerate(storage.get("filesystems", ()))
        if item.get("path")
    }
    if storage.get("luks"):
        # A config without its encryption is still a good one, to every later check; so this is the place where it is said.
        lose((path, "luks"), "field-too-young", _NO_WORD)
    result = {
        "disks": [_disk(disk, ((path, "disks"), i), lose) for i, disk in enumerate(storage.get("disks", ()))],
        "raid": storage.get("raid", []),
        "filesystems": filesystems,
        "directories": [_node(node, names) for node in storage.get("directories", ())],
        "files": [
            entry
            for i, file in enumerate(storage.get("files", ()))
            for entry in _file(file, names, ((path, "files"), i), lose)
        ],
        "links": [_node(node, names) for node in storage.get("links", ())],
    }
    return {name: value for name, value in result.items() if value}


def _disk(disk: JsonObject, path: Path, lose: Lose) -> JsonObject:
    partitions = []
    for index, partition in enumerate(disk.get("partitions", ())):
        here: Path = ((path, "partitions"), index)
        for name, neutral in (("resize", False), ("wipePartitionEntry", False), ("shouldExist", True)):
            if partition.get(name, neutral) is not neutral:
                lose((here, name), "field-too-young", _NO_WORD)
        if partition.get("shouldExist") is False:
            continue
        made = {name: partition[name] for name in ("number", "label", "guid", "typeGuid") if name in partition}
        for old, young in (("size", "sizeMiB"), ("start", "startMiB")):
            if young in partition:
                made[old] = partition[young] * SECTORS_PER_MIB
        partitions.append(made)
    result: JsonObject = {name: disk[name] for name in ("device", "wipeTable") if name in disk}
    return {**result, "partitions": partitions} if partitions else result


def _filesystem_name(filesystem: JsonObject, index: int) -> str:
    return _ROOT if filesystem.get("path") == "/" else f"filesystem-{index}"


def _filesystem(filesystem: JsonObject, index: int, path: Path, lose: Lose) -> JsonObject | None:
    if filesystem.get("format", "") not in FORMATS:
        lose((path, "format"), "value-too-young", "spec 2.2 needs a format, and none is not one")
        return None
    if filesystem.get("mountOptions"):
        lose((path, "mountOptions"), "field-too-young", _NO_WORD)
    mount = {name: value for name, value in filesystem.items() if name not in ("path", "mountOptions")}
    return {"name": _filesystem_name(filesystem, index), "mount": mount}


def _node(node: JsonObject, filesystems: dict[str, str]) -> JsonObject:
    path = node["path"]
    # With the slash: /var/log2 is not below a filesystem at /var/log.
    above = [place for place in filesystems if path == place or path.startswith(place.rstrip("/") + "/")]
    name = filesystems[max(above, key=len)] if above else _ROOT
    # Said always: leaving it out means yes in spec 2 and no in spec 3.
    return {**node, "filesystem": name, "overwrite": node.get("overwrite", False)}


def _file(file: JsonObject, filesystems: dict[str, str], path: Path, lose: Lose) -> list[JsonObject]:
    node = _node({name: value for name, value in file.items() if name not in ("contents", "append")}, filesystems)
    if node.get("mode", 0) & 0o7000:
        lose((path, "mode"), "value-too-young", "spec 2.2 ignores special mode bits")
        node["mode"] &= 0o777
    contents = file.get("contents", {})
    entries = []
    if contents or not file.get("append"):
        entries.append({**node, "contents": _resource(contents, (path, "contents"), lose)})
    for index, fragment in enumerate(file.get("append", ())):
        made = _resource(fragment, ((path, "append"), index), lose)
        entries.append({**node, "overwrite": False, "append": True, "contents": made})
    return entries
