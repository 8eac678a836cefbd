"""The real Ignition of Debian, as the yardstick: its validator, and its files stage run into a directory.

A missing program skips the tests by name; with CI=true it is a failure, because then nobody would notice. Debian's release
knows spec 3.0 to 3.3; `FASTNESS_IGNITION_VALIDATE` names the validator of another release, and the comparison then covers
what that one knows.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

VALIDATOR = "ignition-validate"
BINARY = Path("/usr/lib/dracut/modules.d/30ignition/ignition")


def need(present: bool, what: str) -> None:
    """Skip for a missing component, or fail in CI."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing; install the Debian package ignition")
    pytest.skip(f"{what} is missing (Debian package ignition)")


def validator() -> str:
    """The path of Ignition's validator."""
    path = os.environ.get("FASTNESS_IGNITION_VALIDATE") or shutil.which(VALIDATOR)
    need(path is not None, VALIDATOR)
    return str(path)


def known_minors(program: str) -> list[int]:
    """The minors of spec 3 that the validator knows."""
    minors = [minor for minor in range(6) if accepts(program, b'{"ignition":{"version":"3.%d.0"}}' % minor)[0]]
    assert set(minors) >= {0, 1, 2, 3}
    return minors


def accepts(program: str, config: bytes) -> tuple[bool, str]:
    """Whether Ignition takes a config, and what it said."""
    run = subprocess.run([program, "-"], input=config, capture_output=True, check=False, timeout=30)
    return run.returncode == 0, (run.stdout + run.stderr).decode(errors="replace")


def run_stage(stage: str, config: bytes, directory: Path) -> None:
    """Run one stage with its root, cache and state below a directory; the stage must succeed."""
    need(BINARY.exists(), str(BINARY))
    source = directory / "boot.ign"
    source.write_bytes(config)
    environment = {"PATH": f"{directory / 'bin'}:{os.environ['PATH']}", "IGNITION_CONFIG_FILE": str(source)}
    arguments: list[str | Path] = ["-platform", "file", "-stage", stage, "-root", directory / "root", "-log-to-stdout"]
    for option, name in (("-config-cache", "cache.json"), ("-state-file", "state"), ("-neednet", "neednet")):
        arguments += [option, directory / name]
    run = subprocess.run([BINARY, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def provision(config: bytes, directory: Path) -> Path:
    """Run the fetch and files stages over an empty root; returns the root."""
    need(os.geteuid() == 0, "root, which the files stage needs to set owners,")
    root, tools = directory / "root", directory / "bin"
    # The files stage ends with relabelling: it wants a policy name and a program that always succeeds.
    (root / "etc" / "selinux").mkdir(parents=True)
    (root / "etc" / "selinux" / "config").write_text("SELINUXTYPE=targeted\n")
    tools.mkdir()
    for name in ("setfiles", "restorecon"):
        (tools / name).write_text("#!/bin/sh\nexit 0\n")
        (tools / name).chmod(0o755)
    for stage in ("fetch", "files"):
        run_stage(stage, config, directory)
    return root
