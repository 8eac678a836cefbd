"""Signatures and the directory of a release: openssl and skopeo agree with us, and whatever is changed is noticed."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.components import require_program
from tests.release.small import small_image
from tools.release import checking, dist, layout, sbom, signing
from tools.release.errors import ReleaseError

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())


def test_a_signature_beside_an_image_is_verified_and_another_key_is_refused(tmp_path: Path) -> None:
    image = small_image(tmp_path)
    signing.sign_image(image.layout, image.digest, KEY, "fastness")
    signing.check_image(image.layout, image.digest, KEY.public_key())
    with pytest.raises(ReleaseError, match="signature"):
        signing.check_image(image.layout, image.digest, OTHER.public_key())


def test_an_image_without_a_signature_is_refused(tmp_path: Path) -> None:
    image = small_image(tmp_path)
    with pytest.raises(ReleaseError, match="unsigned"):
        signing.check_image(image.layout, image.digest, KEY.public_key())


def test_a_signature_of_another_image_is_refused(tmp_path: Path) -> None:
    """Somebody moves a good signature to an image that was never signed."""
    image, other = small_image(tmp_path / "a"), small_image(tmp_path / "b", "other")
    signing.sign_image(image.layout, image.digest, KEY, "fastness")
    place = layout.tagged(image.layout, signing.signature_tag(image.digest))
    assert place is not None
    manifest = layout.document(image.layout, place)
    for part in (manifest["config"], *manifest["layers"]):
        layout.add_blob(other.layout, layout.read_blob(image.layout, part["digest"]))
    config = layout.read_blob(image.layout, manifest["config"]["digest"])
    layout.add_manifest(other.layout, config, manifest["layers"], signing.signature_tag(other.digest), {})
    with pytest.raises(ReleaseError, match="signature-moved"):
        signing.check_image(other.layout, other.digest, KEY.public_key())


def test_openssl_verifies_what_we_sign_and_we_what_openssl_signs(tmp_path: Path) -> None:
    openssl = require_program(Path(shutil.which("openssl") or "/usr/bin/openssl"), "openssl")
    content, public = tmp_path / "content", tmp_path / "key.pub"
    content.write_bytes(signing.payload("sha256:" + "0" * 64, "fastness"))
    public.write_bytes(signing.public_pem(KEY))
    (tmp_path / "sig").write_bytes(base64.b64decode(signing.sign(KEY, content.read_bytes())))
    words = [*map(str, (openssl, "dgst", "-sha256", "-verify", public, "-signature", tmp_path / "sig", content))]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout == "Verified OK\n"
    content.write_bytes(content.read_bytes() + b" ")
    assert subprocess.run(words, capture_output=True, check=False).returncode != 0
    assert signing.sign(KEY, b"x") == signing.sign(KEY, b"x"), "the same release twice has the same signature"


def test_the_signature_has_the_form_that_cosign_looks_for(tmp_path: Path) -> None:
    image = small_image(tmp_path)
    signature = signing.sign_image(image.layout, image.digest, KEY, "registry.example/fastness")
    place = layout.tagged(image.layout, f"sha256-{image.digest.removeprefix('sha256:')}.sig")
    assert place is not None
    (part,) = layout.document(image.layout, place)["layers"]
    assert part["mediaType"] == "application/vnd.dev.cosign.simplesigning.v1+json"
    assert part["annotations"] == {"dev.cosignproject.cosign/signature": signature}
    assert json.loads(layout.read_blob(image.layout, part["digest"])) == {
        "critical": {
            "identity": {"docker-reference": "registry.example/fastness"},
            "image": {"docker-manifest-digest": image.digest},
            "type": "cosign container image signature",
        },
        "optional": None,
    }


def key_file(place: Path, text: bytes, mode: int = 0o600) -> Path:
    place.write_bytes(text)
    place.chmod(mode)
    return place


@pytest.mark.parametrize(
    ("curve", "mode", "code"),
    [("prime256v1", 0o644, "key-exposed"), ("secp384r1", 0o600, "key-kind"), ("", 0o600, "key-form")],
)
def test_a_key_that_is_exposed_or_of_another_kind_is_refused(tmp_path: Path, curve: str, mode: int, code: str) -> None:
    from cryptography.hazmat.primitives import serialization as form

    curves: dict[str, ec.EllipticCurve] = {"prime256v1": ec.SECP256R1(), "secp384r1": ec.SECP384R1()}
    text = b"nothing"
    if curve:
        key = ec.generate_private_key(curves[curve])
        text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    with pytest.raises(ReleaseError, match=code):
        signing.private_key(key_file(tmp_path / "key", text, mode))


def test_a_missing_key_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="openssl ecparam"):
        signing.private_key(tmp_path / "absent")


def test_the_bill_names_every_package_with_version_hash_and_licence(tmp_path: Path) -> None:
    image = small_image(tmp_path)
    document = json.loads(sbom.bill(image))
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.6", 1)
    assert document["serialNumber"].startswith("urn:uuid:")
    assert document["metadata"]["component"]["hashes"][0]["content"] == image.digest.removeprefix("sha256:")
    by_name = {component["name"]: component for component in document["components"]}
    assert set(by_name) == {"libstdc++6", "orjson", "click"}
    assert by_name["libstdc++6"]["purl"].startswith(
        "pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?distro=debian-12&arch="
    )
    assert by_name["libstdc++6"]["licenses"] == [{"license": {"name": "GPL-3+"}}]
    assert by_name["orjson"]["licenses"] == [{"expression": "MPL-2.0 AND (Apache-2.0 OR MIT)"}]
    assert "licenses" not in by_name["click"]
    assert all(component["hashes"][0]["alg"] == "SHA-256" for component in document["components"])
    assert document["dependencies"][0]["dependsOn"] == [component["bom-ref"] for component in document["components"]]
    assert sbom.bill(image) == sbom.bill(image)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A small signed release."""
    image, place = small_image(tmp_path / "image"), tmp_path / "dist"
    place.mkdir()
    signing.sign_image(image.layout, image.digest, KEY, "fastness")
    layout.archive(image.layout, place / "fastness-1-image.tar")
    (place / dist.IMAGES).write_text(f"fastness:1 {image.digest}\n")
    (place / "NOTES.md").write_text("notes")
    sealed(place)
    return place


