"""Image or disk: every row of the rule, and that nothing confidential goes into an image."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.builds.inputs import StillRendering, build_name, inputs
from fastness.builds.placement import PUBLIC, Setting, Where, placed, public_configs
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.merge import Source, merged_document
from fastness.machineconfig.render.validate import examine
from fastness.machineconfig.rollout.disruption import DEFAULTS, policies_of
from fastness.protocol.files_of_others import DIRECTORY

BASE = f"registry.example/os@sha256:{'a' * 64}"


def config(name: str, **parts: Any) -> JsonObject:
    notes = {PUBLIC: "true"} if parts.pop("public", False) else {}
    spec = {
        key: parts.pop(key) for key in ("osImageURL", "kernelArguments", "extensions", "kernelType") if key in parts
    }
    files = [
        {"path": path, "contents": {"source": f"data:,{text}"}, **more}
        for path, text, more in [(*entry, {})[:3] for entry in parts.pop("files", ())]
    ]
    document: JsonObject = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}, **parts}
    return {"metadata": {"name": name, "annotations": notes}, "spec": {**spec, "config": document}}


def sources(*configs: JsonObject) -> list[Source]:
    examined = [examine(each) for each in configs]
    return [Source(each.name, each.spec, each.document) for each in examined]


def where(setting: Setting, *configs: JsonObject) -> dict[str, tuple[Where, str]]:
    return {part.path: (part.where, part.why) for part in placed(sources(*configs), setting)}


@pytest.mark.parametrize(
    ("path", "more", "expected", "why"),
    [
        ("/etc/chrony.conf", {}, Where.IMAGE, "changes with a reboot only"),
        ("/usr/lib/x", {}, Where.IMAGE, "changes with a reboot only"),
        ("/var/lib/x", {}, Where.DISK, "/var belongs to the machine"),
        ("/home/core/x", {}, Where.DISK, "/home is /var/home"),
        ("/usr/local/bin/x", {}, Where.DISK, "/usr/local is below /var"),
        ("/variable", {}, Where.IMAGE, "changes with a reboot only"),
        ("/etc/containers/policy.json", {}, Where.DISK, "takes effect without a reboot"),
        ("/etc/kubernetes/kubelet-ca.crt", {}, Where.DISK, "authority of the cluster"),
        ("/etc/mine", {"user": {"name": "core"}}, Where.DISK, "belongs to an account"),
        ("/etc/mine", {"user": {"id": 0}, "group": {"name": "root"}}, Where.IMAGE, "changes with a reboot only"),
    ],
)
def test_a_file_is_where_the_rule_says(path: str, more: JsonObject, expected: Where, why: str) -> None:
    places = where(Setting(DEFAULTS), config("a", files=[(path, "x", more)]))[path]
    assert places[0] is expected
    assert why in places[1]


def test_a_file_whose_policy_needs_no_reboot_leaves_the_image() -> None:
    policy = {"files": [{"path": "/etc/chrony.conf", "actions": [{"type": "None"}]}]}
    mine = config("a", files=[("/etc/chrony.conf", "x")])
    without = Setting(policies_of({"spec": {"nodeDisruptionPolicy": policy}}))
    assert where(Setting(DEFAULTS), mine)["/etc/chrony.conf"][0] is Where.IMAGE
    assert where(without, mine)["/etc/chrony.conf"] == (Where.DISK, "takes effect without a reboot (None)")


def test_units_keys_arguments_and_what_the_control_plane_writes_are_listed_with_their_owner() -> None:
    whole = config(
        "a", kernelArguments=["x=1"], extensions=["usbguard"], osImageURL=BASE,
        systemd={"units": [{"name": "u.service", "contents": "[Unit]", "enabled": True,
                            "dropins": [{"name": "1.conf", "contents": "[Service]"}]}]},
        passwd={"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 k"]}]},
    )  # fmt: skip
    parts = {part.path: part for part in placed(sources(whole), Setting(DEFAULTS))}
    assert parts["/etc/systemd/system/u.service"].where is Where.IMAGE
    assert parts["/etc/systemd/system/u.service.d/1.conf"].where is Where.IMAGE
    assert parts["/home/core/.ssh/authorized_keys.d/ignition"].where is Where.DISK
    assert parts["kernelArgument x=1"].where is parts["extension usbguard"].where is Where.IMAGE
    secret = {part.path: part for part in placed(sources(whole), Setting(DEFAULTS, confidential=True))}
    assert "validate --suggest" in secret["kernelArgument x=1"].why
    assert secret["extension usbguard"].where is Where.DISK
    assert {parts["/var/lib/kubelet/config.json"].owner, parts["/etc/docker/certs.d"].owner} == {"control plane"}
    assert parts["/etc/systemd/system/u.service"].owner == "a"


def test_a_confidential_pool_publishes_what_is_marked_public_and_nothing_else() -> None:
    secret = config("50-secret", files=[("/etc/secret", "canary")])
    mine = config("60-public", files=[("/etc/banner", "hello"), ("/etc/secret", "later")], public=True)
    setting = Setting(DEFAULTS, confidential=True, public=public_configs([secret, mine]))
    places = where(setting, secret, mine)
    assert places["/etc/banner"][0] is Where.IMAGE
    assert places["/etc/secret"] == (Where.DISK, f"confidential: 50-secret is not marked {PUBLIC}")
    for value in ("false", "yes", ""):
        almost = config("a", files=[("/etc/x", "1")])
        almost["metadata"]["annotations"] = {PUBLIC: value}
        assert public_configs([almost]) == frozenset()
    made = inputs(
        {"spec": {}}, {"spec": {"config": merged_document(sources(secret, mine))}}, sources(secret, mine), setting
    )
    assert [file.path for file in made.files] == ["/etc/banner"]


def test_contents_are_taken_only_when_the_configs_make_the_rendered_config() -> None:
    old, new = sources(config("a", files=[("/etc/x", "secret")])), sources(config("a", files=[("/etc/x", "public")]))
    with pytest.raises(StillRendering):
        inputs({"spec": {}}, {"spec": {"config": merged_document(old)}}, new, Setting(DEFAULTS))


def test_a_change_on_the_disk_is_another_build_of_the_same_image() -> None:
    described: JsonObject = {"metadata": {"name": "worker"}, "spec": {"containerFile": [{"content": "RUN a"}]}}

    def made(*configs: JsonObject, text: str = "RUN a") -> tuple[str, str]:
        given = sources(*configs)
        rendered = {"spec": {"osImageURL": BASE, "config": merged_document(given)}}
        other = {**described, "spec": {"containerFile": [{"content": text}]}}
        pool = {"spec": {"configuration": {"name": f"rendered-{hash(repr(configs))}"}}}
        return build_name(other, pool, rendered), inputs(other, rendered, given, Setting(DEFAULTS)).digest

    etc = config("a", files=[("/etc/x", "1")])
    plain, disk = made(etc), made(etc, config("b", files=[("/var/x", "1")]))
    assert (plain[0] != disk[0], plain[1] == disk[1]) == (True, True)
    assert made(config("a", files=[("/etc/x", "2")]))[1] != plain[1]
    assert made(etc, text="RUN b")[1] != plain[1]
    assert made(etc) == plain, "taking a change back leads to the old build"
    assert plain[0].startswith("worker-")


@pytest.mark.row("003-34")
def test_files_of_other_operators_are_listed_with_their_owner_and_stay_out_of_the_image() -> None:
    declared = (f"{DIRECTORY}/a.json", "%7B%22owner%22:%22sriov%22,%22paths%22:%5B%22/etc/sriov%22%5D%7D")
    mine = config("a", files=[declared, ("/etc/sriov/first", "x"), ("/etc/other", "x")])
    parts = {part.path: part for part in placed(sources(mine), Setting(DEFAULTS))}
    assert (parts["/etc/sriov"].where, parts["/etc/sriov"].owner) == (Where.DISK, "sriov")
    assert (parts["/etc/sriov/first"].where, parts["/etc/sriov/first"].why) == (
        Where.DISK, "only its first content: sriov keeps it",
    )  # fmt: skip
    assert parts["/etc/other"].where is Where.IMAGE
    assert parts[f"{DIRECTORY}/a.json"].why == "takes effect without a reboot (None)"
