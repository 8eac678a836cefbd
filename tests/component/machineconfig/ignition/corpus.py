"""Configs by the thousand: good ones of every spec 3 version, and ones with something wrong.

`good` draws a config that should be valid in a version, with every section and nearly every field appearing now and then.
`changed` takes a config and changes one to three places: a value from a pool of doubtful values for that field name, another
type, a field gone, an entry twice, a field that does not exist. Most pools hold good and bad values side by side, because
both kinds of mistake of a validator count. All randomness comes from the generator that is passed in.
"""

import base64
import copy
import gzip
import hashlib
import random
from typing import Any

from fastness.machineconfig.ignition.fields import SPEC_3, Kind
from fastness.machineconfig.ignition.shape import JsonObject

UNIT = "[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n"
GUID = "01234567-89AB-CDEF-EDCB-A98765432101"
SHA512 = "sha512-" + hashlib.sha512(b"text").hexdigest()
SHA256 = "sha256-" + hashlib.sha256(b"text").hexdigest()
GZIPPED = "data:;base64," + base64.b64encode(gzip.compress(b"text", mtime=0)).decode()

URLS = (
    "data:,text", "data:", "data:text/plain;charset=utf-8;base64,dGV4dA==", "data:;base64,dGV4dA", "data:;base64,dGV4dA==",
    "data:,a%20b", "data:,a%2", "data:,a b", "data:,a#b", "data:,é", "data:text/plain,a", "data:foo/bar,a", "data:x-foo/bar,a",
    "data:text,a", "data:text/,a", "data:;charset=utf-8,a", "data:;charset=,a", "data:;base64;charset=utf-8,YQ==",
    "data:;base65,YQ==", 'data:;a="b c",d', "data:text/plain;charset=%zz,a", "data:;base64,YQ==\n", "data:;base64,Y=Q=",
    "data:;base64,====", "data:application/octet-stream;base64,AAAA", "DATA:,text", "data:,a<b", "data:,a|b", "data:x/y,a",
    "http://example.com/a", "https://user:pass@example.com:8080/a?b=c#d", "https://example.com:port/", "https://[::1]:80/a",
    "https://[::1/a", "https://exa mple.com/", "https://example.com/%zz", "https://example.com/#%zz", "https://%41.com/",
    "https://example.com/a?%zz", "http:opaque", "http:", "http:/a", "https://", "https://ex\"a.com/", "https://ex{a.com/",
    "https://a@b@c/", "https://us er@c/", "https://é.example/", "https://example.com:/", "https://a:b:c/", "https://%C3%A9/",
    "ftp://example.com/a", "tftp://example.com/a", "gs://bucket/a", "s3://bucket/a", "s3://bucket/a?versionId=",
    "s3://bucket/a?versionId=x", "s3://bucket/a?x=y&versionId", "s3://b/a?versionId=%zz", "oem:///a", "file:///a", "a", "",
    "/etc/a", ":a", "a:b", "1http://x", "ht!tp://x", "http://x\n", "http://x\x7f", "arn:aws:s3:::bucket/key",
    "arn:aws:s3:::bucket", "arn:aws:s3:us-east-1:123456789012:accesspoint/p/object/k", "arn:aws:ec2:::a/b", "arn:a",
    "arn:aws:s3:::bucket/key?versionId=", "HTTPS://example.com/", "https://example.com/a b", "//example.com/a",
)  # fmt: skip
PATHS = (
    "/etc/a", "/etc/b", "etc/a", "/etc/../a", "/etc//a", "/etc/a/", "/", "", "/.", "/..", "/etc/./a", "/etc/...", "/etc/..a",
    "/etc/a b", "/link/below", "/link", "/etc/é", "//", "/etc/systemd/system/a.service", "/etc/systemd/system/a.service.d/a.conf",
    "/etc\n/a", "/a..", "/dir",
)  # fmt: skip
UNITS = (
    UNIT, "", "[Unit]", "[Unit]\nfoo", "[Unit]\nfoo\n", "[Unit\n", "[Unit] x\n", "foo=bar\n", "garbage [Unit]\na=b\n",
    "# [Unit\n[Service]\na=b", "; comment \\\n[broken\n[Unit]\nA=b\n", "[Unit]\nA=b\\\n c\\\n\nD=e\n", "[Unit]\r\nA=b\r\n",
    "[Unit]\n=b\n", "[Un\nit]\nA=b\n", "[Unit]\nA=" + "x" * 2100 + "\n", "[Unit]\nA=b\n" * 300 + "C=" + "y" * 2100,
    "[Unit]\n#" + "z" * 3000 + "\nA=b\n", "[Install]\n", "[Install]\nAlias=x\n", "[Unit]\nA\\\n=b\n", "]\n", "[]\n\u00a0A=b\n",
    "[Unit]\nA=b\nlast", "[Unit]\n\x1cA=b", "\x1c", "[Unit]\nÄ=ö\n", "x" * 2500, "[" + "s" * 2500 + "]\n",
)  # fmt: skip
POOLS: dict[str, tuple[Any, ...]] = {
    "source": URLS, "url": URLS, "httpProxy": URLS, "httpsProxy": URLS, "path": PATHS, "device": PATHS, "target": PATHS,
    "contents": UNITS,
    "hash": (SHA512, SHA256, "sha512", "sha512-", "sha1-abc", "sha512-" + "g" * 128, "", SHA512.upper(), "md5-x",
             "sha256-" + "a" * 63),
    "mode": (0, 420, 0o777, 0o1777, 0o4755, 0o7777, 0o10000, -1, 420.0, "0644", 2**40, 2**63),
    "version": ("3.0.0", "3.1.0", "3.2.0", "3.3.0", "3", "", "3.3", "3.99.0", "2.2.0", "4.0.0", "3.3.0+x", "x", "1.0.0", 3, None),
    "compression": ("gzip", "", "xz", "GZIP", None),
    "name": ("a.service", "a.conf", "a", "", "a.servic", "b.mount", "a.service/", "x/y.service", "t@.service", "t@i.service",
             ".service",
             "core", "a/b", ".conf", "a.timer", "a.snapshot", "a.link", None),
    "format": ("ext4", "btrfs", "xfs", "vfat", "swap", "none", "ext3", "", None),
    "label": ("root", "a" * 12, "a" * 13, "a" * 16, "a" * 17, "a" * 36, "a" * 37, "é" * 8, "é" * 9, "a:b", "", "a" * 47,
              "a" * 48, None),
    "guid": (GUID, GUID.lower(), "", "x", GUID + "0"), "typeGuid": (GUID, "", "x", GUID[:-1]),
    "number": (0, 1, 2, -1, 300, None), "sizeMiB": (0, 1, 10, 100, None, -1), "startMiB": (0, 1, 5, 10, 50, None),
    "shouldExist": (True, False, None), "hard": (True, False), "overwrite": (True, False, None), "enabled": (True, False, None),
    "level": ("raid0", "raid1", "linear", "stripe", "raid7", "", "10", "mirror", None), "spares": (0, 1, -1, None),
    "devices": ([], ["/dev/a"], ["dev"], ["/dev/a", "/dev/a"], None), "pin": ("tpm2", "tang", "sss", "x", "", None),
    "config": ("{}", "", None), "threshold": (0, 1, 2, None), "tpm2": (True, False, None), "thumbprint": ("x", "", None),
    "advertisement": ("{}", "{", "", "[1]", None), "id": (0, 1000, -1, None), "value": ("x", "", None), "mask": (True, False),
    "uid": (0, -1, 5), "wipeTable": (True, False), "needsNetwork": (True, False), "noProxy": ([], ["a", "a"], ["a"], [""]),
    "custom": ({}, None, {"pin": "tang", "config": "{}"}, {"needsNetwork": True}, {"config": "x"}),
    "cex": ({}, {"enabled": True}, {"enabled": False}),
    "user": ({}, {"id": 1}, {"name": "x"}, {"id": 1, "name": "x"}, {"id": 1, "name": ""}),
}  # fmt: skip
_ANY: tuple[Any, ...] = (None, "", "x", 0, 7, True, [], {}, ["x"], [{}], [None], 1.5, {"x": 1}, [[]])


