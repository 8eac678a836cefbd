"""The files of an image out of its layers, and what strangers put into layers."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable

import pytest

from fastness.formats.oci import OciError
from fastness.formats.oci_tree import MAX_MERGED, MAX_WANTED, Layer, LayerReader, Room, merged
from fastness.formats.tar_stream import MemberKind, TarStream

Entry = tuple[str, bytes | str]


def tar(*entries: Entry, form: int = tarfile.GNU_FORMAT, kind: bytes = b"") -> bytes:
    """An archive: bytes are a file, text is a link, a name that ends in a slash is a directory."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name.rstrip("/"))
            if isinstance(content, str):
                entry.type, entry.linkname = kind or tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.type, entry.size = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE, len(content)
                archive.addfile(entry, io.BytesIO(content))
    return sink.getvalue()


def layer(
    body: bytes, wants: Callable[[str], bool] = lambda _: True, room: Room | None = None, step: int = 700
) -> Layer:
    reader = LayerReader(wants, room or Room())
    for at in range(0, len(body), step):
        reader.feed(body[at : at + step])
    return reader.finish()


def contents(*layers: bytes) -> dict[str, bytes | str]:
    tree = merged([layer(each) for each in layers])
    return {
        path: member.content if member.content is not None else member.target
        for path, (_, member) in tree.items()
        if member.kind is not MemberKind.DIRECTORY
    }


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, lambda body: gzip.compress(body[:600]) + gzip.compress(body[600:])]
)
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("step", [1, 511, 100_000])
def test_files_are_read_in_whatever_pieces_they_come(pack: Callable[[bytes], bytes], form: int, step: int) -> None:
    long = f"{'d' * 90}/{'n' * 90}"
    body = pack(tar(("./usr/", b""), ("./usr/a", b"1" * 1000), (long, b"2"), ("empty", b""), form=form))
    members = layer(body, step=step).members
    assert {path: member.content for path, member in members.items() if member.kind is MemberKind.FILE} == {
        "usr/a": b"1" * 1000, long: b"2", "empty": b"",
    }  # fmt: skip


def test_only_what_is_wanted_is_kept() -> None:
    body = tar(("big", b"x" * 1_000_000), ("boot/a.efi", b"uki"))
    assert (
        layer(body, lambda path: path.startswith("boot"), Room(room_for_files=10)).members["boot/a.efi"].content
        == b"uki"
    )


def test_later_layers_replace_take_away_and_empty_directories() -> None:
    lower = tar(("boot/a", b"1"), ("boot/b", b"1"), ("usr/lib/x", b"1"), ("etc/f", b"1"), ("opt/sub/g", b"1"))
    upper = tar(
        ("boot/a", b"2"), ("boot/.wh.b", b""), ("usr/.wh.lib", b""), ("etc/.wh..wh..opq", b""), ("etc/new", b"2"),
        ("opt/sub", b"now a file"),
    )  # fmt: skip
    assert contents(lower, upper) == {"boot/a": b"2", "etc/new": b"2", "opt/sub": b"now a file"}
    assert contents(lower, tar((".wh..wh..opq", b""), ("only", b"this"))) == {"only": b"this"}


def test_a_link_in_the_place_of_a_directory_hides_what_was_below_it() -> None:
    assert contents(tar(("boot/EFI/Linux/a.efi", b"1")), tar(("boot", "usr/evil"))) == {"boot": "usr/evil"}


def resized(body: bytes, size: bytes, flag: bytes = tarfile.REGTYPE) -> bytes:
    """An archive whose first member says that it is of another kind and size."""
    header = bytearray(body[:512])
    header[124:136] = size
    header[156:157] = flag
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + body[512:]


def with_content(flag: bytes) -> bytes:
    """A member of a kind that has no content, and says that it has some: what follows is a member to one program."""
    return resized(tar(("a", b""), ("b", b"")), b"%011o\0" % 512, flag)


def extended(content: bytes) -> bytes:
    """An extended header with this content, and a member behind it."""
    return resized(tar(("x", content), ("b", b"")), b"%011o\0" % len(content), b"x")


def named_twice() -> bytes:
    """A member with a long name of GNU and one of POSIX: which one counts differs from program to program."""
    gnu = tar(("g" * 150, b""), form=tarfile.GNU_FORMAT)[:1024]
    return gnu + tar(("p" * 150, b""), form=tarfile.PAX_FORMAT)


def extended_twice() -> bytes:
    """A member with two extended headers, of which Go takes the last and others both."""
    once = tar(("p" * 150, b""), form=tarfile.PAX_FORMAT)
    return once[:1024] + once


