"""`make release` as a whole, and who gets it: sums, signatures, definitions of our own kinds alone, a chart that helm reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from fastness.kinds.crd.sets import OTHERS, own_names
from tests.release.fixtures import require_debian
from tests.soaking import in_soak

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [*in_soak("parts of it are in tests/component/tools, the images in test_image.py"), pytest.mark.processes]


def run(words: Sequence[str | Path], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)


def tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "tools.release", *words])


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release and the key that one believes, which came another way."""
    require_debian()
    place = tmp_path_factory.mktemp("release")
    private, public = place / "release.key", place / "believed.pub"
    made = run(
        ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private], place
    )
    assert made.returncode == 0, made.stderr
    private.chmod(0o600)
    assert run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], place).returncode == 0
    done = tool("release", place / "dist", "--key", private)
    if "make lock" in done.stderr:
        pytest.skip(f"Debian outran the lock: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return place / "dist", public


def test_it_verifies_by_our_own_tool_and_by_everybodys(signed: tuple[Path, Path]) -> None:
    dist, public = signed
    verified = tool("verify", dist, "--key", public)
    assert verified.returncode == 0, verified.stderr
    assert "SHA256SUMS is signed by this key" in verified.stdout
    assert verified.stdout.count("signed by this key") == 4, "the sums and three images"
    raw = public.with_name("sums.sig")
    raw.write_bytes(subprocess.run(["base64", "-d", dist / "SHA256SUMS.sig"], capture_output=True, check=True).stdout)
    words: list[str | Path] = ["openssl", "dgst", "-sha256", "-verify", public, "-signature", raw, "SHA256SUMS"]
    assert run(words, dist).stdout.strip() == "Verified OK"
    assert run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], dist).returncode == 0


def test_everything_that_the_page_lists_is_there(signed: tuple[Path, Path]) -> None:
    dist, _ = signed
    names = {path.name for path in dist.iterdir()}
    page = (ROOT / "docs/how-to/verify-a-release.md").read_text()
    assert {"IMAGES", "NOTES.md", "SHA256SUMS", "SHA256SUMS.sig", "release.pub"} <= names
    for ending in ("-crds.tar.gz", "-crds-of-others.tar.gz", "-accounts.tar.gz", ".tgz", "-image.tar", ".cdx.json"):
        assert any(name.startswith("fastness-") and name.endswith(ending) for name in names), ending
        assert ending in page
    assert len([name for name in names if name.endswith(".whl")]) == 2


@pytest.mark.parametrize("change", ["a byte", "a file more", "a file less", "other sums"])
def test_what_somebody_changed_on_the_way_is_refused(signed: tuple[Path, Path], tmp_path: Path, change: str) -> None:
    dist, public = signed
    copied = tmp_path / "dist"
    shutil.copytree(dist, copied, copy_function=shutil.copyfile)
    notes = copied / "NOTES.md"
    if change == "a byte":
        notes.write_bytes(notes.read_bytes()[:-1] + b"!")
    elif change == "a file more":
        (copied / "install.sh").write_text("echo trust me\n")
    elif change == "a file less":
        notes.unlink()
    else:
        (copied / "SHA256SUMS").write_text((copied / "SHA256SUMS").read_text() + "\n")
    refused = tool("verify", copied, "--key", public)
    assert (refused.returncode, refused.stderr != "") == (1, True)


def test_definitions_of_others_are_in_an_archive_of_their_own(signed: tuple[Path, Path]) -> None:
    dist, _ = signed
    (own,), (others,) = dist.glob("fastness-*-crds.tar.gz"), dist.glob("fastness-*-crds-of-others.tar.gz")
    with tarfile.open(own) as archive:
        files = [Path(name) for name in archive.getnames() if name.endswith(".yaml")]
    assert {path.stem for path in files} == own_names()
    with tarfile.open(others) as archive:
        strange = [Path(name) for name in archive.getnames() if name.endswith(".yaml")]
    assert {path.parts[1] for path in strange} == set(OTHERS)
    assert not {path.stem for path in strange} & own_names()


def test_helm_reads_the_chart(signed: tuple[Path, Path], helm_program: Path) -> None:
    dist, _ = signed
    (chart,) = dist.glob("fastness-*.tgz")
    assert "name: fastness" in run([helm_program, "show", "chart", chart]).stdout
