"""Between versions: the same meaning, or a loss with its path."""

import random
from typing import Any

import pytest

from fastness.machineconfig import ignition
from fastness.machineconfig.ignition import Config, InvalidConfig
from fastness.protocol.ignition_spec import CURRENT, LEGACY, SPEC3, Version, minor
from tests.component.machineconfig.ignition.corpus import good


def config(version: str = CURRENT, **sections: Any) -> dict[str, Any]:
    return {"ignition": {"version": version}, **sections}


def moved(raw: dict[str, Any], version: Version) -> tuple[dict[str, Any], set[str]]:
    result, losses = ignition.translate(ignition.parse(raw), version)
    assert result.version == version
    assert ignition.inspect(result.body).config is not None, ignition.validate(result.body)
    return result.body, {loss.path for loss in losses}


@pytest.mark.parametrize("source", SPEC3)
@pytest.mark.parametrize("target", [LEGACY, *SPEC3])
def test_every_pair_of_versions_gives_a_good_config(source: Version, target: Version) -> None:
    generator = random.Random(f"{source} {target}")
    for _ in range(25):
        before = ignition.parse(good(generator, minor(source)))
        after, losses = ignition.translate(before, target)
        assert ignition.inspect(after.body).config is not None, (before.body, ignition.validate(after.body))
        if target != LEGACY and minor(target) >= minor(source):
            assert losses == ()


@pytest.mark.parametrize("version", SPEC3)
def test_up_and_down_again_is_the_same_config(version: Version) -> None:
    generator = random.Random(version)
    for _ in range(25):
        raw = good(generator, minor(version))
        for file in raw.get("storage", {}).get("files", []):
            file.pop("mode", None)
        up, _ = ignition.translate(ignition.parse(raw), CURRENT)
        down, losses = ignition.translate(up, version)
        assert losses == ()
        assert ignition.merge_all([("x", down.body)]) == ignition.merge_all([("x", raw)])


def test_the_same_version_is_the_same_object() -> None:
    parsed = ignition.parse(config())
    assert ignition.translate(parsed, CURRENT) == (parsed, ())


def test_upgrade_takes_off_the_mode_bits_that_were_ignored() -> None:
    old = config(
        "3.3.0", storage={"files": [{"path": "/a", "mode": 0o4755}], "directories": [{"path": "/d", "mode": 0o1777}]}
    )
    assert ignition.upgrade(old)["storage"] == {
        "files": [{"path": "/a", "mode": 0o755}],
        "directories": [{"path": "/d", "mode": 0o777}],
    }


def storage(name: str, **fields: Any) -> dict[str, Any]:
    bases = {
        "luks": {"name": "v", "device": "/d"},
        "files": {"path": "/a"},
        "filesystems": {"device": "/d"},
        "disks": {"device": "/d"},
    }
    return {"storage": {name: [{**bases[name], **fields}]}}


SHA256 = {"source": "data:,", "verification": {"hash": "sha256-" + "a" * 64}}


@pytest.mark.parametrize(
    ("sections", "last_without", "path"),
    [
        (storage("luks", cex={"enabled": True}), "3.4.0", "storage.luks[0].cex"),
        (storage("luks", discard=True), "3.3.0", "storage.luks[0].discard"),
        (storage("files", mode=0o1755), "3.3.0", "storage.files[0].mode"),
        (
            storage("files", contents={"source": "arn:aws:s3:::b/k"}, overwrite=True),
            "3.3.0",
            "storage.files[0].contents.source",
        ),
        ({"kernelArguments": {"shouldExist": ["a"]}}, "3.2.0", "kernelArguments"),
        (storage("filesystems", format="none"), "3.2.0", "storage.filesystems[0].format"),
        (storage("luks"), "3.1.0", "storage.luks"),
        ({"passwd": {"users": [{"name": "x", "shouldExist": False}]}}, "3.1.0", "passwd.users[0].shouldExist"),
        (
            storage("disks", partitions=[{"number": 1, "resize": True}]),
            "3.1.0",
            "storage.disks[0].partitions[0].resize",
        ),
        (storage("files", contents={"source": "gs://b/k"}), "3.1.0", "storage.files[0].contents.source"),
        (
            storage("filesystems", format="xfs", mountOptions=["x"]),
            "3.0.0",
            "storage.filesystems[0].mountOptions",
        ),
        (storage("files", contents=SHA256), "3.0.0", "storage.files[0].contents.verification.hash"),
    ],
)
def test_a_loss_is_named_from_the_version_that_lacks_it(sections: dict[str, Any], last_without: str, path: str) -> None:
    for version in SPEC3:
        _, lost = moved(config(**sections), version)
        # In still older versions the loss may be of something larger, such as all encrypted volumes.
        assert bool(lost) is (version <= last_without), version
        assert version != last_without or lost == {path}