def good(rng: random.Random, minor: int) -> JsonObject:
    """A config that should be valid in spec 3.<minor>."""
    config: JsonObject = {"ignition": _ignition(rng, minor)}
    if rng.random() < 0.9:
        config["storage"] = _storage(rng, minor)
    if rng.random() < 0.7:
        config["systemd"] = {"units": [_unit(rng, f"unit{i}.service") for i in range(rng.randrange(4))]}
    if rng.random() < 0.5:
        config["passwd"] = _passwd(rng, minor)
    if minor >= 3 and rng.random() < 0.4:
        config["kernelArguments"] = {"shouldExist": ["quiet", "a=b"], "shouldNotExist": ["rhgb"]}
    return config


def _some(rng: random.Random, fields: dict[str, Any], chance: float = 0.5) -> JsonObject:
    return {name: value for name, value in fields.items() if rng.random() < chance}


def _resource(rng: random.Random, minor: int, reference: bool = False) -> JsonObject:
    source = rng.choice(("data:,text", "data:text/plain;base64,dGV4dA==", "https://example.com/a", "s3://bucket/key"))
    resource: JsonObject = {"source": source}
    if rng.random() < 0.3:
        resource["verification"] = {"hash": SHA256 if minor >= 1 and rng.random() < 0.5 else SHA512}
    if rng.random() < 0.2 and (minor >= 1 or not reference):
        resource |= {"source": GZIPPED, "compression": "gzip"}
    if minor >= 1 and resource["source"].startswith("https") and rng.random() < 0.5:
        resource["httpHeaders"] = [{"name": "Authorization", "value": "Bearer x"}, {"name": "X-A"}]
    return resource


