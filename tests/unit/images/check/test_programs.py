"""The programs of a node: where they go, and what is refused before a machine finds out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastness.images.check import programs
from fastness.images.check.programs import HELPERS, NodeRefused, node_programs, programs_there
from fastness.images.check.tree import FilePiece, LinkPiece, MappedTree
from tests.elves import AARCH64, elf

LOADER = "/lib64/ld-linux-x86-64.so.2"
ROOT = MappedTree(
    dict.fromkeys(HELPERS, b"") | {"/usr/lib64/ld-linux-x86-64.so.2": b"", "/usr/lib/x86_64-linux-gnu/libc.so.6": b""}
)
PROGRAM = FilePiece("", elf(), 0o755)
DYNAMIC = FilePiece("", elf(["libc.so.6"], LOADER), 0o755)
FILES = {
    "kubelet": PROGRAM, "containerd": DYNAMIC, "containerd-shim-runc-v2": PROGRAM, "runc": DYNAMIC, "ctr": PROGRAM,
    "cni/loopback": PROGRAM, "cni/bridge": PROGRAM,
    "net.d/10-pods.conflist": FilePiece("", b'{"cniVersion": "1.0.0", "plugins": []}'),
    "images/pause.tar": FilePiece("", b"layers"),
}  # fmt: skip


def paths(files: dict[str, FilePiece], root: MappedTree = ROOT) -> dict[str, FilePiece | LinkPiece]:
    return {piece.path: piece for piece in node_programs(files, root)}


def refusal(files: dict[str, FilePiece], root: MappedTree = ROOT) -> NodeRefused:
    with pytest.raises(NodeRefused) as raised:
        node_programs(files, root)
    assert raised.value.hint
    return raised.value


def test_programs_go_where_the_rendered_configuration_looks_for_them() -> None:
    pieces = paths(FILES)
    for path in (
        "/usr/bin/kubelet",
        "/usr/bin/containerd",
        "/usr/bin/containerd-shim-runc-v2",
        "/usr/sbin/runc",
        "/usr/bin/ctr",
        "/opt/cni/bin/loopback",
        "/opt/cni/bin/bridge",
    ):
        piece = pieces[path]
        assert isinstance(piece, FilePiece)
        assert piece.mode == 0o755
    assert pieces["/etc/cni/net.d/10-pods.conflist"] == replace(
        FILES["net.d/10-pods.conflist"], path="/etc/cni/net.d/10-pods.conflist"
    )


def test_the_runtime_gets_a_unit_and_what_packages_bring_is_not_started() -> None:
    pieces = paths(FILES)
    unit, preset = pieces["/usr/lib/systemd/system/containerd.service"], pieces[programs.PRESET]
    assert isinstance(unit, FilePiece)
    assert b"ExecStart=/usr/bin/containerd\n" in unit.content
    assert isinstance(preset, FilePiece)
    assert preset.content.endswith(b"\ndisable *\n")


def test_a_unit_of_a_package_stays() -> None:
    root = replace(ROOT, files={**ROOT.files, "/lib/systemd/system/containerd.service": b"[Service]\n"})
    assert "/usr/lib/systemd/system/containerd.service" not in paths(FILES, root)


def test_our_own_unit_is_written_again() -> None:
    root = replace(ROOT, files={**ROOT.files, "/usr/lib/systemd/system/containerd.service": b"[Service]\n"})
    assert "/usr/lib/systemd/system/containerd.service" in paths(FILES, root)


def test_images_are_imported_where_there_are_some() -> None:
    unit = "/usr/lib/systemd/system/fastness-images.service"
    wants = "/usr/lib/systemd/system/multi-user.target.wants/fastness-images.service"
    assert {unit, wants, "/usr/lib/fastness/images/pause.tar"} <= paths(FILES).keys()
    without = {name: file for name, file in FILES.items() if not name.startswith("images/")}
    assert not {unit, wants} & paths(without).keys()


@pytest.mark.parametrize("name", ["kubelet", "containerd", "containerd-shim-runc-v2", "runc", "cni/loopback", "ctr"])
def test_a_missing_program_is_named(name: str) -> None:
    error = refusal({key: file for key, file in FILES.items() if key != name})
    assert (error.code, f"there is no {name}" in error.message) == ("no-program", True)


@pytest.mark.parametrize(
    ("name", "file", "code", "sentence"),
    [
        ("kubelet", FilePiece("", b"#!/bin/sh\n", 0o755), "not-elf", "kubelet: it is no program of Linux (ELF)"),
        ("kubelet", FilePiece("", elf()[:90], 0o755), "cut-off", "kubelet: its table of segments lies behind its end"),
        ("runc", FilePiece("", elf(), 0o644), "not-executable", "runc is not executable"),
        ("runc", FilePiece("", elf(machine=AARCH64), 0o755), "other-machine", "runc is for aarch64"),
        ("cni/bridge", FilePiece("", elf(machine=AARCH64), 0o755), "other-machine", "cni/bridge is for aarch64"),
        (
            "runc",
            FilePiece("", elf(["libseccomp.so.2", "libc.so.6"], LOADER), 0o755),
            "no-library",
            "runc needs libseccomp.so.2, which the image does not have",
        ),
        ("kubelet", FilePiece("", elf((), "/lib/ld-musl-x86_64.so.1"), 0o755), "no-library", "ld-musl-x86_64.so.1"),
        ("net.d/10-pods.conflist", FilePiece("", b"{"), "bad-network", "net.d/10-pods.conflist"),
        ("net.d/10-pods.conflist", FilePiece("", b"[]"), "bad-network", "has no cniVersion"),
        ("kube-proxy", PROGRAM, "unknown-name", "nobody knows what kube-proxy is for"),
        ("net.d/README", PROGRAM, "unknown-name", "nobody knows what net.d/README is for"),
        ("images/pause.tar.gz", PROGRAM, "unknown-name", "nobody knows what images/pause.tar.gz is for"),
        ("cni/.hidden", PROGRAM, "unknown-name", "cni/.hidden"),
    ],
)
def test_what_could_not_run_is_refused_by_name_with_its_reason(
    name: str, file: FilePiece, code: str, sentence: str
) -> None:
    error = refusal(FILES | {name: file})
    assert (error.code, sentence in error.message) == (code, True), error.message


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_PROGRAM", 1000)
    error = refusal(FILES | {"kubelet": FilePiece("", elf() + bytes(1000), 0o755)})
    assert (error.code, "kubelet has" in error.message) == ("too-large", True)
    monkeypatch.setattr(programs, "MAX_ALL", 400)
    assert refusal(FILES).code == "too-large"


def test_a_root_without_what_a_node_calls_is_refused_with_the_packages() -> None:
    error = refusal(FILES, MappedTree({path: b"" for path in HELPERS if path != "/usr/bin/mount"}))
    assert (error.code, error.hint) == ("no-helpers", "Install these packages into the root of the image: mount.")


def test_a_root_without_programs_is_no_root_of_a_node() -> None:
    programs_there(MappedTree(dict.fromkeys(programs.PROGRAMS.values(), b"")))
    with pytest.raises(NodeRefused, match=r"the image has no kubelet \(/usr/bin/kubelet\)"):
        programs_there(ROOT)
