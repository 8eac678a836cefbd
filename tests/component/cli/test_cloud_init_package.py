"""The real package of cloud-init, as Debian ships it, in an image that `fastness machine image` prepares."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from tests.components import require_program
from tests.imaging import trust_document
from tests.patience import PATIENCE

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with everything that the package ships; skips by name, or fails in CI, where the archive cannot be reached."""
    require_program(Path("/usr/bin/apt-get"), "apt")
    place = tmp_path_factory.mktemp("cloud-init")
    fetched = subprocess.run(
        ["apt-get", "download", "-q", "cloud-init"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    packages = list(place.glob("cloud-init_*.deb"))
    if not packages:
        message = f"cloud-init cannot be had from the archive: {fetched.stderr.strip()[-200:]}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    # A root of today has its programs below /usr; the package of Debian 12 still says /lib.
    (place / "root/usr/lib").mkdir(parents=True)
    (place / "root/lib").symlink_to("usr/lib")
    subprocess.run(["dpkg-deb", "-x", packages[0], place / "tree"], check=True)
    shutil.copytree(place / "tree/lib", place / "root/usr/lib", symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(place / "tree/lib")
    shutil.copytree(place / "tree", place / "root", symlinks=True, dirs_exist_ok=True)
    (place / "root/usr/lib/os-release").write_text("ID=debian\n")
    (place / "trust.json").write_bytes(trust_document())
    (place / "agent/bin").mkdir(parents=True)
    (place / "agent/bin/fastness-agent").write_text("#!/bin/sh\n")
    return place / "root"


def image(root: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["machine", "image", str(root), "--shape", "debian", *words], prog_name="fastness")


def test_every_unit_and_generator_that_the_package_ships_is_named_and_then_masked(root: Path) -> None:
    shipped = sorted(
        path
        for directory in ("system", "system-generators")
        for path in (root / "usr/lib/systemd" / directory).glob("cloud-*")
        if path.is_file()
    )
    assert len(shipped) > 5
    before = image(root, "--check-only")
    assert "fastness: open: cloud-init: " in before.stderr
    for path in shipped:
        assert f"/{path.relative_to(root)}\n" in before.stderr, "a unit of the package that the list does not know"
    given = (
        "--platform",
        "openstack",
        "--agent",
        str(root.parent / "agent"),
        "--trust",
        str(root.parent / "trust.json"),
    )
    after = image(root, *given, "--strict")
    assert (after.exit_code, after.stderr) == (0, "")
    for path in shipped:
        mask = root / "etc/systemd" / path.parent.name / path.name
        assert os.readlink(mask) == "/dev/null"
    units = [path.name for path in shipped if path.parent.name == "system"]
    result = subprocess.run(
        ["systemctl", f"--root={root}", "is-enabled", *units], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == ["masked"] * len(units)
