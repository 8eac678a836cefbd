"""Images of a registry: names, manifests, labels, challenges, credentials."""

from __future__ import annotations

import base64
import json

import pytest

from fastness.formats import oci
from fastness.formats.oci import OciError, Reference

DIGEST = "sha256:" + "0" * 64
AMD64 = {"os": "linux", "architecture": "amd64"}


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (f"quay.example/team/app@{DIGEST}", Reference("quay.example", "team/app", "", DIGEST)),
        (f"quay.example:5000/app:1@{DIGEST}", Reference("quay.example:5000", "app", "1", DIGEST)),
        ("localhost/a/b/c:v1.2-rc_1", Reference("localhost", "a/b/c", "v1.2-rc_1")),
        ("127.0.0.1:5000/a", Reference("127.0.0.1:5000", "a", "latest")),
    ],
)
def test_a_full_name_is_taken_apart(text: str, reference: Reference) -> None:
    assert oci.reference(text) == reference


@pytest.mark.parametrize(
    "text",
    [
        "", "app", "team/app", f"team/app@{DIGEST}", f"quay.example/@{DIGEST}", "quay.example/a@", "quay.example/a:",
        "quay.example/a@sha256:123", f"quay.example/a@{DIGEST}0", "quay.example/../a:1", "quay.example/A:1", "quay.example//a:1",
        "quay.example/a:1/b", "quay.example/a?x=y", "user@quay.example/a", "-x.example/a", "quay.example/a b", "q.example/a\n",
        "quay.example/" + "a" * 1100,
    ],
)  # fmt: skip
def test_whatever_could_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(OciError):
        oci.reference(text)


def test_the_digest_is_what_is_asked_for_whatever_tag_stands_beside_it() -> None:
    assert oci.reference(f"quay.example/a:1@{DIGEST}").version == DIGEST
    assert oci.reference("quay.example/a:1").version == "1"


def test_the_size_of_an_image_is_that_of_its_layers() -> None:
    layers = [{"digest": DIGEST, "size": 5}, {"digest": DIGEST, "size": 7}]
    content = oci.manifest(json.dumps({"config": {"digest": DIGEST, "size": 1}, "layers": layers}).encode())
    assert isinstance(content, oci.Manifest)
    assert content.size == 12


def test_an_index_gives_the_image_of_a_platform_and_names_those_it_has() -> None:
    content = oci.manifest(json.dumps({"manifests": [{"digest": DIGEST, "size": 1, "platform": AMD64}]}).encode())
    assert isinstance(content, oci.Index)
    assert content.of("linux/amd64").digest == DIGEST
    with pytest.raises(OciError, match=r"no image for linux/arm64 \(there are: linux/amd64\)"):
        content.of("linux/arm64")


IMAGE = {"config": {"digest": DIGEST, "size": 1}, "layers": []}
LIST = {"manifests": [{"digest": DIGEST, "size": 1}]}
IMAGE_TYPE, LIST_TYPE = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"


@pytest.mark.parametrize(
    "document",
    [
        {**IMAGE, "manifests": []}, {**LIST, "layers": []}, {**LIST, "config": IMAGE["config"]}, {**LIST, "fsLayers": []},
        {**IMAGE, "mediaType": LIST_TYPE}, {**LIST, "mediaType": IMAGE_TYPE}, {**IMAGE, "mediaType": "text/html"},
        {**IMAGE, "mediaType": [IMAGE_TYPE]}, {**IMAGE, "mediaType": ""},
    ],
)  # fmt: skip
def test_what_one_program_reads_as_an_image_and_another_as_a_list_is_neither(document: object) -> None:
    """CVE-2021-41190."""
    with pytest.raises(OciError, match="this is"):
        oci.manifest(json.dumps(document).encode())


def test_an_image_and_a_list_may_say_what_they_are() -> None:
    assert isinstance(oci.manifest(json.dumps({**IMAGE, "mediaType": IMAGE_TYPE}).encode()), oci.Manifest)
    assert isinstance(oci.manifest(json.dumps({**LIST, "mediaType": LIST_TYPE}).encode()), oci.Index)


