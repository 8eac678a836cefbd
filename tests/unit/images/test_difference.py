"""What is different between two images: files, packages, measurements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fastness.formats.dpkg_status import installed_packages
from fastness.formats.oci_tree import Layer
from fastness.formats.tar_stream import Member, MemberKind
from fastness.images.difference import difference, facts_of
from fastness.images.uki import write_uki
from tests.measuredboot import minted

STATUS = b"""Package: bash
Status: install ok installed
Architecture: amd64
Version: 5.2-1

Package: gone
Status: deinstall ok config-files
Version: 1

Package: docs
Status: install ok installed
Architecture: all
Version: 2
"""


def file(path: str, content: bytes, mode: int = 0o644) -> Member:
    return Member(path, MemberKind.FILE, len(content), "", content, mode)


def layer(*members: Member, removed: frozenset[str] = frozenset()) -> Layer:
    return Layer({member.path: member for member in members}, removed)


def kernel_image(line: bytes) -> Member:
    return file("boot/EFI/Linux/a.efi", write_uki(minted.stub(), minted.sections(cmdline=line)))


BASE = layer(file("etc/a", b"1"), file("etc/b", b"1"), file("etc/c", b"1"), file("var/lib/dpkg/status", STATUS))


def test_files_are_added_removed_and_changed_by_content_mode_kind_and_target() -> None:
    link = Member("etc/c", MemberKind.LINK, 0, "a")
    upper = layer(file("etc/a", b"2", 0o600), file("etc/new", b""), link, removed=frozenset({"etc/b"}))
    between = difference(facts_of("one", [BASE]), facts_of("two", [BASE, upper]))
    assert between.added == ("/etc/new",)
    assert between.removed == ("/etc/b",)
    assert between.changed == (("/etc/a", ("content", "mode")), ("/etc/c", ("file became link",)))
    assert between.packages == ()
    assert not between.same


def test_an_image_is_the_same_as_itself() -> None:
    facts = facts_of("one", [BASE, layer(kernel_image(b"quiet"))])
    assert difference(facts, facts).same


def test_packages_are_those_that_are_installed_with_their_versions() -> None:
    assert installed_packages(STATUS) == {"bash:amd64": "5.2-1", "docs": "2"}
    newer = STATUS.replace(b"5.2-1", b"5.3-1").replace(b"docs", b"manuals")
    between = difference(facts_of("one", [BASE]), facts_of("two", [BASE, layer(file("var/lib/dpkg/status", newer))]))
    assert between.packages == (("bash:amd64", "5.2-1", "5.3-1"), ("docs", "2", ""), ("manuals", "", "2"))


def test_measurements_are_compared_register_by_register_in_each_state() -> None:
    first, second = (facts_of(line.decode(), [BASE, layer(kernel_image(line))]) for line in (b"quiet", b"quiet x=1"))
    between = difference(first, second)
    assert {row[:2] for row in between.measurements} == {("booted", 4), ("booted", 9), ("booted", 11)}
    assert between.to_json()["measurements"][0]["value"] == "tpm_pcr4"


def test_what_cannot_be_said_is_a_note_and_no_difference() -> None:
    rpm = file("usr/share/rpm/rpmdb.sqlite", b"x")
    facts = facts_of("one", [layer(rpm, Member("boot", MemberKind.LINK, 0, "usr"))])
    assert any("packages of rpm are not read" in note for note in facts.notes)
    assert any("/boot is a link" in note for note in facts.notes)


def test_a_hard_link_is_the_file_that_it_names() -> None:
    first = layer(file("usr/x", b"1"), Member("usr/y", MemberKind.HARD_LINK, 0, "usr/x"))
    second = layer(file("usr/x", b"1"), file("usr/y", b"1"))
    assert difference(facts_of("one", [first]), facts_of("two", [second])).same


@given(st.binary(max_size=400))
def test_any_bytes_are_a_list_of_packages_or_none(data: bytes) -> None:
    assert all(name and version for name, version in installed_packages(data).items())
