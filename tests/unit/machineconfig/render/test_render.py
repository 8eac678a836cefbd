"""Selection, order, merge, name and failure of rendering."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.render.render import (
    MAX_SIZE,
    Rendered,
    RenderFailure,
    Setting,
    render,
)
from tests.unit.machineconfig.build import file, ignition, mc, pool


def good(*configs: dict[str, Any], of: str = "worker", setting: Setting | None = None) -> Rendered:
    result = render(pool(of), configs, setting or Setting())
    assert isinstance(result, Rendered), result
    return result


def bad(*configs: dict[str, Any], of: str = "worker", setting: Setting | None = None) -> RenderFailure:
    result = render(pool(of), configs, setting or Setting())
    assert isinstance(result, RenderFailure), result
    return result


def text(rendered: Rendered, path: str) -> str:
    [entry] = [file for file in rendered.spec["config"]["storage"]["files"] if file["path"] == path]
    return dataurl.contents(entry["contents"]).decode()


def test_the_name_is_the_pool_and_32_digits_of_the_content() -> None:
    rendered = good(mc("a", ignition(file("/etc/a"))))
    digest = hashlib.sha256(json.canonical(rendered.spec)).hexdigest()[:32]
    assert rendered.name == f"rendered-worker-{digest}"
    assert re.fullmatch(r"rendered-worker-[0-9a-f]{32}", rendered.name)


def test_only_the_spec_makes_the_name() -> None:
    plain, noted = mc("a", ignition(file("/etc/a"))), mc("b", ignition(file("/etc/a")))
    noted["metadata"]["annotations"] = {"who": "me"}
    assert good(plain).name == good(noted).name


def test_later_names_win() -> None:
    assert text(good(mc("99-b", ignition(file("/a", "b"))), mc("50-a", ignition(file("/a", "a")))), "/a") == "b"


def test_in_a_custom_pool_what_is_meant_for_the_pool_wins_whatever_the_names() -> None:
    rendered = good(
        mc("99-worker-x", ignition(file("/a", "worker"))),
        mc("00-infra-y", ignition(file("/a", "infra")), role="infra"),
        of="infra",
    )
    assert text(rendered, "/a") == "infra"
    assert rendered.source == ("00-infra-y", "99-worker-x")


def test_configs_of_other_pools_and_rendered_ones_are_no_sources() -> None:
    first = good(mc("a", ignition(file("/a"))))
    stored = first.manifest(pool(), Defaults())
    stored["metadata"]["labels"] = {names.ROLE_LABEL: "worker"}
    again = good(mc("a", ignition(file("/a"))), stored, mc("m", ignition(file("/m")), role="master"))
    assert again.name == first.name
    assert again.source == ("a",)


def test_users_of_many_configs_become_one_with_keys_in_order() -> None:
    """Appendix A.6 of the behaviour: hash from one, keys from two others, first come first."""
    rendered = good(
        mc("1", ignition(users=[{"name": "core", "passwordHash": "testpass"}])),
        mc("2", ignition(users=[{"name": "core", "sshAuthorizedKeys": ["5678"]}])),
        mc("3", ignition(users=[{"name": "core", "sshAuthorizedKeys": ["1234"]}])),
    )
    [core] = rendered.spec["config"]["passwd"]["users"]
    assert core == {"name": "core", "passwordHash": "testpass", "sshAuthorizedKeys": ["5678", "1234"]}


def test_without_any_ignition_the_result_is_an_empty_document_and_neutral_fields() -> None:
    spec = good(mc("a"), mc("b")).spec
    assert spec["config"] == {"ignition": {"version": "3.5.0"}}
    assert (spec["kernelArguments"], spec["extensions"], spec["fips"], spec["kernelType"]) == ([], [], False, "default")


def test_fips_is_on_if_anyone_asks_and_a_special_kernel_is_never_taken_back() -> None:
    spec = good(mc("1", fips=True, kernelType="realtime"), mc("2", fips=False, kernelType="default")).spec
    assert (spec["fips"], spec["kernelType"]) == (True, "realtime")
    assert good(mc("1", kernelType="realtime"), mc("2", kernelType="64k-pages")).spec["kernelType"] == "64k-pages"


def test_lists_are_concatenated_with_repetitions() -> None:
    spec = good(mc("1", kernelArguments=["a", "b"], extensions=["usbguard"]), mc("2", kernelArguments=["a"])).spec
    assert spec["kernelArguments"] == ["a", "b", "a"]
    spec = good(mc("1", extensions=["usbguard"]), mc("2", extensions=["usbguard"])).spec
    assert spec["extensions"] == ["usbguard", "usbguard"]


def test_a_unit_is_merged_field_by_field_and_drop_ins_add_up() -> None:
    rendered = good(
        mc("1", ignition(units=[{"name": "a.service", "contents": "[Service]\nExecStart=/bin/a\n"}])),
        mc("2", ignition(units=[{"name": "a.service", "enabled": True, "dropins": [{"name": "x.conf"}]}])),
        mc("3", ignition(units=[{"name": "a.service", "dropins": [{"name": "y.conf"}]}])),
    )
    [unit] = rendered.spec["config"]["systemd"]["units"]
    assert unit["enabled"] is True
    assert unit["contents"].startswith("[Service]")
    assert [dropin["name"] for dropin in unit["dropins"]] == ["x.conf", "y.conf"]


def test_new_content_does_not_inherit_compression_but_a_new_mode_keeps_it() -> None:
    packed = {"source": dataurl.encode(dataurl.gzip(b"old")), "compression": "gzip"}
    first = mc("1", ignition({"path": "/a", "contents": packed}))
    assert text(good(first, mc("2", ignition(file("/a", "new")))), "/a") == "new"
    assert text(good(first, mc("2", ignition({"path": "/a", "mode": 0o600}))), "/a") == "old"


def test_every_file_overwrites_unless_it_says_otherwise() -> None:
    files = good(mc("1", ignition(file("/a"), file("/b", overwrite=False)))).spec["config"]["storage"]["files"]
    assert {file_entry["path"]: file_entry["overwrite"] for file_entry in files} == {"/a": True, "/b": False}


def test_a_spec_2_config_merges_with_spec_3() -> None:
    old = ignition({**file("/a", "old"), "filesystem": "root"}, version="2.2.0")
    assert text(good(mc("1", old), mc("2", ignition(file("/b")))), "/a") == "old"


def test_the_last_image_that_a_person_asked_for_wins() -> None:
    setting = Setting(defaults=Defaults(os_image="base@sha256:1"))
    generated = mc("99-z", osImageURL="generated@sha256:3")
    generated["metadata"]["annotations"] = {names.GENERATED_BY: "1"}
    rendered = good(mc("1", osImageURL="mine@sha256:2"), generated, setting=setting)
    assert rendered.spec["osImageURL"] == "mine@sha256:2"
    assert rendered.os_image_overridden
    assert not good(generated, setting=setting).os_image_overridden
    assert good(mc("1", osImageURL="mine:latest"), setting=setting).warnings[-1].code == "image-tag"


def test_a_field_nobody_knows_survives_the_merge() -> None:
    assert good(mc("1", futureField={"a": 1}), mc("2", ignition(file("/a")))).spec["futureField"] == {"a": 1}


def test_the_manifest_belongs_to_its_pool_and_says_who_rendered() -> None:
    defaults = Defaults(os_image="base@sha256:1", controller_version="v1", release_version="r1")
    rendered = good(mc("1", osImageURL="mine@sha256:2"), setting=Setting(defaults=defaults))
    meta = rendered.manifest(pool(), defaults)["metadata"]
    assert meta["annotations"] == {
        names.GENERATED_BY: "v1",
        names.RELEASE_IMAGE_VERSION: "r1",
        names.OS_IMAGE_OVERRIDDEN: "true",
    }
    [owner] = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == (
        "MachineConfigPool", "worker", "uid-worker", True,
    )  # fmt: skip


def test_the_pool_points_at_the_rendered_config_and_its_sources_by_name() -> None:
    rendered = good(mc("b"), mc("a"))
    configuration = rendered.configuration()
    assert configuration["name"] == rendered.name
    assert [source["name"] for source in configuration["source"]] == ["a", "b"]


@pytest.mark.parametrize("selector", [None, {}, {"matchLabels": {"x": "y"}}])
def test_a_selector_that_finds_nothing_renders_nothing(selector: Any) -> None:
    result = render(pool("worker", machineConfigSelector=selector), [mc("a")])
    assert isinstance(result, RenderFailure)
    assert result.message.startswith("Failed to render configuration for pool worker: spec.machineConfigSelector")


def test_a_selector_that_cannot_be_understood_is_a_failure_not_a_crash() -> None:
    result = render(
        pool("worker", machineConfigSelector={"matchExpressions": [{"key": "a", "operator": "Has"}]}), [mc("a")]
    )
    assert isinstance(result, RenderFailure)
    assert "cannot be understood" in result.message


def test_a_failure_names_the_guilty_config_and_leaves_out_the_others() -> None:
    failure = bad(mc("good"), mc("99-bad", kernelType="x"))
    assert failure.guilty == ("99-bad",)
    assert failure.message.startswith(
        "Failed to render configuration for pool worker: MachineConfig 99-bad: spec.kernelType"
    )


def test_a_confidential_pool_refuses_on_the_sources_and_says_the_way_out() -> None:
    failure = bad(mc("99-smt", kernelArguments=["nosmt"]), setting=Setting(trust=TrustModel.CONFIDENTIAL_CLUSTER))
    assert failure.guilty == ("99-smt",)
    assert "bake it into the image" in failure.message


def test_kernel_devel_does_not_go_with_another_kernel() -> None:
    failure = bad(mc("1", extensions=["kernel-devel"]), mc("2", kernelType="realtime"))
    assert failure.guilty == ("1",)


def test_a_result_that_cannot_be_stored_is_refused_and_a_large_one_warned_about() -> None:
    big = mc("big", ignition(file("/a", "x" * MAX_SIZE)))
    failure = bad(mc("small"), big)
    assert failure.guilty == ("big",)
    assert str(MAX_SIZE) in failure.message
    large = good(mc("large", ignition(file("/a", "x" * (MAX_SIZE * 5 // 8)))))
    assert [warning.code for warning in large.warnings] == ["size"]


def test_a_file_below_the_link_of_another_config_is_refused_though_each_is_good_alone() -> None:
    link = mc("link", ignition(storage={"links": [{"path": "/opt/b", "target": "/usr/lib/bootc"}]}))
    inside = mc("inside", ignition(file("/opt/b/kargs.d/a.toml")))
    good(link)
    good(inside)
    assert bad(link, inside).guilty == ("inside",)


def test_what_a_running_machine_cannot_follow_is_not_rendered_and_the_bringer_is_named() -> None:
    before = good(mc("1", ignition(file("/a"))))
    setting = Setting(current=before.manifest(pool(), Defaults()))
    folder = mc("2", ignition(storage={"directories": [{"path": "/opt/x"}]}))
    failure = bad(mc("1", ignition(file("/a"))), folder, setting=setting)
    assert failure.guilty == ("2",)
    assert f"reconciliation failed between current config {before.name}" in failure.message
    assert isinstance(render(pool(), [mc("1", ignition(file("/a"))), folder]), Rendered)


def test_an_override_lets_new_disks_through_and_tells_them() -> None:
    before = good(mc("1"))
    disks = mc("2", ignition(storage={"disks": [{"device": "/dev/sdb", "wipeTable": True}]}))
    current = before.manifest(pool(), Defaults())
    assert bad(mc("1"), disks, setting=Setting(current=current)).guilty == ("2",)
    allowed = good(mc("1"), disks, setting=Setting(current=current, overrides=frozenset({"Disks"})))
    assert [difference.field for difference in allowed.tolerated] == ["storage.disks"]


def test_sources_are_not_changed_by_rendering() -> None:
    configs = [mc("1", ignition(file("/a"))), mc("2", ignition(file("/a", "b")), kernelArguments=["x"])]
    copy = json.decode(json.encode(configs))
    good(*configs)
    assert configs == copy


def test_a_stream_and_an_image_of_ones_own_contradict_each_other() -> None:
    setting = Setting(defaults=Defaults(os_image="base@sha256:1"))
    follows = pool("worker", osImageStream={"name": "rhel-10"})
    result = render(follows, [mc("mine", osImageURL="x@sha256:2")], setting)
    assert isinstance(result, RenderFailure)
    assert result.guilty == ("mine",)
    assert isinstance(render(follows, [mc("a")], setting), Rendered)


def crio(name: str, number: str, runtime: str) -> dict[str, Any]:
    text = f'[crio.runtime]\ndefault_runtime = "{runtime}"\n'
    return mc(name, ignition(file(f"/etc/crio/crio.conf.d/{number}", text)))


def test_runc_as_the_default_is_refused_where_the_system_has_none() -> None:
    new, old = (Setting(defaults=Defaults(os_major=major)) for major in (10, 9))
    assert bad(crio("a", "01", "runc"), setting=new).guilty == ("a",)
    good(crio("a", "01", "runc"), setting=old)
    good(crio("a", "01", "runc"), crio("b", "99-later", "crun"), setting=new)
    assert bad(crio("a", "01", "crun"), crio("b", "99-later", "runc"), setting=new).guilty == ("b",)


def test_runc_is_refused_in_an_image_of_a_stream_without_it_whoever_names_it() -> None:
    offered = (("sha256:9", 9), ("sha256:10", 10))
    setting = Setting(defaults=Defaults(os_image="base@sha256:9", os_major=9, offered_majors=offered))
    runc = crio("a", "01", "runc")
    refused = bad(runc, mc("image", osImageURL="mirror.example.com/os@sha256:10"), setting=setting)
    assert (refused.guilty, refused.problems[-1].code) == (("a",), "no-runc")
    mirrored = good(runc, mc("image", osImageURL="mirror.example.com/os@sha256:9"), setting=setting)
    assert mirrored.warnings == ()
    good(crio("a", "01", "crun"), mc("image", osImageURL="mirror.example.com/os@sha256:10"), setting=setting)


def test_runc_in_an_image_that_nobody_knows_is_rendered_with_a_word_about_it() -> None:
    defaults = Defaults(os_image="base@sha256:10", os_major=10, offered_majors=(("sha256:10", 10),))
    own = mc("image", osImageURL="registry.example.com/own@sha256:1")
    rendered = good(crio("a", "01", "runc"), own, setting=Setting(defaults=defaults))
    (warning,) = rendered.warnings
    assert (warning.config, warning.code, warning.fatal) == ("a", "perhaps-no-runc", False)
    assert "its digest is none of those of the streams on offer" in warning.reason
    assert good(crio("a", "01", "crun"), own, setting=Setting(defaults=defaults)).warnings == ()


def test_defaults_come_from_the_controller_config() -> None:
    spec = {"baseOSContainerImage": "base", "baseOSExtensionsContainerImage": "ext"}
    defaults = Defaults.of({"metadata": {"annotations": {names.RELEASE_IMAGE_VERSION: "r"}}, "spec": spec}, "v")
    assert defaults == Defaults("base", "ext", "v", "r")
    assert Defaults.of(None, "v") == Defaults(controller_version="v")
