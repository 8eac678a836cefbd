"""Declarations of files that other operators keep: what is read, what is refused and why, and whose a path is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fastness.protocol.files_of_others import DIRECTORY, FilesOfOthers, is_declaration, read_declaration


def text(owner: Any = "sriov", paths: Any = ("/etc/sriov",)) -> bytes:
    return json.dumps({"owner": owner, "paths": list(paths) if isinstance(paths, tuple) else paths}).encode()


def test_a_path_stands_for_itself_and_what_is_below_it() -> None:
    others = FilesOfOthers.of([
        (f"{DIRECTORY}/a.json", text(paths=("/etc/sriov", "/etc/udev/rules.d/10-x.rules"))),
        (f"{DIRECTORY}/b.json", text("certs", ("/opt/certs",))), (f"{DIRECTORY}/c.json", b"nonsense"), ("/etc/x", text("no")),
    ])  # fmt: skip
    paths = (
        "/etc/sriov",
        "/etc/sriov/a/b",
        "/etc/sriov2",
        "/etc/udev/rules.d/10-x.rules",
        "/opt/certs/x",
        "/",
        "relative",
    )
    assert [others.owner_of(path) for path in paths] == ["sriov", "sriov", "", "sriov", "certs", "", ""]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "no JSON"),
        (b"[]", 'write {"owner"'),
        (b'{"owner": "a", "paths": ["/etc/a"], "more": 1}', 'write {"owner"'),
        (text("A B"), "owner is 'A B'"),
        (text(paths=[]), "1 to 64 paths"),
        (text(paths="/etc/a"), "1 to 64 paths"),
        (text(paths=(1,)), "no plain absolute path"),
        (text(paths=("/etc/../a",)), "no plain absolute path"),
        (text(paths=("/etc/a/",)), "no plain absolute path"),
        (text(paths=("/etc/a b",)), "no plain absolute path"),
        (text(paths=("/usr/lib/a",)), "/usr is the image's"),
        (text(paths=("/etc",)), "is not below /etc"),
        (
            text(paths=("/etc/kubernetes/kubelet.conf",)),
            "what the control plane and the kubelet keep in /etc/kubernetes",
        ),
        (text(paths=("/var/lib",)), "keep in /var/lib/fastness"),
        (text(paths=("/etc/shadow",)), "/etc/shadow"),
        (text(paths=("/etc/systemd/system",)), "a directory of everybody"),
        (b" " * 20000, "more than 16384 bytes"),
    ],
)
def test_what_cannot_be_declared_is_told_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        read_declaration(content)


def test_only_files_of_that_directory_declare() -> None:
    assert is_declaration(f"{DIRECTORY}/a.json")
    assert not is_declaration(f"{DIRECTORY}/below/a.json")
    assert not is_declaration(DIRECTORY)
