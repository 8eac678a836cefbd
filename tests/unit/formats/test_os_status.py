"""What bootc and rpm-ostree print, read; and names of images."""

from __future__ import annotations

import pytest

from fastness.formats import json
from fastness.formats.errors import ImageReferenceError, OsStatusError
from fastness.formats.image_reference import ImageReference, canonical, digest_of, parse_image, same_image
from fastness.formats.os_status import OsEntry, bootc_status, features, plain_reference, rpm_ostree_status
from fastness.kinds.kind import JsonObject

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
IMAGE = f"registry.example:5000/os/base@{DIGEST}"


def bootc(**status: object) -> bytes:
    return json.encode({"apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "status": status})


def entry(image: str, digest: str, **more: object) -> JsonObject:
    return {
        "image": {"image": {"image": image, "transport": "registry"}, "imageDigest": digest, "version": None},
        **more,
    }


@pytest.mark.row("003-69")
def test_bootc_names_every_deployment_by_digest() -> None:
    status = bootc_status(bootc(
        booted=entry("registry.example:5000/os/base:9", DIGEST, composefs={"verity": "0", "bootType": "Uki"}, ostree=None),
        staged=entry(f"registry.example:5000/os/base:9@{OTHER}", OTHER), rollback=None,
    ))  # fmt: skip
    assert status.booted == OsEntry(IMAGE, composefs=True, uki=True)
    assert status.staged == OsEntry(f"registry.example:5000/os/base@{OTHER}")
    assert status.rollback is None


def test_what_was_only_downloaded_is_not_staged() -> None:
    status = bootc_status(bootc(booted=entry(IMAGE, DIGEST), staged=entry(IMAGE, OTHER, downloadOnly=True)))
    assert status.staged is None


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"apiVersion": "org.containers.bootc/v2", "status": {}}',
        bootc(booted=[]),
        bootc(booted={"image": 1}),
        bootc(booted=entry(IMAGE, "sha256:a")),
        bootc(booted={"incompatible": "no"}),
        bootc(booted={"composefs": {"bootType": 3}}),
    ],
)
def test_a_status_of_bootc_that_cannot_be_understood_is_refused(data: bytes) -> None:
    with pytest.raises(OsStatusError):
        bootc_status(data)


@pytest.mark.row("003-70")
def test_rpm_ostree_says_what_comes_next_and_what_is_kept_by_its_order() -> None:
    reference = "ostree-unverified-registry:registry.example:5000/os/base:9"
    staged = {"staged": True, "container-image-reference": reference, "container-image-reference-digest": OTHER,
              "requested-packages": ["usbguard"], "requested-base-removals": ["kernel"]}  # fmt: skip
    booted = {"booted": True, "container-image-reference": f"ostree-image-signed:docker://{IMAGE}", "pinned": True}
    kept = {"custom-origin": [f"pivot://{IMAGE}", "by hand"]}
    status = rpm_ostree_status(json.encode({"deployments": [staged, booted, kept], "transaction": ["upgrade", "x"]}))
    assert status.staged == OsEntry(f"registry.example:5000/os/base@{OTHER}", ("usbguard",), ("kernel",))
    assert (status.booted, status.rollback) == (OsEntry(IMAGE, pinned=True), OsEntry(IMAGE))
    assert status.transaction == "upgrade x"


@pytest.mark.parametrize(
    "value",
    [{"deployments": {"a": 1}}, {"deployments": [3]}, {"deployments": [{"booted": 1}]}, {"deployments": [{}] * 65},
     {"deployments": [{"requested-packages": "vim"}]}, {"deployments": [{"container-image-reference": 3}]}],
)  # fmt: skip
def test_a_status_of_rpm_ostree_that_cannot_be_understood_is_refused(value: JsonObject) -> None:
    with pytest.raises(OsStatusError):
        rpm_ostree_status(json.encode(value))


def test_a_machine_that_nothing_was_deployed_on_has_nothing() -> None:
    assert rpm_ostree_status(b"{}").booted is None
    assert bootc_status(bootc(booted=None)).booted is None


@pytest.mark.parametrize(
    ("reference", "plain"),
    [
        ("ostree-unverified-registry:r.example/os:1", "r.example/os:1"),
        ("ostree-unverified-image:docker://r.example/os:1", "r.example/os:1"),
        ("ostree-unverified-image:containers-storage:r.example/os:1", "r.example/os:1"),
        ("ostree-image-signed:docker://r.example/os:1", "r.example/os:1"),
        ("ostree-remote-image:fedora:docker://r.example/os:1", "r.example/os:1"),
        ("ostree-remote-registry:fedora:r.example/os:1", "r.example/os:1"),
        ("r.example/os:1", "r.example/os:1"),
    ],
)
def test_schemes_and_transports_are_taken_off(reference: str, plain: str) -> None:
    assert plain_reference(reference) == plain


def test_features_are_read_from_the_text() -> None:
    assert features("rpm-ostree:\n Version: '2026.1'\n Features:\n  - rust\n  - container\n") == {"rust", "container"}
    assert features("rpm-ostree 2015") == frozenset()


def test_a_reference_is_repository_tag_and_digest() -> None:
    assert parse_image(f"registry.example:5000/os/base:9.1@{DIGEST}") == ImageReference(
        "registry.example:5000/os/base", "9.1", DIGEST
    )
    assert canonical(f"registry.example:5000/os/base:9.1@{DIGEST}") == IMAGE
    assert canonical("registry.example/os:9") == "registry.example/os:9"
    assert canonical("no reference") == "no reference"
    assert (digest_of(IMAGE), digest_of("registry.example/os:9")) == (DIGEST, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "os",
        "os:9",
        "registry.example/OS",
        "registry.example/os@sha256:a",
        "registry.example/os:",
        "a b/c",
        "x/" + "a" * 2000,
    ],
)
def test_what_names_no_image_is_refused(text: str) -> None:
    with pytest.raises(ImageReferenceError):
        parse_image(text)


def test_equal_digests_are_the_same_image_and_tags_only_the_same_text() -> None:
    assert same_image(IMAGE, f"mirror.example/copy:1@{DIGEST}")
    assert not same_image(IMAGE, f"registry.example:5000/os/base@{OTHER}")
    assert same_image("registry.example/os:9", "registry.example/os:9")
    assert not same_image("registry.example/os:9", f"registry.example/os@{DIGEST}")
