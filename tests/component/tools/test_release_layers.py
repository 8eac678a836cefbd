"""Layers and pins: the same names and contents make the same bytes, and what is not pinned is noticed."""

from __future__ import annotations

import hashlib
import os
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from tools.release import debian, layer, wheels
from tools.release.errors import ReleaseError
from tools.release.layer import Component
from tools.release.layout import Built
from tools.release.pruning import prune


def tree(place: Path, *, reverse: bool = False) -> Path:
    names = ["usr/bin/program", "etc/passwd", "tmp/.keep"]
    for name in reversed(names) if reverse else names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    (place / "usr/bin/program").chmod(0o755)
    (place / "bin").symlink_to("usr/bin")
    return place


def test_order_times_and_modes_of_the_builder_leave_no_trace(tmp_path: Path) -> None:
    first, second = tree(tmp_path / "first"), tree(tmp_path / "second", reverse=True)
    for path in second.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    (second / "etc/passwd").chmod(0o600)
    assert layer.pack(first, tmp_path / "a") == layer.pack(second, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_changed_byte_or_a_program_that_is_none_any_more_is_another_layer(tmp_path: Path) -> None:
    place = tree(tmp_path / "tree")
    before = layer.pack(place, tmp_path / "layer")
    (place / "usr/bin/program").chmod(0o644)
    without_mode = layer.pack(place, tmp_path / "layer")
    (place / "etc/passwd").write_text("etc/passwe")
    assert len({*before.values(), *without_mode.values(), *layer.pack(place, tmp_path / "layer").values()}) == 6


def test_entries_belong_to_root_and_the_digests_are_of_what_was_written(tmp_path: Path) -> None:
    digests = layer.pack(tree(tmp_path / "tree"), tmp_path / "layer")
    assert digests["digest"] == f"sha256:{hashlib.sha256((tmp_path / 'layer').read_bytes()).hexdigest()}"
    with tarfile.open(tmp_path / "layer") as archive:
        entries = {entry.name: entry for entry in archive}
    assert {(entry.uid, entry.gid, entry.mtime) for entry in entries.values()} == {(0, 0, layer.EPOCH)}
    assert entries["tmp"].mode == 0o1777
    assert entries["bin"].linkname == "usr/bin"
    assert list(entries) == sorted(entries)


def test_a_layer_is_made_once_for_a_key(tmp_path: Path) -> None:
    calls = list[str]()

    def make(place: Path) -> tuple[Component, ...]:
        calls.append("made")
        tree(place)
        return (Component("pypi", "x", "1", "00", ("MIT",)),)

    first, second = layer.kept(tmp_path, "key", make), layer.kept(tmp_path, "key", make)
    assert first == second
    assert calls == ["made"]
    assert first.components[0].purl == "pkg:pypi/x@1"


def test_a_failed_make_leaves_no_layer(tmp_path: Path) -> None:
    def broken(_: Path) -> tuple[Component, ...]:
        raise ReleaseError("compile", "no", "no")

    with pytest.raises(ReleaseError):
        layer.kept(tmp_path, "key", broken)
    assert not list(tmp_path.iterdir())


def test_the_lock_names_every_package_of_the_images_by_version_and_hash() -> None:
    text = debian.LOCK.read_text()
    assert set(debian.pins(text)) == {*debian.PACKAGES, *debian.AGENT_PACKAGES, *debian.BUILDER_PACKAGES}
    archives = [debian.Archive(pin, Path("x")) for pin in debian.pins(text).values()]
    assert debian.lock_text(archives) == text


@pytest.mark.parametrize("line", ["libc6", "libc6=1 md5:00", f"libc6=1 sha256:{'0' * 63}", "libc6=1 2 sha256:00"])
def test_a_line_that_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(ReleaseError, match="lock-line"):
        debian.pins(line)


def test_a_package_that_was_changed_in_the_cache_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = hashlib.sha256(b"package").hexdigest()
    (tmp_path / f"{good}.deb").write_bytes(b"another")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="no-apt"):
        debian.fetch(["x"], {"x": debian.Pin("x", "1", good)}, tmp_path, strict=True)
    (tmp_path / f"{good}.deb").write_bytes(b"package")
    assert debian.fetch(["x"], {"x": debian.Pin("x", "1", good)}, tmp_path, strict=True)[0].pin.version == "1"


