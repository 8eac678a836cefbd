"""`fastness image diff` on images in a real registry, and in directories that skopeo wrote."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastness.images.uki import write_uki
from tests.components import require_program
from tests.e2e.builds.registry_images import pushed_with
from tests.e2e.live import FASTNESS, Outcome, environment, run
from tests.e2e.machineconfig.local_registry import LocalRegistry, running_registry
from tests.measuredboot import minted

pytestmark = pytest.mark.processes
STATUS = "Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: {}\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    program = require_program(Path("/usr/bin/docker-registry"), "docker-registry")
    with running_registry(program, tmp_path_factory.mktemp("registry")) as running:
        yield running


def image(registry: LocalRegistry, version: str, line: bytes, **files: bytes) -> str:
    uki = write_uki(minted.stub(), minted.sections(cmdline=line))
    named = {f"etc/{name}": content for name, content in files.items()}
    listed = {"var/lib/dpkg/status": STATUS.format(version).encode(), "boot/EFI/Linux/sealed.efi": uki}
    loader = {"usr/lib/systemd/boot/efi/systemd-bootx64.efi": minted.loader()}
    return pushed_with(registry, {**named, **listed, **loader})


def diff(home: Path, *words: str) -> Outcome:
    return run([FASTNESS, "image", "diff", *words], environment(home), cwd=home)


def test_files_packages_and_measurements_of_two_images_are_told_apart(registry: LocalRegistry, tmp_path: Path) -> None:
    first = image(registry, "5.2-1", b"quiet slot=a", chrony=b"a", gone=b"")
    second = image(registry, "5.2-2", b"quiet slot=b", chrony=b"b", new=b"")
    plain = ("--insecure-registry", registry.address)
    outcome = diff(tmp_path, first, second, *plain)
    assert outcome.code == 0, outcome.err
    rows = [line.split() for line in outcome.lines]
    for row in (["/etc/chrony", "changed", "content"], ["/etc/gone", "removed"], ["/etc/new", "added"]):
        assert row in rows, outcome.out
    assert ["bash:amd64", "5.2-1", "5.2-2"] in rows
    assert [row[2] for row in rows if row[:2] == ["booted", "PCR"]] == ["4", "9", "11", "12"]
    document = diff(tmp_path, first, second, *plain, "-o", "json").json
    assert document["files"]["added"] == ["/etc/new"]
    assert {row["value"] for row in document["measurements"] if row["state"] == "booted"} == {
        "tpm_pcr4", "tpm_pcr9", "tpm_pcr11", "tpm_pcr12",
    }  # fmt: skip
    assert "Nothing that is compared is different." in diff(tmp_path, first, first, *plain).out

    require_program(Path("/usr/bin/skopeo"), "skopeo")
    for name, each in (("a", first), ("b", second)):
        command = [
            "skopeo",
            "--insecure-policy",
            "copy",
            "--src-tls-verify=false",
            f"docker://{each}",
            f"oci:{tmp_path}/layout:{name}",
        ]
        subprocess.run(command, check=True, capture_output=True)
    local = diff(tmp_path, "layout:a", "layout:b", "-o", "json").json
    assert (local["files"], local["measurements"]) == (document["files"], document["measurements"])
    shortened = diff(tmp_path, "layout:a", "layout:b", "--limit", "1")
    assert "and 4 more; --limit 5 or -o json shows all" in shortened.out, shortened.out


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("registry.example/os:latest", "names no digest"),
        ("registry.example/os@sha256:12", "is no image"),
        ("127.0.0.1:1/os@sha256:" + "0" * 64, "cannot be fetched"),
        ("layout:nobody", "has no image 'nobody'"),
        ("empty", "index.json"),
        ("damaged", "has another digest"),
    ],
)
def test_what_is_no_image_is_refused_with_what_to_do(tmp_path: Path, named: str, words: str) -> None:
    (tmp_path / "empty").mkdir()
    for name, entry in (("layout", "a"), ("damaged", "")):
        blobs = tmp_path / name / "blobs/sha256"
        blobs.mkdir(parents=True)
        digest = "0" * 64
        (blobs / digest).write_bytes(b"{}")
        manifests = [{"digest": f"sha256:{digest}", "annotations": {"org.opencontainers.image.ref.name": entry}}]
        (tmp_path / name / "index.json").write_text(json.dumps({"manifests": manifests}))
    outcome = diff(tmp_path, named, "damaged")
    assert outcome.code != 0
    assert words in outcome.err, outcome.err
    assert "Traceback" not in outcome.err
