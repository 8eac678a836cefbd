"""One file out of a layer of an image: a tar archive, plain or packed with gzip, read without unpacking it anywhere.

A layer is looked through from its beginning to the file, within a bound on what it unpacks to: a few kilobytes can stand for
gigabytes. Links are not followed, and only a regular file counts.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from typing import Final

from fastness.formats.oci import OciError

MAX_UNPACKED: Final = 256 * 1024 * 1024
MAX_FILE: Final = 8 * 1024 * 1024
MAX_MEMBERS: Final = 100_000
_GZIP: Final = b"\x1f\x8b"
_HINT: Final = "Look at the layers of the image; they are tar archives, plain or packed with gzip."


class _Bounded(io.RawIOBase):
    """A stream that gives so many bytes and no more."""

    def __init__(self, source: gzip.GzipFile | io.BytesIO, most: int) -> None:
        self._source = source
        self._left = most

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes; raises OciError beyond the bound."""
        # tarfile asks for as much as a header promises, which may be more than there is memory.
        chunk = self._source.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(chunk)
        if self._left < 0:
            raise OciError("layer-too-large", "the layer unpacks to more than is looked at", hint=_HINT)
        return chunk


def file_in_layer(layer: bytes, path: str, *, most: int = MAX_UNPACKED) -> bytes | None:
    """The content of a regular file of a layer, None where there is none; raises OciError."""
    plain = io.BytesIO(layer)
    source = gzip.GzipFile(fileobj=plain) if layer.startswith(_GZIP) else plain
    try:
        with tarfile.open(fileobj=_Bounded(source, most), mode="r|") as archive:
            return _look(archive, path)
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise OciError("layer", f"this is not a layer of an image: {error}", hint=_HINT) from error


def _look(archive: tarfile.TarFile, path: str) -> bytes | None:
    for number, member in enumerate(archive):
        if number >= MAX_MEMBERS:
            raise OciError("layer-too-large", f"the layer has more than {MAX_MEMBERS} members", hint=_HINT)
        if member.name.removeprefix("./") != path or not member.isreg():
            continue
        if member.size > MAX_FILE:
            raise OciError("layer-too-large", f"{path} has more than {MAX_FILE} bytes", hint=_HINT)
        content = archive.extractfile(member)
        return content.read() if content is not None else None
    return None