@pytest.mark.parametrize("strict", [True, False])
def test_a_version_that_is_gone_is_refused_and_the_hint_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: bool
) -> None:
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="package-gone") as refused:
        debian.fetch(["x"], {"x": debian.Pin("x", "1", "0" * 64)}, tmp_path / "cache", strict=strict)
    assert "make lock" in refused.value.hint


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("usr/bin/python3.11", True), ("usr/bin/perl", False), ("usr/lib/x86_64-linux-gnu/libc.so.6", True),
        ("usr/lib/x86_64-linux-gnu/gconv/UTF-16.so", False), ("usr/sbin/update-ca-certificates", False),
        ("usr/share/doc/libc6/copyright", True), ("usr/lib/python3.11/test/test_os.py", False),
    ],
)  # fmt: skip
def test_only_what_runs_and_its_licences_come_along(name: str, taken: bool) -> None:
    assert bool(debian.TAKEN.fullmatch(name) and not debian.LEFT_OUT.fullmatch(name)) is taken


def wheel(place: Path, *names: str) -> wheels.Wheel:
    path = place / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
        archive.writestr("x-1.dist-info/METADATA", "Name: x\nVersion: 1\nLicense-Expression: MIT\n")
    return wheels.wheel(path)


def test_modules_of_a_wheel_are_taken_and_its_scripts_are_not(tmp_path: Path) -> None:
    small = wheel(tmp_path, "x/__init__.py", "x-1.data/platlib/y.py", "x-1.data/scripts/run")
    wheels.unpack(small, tmp_path / "tree")
    modules = tmp_path / "tree" / wheels.MODULES
    assert sorted(path.name for path in modules.rglob("*") if path.is_file()) == ["METADATA", "__init__.py", "y.py"]
    assert wheels.component(small).licences == ("MIT",)


@pytest.mark.parametrize("name", ["../x.py", "/etc/passwd", "x-1.data/purelib/../../y.py"])
def test_a_wheel_with_a_file_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReleaseError, match="wheel-path"):
        wheels.unpack(wheel(tmp_path, name), tmp_path / "tree")
    assert not (tmp_path / "x.py").exists()


@pytest.mark.parametrize("tag", ["cp312-cp312-manylinux_2_17_x86_64", "cp311-cp311-manylinux_2_39_x86_64"])
def test_a_wheel_that_the_image_could_not_load_is_refused(tmp_path: Path, tag: str) -> None:
    with pytest.raises(ReleaseError, match="wheel-platform"):
        wheels.wheel(tmp_path / f"x-1-{tag}.whl")


def test_a_wheel_that_is_not_what_the_lock_names_is_refused(tmp_path: Path) -> None:
    import sys

    lock = f"x==1 \\\n    --hash=sha256:{'0' * 64}\n"
    directory = tmp_path / f"wheels-{layer.key_of(lock, sys.version)}"
    directory.mkdir()
    wheel(directory, "x/__init__.py")
    with pytest.raises(ReleaseError, match="wheel-changed"):
        wheels.wheels(lock, tmp_path)


def test_layers_that_nobody_builds_with_are_forgotten_and_the_ones_in_use_stay(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()

    def made(key: str, age: float) -> layer.Layer:
        entry = layer.kept(cache, key, lambda place: ((place / "file").write_text(key * 100), ())[1])
        (cache / f"root-{key}").mkdir()
        (cache / f"root-{key}" / "file").write_bytes(bytes(1000))
        moment = time.time() - age
        os.utime(cache / f"layer-{key}.json", (moment, moment))
        return entry

    day = 24 * 3600.0
    made("oldest", 9 * day), made("older", 8 * day), made("old", 2 * day), made("young", 60.0)
    used = Built("fastness", tmp_path, "1", "sha256:0", 1, (made("used", 10 * day),))
    assert prune(cache, [used], kept_bytes=4000) == ["older", "oldest"]
    left = {path.name for path in cache.glob("layer-*.json")}
    assert left == {"layer-used.json", "layer-young.json", "layer-old.json"}
    assert sorted(path.name for path in cache.glob("root-*")) == ["root-old", "root-used", "root-young"]
    assert prune(cache, [], kept_bytes=0) == ["old"], "what is younger than a day stays, however little room there is"
