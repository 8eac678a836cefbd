"""What differs between a disk and a config, in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from fastness.agent.apply.desired import Desired, Target, Unit
from fastness.agent.apply.ports import Host
from fastness.agent.apply.validate import describe_drifts, drifts
from fastness.agent.host.states import ABSENT, Deployment, File, Large, Link, Other, State
from fastness.kinds.machineconfiguration import names


@dataclass
class Machine:
    """Just enough of a host to look at."""

    states: dict[str, State] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=Deployment)
    next_boot: Deployment | None = None

    @property
    def host(self) -> Host:
        return Host(*(cast("Any", self) for _ in range(7)))

    def look(self, path: str) -> State:
        return self.states.get(path, ABSENT)

    def inspect(self, path: str, up_to: int) -> State | Large:
        state = self.look(path)
        return Large(len(state.content), 0) if isinstance(state, File) and len(state.content) > up_to else state

    def is_enabled(self, unit: str) -> str:
        return self.words.get(unit, "not-found")

    def booted(self) -> Deployment:
        return self.deployment

    def staged(self) -> Deployment | None:
        return self.next_boot


def path(state: File | Link, actual: State) -> str:
    desired = Desired(paths={"/f": Target(state)})
    return "\n".join(str(drift) for drift in drifts(desired, Machine({"/f": actual}).host))


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        (File(b"a"), File(b"a"), ""),
        (File(b"a", 0o644, 0, 0), File(b"a", 0o644, 7, 8), "/f: owner is 7:8, expected 0:0"),
        (File(b"a", 0o644, 0), File(b"a", 0o644, 7, 8), "/f: owner is 7:8, expected 0:any"),
        (File(b"a", 0o644), File(b"a", 0o644, 7, 8), ""),
        (File(b"a", 0o644, 0, 0), File(b"a", 0o644), ""),
        (File(b"a"), File(b"a", 0o600), "/f: mode is 0600, expected 0644"),
        (File(b"a"), ABSENT, "/f: is missing, expected a file"),
        (File(b"a"), Link("/dev/null"), "/f: is a link to /dev/null, expected a file"),
        (File(b"a"), Other("a directory"), "/f: is a directory, expected a file"),
        (Link("/dev/null"), File(b""), "/f: is a file, expected a link to /dev/null"),
        (Link("a"), Link("b"), "/f: link leads to b, expected a"),
        (Link("a"), File(b"x"), "/f: is a file, expected a link"),
        (File(b"a"), File(b"x" * 70_000), "/f: is a file of 70000 bytes, expected 1"),
    ],
)
def test_a_path_differs_by_kind_mode_and_content(expected: File | Link, actual: State, text: str) -> None:
    assert path(expected, actual) == text


def test_public_text_is_shown_as_a_difference_and_a_long_one_is_cut() -> None:
    assert "-one\n+two" in path(File(b"one\n"), File(b"two\n"))
    long = path(File(b""), File(b"".join(b"%d\n" % number for number in range(500))))
    assert "more lines" in long
    assert len(long) < 2000


@pytest.mark.parametrize("expected", [File(b"secret-1", 0o600), File(b"secret-1\xff", 0o644)])
def test_what_not_everybody_may_read_is_told_by_digest(expected: File) -> None:
    text = path(expected, File(b"secret-2\xff", expected.mode))
    assert "secret" not in text
    assert "sha256" in text


def test_what_others_keep_current_is_not_judged() -> None:
    desired = Desired(paths={names.KUBELET_CA: Target(File(b"old")), "/gone": Target(ABSENT)})
    assert drifts(desired, Machine({names.KUBELET_CA: File(b"new"), "/gone": File(b"x")}).host) == []


@pytest.mark.parametrize(
    ("unit", "word", "bad"),
    [
        (Unit(True, False, True), "enabled", False), (Unit(True, False, True), "static", False),
        (Unit(True, False, True), "disabled", True), (Unit(True, False, True), "not-found", True),
        (Unit(True, False, False), "not-found", False), (Unit(True, False, False), "masked", True),
        (Unit(False, False, True), "enabled-runtime", True), (Unit(False, False, True), "disabled", False),
        (Unit(None, False, True), "disabled", False), (Unit(True, True, False), "masked", False),
    ],
)  # fmt: skip
def test_units_are_judged_by_what_is_enabled(unit: Unit, word: str, bad: bool) -> None:
    differences = drifts(Desired(units={"u.service": unit}), Machine(words={"u.service": word}).host)
    assert bool(differences) == bad


def test_the_system_is_judged_by_what_is_booted() -> None:
    desired = Desired(deployment=Deployment("img", ("a", "b"), "realtime", ("usbguard", "sysstat")))
    description = describe_drifts(
        "cfg", drifts(desired, Machine(deployment=Deployment("other", ("b",), "", ("sysstat",))).host)
    )
    assert description.startswith(
        "unexpected on-disk state validating against cfg: operating system: booted other, expected img"
    )
    assert "kernel arguments: missing a" in description
    assert "running default, expected realtime" in description
    assert "extensions: missing usbguard;" in description
    booted = Deployment("img", ("x", "b", "a"), "realtime", ("sysstat", "more", "usbguard"))
    assert drifts(desired, Machine(deployment=booted).host) == []


def test_images_are_the_same_by_digest_and_what_is_staged_beside_them_is_told() -> None:
    here, there = ("registry.example/os@sha256:" + digit * 64 for digit in "ab")
    desired = Desired(deployment=Deployment(f"mirror.example/os:9@sha256:{'a' * 64}"))
    assert drifts(desired, Machine(deployment=Deployment(here)).host) == []
    [drift] = drifts(desired, Machine(deployment=Deployment(here), next_boot=Deployment(there)).host)
    assert drift.what.startswith(f"the next boot would run {there}")
    [drift] = drifts(Desired(), Machine(deployment=Deployment(here), next_boot=Deployment(there)).host)
    assert drift.what == f"the next boot would run {there}, expected {here}"


def test_a_machine_that_boots_no_image_cannot_have_one_applied() -> None:
    [drift] = drifts(Desired(deployment=Deployment("registry.example/os@sha256:" + "a" * 64)), Machine().host)
    assert drift.what.startswith("cannot apply an OS image")


def test_only_suspected_paths_are_looked_at_when_asked_so() -> None:
    desired = Desired(paths={"/a": Target(File(b"x")), "/b": Target(File(b"x"))}, password="h")
    assert [drift.path for drift in drifts(desired, Machine().host, ["/b", "/foreign"])] == ["/b"]
    assert [drift.path for drift in drifts(desired, Machine().host)] == ["/a", "/b", "/etc/shadow"]


def test_what_changed_in_a_unit_is_not_told_although_everybody_on_the_machine_may_read_it() -> None:
    place = "/etc/systemd/system/a.service"
    desired = Desired(paths={place: Target(File(b"[Service]\nEnvironment=TOKEN=hunter2\n"))})
    machine = Machine({place: File(b"[Service]\nEnvironment=TOKEN=hunter3\n")})
    (drift,) = drifts(desired, machine.host)
    assert "hunter" not in str(drift)
    assert "content differs: sha256" in str(drift)


def test_the_content_of_a_private_file_in_the_place_of_a_public_one_is_not_told() -> None:
    description = path(File(b"a\n"), File(b"root:$6$canary:\n", 0o600))
    assert "mode is 0600, expected 0644" in description
    assert "canary" not in description
    assert "content differs: sha256" in description
