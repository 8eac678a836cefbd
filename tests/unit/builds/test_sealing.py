"""Sealing as a decision: what asks for it, which arguments come onto the line, what is refused."""

from __future__ import annotations

import pytest

from fastness.builds.checks import written
from fastness.builds.errors import BuildFailed
from fastness.builds.inputs import BuildInputs, build_name
from fastness.builds.live.builder import NO_BUILDER, why_not_sealed
from fastness.builds.sealing import (
    MAX_FILES,
    MAX_LINE,
    SEALED,
    SealParts,
    arguments_of,
    is_sealed,
    sealed_kernel_image,
    sealed_line,
)
from fastness.formats.composefs import root_on
from fastness.formats.evidence.pe.uki import parse_uki
from tests.measuredboot import minted

ROOT = "composefs.digest=v1-sha512-12:" + "ab" * 64


def config(value: str | None) -> dict[str, object]:
    notes = {SEALED: value} if value is not None else {}
    spec = {"machineConfigPool": {"name": "worker"}, "renderedImagePushSpec": "registry.example/os:worker"}
    return {"metadata": {"name": "worker", "annotations": notes}, "spec": spec}


def parts(**changes: object) -> SealParts:
    base: dict[str, object] = {"root": ROOT, "kernel": minted.kernel(), "initrd": b"initrd", "stub": minted.stub()}
    return SealParts(**{**base, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(("value", "sealed"), [("true", True), ("false", False), (None, False)])
def test_the_annotation_asks_for_it(value: str | None, sealed: bool) -> None:
    assert is_sealed(config(value)) is sealed
    assert [problem.reason for problem in written(config(value))] == []


@pytest.mark.parametrize("value", ["True", "yes", "", "1"])
def test_another_word_is_told_before_anything_is_built(value: str) -> None:
    (problem,) = written(config(value))
    assert (problem.reason, problem.field) == ("SealedInvalid", f"metadata.annotations[{SEALED}]")
    assert not is_sealed(config(value))


def test_a_sealed_image_is_another_image_and_another_build() -> None:
    plain, sealed = BuildInputs("base"), BuildInputs("base", sealed=True)
    assert plain.digest != sealed.digest
    assert build_name(config("true"), {}, {}) != build_name(config(None), {}, {}) == build_name(config("false"), {}, {})


async def test_a_builder_that_says_nothing_about_sealing_cannot() -> None:
    assert "cannot seal" in await why_not_sealed(NO_BUILDER)


def test_arguments_come_in_the_order_of_file_names_and_for_this_architecture() -> None:
    files = {
        "20.toml": b'kargs = ["b=2", "c"]',
        "10.toml": b'kargs = ["a"]\nmatch-architectures = ["x86_64", "aarch64"]',
        "15.toml": b'kargs = ["other"]\nmatch-architectures = ["aarch64"]',
        "05.toml": b"",
    }
    assert arguments_of(files) == ("a", "b=2", "c")


@pytest.mark.parametrize(
    "content",
    [
        b"kargs = [", b"\xff", b"kargs = 1", b"kargs = [1]", b'karg = ["a"]', b'match-architectures = "x86_64"',
        b'kargs = [""]', b'kargs = [" a"]', b'kargs = ["a\\nb"]', b'kargs = ["\\u00e4"]', b'kargs = ["composefs=no"]',
        b'kargs = ["root=/dev/vda"]', b'kargs = ["a init=/bin/sh"]', b'kargs = ["a \\"init=/bin/sh\\""]',
        b'kargs = ["roothash=0"]',
        b'kargs = ["rdinit=/x"]', b"#" * 70000,
    ],
)  # fmt: skip
def test_arguments_that_decide_the_root_or_are_none_are_refused(content: bytes) -> None:
    with pytest.raises(BuildFailed, match=r"kargs\.d/x\.toml"):
        arguments_of({"x.toml": content})


def test_files_and_lines_are_bounded() -> None:
    with pytest.raises(BuildFailed, match="more than"):
        arguments_of({f"{number}.toml": b"" for number in range(MAX_FILES + 1)})
    with pytest.raises(BuildFailed, match="characters"):
        sealed_line(ROOT, ["a" * MAX_LINE])


@pytest.mark.parametrize(
    "root", ["", "composefs.digest=?v1-sha512-12:" + "ab" * 64, "composefs.digest=v1-sha512-12:ab"]
)
def test_a_root_that_binds_nothing_is_no_seal(root: str) -> None:
    with pytest.raises(BuildFailed, match="binds none"):
        sealed_kernel_image(parts(root=root))


def test_the_kernel_image_is_the_same_for_the_same_parts_and_has_all_of_them() -> None:
    given = parts(os_release=b"ID=x\n", kargs={"a.toml": b'kargs = ["quiet"]'})
    made = sealed_kernel_image(given)
    assert made == sealed_kernel_image(given)
    sections = parse_uki(made).sections
    assert root_on(sections[".cmdline"].decode()) == "ab" * 64
    assert (sections[".osrel"], sections[".initrd"], sections[".linux"]) == (b"ID=x\n", b"initrd", minted.kernel())


@pytest.mark.parametrize(
    "changes",
    [{"stub": b"no program"}, {"stub": minted.stub("251.1")}, {"kernel": b"no kernel"}, {"stub": minted.loader()}],
)
def test_parts_of_which_nobody_could_say_what_they_measure_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(BuildFailed, match="cannot be sealed"):
        sealed_kernel_image(parts(**changes))
