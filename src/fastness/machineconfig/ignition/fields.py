"""Every field of the specification, as data: what it holds, since when, and how lists of it merge.

One table serves five purposes: the check of shapes, the search for duplicates, merging, translation to an older version
(a field younger than the target is a loss), and the typed views in `types`, which a test compares with this table.

- `since` is the minor of spec 3 that brought the field. Spec 2.2 has a table of its own: it is a different language.
- `key` tells the entries of a list apart: the name of a field, `VALUE` for the string itself, `PARTITION` for a number or
  else a label. Two entries with one key are a mistake in a config and one entry after a merge. Lists without a key are
  concatenated.
- `space` joins lists whose keys must differ among each other: a path is a file, a directory or a link, never two of them.
"""

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    """The JSON types that occur."""

    STRING = "a string"
    INTEGER = "an integer"
    BOOLEAN = "a boolean"
    STRINGS = "a list of strings"
    OBJECT = "an object"
    OBJECTS = "a list of objects"


VALUE: Final = "="
PARTITION: Final = "#"


class Field(NamedTuple):
    """One row: what a field holds and since which minor of spec 3."""

    kind: Kind
    since: int = 0
    struct: str = ""
    key: str = ""
    space: str = ""


Table = dict[str, dict[str, Field]]


def _string(since: int = 0) -> Field:
    return Field(Kind.STRING, since)


def _integer(since: int = 0) -> Field:
    return Field(Kind.INTEGER, since)


def _boolean(since: int = 0) -> Field:
    return Field(Kind.BOOLEAN, since)


def _strings(since: int = 0, key: str = "", space: str = "") -> Field:
    return Field(Kind.STRINGS, since, key=key, space=space)


def _object(struct: str, since: int = 0) -> Field:
    return Field(Kind.OBJECT, since, struct)


def _objects(struct: str, key: str = "", since: int = 0, space: str = "") -> Field:
    return Field(Kind.OBJECTS, since, struct, key, space)


_NODE: Final = {
    "path": _string(),
    "overwrite": _boolean(),
    "user": _object("Owner"),
    "group": _object("Owner"),
}

SPEC_3: Final[Table] = {
    "Config": {
        "ignition": _object("Ignition"),
        "kernelArguments": _object("KernelArguments", since=3),
        "passwd": _object("Passwd"),
        "storage": _object("Storage"),
        "systemd": _object("Systemd"),
    },
    "Ignition": {
        "version": _string(),
        "config": _object("IgnitionConfig"),
        "timeouts": _object("Timeouts"),
        "security": _object("Security"),
        "proxy": _object("Proxy", since=1),
    },
    "IgnitionConfig": {"merge": _objects("Reference", "source"), "replace": _object("Reference")},
    "Timeouts": {"httpResponseHeaders": _integer(), "httpTotal": _integer()},
    "Security": {"tls": _object("Tls")},
    "Tls": {"certificateAuthorities": _objects("Reference", "source")},
    "Proxy": {"httpProxy": _string(), "httpsProxy": _string(), "noProxy": _strings(key=VALUE)},
    # A config or a bundle of certificates: what 3.0 allowed was less than for the contents of a file.
    "Reference": {
        "source": _string(),
        "compression": _string(since=1),
        "httpHeaders": _objects("HttpHeader", "name", since=1),
        "verification": _object("Verification"),
    },
    "Resource": {
        "source": _string(),
        "compression": _string(),
        "httpHeaders": _objects("HttpHeader", "name", since=1),
        "verification": _object("Verification"),
    },
    "HttpHeader": {"name": _string(), "value": _string()},
    "Verification": {"hash": _string()},
    "KernelArguments": {
        "shouldExist": _strings(key=VALUE, space="argument"),
        "shouldNotExist": _strings(key=VALUE, space="argument"),
    },
    "Storage": {
        "disks": _objects("Disk", "device"),
        "raid": _objects("Raid", "name"),
        "luks": _objects("Luks", "name", since=2),
        "filesystems": _objects("Filesystem", "device"),
        "directories": _objects("Directory", "path", space="node"),
        "files": _objects("File", "path", space="node"),
        "links": _objects("Link", "path", space="node"),
    },
    "Disk": {"device": _string(), "wipeTable": _boolean(), "partitions": _objects("Partition", PARTITION)},
    "Partition": {
        "number": _integer(),
        "label": _string(),
        "sizeMiB": _integer(),
        "startMiB": _integer(),
        "typeGuid": _string(),
        "guid": _string(),
        "wipePartitionEntry": _boolean(),
        "shouldExist": _boolean(),
        "resize": _boolean(since=2),
    },
    "Raid": {
        "name": _string(),
        "level": _string(),
        "devices": _strings(key=VALUE),
        "spares": _integer(),
        "options": _strings(),
    },
    "Luks": {
        "name": _string(),
        "device": _string(),
        "keyFile": _object("Resource"),
        "label": _string(),
        "uuid": _string(),
        "options": _strings(),
        "discard": _boolean(since=4),
        "openOptions": _strings(since=4, key=VALUE),
        "wipeVolume": _boolean(),
        "clevis": _object("Clevis"),
        "cex": _object("Cex", since=5),
    },
    "Clevis": {
        "tang": _objects("Tang", "url"),
        "tpm2": _boolean(),
        "threshold": _integer(),
        "custom": _object("ClevisCustom"),
    },
    "Tang": {"url": _string(), "thumbprint": _string(), "advertisement": _string(since=4)},
    "ClevisCustom": {"pin": _string(), "config": _string(), "needsNetwork": _boolean()},
    "Cex": {"enabled": _boolean()},
    "Filesystem": {
        "device": _string(),
        "format": _string(),
        "path": _string(),
        "wipeFilesystem": _boolean(),
        "label": _string(),
        "uuid": _string(),
        "options": _strings(),
        "mountOptions": _strings(since=1),
    },
    "Owner": {"id": _integer(), "name": _string()},
    "Directory": {**_NODE, "mode": _integer()},
    "File": {**_NODE, "mode": _integer(), "contents": _object("Resource"), "append": _objects("Resource")},
    "Link": {**_NODE, "target": _string(), "hard": _boolean()},
    "Systemd": {"units": _objects("Unit", "name")},
    "Unit": {
        "name": _string(),
        "enabled": _boolean(),
        "mask": _boolean(),
        "contents": _string(),
        "dropins": _objects("Dropin", "name"),
    },
    "Dropin": {"name": _string(), "contents": _string()},
    "Passwd": {"users": _objects("User", "name"), "groups": _objects("Group", "name")},
    "User": {
        "name": _string(),
        "passwordHash": _string(),
        "sshAuthorizedKeys": _strings(key=VALUE),
        "uid": _integer(),
        "gecos": _string(),
        "homeDir": _string(),
        "noCreateHome": _boolean(),
        "primaryGroup": _string(),
        "groups": _strings(key=VALUE),
        "noUserGroup": _boolean(),
        "noLogInit": _boolean(),
        "shell": _string(),
        "shouldExist": _boolean(since=2),
        "system": _boolean(),
    },
    "Group": {
        "name": _string(),
        "gid": _integer(),
        "passwordHash": _string(),
        "shouldExist": _boolean(since=2),
        "system": _boolean(),
    },
}

