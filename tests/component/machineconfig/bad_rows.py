"""The rows of bad input: what is applied, and what the pool must say about it."""

from __future__ import annotations

import base64
import gzip
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.registry import find

MEBIBYTE = 1024 * 1024
KUBELET = find("machineconfiguration.openshift.io", "v1", "kubeletconfigs").resource
RUNTIME = find("machineconfiguration.openshift.io", "v1", "containerruntimeconfigs").resource


def spec(version: str | None = "3.4.0", **sections: Any) -> JsonObject:
    """The spec of a config with these sections of Ignition."""
    head = {"ignition": {"version": version} if version is not None else {}}
    return {"config": {**head, **sections}}


def files(*entries: JsonObject, version: str = "3.4.0") -> JsonObject:
    return spec(version, storage={"files": list(entries)})


def at(path: str, source: str = "data:,x", **more: Any) -> JsonObject:
    contents = {"source": source, **more.pop("contents", {})}
    return {"path": path, "contents": contents, **more}


def units(*entries: JsonObject) -> JsonObject:
    return spec(systemd={"units": list(entries)})


def packed(data: bytes) -> str:
    return "data:;base64," + base64.b64encode(gzip.compress(data)).decode()


GZIP = {"compression": "gzip"}
SHA = {"verification": {"hash": f"sha512-{'0' * 128}"}}
REFUSED: dict[str, tuple[JsonObject, str]] = {
    "kernel type": ({"kernelType": "steam"}, "spec.kernelType: 'steam' is not a kernel type"),
    "version of the future": (spec("3.99.0"), "spec version 3.99.0 is not supported (supported are 2.2, 3.0"),
    "version of another age": (spec("4.0.0"), "spec version 4.0.0 is not supported"),
    "version that is none": (spec("three"), "the spec version cannot be understood (set ignition.version to one of 2.2"),
    "no version": (spec(None), "ignition.version"),
    "section of another type": (spec(storage={"files": {}}), "spec.config.storage.files"),
    "unknown source": (files(at("/etc/a", "gopher://x")), "spec.config.storage.files[0].contents.source"),
    "bad base64": (files(at("/etc/a", "data:;base64,!!!")), "spec.config.storage.files[0].contents.source"),
    "gzip that is none": (files(at("/etc/a", "data:,plain", contents=GZIP)), "spec.config.storage.files[0].contents"),
    "gzip bomb": (files(at("/etc/a", packed(bytes(200 * MEBIBYTE)), contents=GZIP)), "spec.config.storage.files[0].contents"),
    "other hash": (files(at("/etc/a", contents=SHA)), "spec.config.storage.files[0].contents"),
    "relative path": (files(at("etc/a")), "spec.config.storage.files[0].path"),
    "path with detours": (files(at("/etc/../a")), "spec.config.storage.files[0].path"),
    "no path": (files(at("")), "spec.config.storage.files[0].path"),
    "one path twice": (files(at("/etc/a"), at("/etc/a")), "spec.config.storage.files[1]"),
    "setuid": (files(at("/etc/a", mode=0o4755)), "/etc/a: mode 0o4755 has bits above 0777"),
    "setuid in spec 2": (files({**at("/etc/a", mode=0o4755), "filesystem": "root"}, version="2.2.0"), "bits above 0777"),
    "octal written as decimal": (files(at("/etc/a", mode=755)), "is the number decimal by mistake?"),
    "negative mode": (files(at("/etc/a", mode=-1)), "spec.config.storage.files[0].mode"),
    "file below its own link": (
        spec(storage={"links": [{"path": "/etc/l", "target": "/tmp"}], "files": [at("/etc/l/a")]}),
        "spec.config.storage",
    ),
    "unit without a type": (units({"name": "chrony"}), "spec.config.systemd.units[0].name"),
    "unit in another directory": (
        units({"name": "../a.service"}), "systemd.units[0].name: '../a.service' is not the name of a unit",
    ),
    "drop-in in another directory": (
        units({"name": "a.service", "dropins": [{"name": "../x.conf", "contents": "[Unit]\n"}]}),
        "spec.config.systemd.units[0].dropins[0].name: '../x.conf' has a slash",
    ),
    "drop-in without .conf": (
        units({"name": "a.service", "dropins": [{"name": "x", "contents": "[Unit]\n"}]}),
        "spec.config.systemd.units[0].dropins[0].name",
    ),
    "unit that systemd cannot read": (
        units({"name": "a.service", "contents": "[Unit\nx"}), "spec.config.systemd.units[0].contents",
    ),
    "networkd of spec 2": (spec("2.2.0", networkd={"units": [{"name": "a.network"}]}), "spec.config.networkd"),
    "extension": ({"extensions": ["vim"]}, "spec.extensions: vim is not supported"),
    "append to a file": (files({"path": "/etc/a", "append": [{"source": "data:,x"}]}), "append cannot be applied twice"),
    "the force file": (files(at(names.FORCE_FILE)), "forces an update and must not be managed"),
    "more than can be stored": (
        files(*(at(f"/etc/{n}", "data:," + "x" * 100_000) for n in range(14)), at("/etc/z", "data:," + "x" * 190_000)),
        "the most that can be stored are 1572864; the largest MachineConfig is 60-bad",
    ),
}  # fmt: skip
IRRECONCILABLE: dict[str, tuple[JsonObject, str]] = {
    "groups": (spec(passwd={"groups": [{"name": "ops"}]}), "passwd.groups"),
    "a user of one's own": (spec(passwd={"users": [{"name": "eve"}]}), "user eve cannot be made: only core is managed"),
    "home of core": (
        spec(passwd={"users": [{"name": "core", "homeDir": "/x", "passwordHash": "h"}]}), "homeDir of user core",
    ),
    "core without anything": (spec(passwd={"users": [{"name": "core"}]}), "neither a password nor a key"),
    "kernel arguments in Ignition": (
        spec(kernelArguments={"shouldExist": ["quiet"]}), "use spec.kernelArguments of the MachineConfig",
    ),
    "disks": (spec(storage={"disks": [{"device": "/dev/vdb", "wipeTable": True}]}), "with the override Disks"),
    "filesystems": (
        spec(storage={"filesystems": [{"device": "/dev/vdb1", "format": "xfs", "path": "/var"}]}),
        "with the override FileSystems",
    ),
    "raid": (
        spec(storage={"raid": [{"name": "md0", "level": "raid1", "devices": ["/dev/vdb", "/dev/vdc"]}]}),
        "with the override Raid",
    ),
    "directories": (spec(storage={"directories": [{"path": "/opt/d"}]}), "directories are made when a machine is installed"),
    "links": (spec(storage={"links": [{"path": "/opt/l", "target": "/tmp"}]}), "links are made when a machine is installed"),
    "fips": ({"fips": True}, "FIPS mode is decided when a machine is installed"),
}  # fmt: skip
CONFIDENTIAL: dict[str, tuple[JsonObject, str]] = {
    "kernelArguments": ({"kernelArguments": ["nosmt"]}, "spec.kernelArguments: sets the kernel arguments nosmt"),
    "kernelType": ({"kernelType": "realtime"}, "spec.kernelType: asks for the kernel realtime"),
    "fips": ({"fips": True}, "spec.fips: switches FIPS mode on"),
    "extensions": ({"extensions": ["usbguard"]}, "spec.extensions: adds the extensions usbguard"),
    "arguments in Ignition": (
        spec(kernelArguments={"shouldNotExist": ["quiet"]}), "spec.config.kernelArguments.shouldNotExist",
    ),
    "the tuning file": (files(at(names.TUNING_FILE)), "/etc/pivot/kernel-args changes the kernel arguments"),
    "kargs.d": (files(at("/usr/lib/bootc/kargs.d/9.toml")), "kargs.d/9.toml changes the kernel arguments"),
    "a link to kargs.d": (
        spec(storage={"links": [{"path": "/etc/k", "target": "/usr/lib/bootc/kargs.d"}]}), "changes the kernel arguments",
    ),
}  # fmt: skip
TOGETHER: dict[str, tuple[JsonObject, JsonObject, str]] = {
    "kernel-devel beside another kernel": (
        {"extensions": ["kernel-devel"]}, {"kernelType": "realtime"}, "does not fit the kernel realtime",
    ),
    "a link above another's file": (
        files(at("/opt/l/a")), spec(storage={"links": [{"path": "/opt/l", "target": "/tmp"}]}),
        "good alone but not together",
    ),
}  # fmt: skip
SHAPES: dict[str, JsonObject] = {
    "fips": {"fips": "yes"},
    "kernelArguments": {"kernelArguments": "quiet"},
    "extensions": {"extensions": [1]},
    "config": {"config": "{}"},
    "osImageURL": {"osImageURL": 7},
}

# Settings that are refused: the kind, the spec, and what the condition says, word for word.
SETTINGS: dict[str, tuple[Any, JsonObject, str]] = {
    "kubelet field of the cluster": (
        KUBELET, {"kubeletConfig": {"cgroupDriver": "cgroupfs"}},
        "Error: KubeletConfiguration: cgroupDriver is not allowed to be set, but contains: cgroupfs",
    ),
    "kubelet static pods": (
        KUBELET, {"kubeletConfig": {"staticPodPath": "/x"}},
        'Error: KubeletConfiguration: staticPodPath must be empty for pool "worker", but contains: /x',
    ),
    "kubelet reserve twice": (
        KUBELET, {"autoSizingReserved": True, "kubeletConfig": {"systemReserved": {"cpu": "1"}}},
        "Error: KubeletConfiguration: autoSizingReserved and systemdReserved cannot be set together",
    ),
    "runtime log size": (
        RUNTIME, {"containerRuntimeConfig": {"logSizeMax": "8192"}},
        'Error: invalid LogSizeMax "8192", cannot be less than 8kB',
    ),
    "runtime pids": (RUNTIME, {"containerRuntimeConfig": {"pidsLimit": -1}}, "Error: invalid PidsLimit -1"),
}  # fmt: skip
