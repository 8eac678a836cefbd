"""Which image a pool renders to: by digest, from a tag that was resolved, or none when nobody can say."""

from __future__ import annotations

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.render.render import Rendered, RenderFailure, Setting, render
from tests.unit.machineconfig.build import mc, pool

TAG, IMAGE = "registry.example/os:9", f"registry.example/os@sha256:{'a' * 64}"
BASE = f"registry.example/base@sha256:{'b' * 64}"


def test_a_tag_is_rendered_as_what_it_was_resolved_to_and_says_from_where() -> None:
    result = render(pool("worker"), [mc("1", osImageURL=TAG)], Setting(digests={TAG: IMAGE}))
    assert isinstance(result, Rendered)
    assert (result.spec["osImageURL"], result.resolved_from) == (IMAGE, TAG)
    assert result.manifest(pool("worker"), Defaults())["metadata"]["annotations"][names.RESOLVED_FROM] == TAG
    named = render(pool("worker"), [mc("1", osImageURL=IMAGE)], Setting(digests={}))
    assert isinstance(named, Rendered)
    assert (named.name, named.resolved_from) == (result.name, ""), "the same image by either name is the same config"


def test_a_tag_that_nobody_resolved_renders_nothing_and_names_the_config() -> None:
    result = render(pool("worker"), [mc("1", osImageURL=TAG)], Setting(digests={}))
    assert isinstance(result, RenderFailure)
    assert (result.unresolved, result.guilty) == (TAG, ("1",))
    assert "name it by digest" in result.message


def test_the_cluster_s_own_image_by_tag_needs_a_digest_too() -> None:
    result = render(pool("worker"), [mc("1")], Setting(defaults=Defaults(os_image=TAG), digests={}))
    assert isinstance(result, RenderFailure)
    assert result.unresolved == TAG


def test_without_any_image_a_node_that_knows_no_base_keeps_the_pool_from_rendering() -> None:
    setting = Setting(digests={}, without_base=("w1", "w2"))
    result = render(pool("worker"), [mc("1")], setting)
    assert isinstance(result, RenderFailure)
    assert "no base image known" in result.message
    assert "w1, w2" in result.message
    assert isinstance(render(pool("worker"), [mc("1", osImageURL=IMAGE)], setting), Rendered)
    named = Setting(defaults=Defaults(os_image=BASE), digests={}, without_base=("w1",))
    assert isinstance(render(pool("worker"), [mc("1")], named), Rendered)


def test_another_name_of_the_stream_s_image_is_no_override_of_it() -> None:
    follows = pool("worker")
    follows["spec"]["osImageStream"] = {"name": "rhel-9"}
    setting = Setting(defaults=Defaults(os_image=BASE), digests={})
    same = f"mirror.example/base:9@{BASE.partition('@')[2]}"
    assert isinstance(render(follows, [mc("1", osImageURL=same)], setting), Rendered)
    assert isinstance(render(follows, [mc("1", osImageURL=IMAGE)], setting), RenderFailure)
