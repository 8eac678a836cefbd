"""Where a bed cannot be: skipped with the reason, and a failure where a run with CI=true should have provided what is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.bed import fixtures, janitor, prerequisites
from tools.components import Component

ABSENT = (Component("no-such-program", "nowhere", "nothing"),)


def test_without_root_a_bed_is_skipped_and_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="run the tests as root"):
        fixtures.require_machine({}, tmp_path)
    with pytest.raises(pytest.fail.Exception, match="run the tests as root"):
        fixtures.require_machine({"CI": "true"}, tmp_path)


def test_without_a_package_a_bed_is_skipped_and_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(prerequisites, "BED", ABSENT)
    with pytest.raises(pytest.skip.Exception, match="no-such-program"):
        fixtures.require_machine({}, tmp_path)
    with pytest.raises(pytest.fail.Exception, match="no-such-program"):
        fixtures.require_machine({"CI": "true"}, tmp_path)


@pytest.mark.parametrize("env", [{}, {"CI": "true"}])
def test_where_the_kernel_lacks_something_a_bed_is_skipped_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str]
) -> None:
    """A machine with control groups of version 2 alone."""
    monkeypatch.setattr(prerequisites, "needs_of_user", lambda: None)
    monkeypatch.setattr(janitor, "mounted_controllers", dict)
    with pytest.raises(pytest.skip.Exception, match="control groups of version 1; here is no cpu, cpuacct, cpuset"):
        fixtures.require_machine(env, tmp_path)


def test_the_reason_names_the_step_that_the_kernel_refuses(bed_machine: Path, tmp_path: Path) -> None:
    assert prerequisites.needs_of_kernel(tmp_path) is None
    # The directories of the first probe are in the way of the second.
    reason = prerequisites.needs_of_kernel(tmp_path)
    assert reason is not None
    assert "overlayfs in the directory of temporary files" in reason


def test_controllers_are_read_from_the_mounts() -> None:
    mounts = (
        "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
    )
    assert janitor.controllers(mounts) == {"cpu,cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct")}


def test_an_owner_that_has_ended_is_dead_also_before_anybody_looked() -> None:
    with subprocess.Popen(["sleep", "600"]) as owner:
        name = janitor.group_name(owner.pid)
        assert janitor.owner_lives(name)
        owner.kill()
        os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the table of processes
        assert not janitor.owner_lives(name)
    assert not janitor.owner_lives(name)
    assert not janitor.owner_lives("fastness-bed-")