_LEGACY_NODE: Final = {"filesystem": _string(), **_NODE}
_LEGACY_ACCOUNT: Final = {
    "gecos": _string(),
    "groups": _strings(),
    "homeDir": _string(),
    "noCreateHome": _boolean(),
    "noLogInit": _boolean(),
    "noUserGroup": _boolean(),
    "primaryGroup": _string(),
    "shell": _string(),
    "system": _boolean(),
    "uid": _integer(),
}

# Spec 2 has no keys: repeated entries are legal and applied one after the other.
SPEC_2: Final[Table] = {
    "Config": {
        "ignition": _object("Ignition"),
        "networkd": _object("Networkd"),
        "passwd": _object("Passwd"),
        "storage": _object("Storage"),
        "systemd": _object("Systemd"),
    },
    "Ignition": {
        "version": _string(),
        "config": _object("IgnitionConfig"),
        "timeouts": _object("Timeouts"),
        "security": _object("Security"),
    },
    "IgnitionConfig": {"append": _objects("Reference"), "replace": _object("Reference")},
    "Timeouts": SPEC_3["Timeouts"],
    "Security": SPEC_3["Security"],
    "Tls": {"certificateAuthorities": _objects("Reference")},
    "Reference": {"source": _string(), "verification": _object("Verification")},
    "Resource": {"source": _string(), "compression": _string(), "verification": _object("Verification")},
    "Verification": SPEC_3["Verification"],
    "Networkd": {"units": _objects("NetworkUnit")},
    "NetworkUnit": {"name": _string(), "contents": _string(), "dropins": _objects("Dropin")},
    "Storage": {
        "disks": _objects("Disk"),
        "raid": _objects("Raid"),
        "filesystems": _objects("Filesystem"),
        "directories": _objects("Directory"),
        "files": _objects("File"),
        "links": _objects("Link"),
    },
    "Disk": {"device": _string(), "wipeTable": _boolean(), "partitions": _objects("Partition")},
    "Partition": {
        "number": _integer(),
        "label": _string(),
        "size": _integer(),
        "start": _integer(),
        "typeGuid": _string(),
        "guid": _string(),
    },
    "Raid": {
        "name": _string(),
        "level": _string(),
        "devices": _strings(),
        "spares": _integer(),
        "options": _strings(),
    },
    "Filesystem": {"name": _string(), "path": _string(), "mount": _object("Mount")},
    "Mount": {
        "device": _string(),
        "format": _string(),
        "wipeFilesystem": _boolean(),
        "label": _string(),
        "uuid": _string(),
        "options": _strings(),
        "create": _object("Create"),
    },
    "Create": {"force": _boolean(), "options": _strings()},
    "Owner": SPEC_3["Owner"],
    "Directory": {**_LEGACY_NODE, "mode": _integer()},
    "File": {**_LEGACY_NODE, "mode": _integer(), "contents": _object("Resource"), "append": _boolean()},
    "Link": {**_LEGACY_NODE, "target": _string(), "hard": _boolean()},
    "Systemd": {"units": _objects("Unit")},
    "Unit": {
        "name": _string(),
        "enable": _boolean(),
        "enabled": _boolean(),
        "mask": _boolean(),
        "contents": _string(),
        "dropins": _objects("Dropin"),
    },
    "Dropin": {"name": _string(), "contents": _string()},
    "Passwd": {"users": _objects("User"), "groups": _objects("Group")},
    "User": {
        "name": _string(),
        "passwordHash": _string(),
        "sshAuthorizedKeys": _strings(),
        **_LEGACY_ACCOUNT,
        "create": _object("UserCreate"),
    },
    "UserCreate": _LEGACY_ACCOUNT,
    "Group": {"name": _string(), "gid": _integer(), "passwordHash": _string(), "system": _boolean()},
}