def test_what_says_nothing_is_left_out_without_a_loss() -> None:
    quiet = config(
        kernelArguments={"shouldExist": []},
        passwd={"users": [{"name": "core", "shouldExist": True}]},
        storage={"luks": [], "disks": [{"device": "/d", "partitions": [{"number": 1, "resize": False}]}]},
    )
    body, lost = moved(quiet, "3.0.0")
    assert lost == set()
    assert body["passwd"]["users"] == [{"name": "core"}]


def test_a_reference_that_cannot_come_along_goes_as_a_whole() -> None:
    pointer = config()
    pointer["ignition"]["config"] = {"merge": [{"source": "gs://b/k"}, {"source": "https://x/"}]}
    body, lost = moved(pointer, "3.1.0")
    assert lost == {"ignition.config.merge[0].source"}
    assert body["ignition"]["config"] == {"merge": [{"source": "https://x/"}]}


def test_a_user_that_should_not_exist_does_not_come_back_as_one_that_should() -> None:
    body, _ = moved(config(passwd={"users": [{"name": "x", "shouldExist": False}]}), "3.1.0")
    assert body.get("passwd", {}).get("users", []) == []


def legacy(**sections: Any) -> dict[str, Any]:
    return ignition.upgrade(config("2.2.0", **sections))


def node(path: str, **fields: Any) -> dict[str, Any]:
    return {"filesystem": "root", "path": path, "mode": 420, **fields}


def test_the_installer_stub_becomes_a_pointer_of_the_current_spec() -> None:
    stub = config("2.2.0")
    stub["ignition"] |= {
        "config": {"append": [{"source": "https://api-int:22623/config/worker", "verification": {}}]},
        "security": {
            "tls": {"certificateAuthorities": [{"source": "data:text/plain;base64,AAAA", "verification": {}}]}
        },
        "timeouts": {},
    }
    assert ignition.upgrade(stub)["ignition"] == {
        "version": CURRENT,
        "config": {"merge": [{"source": "https://api-int:22623/config/worker"}]},
        "security": {"tls": {"certificateAuthorities": [{"source": "data:text/plain;base64,AAAA"}]}},
    }


def test_repeated_entries_of_spec_2_are_brought_together() -> None:
    storage = {
        "files": [node("/a", contents={"source": "data:,1"}), node("/b"), node("/a", contents={"source": "data:,2"})]
    }
    units = [
        {
            "name": "a.service",
            "contents": "[Unit]\n",
            "dropins": [{"name": "1.conf", "contents": "[x]"}, {"name": "2.conf"}],
        },
        {"name": "a.service", "enable": True, "dropins": [{"name": "1.conf", "contents": "[y]"}]},
    ]
    users = [{"name": "core", "sshAuthorizedKeys": ["1", "2"]}, {"name": "core", "sshAuthorizedKeys": ["3", "1"]}]
    result = legacy(storage=storage, systemd={"units": units}, passwd={"users": users})
    assert [(file["path"], file["contents"]["source"]) for file in result["storage"]["files"]] == [
        ("/a", "data:,2"),
        ("/b", ""),
    ]
    assert result["systemd"]["units"] == [
        {"name": "a.service", "enabled": True, "dropins": [{"name": "1.conf", "contents": "[y]"}, {"name": "2.conf"}]}
    ]
    assert result["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": ["3", "1", "2"]}]


def test_appending_and_overwriting_keep_their_meaning() -> None:
    result = legacy(
        storage={
            "files": [node("/a", append=True, contents={"source": "data:,x"}), node("/b", overwrite=False), node("/c")]
        }
    )
    assert result["storage"]["files"] == [
        {"path": "/a", "mode": 420, "overwrite": False, "append": [{"source": "data:,x"}]},
        {"path": "/b", "mode": 420, "overwrite": False, "contents": {"source": ""}},
        {"path": "/c", "mode": 420, "overwrite": True, "contents": {"source": ""}},
    ]


def test_enabled_wins_over_enable() -> None:
    result = legacy(systemd={"units": [{"name": "a.service", "enable": True, "enabled": False}]})
    assert result["systemd"]["units"][0]["enabled"] is False


