"""What a machine has on disk after Ignition's files stage: the model that renders, plans and drift checks can trust.

Given a config whose contents are inline, `predict` says for every path what will be there, on top of an empty root:

- directories first, then files and symbolic links by depth, then hard links; missing parents appear with mode 0755;
- a file has its contents followed by what is appended to it, mode 0644 unless stated; without contents it is empty;
- units and drop-ins are files of mode 0644 below `/etc/systemd/system`; an empty unit is not written, an empty drop-in is;
- a masked unit is a link to `/dev/null`, whatever contents it has;
- enabling is a line in one preset file, sorted by unit; instances of a template share a line.

Disabling writes a line too; newer releases write it only for a unit that is enabled in the image, so a caller that knows the
image says which ones are. Owners stay as they are in the config, numbers or names: only the machine knows its users. Users
and groups, and the report that Ignition leaves in `/etc/.ignition-result.json`, are not part of the model.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fastness.formats.data_url import MAX_CONTENTS, contents
from fastness.machineconfig.ignition.paths import parents
from fastness.machineconfig.ignition.rules import UNIT_DIRECTORY
from fastness.machineconfig.ignition.shape import JsonObject

PRESET_PATH: Final = "/etc/systemd/system-preset/20-ignition.preset"
_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755
_SPECIAL_BITS: Final = 0o7000


class EntryKind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    HARD_LINK = "hard link"


@dataclass(frozen=True, slots=True)
class PathEntry:
    """One path after provisioning; `target` is for links, `data` for files, the mode of a link means nothing."""

    kind: EntryKind
    mode: int = _FILE_MODE
    data: bytes = b""
    target: str = ""
    user: int | str = 0
    group: int | str = 0


Layout = dict[str, PathEntry]


def predict(config: JsonObject, enabled_in_image: Collection[str] | None = None, limit: int = MAX_CONTENTS) -> Layout:
    """The paths that a spec 3 config in normal form gives on an empty root.

    Raises `DataUrlError` for contents that are not inline, damaged, or beyond the limit.
    """
    storage: JsonObject = config.get("storage", {})
    layout: Layout = {}
    # As text: the minor of spec 3 has one digit, and a config of another form did not get here.
    special = config["ignition"]["version"] >= "3.4"
    for directory in storage.get("directories", ()):
        layout[directory["path"]] = _entry(EntryKind.DIRECTORY, directory, _DIRECTORY_MODE, special)
    for file in storage.get("files", ()):
        data = b"".join(contents(part, limit) for part in (file.get("contents", {}), *file.get("append", ())))
        layout[file["path"]] = replace(_entry(EntryKind.FILE, file, _FILE_MODE, special), data=data)
    for link in storage.get("links", ()):
        if link.get("hard"):
            layout[link["path"]] = PathEntry(EntryKind.HARD_LINK, target=link["target"])
        else:
            layout[link["path"]] = replace(_entry(EntryKind.LINK, link, 0, special), target=link["target"])
    units: list[JsonObject] = config.get("systemd", {}).get("units", [])
    _add_units(layout, units)
    if lines := preset_lines(units, enabled_in_image):
        layout[PRESET_PATH] = PathEntry(EntryKind.FILE, data="".join(f"{line}\n" for line in lines).encode())
    for path in list(layout):
        for parent in parents(path):
            layout.setdefault(parent, PathEntry(EntryKind.DIRECTORY, _DIRECTORY_MODE))
    return layout


def _entry(kind: EntryKind, node: JsonObject, default: int, special: bool) -> PathEntry:
    mode = node.get("mode", default)
    return PathEntry(
        kind, mode if special else mode & ~_SPECIAL_BITS, user=_owner(node, "user"), group=_owner(node, "group")
    )


def _owner(node: JsonObject, name: str) -> int | str:
    owner = node.get(name, {})
    identity: int | str = owner.get("id", owner.get("name") or 0)
    return identity


def _add_units(layout: Layout, units: list[JsonObject]) -> None:
    for unit in units:
        path = UNIT_DIRECTORY + unit["name"]
        for dropin in unit.get("dropins", ()):
            if "contents" in dropin:
                layout[f"{path}.d/{dropin['name']}"] = PathEntry(EntryKind.FILE, data=dropin["contents"].encode())
        if unit.get("contents"):
            layout[path] = PathEntry(EntryKind.FILE, data=unit["contents"].encode())
        # The link stands in the place of the contents; a drift check that expected these would report a masked unit for ever.
        if unit.get("mask"):
            layout[path] = PathEntry(EntryKind.LINK, 0, target="/dev/null")


def preset_lines(units: list[JsonObject], enabled_in_image: Collection[str] | None = None) -> list[str]:
    """The lines of the preset file, in its order."""
    lines: dict[str, str] = {}
    for unit in units:
        if "enabled" not in unit:
            continue
        verb, state = ("enable", "enabled") if unit["enabled"] else ("disable", "disabled")
        name, at, instance = unit["name"].partition("@")
        if not unit["enabled"] and enabled_in_image is not None and unit["name"] not in enabled_in_image:
            continue
        if not at:
            lines[f"{unit['name']}-{state}"] = f"{verb} {unit['name']}"
            continue
        instance, dot, suffix = instance.rpartition(".")
        template = f"{name}@{dot}{suffix}"
        key = f"{template}-{state}"
        lines[key] = f"{lines[key]} {instance}" if key in lines else f"{verb} {template} {instance}"
    return [lines[key] for key in sorted(lines)]