def _ignition(rng: random.Random, minor: int) -> JsonObject:
    ignition: JsonObject = {"version": f"3.{minor}.0"}
    if rng.random() < 0.4:
        ignition["config"] = _some(
            rng, {"merge": [_resource(rng, minor, True)], "replace": _resource(rng, minor, True)}
        )
    if rng.random() < 0.3:
        ignition["timeouts"] = _some(rng, {"httpResponseHeaders": 10, "httpTotal": 0})
    if rng.random() < 0.3:
        ignition["security"] = {"tls": {"certificateAuthorities": [_resource(rng, minor, True)]}}
    if minor >= 1 and rng.random() < 0.3:
        proxies = {"httpProxy": "http://p", "httpsProxy": "https://p:3128", "noProxy": ["a", "b"]}
        ignition["proxy"] = _some(rng, proxies)
    return ignition


def _storage(rng: random.Random, minor: int) -> JsonObject:
    storage: JsonObject = {
        "files": [_file(rng, minor, f"/etc/file{i}") for i in range(rng.randrange(5))],
        "directories": [
            {
                "path": f"/dir{i}",
                **_some(rng, {"mode": 0o755, "overwrite": True, "user": {"id": 0}, "group": {"name": "root"}}),
            }
            for i in range(rng.randrange(3))
        ],
        "links": [
            {"path": f"/link{i}", "target": "/etc/file0", **_some(rng, {"hard": False})}
            for i in range(rng.randrange(3))
        ],
    }
    if rng.random() < 0.4:
        storage["disks"] = [_disk(rng, minor)]
        storage["raid"] = [
            {
                "name": "md",
                "level": "raid1",
                "devices": ["/dev/a", "/dev/b"],
                **_some(rng, {"spares": 1, "options": ["-x", "-x"]}),
            }
        ]
        storage["filesystems"] = [_filesystem(rng, minor)]
    if minor >= 2 and rng.random() < 0.4:
        storage["luks"] = [_luks(rng, minor)]
    return storage


def _file(rng: random.Random, minor: int, path: str) -> JsonObject:
    file: JsonObject = {"path": path}
    if rng.random() < 0.8:
        file["contents"] = _resource(rng, minor)
        file |= _some(rng, {"overwrite": True})
    file |= _some(rng, {"mode": rng.choice((0o644, 0o600, 0o4755)), "user": {"id": 0}, "group": {"name": "wheel"}}, 0.4)
    return file | _some(rng, {"append": [_resource(rng, minor), _resource(rng, minor)]}, 0.2)


def _disk(rng: random.Random, minor: int) -> JsonObject:
    first: JsonObject = {"number": 1, "label": "one", "startMiB": 1, "sizeMiB": 10, "typeGuid": GUID}
    second: JsonObject = {"label": "two", **_some(rng, {"guid": GUID, "sizeMiB": 0, "wipePartitionEntry": True})}
    if minor >= 2:
        second |= _some(rng, {"resize": True})
    return {"device": "/dev/sda", "wipeTable": rng.random() < 0.5, "partitions": [first, second]}


def _filesystem(rng: random.Random, minor: int) -> JsonObject:
    fields = {"path": "/var", "wipeFilesystem": True, "label": "var", "uuid": "x", "options": ["-a", "-a"]}
    if minor >= 1:
        fields["mountOptions"] = ["noatime"]
    formats = ("ext4", "xfs", "btrfs", "vfat", "swap", *(("none",) if minor >= 3 else ()))
    return {"device": "/dev/disk/by-partlabel/one", "format": rng.choice(formats), **_some(rng, fields)}