def sealed(place: Path) -> None:
    sums = dist.sums_of(place)
    (place / dist.SUMS).write_text(sums)
    (place / dist.SIGNATURE).write_text(signing.sign(KEY, sums.encode()))


def verified(place: Path, key: signing.PrivateKey = KEY) -> list[str]:
    return list(checking.verify(place, key.public_key()))


def test_a_whole_release_is_verified_by_us_and_by_sha256sum(release: Path) -> None:
    assert [line.split()[0] for line in verified(release)] == ["SHA256SUMS", "3", "fastness:1"]
    subprocess.run(["sha256sum", "--check", "--strict", dist.SUMS], cwd=release, check=True, capture_output=True)


def test_a_changed_a_missing_and_an_added_file_are_refused(release: Path) -> None:
    (release / "NOTES.md").write_text("note5")
    with pytest.raises(ReleaseError, match=r"NOTES\.md is missing or was changed"):
        verified(release)
    (release / "NOTES.md").unlink()
    with pytest.raises(ReleaseError, match=r"NOTES\.md is missing or was changed"):
        verified(release)
    (release / "NOTES.md").write_text("notes")
    (release / "extra.whl").write_text("")
    with pytest.raises(ReleaseError, match="not-listed"):
        verified(release)


def test_sums_that_somebody_wrote_anew_are_refused(release: Path) -> None:
    (release / "NOTES.md").write_text("evil")
    (release / dist.SUMS).write_text(dist.sums_of(release))
    with pytest.raises(ReleaseError, match="signature"):
        verified(release)
    with pytest.raises(ReleaseError, match="signature"):
        verified(release, OTHER)


def test_a_release_without_a_signature_is_refused(release: Path) -> None:
    (release / dist.SIGNATURE).unlink()
    with pytest.raises(ReleaseError, match="unsigned"):
        verified(release)


def test_a_release_whose_image_nobody_signed_is_refused(release: Path, tmp_path: Path) -> None:
    unsigned = small_image(tmp_path / "unsigned", "unsigned")
    layout.archive(unsigned.layout, release / "fastness-1-image.tar")
    (release / dist.IMAGES).write_text(f"fastness:1 {unsigned.digest}\n")
    sealed(release)
    with pytest.raises(ReleaseError, match="unsigned"):
        verified(release)


@pytest.mark.parametrize("name", ["../outside", "/outside", "blobs/../../outside"])
def test_an_archive_that_would_write_elsewhere_is_refused(release: Path, name: str) -> None:
    with tarfile.open(release / "fastness-1-image.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    sealed(release)
    with pytest.raises(ReleaseError, match="archive-form"):
        verified(release)


def test_notes_are_those_of_the_version_or_of_what_is_not_released() -> None:
    changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - 2026-01-01\n\n- old\n"
    assert dist.release_notes(changelog, "0.2.0") == "# Fastness 0.2.0\n\n- old\n"
    assert dist.release_notes(changelog, "0.3.0") == "# Fastness 0.3.0\n\n- new\n"
    with pytest.raises(ReleaseError, match="no-notes"):
        dist.release_notes("# Changelog\n", "0.3.0")


def test_a_chart_is_packed_the_same_twice(tmp_path: Path) -> None:
    (tmp_path / "chart/templates").mkdir(parents=True)
    (tmp_path / "chart/Chart.yaml").write_text("name: fastness\n")
    dist.pack(tmp_path / "chart", tmp_path / "a.tgz", "fastness/")
    (tmp_path / "chart/Chart.yaml").touch()
    dist.pack(tmp_path / "chart", tmp_path / "b.tgz", "fastness/")
    assert (tmp_path / "a.tgz").read_bytes() == (tmp_path / "b.tgz").read_bytes()
