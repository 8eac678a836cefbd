"""Where streams come from, what is on offer, what is the default, when rendering waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.formats import oci
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.errors import BadStreams
from fastness.machineconfig.streams import sources as where
from fastness.machineconfig.streams.access import RegistryAccess, pull_secret
from fastness.machineconfig.streams.offers import (
    BOOTABLE,
    EXTENSIONS,
    STREAM,
    Default,
    LabelledImage,
    default_stream,
    offers,
)
from fastness.machineconfig.streams.readiness import DEFERRED, NO_SOURCE, OFFERED, UNREADABLE, streams_obstacle
from fastness.machineconfig.streams.sources import StreamSources
from tests.unit.machineconfig.render.registries.build import idms, image, itms, settings

A, B = (f"quay.example/os/{name}@sha256:" + "0" * 64 for name in "ab")
VERSION = "fastness-1"


def version(target: str, *completed: str, under_way: str = "") -> dict[str, Any]:
    history = [{"version": under_way, "state": "Partial"}] if under_way else []
    history += [{"version": each, "state": "Completed"} for each in completed]
    return {"status": {"desired": {"version": target, "image": A}, "history": history}}


def config_map(**data: str) -> dict[str, Any]:
    return {"data": data}


def test_a_cluster_that_names_nothing_has_no_source() -> None:
    assert not StreamSources.of(None, None)
    assert not StreamSources.of(config_map(releaseVersion="1"), {"status": {}})


def test_an_update_defers_and_a_finished_one_or_a_first_installation_do_not() -> None:
    assert StreamSources.of(None, version("4.21", "4.21", "4.20")).deferred == ""
    assert StreamSources.of(None, version("4.21", under_way="4.21")).deferred == ""
    assert "from 4.20 to 4.21" in StreamSources.of(None, version("4.21", "4.20", under_way="4.21")).deferred
    old = config_map(releaseVersion="4.20", baseOSContainerImage=A)
    assert "is of 4.20, the cluster is to be 4.21" in StreamSources.of(old, version("4.21", "4.21")).deferred
    assert StreamSources.of(old, None).deferred == ""


def test_the_pair_of_the_config_map_is_whole_and_by_digest() -> None:
    assert StreamSources(A, B).pair() == (A, B)
    assert StreamSources(release=A).pair() == ()
    with pytest.raises(BadStreams, match=r"data.baseOSContainerImage .* is missing"):
        StreamSources("", B).pair()
    with pytest.raises(BadStreams, match="no image by digest"):
        StreamSources("quay.example/os/a:latest", B).pair()


def references(**tags: Any) -> bytes:
    named = [{"name": tag.replace("_", "-"), "from": {"name": name}} for tag, name in tags.items()]
    return json.dumps({"spec": {"tags": named}}).encode()


def test_of_a_release_only_images_named_after_the_system_are_looked_at() -> None:
    assert where.images_of_release(references(rhel_coreos=A, rhel_coreos_extensions=B, etcd="x")) == (A, B)
    with pytest.raises(BadStreams, match="no image by digest"):
        where.images_of_release(references(rhel_coreos="quay.example/a:1"))
    with pytest.raises(BadStreams, match="33 images"):
        where.images_of_release(references(**{f"coreos_{number}": A for number in range(33)}))


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"spec": 1}', b'{"spec": {"tags": [1]}}', b"\xff"])
def test_what_is_no_list_of_images_is_refused(content: bytes) -> None:
    with pytest.raises(BadStreams, match="is not a list of images"):
        where.images_of_release(content)


def test_offers_are_current_until_sources_offers_or_our_version_change() -> None:
    named, available = StreamSources(A, B), [{"name": "x", "osImage": A, "osExtensionsImage": B}]
    made = {
        "metadata": {"annotations": where.notes_of(named, available, VERSION)},
        "status": {"availableStreams": available},
    }
    assert where.is_current(made, named, VERSION)
    assert not where.is_current(made, named, "fastness-2")
    assert not where.is_current(made, StreamSources(B, B), VERSION)
    assert not where.is_current(
        {**made, "status": {"availableStreams": [{**available[0], "osImage": B}]}}, named, VERSION
    )
    assert not where.is_current({**made, "status": {}}, named, VERSION)
    assert not where.is_current(None, named, VERSION)


def labelled(stream: str, name: str = A, **labels: str) -> LabelledImage:
    return LabelledImage(name, {STREAM: stream, **{key.replace("_", "."): value for key, value in labels.items()}})


@pytest.mark.parametrize("bootable", ["1", "true"])
def test_a_stream_has_a_system_and_extensions(bootable: str) -> None:
    made = offers([[labelled("x", A, **{BOOTABLE: bootable}), labelled("x", B, **{EXTENSIONS: "true"})]])
    assert made == [{"name": "x", "osImage": A, "osExtensionsImage": B}]


def test_halves_of_two_sources_make_no_stream() -> None:
    halves = [[labelled("x", A, **{BOOTABLE: "1"})], [labelled("x", B, **{EXTENSIONS: "true"})]]
    with pytest.raises(BadStreams, match="the stream x has no osExtensionsImage; the stream x has no osImage"):
        offers(halves)
    with pytest.raises(BadStreams, match="no image of an operating system is named"):
        offers([[], []])


@pytest.mark.parametrize(
    ("available", "asked", "before", "installed", "default"),
    [
        ("rhel-9 rhel-10", "rhel-10", "rhel-9", "4.1", "rhel-10"),
        ("rhel-9 rhel-10", "", "rhel-10", "4.1", "rhel-10"),
        ("other", "", "", "", "other"),
        ("rhel-9 rhel-10", "", "", "4.20.1", "rhel-9"),
        ("rhel-9 rhel-10", "", "", "5.0.0", "rhel-10"),
        ("centos-9 centos-10", "", "", "5.0.0", "centos-10"),
    ],
)
def test_the_default_is_what_was_asked_else_what_it_was_else_what_follows(
    available: str, asked: str, before: str, installed: str, default: str
) -> None:
    assert default_stream(available.split(), asked, before, installed) == Default(default)


def test_a_default_that_is_not_on_offer_is_told_and_the_old_one_stays() -> None:
    chosen = default_stream(["a", "b"], "gone", "b", "")
    assert chosen.name == "b"
    assert "spec.defaultStream is gone, which is not on offer (there are: a, b)" in chosen.remark
    with pytest.raises(BadStreams, match="none is the default: a, b"):
        default_stream(["a", "b"], "", "", "")


def stated(reason: str) -> dict[str, Any]:
    state = {"type": names.STREAMS_AVAILABLE, "status": "False", "reason": reason, "message": "why"}
    return {"status": {"conditions": [state]}}


def test_rendering_waits_until_streams_were_looked_at_by_this_version() -> None:
    of_another = {"metadata": {"annotations": {names.CONTROLLER_VERSION: "fastness-0"}}}
    assert "not looked at yet" in str(streams_obstacle(None, None, VERSION))
    assert "not looked at yet" in str(streams_obstacle(None, {"status": {}}, VERSION))
    assert "is of fastness-0" in str(streams_obstacle(of_another, stated(OFFERED), VERSION))
    for reason in (NO_SOURCE, DEFERRED, OFFERED):
        assert streams_obstacle(None, stated(reason), VERSION) is None
    # Nobody reads streams here: one that is left over decides nothing.
    assert streams_obstacle(of_another, stated(NO_SOURCE), VERSION) is None


def test_what_cannot_be_read_stops_rendering_until_something_was_read_once() -> None:
    blocked = streams_obstacle(None, stated(UNREADABLE), VERSION)
    assert blocked is not None
    assert blocked.lasting
    assert "cannot be read: why" in blocked.why
    offered = {"status": {"availableStreams": [{"name": "x"}]}}
    assert streams_obstacle(offered, stated(UNREADABLE), VERSION) is None


def test_mirrors_are_asked_before_the_source_each_with_its_own_password() -> None:
    mirrored = idms("a", {"quay.example/os": ["m.example/mirror"]})
    auths = {"m.example": {"username": "m", "password": "1"}, "quay.example": {"username": "q", "password": "2"}}
    access = RegistryAccess(settings(image(insecure=["m.example"]), mirrored), json.dumps({"auths": auths}).encode())
    places = list(access.places(oci.reference(A)))
    assert [(str(place.reference), place.insecure, place.login) for place in places] == [
        (A.replace("quay.example/os", "m.example/mirror"), True, ("m", "1")),
        (A, False, ("q", "2")),
    ]
    assert [str(place.reference) for place in RegistryAccess().places(oci.reference(A))] == [A]
    with pytest.raises(BadStreams, match="pull secret"):
        list(RegistryAccess(credentials=b"x").places(oci.reference(A)))


def test_what_a_tag_means_is_asked_of_mirrors_of_tags_alone() -> None:
    of_digests = idms("a", {"quay.example/os": ["digests.example/mirror"]})
    of_tags = itms("b", {"quay.example/os": ["tags.example/mirror"]})
    access = RegistryAccess(settings(image(), of_digests, of_tags))
    places = [str(place.reference) for place in access.places(oci.reference("quay.example/os/nine:1"))]
    assert places == ["tags.example/mirror/nine:1", "quay.example/os/nine:1"]


def test_a_pull_secret_that_is_none_gives_no_credentials() -> None:
    assert pull_secret(None) == pull_secret({"data": {".dockerconfigjson": "***"}}) == b""
    assert pull_secret({"data": {".dockerconfigjson": "e30="}}) == b"{}"