def _luks(rng: random.Random, minor: int) -> JsonObject:
    luks: JsonObject = {
        "name": "data",
        "device": "/dev/sdb",
        **_some(rng, {"label": "l", "uuid": "u", "options": ["-c"], "wipeVolume": True}),
    }
    tang = {
        "url": "https://tang",
        "thumbprint": "t",
        **({"advertisement": "{}"} if minor >= 4 and rng.random() < 0.5 else {}),
    }
    choice = rng.randrange(4 if minor < 5 else 5)
    if choice == 0:
        luks["keyFile"] = _resource(rng, minor)
    elif choice == 1:
        luks["clevis"] = {"tang": [tang], "tpm2": True, "threshold": 2}
    elif choice == 2:
        luks["clevis"] = {"custom": {"pin": "sss", "config": "{}", "needsNetwork": True}}
    elif choice == 4:
        luks["cex"] = {"enabled": True}
    if minor >= 4:
        luks |= _some(rng, {"discard": True, "openOptions": ["--x"]})
    return luks


def _unit(rng: random.Random, name: str) -> JsonObject:
    dropins = [{"name": "a.conf", "contents": "[Service]\nA=b\n"}, {"name": "b.conf"}]
    return {"name": name, **_some(rng, {"enabled": True, "mask": False, "contents": UNIT, "dropins": dropins})}


def _passwd(rng: random.Random, minor: int) -> JsonObject:
    fields: JsonObject = {
        "passwordHash": "$6$x", "sshAuthorizedKeys": ["a", "b"], "uid": 1000, "gecos": "", "homeDir": "/home/core",
        "noCreateHome": True,
        "primaryGroup": "core", "groups": ["wheel", "sudo"], "noUserGroup": True, "noLogInit": True,
        "shell": "/bin/sh", "system": False,
    }  # fmt: skip
    exists = {"shouldExist": True} if minor >= 2 else {}
    user = {"name": "core", **_some(rng, fields | exists)}
    return {
        "users": [user],
        "groups": [{"name": "g", **_some(rng, {"gid": 5, "passwordHash": "x", "system": True} | exists)}],
    }


def changed(rng: random.Random, config: JsonObject) -> JsonObject:
    """The config with one to three places changed."""
    result = copy.deepcopy(config)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice((_doubtful, _doubtful, _doubtful, _other_type, _drop, _repeat, _invent, _young))(rng, result)
    return result


def _containers(value: Any) -> list[Any]:
    containers, queue = [], [value]
    while queue:
        item = queue.pop()
        if isinstance(item, (dict, list)):
            containers.append(item)
            queue.extend(item.values() if isinstance(item, dict) else item)
    return containers


def _doubtful(rng: random.Random, config: JsonObject) -> None:
    """Another value from the pool of the field."""
    places = [(box, name) for box in _containers(config) if isinstance(box, dict) for name in box if name in POOLS]
    if not places:
        return
    box, name = rng.choice(places)
    if isinstance(box[name], (dict, list)) and name not in ("devices", "noProxy", "custom", "user"):
        return
    box[name] = copy.deepcopy(rng.choice(POOLS[name]))


def _other_type(rng: random.Random, config: JsonObject) -> None:
    box = rng.choice(_containers(config))
    if box:
        key = rng.choice(list(box)) if isinstance(box, dict) else rng.randrange(len(box))
        box[key] = copy.deepcopy(rng.choice(_ANY))


def _drop(rng: random.Random, config: JsonObject) -> None:
    box = rng.choice(_containers(config))
    if box:
        del box[rng.choice(list(box)) if isinstance(box, dict) else rng.randrange(len(box))]


def _repeat(rng: random.Random, config: JsonObject) -> None:
    lists = [box for box in _containers(config) if isinstance(box, list) and box]
    if lists:
        box = rng.choice(lists)
        box.append(copy.deepcopy(rng.choice(box)))


def _invent(rng: random.Random, config: JsonObject) -> None:
    boxes = [box for box in _containers(config) if isinstance(box, dict)]
    rng.choice(boxes)[rng.choice(("unknown", "mod", "contents", "path", "Mode", "name"))] = copy.deepcopy(
        rng.choice(_ANY)
    )


def _young(rng: random.Random, config: JsonObject) -> None:
    """A field of the table, of whatever version, into a section where it belongs."""
    for section, struct in (("ignition", "Ignition"), ("storage", "Storage")):
        if isinstance(config.get(section), dict):
            name = rng.choice([name for name, field in SPEC_3[struct].items() if field.kind is not Kind.STRING])
            config[section][name] = rng.choice(([], {}, [{}], None))


