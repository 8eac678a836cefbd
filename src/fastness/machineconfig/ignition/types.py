"""The current spec as typed dictionaries: the views that code above this package works with.

A config stays plain JSON: these types cost nothing at run time, and a type checker knows every field. Each field may be
absent, which means the same as null. A test compares this file with the table in `fields`, which is the authority.
"""

from typing import TypedDict


class HttpHeader(TypedDict, total=False):
    """A header; without a value it removes one on merging."""

    name: str
    value: str


class Verification(TypedDict, total=False):
    """The hash that contents must have."""

    hash: str


class Reference(TypedDict, total=False):
    """A config or a certificate bundle to fetch."""

    source: str
    compression: str
    httpHeaders: list[HttpHeader]
    verification: Verification


class IgnitionConfig(TypedDict, total=False):
    """Other configs to merge into this one, or to use instead."""

    merge: list[Reference]
    replace: Reference


class Timeouts(TypedDict, total=False):
    """Seconds; 0 means no limit."""

    httpResponseHeaders: int
    httpTotal: int


class Tls(TypedDict, total=False):
    """Certificates to trust in addition."""

    certificateAuthorities: list[Reference]


class Security(TypedDict, total=False):
    """How the network is trusted."""

    tls: Tls


class Proxy(TypedDict, total=False):
    """Proxies for fetching."""

    httpProxy: str
    httpsProxy: str
    noProxy: list[str]


class Ignition(TypedDict, total=False):
    """About the config itself: version, references, how to fetch."""

    version: str
    config: IgnitionConfig
    timeouts: Timeouts
    security: Security
    proxy: Proxy


class KernelArguments(TypedDict, total=False):
    """Arguments to add and to remove."""

    shouldExist: list[str]
    shouldNotExist: list[str]


class User(TypedDict, total=False):
    """An account."""

    name: str
    passwordHash: str
    sshAuthorizedKeys: list[str]
    uid: int
    gecos: str
    homeDir: str
    noCreateHome: bool
    primaryGroup: str
    groups: list[str]
    noUserGroup: bool
    noLogInit: bool
    shell: str
    shouldExist: bool
    system: bool


class Group(TypedDict, total=False):
    """A group of accounts."""

    name: str
    gid: int
    passwordHash: str
    shouldExist: bool
    system: bool


class Passwd(TypedDict, total=False):
    """Users and groups."""

    users: list[User]
    groups: list[Group]


class Partition(TypedDict, total=False):
    """A partition, told apart by number or else by label."""

    number: int
    label: str
    sizeMiB: int
    startMiB: int
    typeGuid: str
    guid: str
    wipePartitionEntry: bool
    shouldExist: bool
    resize: bool


class Disk(TypedDict, total=False):
    """A disk and its partitions."""

    device: str
    wipeTable: bool
    partitions: list[Partition]


class Raid(TypedDict, total=False):
    """An array."""

    name: str
    level: str
    devices: list[str]
    spares: int
    options: list[str]


class Resource(TypedDict, total=False):
    """Contents, inline or to fetch."""

    source: str
    compression: str
    httpHeaders: list[HttpHeader]
    verification: Verification


class Tang(TypedDict, total=False):
    """A tang server."""

    url: str
    thumbprint: str
    advertisement: str


class ClevisCustom(TypedDict, total=False):
    """A pin of one's own."""

    pin: str
    config: str
    needsNetwork: bool


class Clevis(TypedDict, total=False):
    """How a volume is unlocked."""

    tang: list[Tang]
    tpm2: bool
    threshold: int
    custom: ClevisCustom


class Cex(TypedDict, total=False):
    """Crypto Express cards."""

    enabled: bool


class Luks(TypedDict, total=False):
    """An encrypted volume."""

    name: str
    device: str
    keyFile: Resource
    label: str
    uuid: str
    options: list[str]
    discard: bool
    openOptions: list[str]
    wipeVolume: bool
    clevis: Clevis
    cex: Cex


class Filesystem(TypedDict, total=False):
    """A filesystem on a device."""

    device: str
    format: str
    path: str
    wipeFilesystem: bool
    label: str
    uuid: str
    options: list[str]
    mountOptions: list[str]


class Owner(TypedDict, total=False):
    """A user or a group, by id or by name."""

    id: int
    name: str


class Directory(TypedDict, total=False):
    """A directory."""

    path: str
    overwrite: bool
    user: Owner
    group: Owner
    mode: int


class File(TypedDict, total=False):
    """A file: contents, then fragments."""

    path: str
    overwrite: bool
    user: Owner
    group: Owner
    mode: int
    contents: Resource
    append: list[Resource]


class Link(TypedDict, total=False):
    """A symbolic or hard link."""

    path: str
    overwrite: bool
    user: Owner
    group: Owner
    target: str
    hard: bool


class Storage(TypedDict, total=False):
    """Everything on disks."""

    disks: list[Disk]
    raid: list[Raid]
    luks: list[Luks]
    filesystems: list[Filesystem]
    directories: list[Directory]
    files: list[File]
    links: list[Link]


class Dropin(TypedDict, total=False):
    """A drop-in of a unit."""

    name: str
    contents: str


class Unit(TypedDict, total=False):
    """A unit and its drop-ins."""

    name: str
    enabled: bool
    mask: bool
    contents: str
    dropins: list[Dropin]


class Systemd(TypedDict, total=False):
    """The units."""

    units: list[Unit]


class Config(TypedDict, total=False):
    """A whole config."""

    ignition: Ignition
    kernelArguments: KernelArguments
    passwd: Passwd
    storage: Storage
    systemd: Systemd