HOSTILE = {
    "a directory with content": with_content(tarfile.DIRTYPE),
    "a hard link with content": with_content(tarfile.LNKTYPE),
    "a device with content": with_content(tarfile.CHRTYPE),
    "a member with two names": named_twice(),
    "a member with two extended headers": extended_twice(),
    "a name that leads out": tar(("boot/../../etc/shadow", b"1")),
    "a path twice": tar(("boot/a", b"1"), ("boot/a", b"2")),
    "taken away and brought": tar(("boot/.wh.a", b""), ("boot/a", b"1")),
    "a file with files below it": tar(("boot", b"1"), ("boot/a", b"1")),
    "something behind the end": tar(("a", b"1")) + tar(("boot/a", b"2")),
    "a wrong checksum": b"x" + tar(("a", b"1"))[1:],
    "cut off": tar(("a", b"1" * 2000))[:1024],
    "cut off when packed": gzip.compress(tar(("a", b"1" * 2000)))[:-9],
    "something behind what is packed": gzip.compress(tar(("a", b"1"))) + b"more",
    "an archive of a kind that nobody knows": tar(("a", "b"), kind=b"Z"),
    "packed with zstd": b"\x28\xb5\x2f\xfd" + b"0" * 100,
    "no archive": b"<html>" * 200,
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_layer_that_programs_would_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(OciError) as refused:
        layer(body)
    assert refused.value.hint


SAID = {
    "is packed with zstd": HOSTILE["packed with zstd"],
    "something follows the packed layer": HOSTILE["something behind what is packed"],
    "a directory with content": with_content(tarfile.DIRTYPE),
    "an extended header has more than": extended(b"7 a=b\n" * 20_000),
    "an extended header of the archive is damaged": extended(b"9999 path=a\n"),
    "header of the archive is damaged": extended(b"6 path=a\n"),
    "a size that is none": extended(b"11 size=-1\n"),
    "too long, or holds a zero byte": extended(b"5011 path=" + b"n" * 5000 + b"\n"),
    "a number that is too large": resized(tar(("a", b"")), b"\x80" + b"\xff" * 11),
    "a number that is none": resized(tar(("a", b"")), b"99999999999\0"),
}


@pytest.mark.parametrize(("words", "body"), SAID.items(), ids=SAID.keys())
def test_why_a_layer_is_refused_is_said(words: str, body: bytes) -> None:
    with pytest.raises(OciError, match=words):
        layer(body)


def test_a_layer_that_unpacks_to_too_much_is_refused_on_the_way() -> None:
    bomb = gzip.compress(tar(("a", b"\0" * 3_000_000)))
    with pytest.raises(OciError, match="unpack to more"):
        layer(bomb, room=Room(unpacked=1_000_000))
    with pytest.raises(OciError, match="larger than is read"):
        layer(bomb, room=Room(room_for_files=1_000_000))
    many = tar(*((f"f{number}", b"") for number in range(MAX_WANTED + 1)))
    with pytest.raises(OciError, match="paths of a layer"):
        layer(many, step=100_000)


def test_layers_that_together_say_more_than_is_stacked_are_refused() -> None:
    """Every path is compared with those of lower layers: the work grows with the square."""
    one = layer(tar(*((f"f{number}", b"") for number in range(MAX_WANTED))), step=100_000)
    with pytest.raises(OciError, match="paths of the layers"):
        merged([one] * (MAX_MERGED // MAX_WANTED + 1))


def test_a_global_header_that_renames_is_refused_and_others_are_not() -> None:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x"}) as archive:
        archive.addfile(tarfile.TarInfo("a"))
    assert layer(body.getvalue()).members["a"].content == b""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"path": "boot/a"}) as archive:
        archive.addfile(tarfile.TarInfo("a"))
    with pytest.raises(OciError, match="renames"):
        layer(body.getvalue())


def test_a_sparse_file_is_passed_over_unless_it_is_wanted() -> None:
    entry = tarfile.TarInfo("a")
    entry.pax_headers = {"GNU.sparse.major": "1"}
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry)
        archive.addfile(tarfile.TarInfo("b"))
    assert list(layer(body.getvalue(), lambda path: path == "b").members) == ["b"]
    with pytest.raises(OciError, match="sparse"):
        layer(body.getvalue())


def test_an_archive_has_a_bound_on_its_members() -> None:
    stream = TarStream(lambda _: False, most=0, members=3)
    with pytest.raises(OciError, match="too many members"):
        stream.feed(tar(*((f"f{number}", b"") for number in range(4))))