def systematic(minor: int) -> list[JsonObject]:
    """One config for every doubtful value, alone in an otherwise plain config of spec 3.<minor>."""

    def config(**sections: Any) -> JsonObject:
        return {"ignition": {"version": f"3.{minor}.0"}, **sections}

    def files(**fields: Any) -> JsonObject:
        return config(storage={"files": [{"path": "/etc/a", **fields}]})

    def ignition(**fields: Any) -> JsonObject:
        return {"ignition": {"version": f"3.{minor}.0", **fields}}

    configs = [files(contents={"source": url}) for url in URLS]
    configs += [files(contents={"source": url, "httpHeaders": [{"name": "a", "value": "b"}]}) for url in URLS]
    configs += [ignition(config={"merge": [{"source": url}]}) for url in URLS]
    configs += [ignition(security={"tls": {"certificateAuthorities": [{"source": url}]}}) for url in URLS]
    configs += [ignition(proxy={"httpProxy": url, "httpsProxy": url}) for url in URLS]
    configs += [config(systemd={"units": [{"name": "a.service", "contents": unit, "enabled": True}]}) for unit in UNITS]
    configs += [
        config(systemd={"units": [{"name": "a.service", "dropins": [{"name": "a.conf", "contents": unit}]}]})
        for unit in UNITS
    ]
    configs += [config(systemd={"units": [{"name": name}]}) for name in POOLS["name"]]
    for path in PATHS:
        links = [{"path": "/link", "target": "x"}, {"path": "/h", "target": path, "hard": True, "user": {"id": 1}}]
        configs.append(config(storage={"files": [{"path": path}], "links": links, "directories": [{"path": "/dir"}]}))
        configs.append(config(storage={"raid": [{"name": "a", "level": "raid1", "devices": [path]}]}))
        configs.append(config(storage={"filesystems": [{"device": "/dev/a", "format": "ext4", "path": path}]}))
    configs += [files(contents={"source": "data:,a", "verification": {"hash": text}}) for text in POOLS["hash"]]
    configs += [files(mode=mode) for mode in POOLS["mode"]]
    for form in POOLS["format"]:
        for label in POOLS["label"]:
            configs.append(config(storage={"filesystems": [{"device": "/dev/a", "format": form, "label": label}]}))
    for label in POOLS["label"]:
        for number in POOLS["number"]:
            configs.append(
                config(storage={"disks": [{"device": "/dev/a", "partitions": [{"number": number, "label": label}]}]})
            )
        configs.append(config(storage={"luks": [{"name": "a", "device": "/dev/a", "label": label}]}))
    for custom in POOLS["custom"]:
        for others in ({}, {"tpm2": True}, {"threshold": 1}, {"tang": [{"url": "http://a", "thumbprint": "x"}]}):
            configs.append(
                config(storage={"luks": [{"name": "a", "device": "/dev/a", "clevis": {"custom": custom, **others}}]})
            )
    for pin in POOLS["pin"]:
        for text in POOLS["config"]:
            clevis = {"custom": {"pin": pin, "config": text}}
            configs.append(config(storage={"luks": [{"name": "a", "device": "/dev/a", "clevis": clevis}]}))
    for level in POOLS["level"]:
        configs += [
            config(storage={"raid": [{"name": "a", "level": level, "devices": ["/dev/a"], "spares": n}]})
            for n in POOLS["spares"]
        ]
    configs += [{"ignition": {"version": version}} for version in POOLS["version"]]
    configs += _partition_pairs(config)
    return configs


def _partition_pairs(config: Any) -> list[JsonObject]:
    pairs = []
    for start in POOLS["startMiB"]:
        for size in POOLS["sizeMiB"]:
            partitions = [
                {"number": 1, "startMiB": 5, "sizeMiB": 10},
                {"number": 2, "startMiB": start, "sizeMiB": size},
            ]
            pairs.append(config(storage={"disks": [{"device": "/dev/a", "partitions": partitions}]}))
    for fields in (
        {"label": "x"},
        {"guid": GUID},
        {"guid": ""},
        {"sizeMiB": 0},
        {"startMiB": 1},
        {"typeGuid": "x"},
        {},
    ):
        for other in ({"number": 2}, {"label": "y"}, {"number": 1}):
            partitions = [{"number": 1, "shouldExist": False, **fields}, other]
            pairs.append(config(storage={"disks": [{"device": "/dev/a", "partitions": partitions}]}))
    return pairs