@pytest.mark.parametrize(
    ("sections", "code"),
    [
        ({"networkd": {"units": [{"name": "a.network", "contents": "[Match]\n"}]}}, "networkd-unsupported"),
        ({"passwd": {"users": [{"name": "core", "create": {}}]}}, "deprecated"),
        ({"passwd": {"users": [{"name": "other"}]}}, "only-core"),
        ({"storage": {"files": [{"filesystem": "data", "path": "/a"}]}}, "filesystem-unmapped"),
        ({"storage": {"files": [node("/l/a")], "links": [node("/l", target="/x")]}}, "through-link"),
        ({"storage": {"files": [node("/a")], "directories": [node("/a")]}}, "duplicate"),
        ({"storage": {"files": [node("/a/../b")]}}, "path-not-simplified"),
        ({"storage": {"files": [node("/a", contents={"source": "oem:///x"})]}}, "invalid-scheme"),
        ({"storage": {"disks": [{"device": "/d", "partitions": [{"number": 1, "size": 5}]}]}}, "not-whole-mebibytes"),
    ],
)
def test_what_spec_3_cannot_say_is_refused(sections: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        legacy(**sections)
    assert code in {problem.code for problem in caught.value.problems}


def test_the_current_spec_in_words_of_2_2() -> None:
    modern = config(
        storage={
            "filesystems": [
                {"device": "/dev/a", "format": "xfs", "path": "/var"},
                {"device": "/dev/b", "format": "ext4", "path": "/var/lib"},
            ],
            "files": [
                {"path": "/var/lib/x", "contents": {"source": "data:,1"}, "append": [{"source": "data:,2"}]},
                {"path": "/var/y", "overwrite": True, "contents": {"source": "data:,3"}},
                {"path": "/etc/z"},
            ],
            "disks": [{"device": "/dev/c", "partitions": [{"number": 1, "sizeMiB": 3, "startMiB": 1}]}],
        }
    )  # fmt: skip
    modern["ignition"]["config"] = {"merge": [{"source": "https://x/"}]}
    body, lost = moved(modern, LEGACY)
    assert lost == set()
    assert [
        (file["path"], file["filesystem"], file["overwrite"], file.get("append", False))
        for file in body["storage"]["files"]
    ] == [
        ("/var/lib/x", "filesystem-1", False, False),
        ("/var/lib/x", "filesystem-1", False, True),
        ("/var/y", "filesystem-0", True, False),
        ("/etc/z", "root", False, False),
    ]
    assert body["ignition"] == {"version": LEGACY, "config": {"append": [{"source": "https://x/"}]}}
    assert body["storage"]["disks"][0]["partitions"] == [{"number": 1, "size": 6144, "start": 2048}]


def test_losses_on_the_way_to_2_2_are_named() -> None:
    modern = config(
        kernelArguments={"shouldExist": ["a"]},
        passwd={"users": [{"name": "x", "shouldExist": False}]},
        storage={
            "luks": [{"name": "v", "device": "/d"}],
            "files": [
                {"path": "/a", "contents": {"source": "https://x", "httpHeaders": [{"name": "A", "value": "b"}]}}
            ],
            "filesystems": [
                {"device": "/d", "format": "xfs", "mountOptions": ["x"]},
                {"device": "/e", "format": "none"},
            ],
            "disks": [{"device": "/f", "partitions": [{"number": 1, "resize": True}]}],
        },
    )
    modern["ignition"] |= {
        "proxy": {"httpProxy": "http://p"},
        "config": {"merge": [{"source": "data:;base64,AAAA", "compression": "gzip"}]},
    }
    _, lost = moved(modern, LEGACY)
    assert lost == {
        "kernelArguments", "passwd.users[0].shouldExist", "storage.luks", "storage.files[0].contents.httpHeaders",
        "storage.filesystems[0].mountOptions", "storage.filesystems[1].format", "storage.disks[0].partitions[0].resize",
        "ignition.proxy", "ignition.config.merge[0].compression",
    }  # fmt: skip


def test_spec_2_goes_through_the_current_spec_to_any_other() -> None:
    old = Config(LEGACY, config("2.2.0", systemd={"units": [{"name": "a.service", "enable": True}]}))
    for version in SPEC3:
        body, losses = ignition.translate(old, version)
        assert losses == ()
        assert body.body == config(version, systemd={"units": [{"name": "a.service", "enabled": True}]})