@pytest.mark.parametrize(
    "document",
    [
        [], {}, {"layers": []}, {"config": IMAGE["config"]}, {"config": IMAGE["config"], "layers": {}},
        {"config": {"digest": DIGEST, "size": -1}, "layers": []},
        {"config": {"digest": DIGEST, "size": True}, "layers": []}, {"config": {"digest": "md5:0", "size": 1}, "layers": []},
        {"config": {"digest": DIGEST, "size": 1}, "layers": [1]}, {"manifests": [{"digest": DIGEST, "size": 1}] * 1025},
        {"config": {"digest": DIGEST, "size": 1}, "layers": [{"digest": DIGEST, "size": 2**63}]},
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(document: object) -> None:
    with pytest.raises(OciError):
        oci.manifest(json.dumps(document).encode())


def test_labels_are_texts_and_an_image_may_have_none() -> None:
    assert oci.labels(b'{"config": {"Labels": {"a": "b", "c": 1}}}') == {"a": "b"}
    assert oci.labels(b'{"config": {}}') == oci.labels(b"{}") == {}
    with pytest.raises(OciError):
        oci.labels(b'{"config": {"Labels": []}}')
    with pytest.raises(OciError):
        oci.labels(b"x")


def test_bytes_are_compared_with_the_digest_that_was_asked_for() -> None:
    assert oci.matches(b"", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert not oci.matches(b"x", DIGEST)


def test_a_challenge_names_the_server_of_tokens() -> None:
    given = oci.challenge('Bearer realm="https://auth.example/token",service="s",scope="repository:a/b:pull,push"')
    assert given.scheme == "bearer"
    assert given.parameters["realm"] == "https://auth.example/token"
    assert given.parameters["scope"] == "repository:a/b:pull,push"
    assert oci.challenge("BASIC realm=x").scheme == "basic"
    with pytest.raises(OciError, match="Negotiate"):
        oci.challenge("Negotiate abc")


def test_the_longest_entry_that_an_image_lies_in_has_its_password() -> None:
    def entry(login: str) -> dict[str, str]:
        return {"auth": base64.b64encode(login.encode()).decode()}

    auths = {"quay.example": entry("all:1:x"), "quay.example/team": entry("team:2"), "quay.example/team/app": {}}
    content = json.dumps({"auths": auths}).encode()
    assert oci.credentials(content, oci.reference("quay.example/other/app:1")) == ("all", "1:x")
    assert oci.credentials(content, oci.reference("quay.example/team/lib:1")) == ("team", "2")
    assert oci.credentials(content, oci.reference("quay.example/teams/lib:1")) == ("all", "1:x")
    # An entry that says nothing stands for nobody's password, and not for that of the registry.
    assert oci.credentials(content, oci.reference("quay.example/team/app:1")) is None
    assert oci.credentials(content, oci.reference("other.example/team/app:1")) is None
    assert oci.credentials(b"{}", oci.reference("quay.example/a:1")) is None
    with pytest.raises(OciError):
        oci.credentials(b'{"auths": {"quay.example": {"auth": "***"}}}', oci.reference("quay.example/a:1"))


@pytest.mark.parametrize(
    "entries", [None, {}, [], [{"digest": DIGEST, "size": 1}] * 2, [{"digest": "md5:0", "size": 1}]]
)
def test_a_layout_that_holds_no_image_or_several_is_refused(entries: object) -> None:
    with pytest.raises(OciError):
        oci.manifest_digest({"manifests": entries})


def test_a_file_with_credentials_has_a_bound() -> None:
    large = json.dumps({"auths": {"a.example": {"username": "u", "password": "p" * 2**20}}}).encode()
    with pytest.raises(OciError, match="more than"):
        oci.credentials(large, Reference("a.example", "app", "1"))
