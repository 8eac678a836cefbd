"""Whatever is said about registries: the same files whoever says it first, and files that read back."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries.conf import registries_conf
from fastness.machineconfig.render.registries.files import containerd_files, crio_files
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.registries.scopes import inside
from fastness.machineconfig.render.registries.settings import registry_settings
from tests.unit.machineconfig.render.registries.build import icsp, idms, image, itms, objects, signed, trusted

HOSTS = ("quay.io", "a.example.com", "b.example.com:5000", "m.io")
places = st.builds(
    lambda host, path: host + path, st.sampled_from(HOSTS), st.sampled_from(["", "/ns", "/ns/app", "/x"])
)
scopes = st.one_of(places, st.sampled_from(["*.example.com", "*.io"]))
lists = st.dictionaries(scopes, st.lists(places, max_size=3), max_size=3)
policies = st.sampled_from(["", "", "NeverContactSource"])
names = st.sampled_from(["a", "b", "c"])
mirror_sets = st.one_of(
    st.builds(idms, names, lists, policies), st.builds(itms, names, lists, policies), st.builds(icsp, names, lists)
)
signatures = st.builds(
    lambda name, of, namespace, key: signed(name, *of, namespace=namespace, root=trusted(key) if key else None),
    names, st.lists(scopes, max_size=3), st.sampled_from(["", "team", "other"]), st.sampled_from(["", "", "?"]),
)  # fmt: skip
images = st.builds(
    lambda insecure, blocked, allowed: image(insecure=insecure, **({"blocked": blocked} if blocked else {"allowed": allowed})),
    st.lists(scopes, max_size=2), st.lists(scopes, max_size=2), st.lists(scopes, max_size=2),
)  # fmt: skip
releases = st.sampled_from(["", "quay.io/ns/app@sha256:" + "0" * 64])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """An Image, other objects of distinct names, and a release image."""
    others = draw(st.lists(st.one_of(mirror_sets, signatures), max_size=5))
    for number, other in enumerate(others):
        other["metadata"]["name"] += f"-{number}"
    return draw(images), others, draw(releases)


def files(of_image: dict[str, Any], others: list[dict[str, Any]], payload: str) -> Any:
    """Files for CRI-O with what is said about objects, or the refusal."""
    try:
        settings = registry_settings(objects(of_image, *others, payload=payload))
        assert settings is not None
        return crio_files(settings), settings.remarks, settings.left_out
    except BadRegistries as error:
        return str(error)


@given(worlds(), st.randoms())
def test_the_files_do_not_depend_on_the_order_of_objects(world: Any, chance: Any) -> None:
    of_image, others, payload = world
    shuffled = list(others)
    chance.shuffle(shuffled)
    assert files(of_image, shuffled, payload) == files(of_image, others, payload)


@given(worlds())
def test_deciding_twice_gives_the_same_and_changes_no_object(world: Any) -> None:
    of_image, others, payload = world
    before = json.dumps([of_image, others])
    assert files(of_image, others, payload) == files(of_image, others, payload)
    assert json.dumps([of_image, others]) == before


@given(worlds())
def test_every_file_reads_back(world: Any) -> None:
    outcome = files(*world)
    for path, text in outcome[0] if isinstance(outcome, tuple) else ():
        if path.endswith(".json"):
            assert json.loads(text)["default"]
        elif path.endswith(".yaml"):
            assert yaml.safe_load(text)["docker"]
        else:
            assert tomllib.loads(text)


@given(worlds())
def test_what_is_blocked_or_insecure_is_so_in_every_entry_inside(world: Any) -> None:
    of_image, others, _ = world
    try:
        settings = registry_settings(objects(of_image, *others))
    except BadRegistries:
        return
    assert settings is not None
    for entry in (settings.registries or {}).get("registry", ()):
        scope = entry.get("prefix") or entry["location"]
        if inside(scope, set(settings.lists.blocked)):
            assert entry["blocked"]
        if inside(scope, set(settings.lists.insecure)):
            assert entry["insecure"]
        for mirror in entry.get("mirror", ()):
            assert bool(mirror.get("insecure")) == inside(mirror["location"], set(settings.lists.insecure))


@given(worlds())
def test_no_policy_opens_what_is_blocked_or_not_allowed(world: Any) -> None:
    """The narrowest scope around any place says no wherever the Image says no, in the cluster and in namespaces."""
    of_image, others, _ = world
    try:
        settings = registry_settings(objects(of_image, *others))
    except BadRegistries:
        return
    assert settings is not None
    for document in (settings.policy, *settings.namespaces.values()):
        accepted = (document or {}).get("transports", {}).get("docker", {})
        for scope, requirements in accepted.items():
            if requirements != [{"type": "reject"}]:
                assert not inside(scope, set(settings.lists.blocked))
                assert not settings.lists.allowed or inside(scope, set(settings.lists.allowed))


@given(worlds())
def test_containerd_is_told_everything_or_nothing(world: Any) -> None:
    of_image, others, payload = world
    try:
        settings = registry_settings(objects(of_image, *others, payload=payload))
        assert settings is not None
        texts = dict(containerd_files(settings))
    except BadRegistries:
        return
    assert not settings.lists.blocked
    assert not settings.policy
    for source in settings.mirrored:
        host = source.source.partition("/")[0]
        document = tomllib.loads(texts[f"/etc/containerd/certs.d/{host}/hosts.toml"])
        assert len(document["host"]) >= 1


@given(worlds())
def test_an_entry_inside_a_mirrored_source_never_hides_its_mirrors(world: Any) -> None:
    of_image, others, _ = world
    try:
        settings = registry_settings(objects(of_image, *others))
    except BadRegistries:
        return
    assert settings is not None
    sources = {source.source for source in settings.mirrored if not source.source.startswith("*.")}
    for entry in (settings.registries or {}).get("registry", ()):
        if inside(entry.get("prefix") or entry["location"], sources):
            assert entry.get("mirror")


def test_an_empty_template_has_no_entries() -> None:
    assert registries_conf("", [], [], []) == {}


@pytest.mark.parametrize("odd", [None, [], "x", 7, {"imageDigestMirrors": "x"}, {"imageDigestMirrors": [None]}])
def test_what_has_another_shape_says_nothing(odd: Any) -> None:
    broken = {"kind": "ImageDigestMirrorSet", "metadata": {"name": "odd"}, "spec": odd}
    settings = registry_settings(RegistryObjects(image={"spec": odd}, digest_mirrors=[broken]))
    assert settings is not None
    assert crio_files(settings) == []


def test_an_entry_without_a_source_is_refused() -> None:
    broken = {"metadata": {"name": "odd"}, "spec": {"imageDigestMirrors": [{"mirrors": "m"}]}}
    with pytest.raises(BadRegistries, match='ImageDigestMirrorSet odd: invalid format for source ""'):
        registry_settings(RegistryObjects(image=image(), digest_mirrors=[broken]))
