"""One contract for units: the real `systemctl --root` and our links must say and do the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from fastness.agent.apply.ports import Units
from fastness.agent.host.errors import CommandFailed, UnitFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.systemd import Systemctl
from fastness.agent.host.unit_links import UnitLinks

SERVICE = "[Service]\nExecStart=/bin/true\n"
WANTED = f"{SERVICE}[Install]\nWantedBy=multi-user.target\n"


class Make(Protocol):
    """Makes the adapter of a root."""

    def __call__(self, root: Path) -> Units:
        """The units below it."""


def _real(root: Path) -> Units:
    if shutil.which("systemctl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("systemctl is missing")
        pytest.skip("systemctl is missing: install the package systemd")
    return Systemctl(root)


def _ours(root: Path) -> Units:
    return UnitLinks(RootedFiles(root))


@pytest.fixture(params=[_ours, _real], ids=["links", "systemctl"])
def make(request: pytest.FixtureRequest) -> Callable[[Path], Units]:
    """One of the two."""
    chosen: Callable[[Path], Units] = request.param
    return chosen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with some units."""
    etc, vendor = tmp_path / "etc/systemd/system", tmp_path / "usr/lib/systemd/system"
    for directory in (etc, vendor, tmp_path / "usr/lib/systemd/system-preset"):
        directory.mkdir(parents=True)
    (etc / "a.service").write_text(WANTED)
    (vendor / "v.service").write_text(WANTED.replace("multi-user", "graphical"))
    (vendor / "static.service").write_text(SERVICE)
    (vendor / "alias.service").write_text(f"{SERVICE}[Install]\nAlias=other.service\n")
    (vendor / "two.service").write_text(
        f"{SERVICE}[Install]\nWantedBy=multi-user.target graphical.target\nRequiredBy=basic.target\n"
    )
    (vendor / "t@.service").write_text(f"{SERVICE}[Install]\nWantedBy=multi-user.target\n")
    (etc / "masked.service").symlink_to("/dev/null")
    (tmp_path / "usr/lib/systemd/system-preset/50-x.preset").write_text("enable a*.service\ndisable *\n")
    return tmp_path


def links(root: Path) -> dict[str, str]:
    """Every link below /etc, as unit names: which path leads where."""
    base = root / "etc/systemd/system"
    return {
        str(path.relative_to(base)): os.path.basename(os.readlink(path))
        for path in sorted(base.rglob("*"))
        if path.is_symlink()
    }


@pytest.mark.parametrize(
    ("unit", "word"),
    [
        ("a.service", "disabled"), ("v.service", "disabled"), ("static.service", "static"),
        ("masked.service", "masked"), ("none.service", "not-found"), ("alias.service", "disabled"),
    ],
)  # fmt: skip
def test_a_unit_is_what_its_files_say(make: Make, root: Path, unit: str, word: str) -> None:
    assert make(root).is_enabled(unit) == word


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("a.service", {"multi-user.target.wants/a.service"}),
        ("v.service", {"graphical.target.wants/v.service"}),
        ("two.service", {"multi-user.target.wants/two.service", "graphical.target.wants/two.service",
                         "basic.target.requires/two.service"}),
        ("alias.service", {"other.service"}),
        ("static.service", set()),
    ],
)  # fmt: skip
def test_enabling_makes_links_and_disabling_removes_them(make: Make, root: Path, unit: str, expected: set[str]) -> None:
    units = make(root)
    before = links(root)
    units.enable([unit])
    made = links(root)
    assert made.keys() - before.keys() == expected
    assert all(made[path] == unit for path in expected)
    assert units.is_enabled(unit) == ("enabled" if expected else "static")
    units.enable([unit])
    assert links(root) == made
    units.disable([unit])
    assert links(root) == before


def test_a_unit_that_does_not_exist_cannot_be_enabled(make: Make, root: Path) -> None:
    with pytest.raises(UnitFailure):
        make(root).enable(["none.service"])


def test_a_masked_unit_cannot_be_enabled(make: Make, root: Path) -> None:
    with pytest.raises(UnitFailure):
        make(root).enable(["masked.service"])


def test_presets_decide_by_the_first_line_that_matches(make: Make, root: Path) -> None:
    units = make(root)
    units.enable(["v.service"])
    units.preset("a.service")
    units.preset("v.service")
    assert (units.is_enabled("a.service"), units.is_enabled("v.service")) == ("enabled", "disabled")


def test_an_instance_of_a_template_is_enabled_by_its_own_name(make: Make, root: Path) -> None:
    units = make(root)
    units.enable(["t@x.service"])
    assert units.is_enabled("t@x.service") == "enabled"
    assert links(root)["multi-user.target.wants/t@x.service"] == "t@.service"


def test_a_unit_whose_name_begins_with_a_dash_is_a_unit(make: Make, root: Path) -> None:
    units, unit = make(root), "-a.service"
    (root / "etc/systemd/system" / unit).write_text(WANTED)
    units.enable([unit])
    assert units.is_enabled(unit) == "enabled"
    assert links(root)[f"multi-user.target.wants/{unit}"] == unit
    units.preset(unit)  # everything but a* is off
    assert units.is_enabled(unit) == "disabled"
    units.enable([unit])
    units.disable([unit])
    assert units.is_enabled(unit) == "disabled"


@pytest.mark.parametrize("unit", ["--now.service", "--version", "--root=elsewhere.service"])
def test_a_name_that_looks_like_an_option_is_a_unit_that_does_not_exist(make: Make, root: Path, unit: str) -> None:
    units = make(root)
    assert units.is_enabled(unit) == "not-found"
    with pytest.raises(UnitFailure):
        units.enable([unit])


def test_a_directory_has_no_services_to_reload(root: Path) -> None:
    with pytest.raises(UnitFailure, match="not a running machine"):
        Systemctl(root).reload("crio.service")


def test_the_running_machine_is_asked_in_plain_commands() -> None:
    commands: list[list[str]] = []

    def run(command: object) -> str:
        commands.append(list(command))  # type: ignore[call-overload]
        return ""

    units = Systemctl(run=run)
    units.daemon_reload()
    units.reload("crio.service")
    units.restart("kubelet.service")
    units.enable([])
    assert commands == [
        ["systemctl", "daemon-reload"], ["systemctl", "reload", "--", "crio.service"],
        ["systemctl", "restart", "--", "kubelet.service"],
    ]  # fmt: skip


def test_a_machine_without_systemctl_says_so_instead_of_guessing(tmp_path: Path) -> None:
    def run(command: object) -> str:
        raise CommandFailed("`systemctl`: No such file or directory", "Install systemctl.")

    with pytest.raises(UnitFailure, match="No such file"):
        Systemctl(tmp_path, run=run).is_enabled("a.service")


@pytest.mark.parametrize(("word", "runs"), [("active\n", True), ("activating\n", False), ("failed\n", False)])
def test_a_service_that_is_started_again_and_again_does_not_run(word: str, runs: bool) -> None:
    def answer(command: Sequence[str]) -> str:
        assert list(command) == ["systemctl", "is-active", "--", "kubelet.service"]
        if not runs:
            raise CommandFailed("systemctl is-active ended with 3", status=3, output=word)
        return word

    assert Systemctl(run=answer).is_running("kubelet.service") is runs


def test_nothing_runs_in_a_directory_and_nothing_there_has_failed(make: Make, root: Path) -> None:
    assert make(root).is_running("a.service")
