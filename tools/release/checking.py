"""Whether a directory of a release is what its maker signed.

In order, because each step trusts the one before: the signature of the sums by the key that the caller believes, every file by
its sum, no file beside them, and the signature of each image by the same key. The key beside the release proves nothing: whoever
replaces the files replaces it as well.
"""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from tools.release import dist as dists
from tools.release import signing
from tools.release.errors import ReleaseError
from tools.release.signing import PublicKey

_SUM: Final = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_.+-]+)")
MAX_DOCUMENT: Final = 1024 * 1024
_AGAIN: Final = "Do not use it: get the release anew."


def verify(dist: Path, key: PublicKey) -> Iterator[str]:
    """What was verified, line by line; raises ReleaseError at the first thing that is not so."""
    for name in (dists.SUMS, dists.SIGNATURE):
        if not (dist / name).is_file():
            raise ReleaseError("unsigned", f"{name} is missing", _AGAIN)
    sums = (dist / dists.SUMS).read_bytes()
    signing.check(key, sums, (dist / dists.SIGNATURE).read_text())
    yield f"{dists.SUMS} is signed by this key"
    listed = sums_listed(sums.decode())
    for name, value in listed.items():
        if not (dist / name).is_file() or dists.sha256_of(dist / name) != value:
            raise ReleaseError("sum", f"{name} is missing or was changed", _AGAIN)
    beside = {path.name for path in dist.iterdir()} - {*listed, dists.SUMS, dists.SIGNATURE, dists.PUBLIC}
    if beside:
        raise ReleaseError("not-listed", f"{', '.join(sorted(beside))}: not part of the release", _AGAIN)
    yield f"{len(listed)} files are what it lists"
    for line in (dist / dists.IMAGES).read_text().splitlines():
        name, digest = line.split(" ")
        _check_archive(dist / f"{name.replace(':', '-')}-image.tar", digest, key)
        yield f"{name} is {digest}, signed by this key"


def sums_listed(text: str) -> dict[str, str]:
    """The sums by file; raises ReleaseError."""
    matches = [_SUM.fullmatch(line) for line in text.splitlines()]
    if not matches or None in matches:
        raise ReleaseError("sums-form", f"{dists.SUMS} is not a list of sums", _AGAIN)
    return {match[2]: match[1] for match in matches if match is not None}


def _lay_out(archive: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    """One file of an archive that nobody has checked yet; raises ReleaseError. Python 3.11.2 has no filters for this."""
    name, content = PurePosixPath(member.name), archive.extractfile(member)
    if name.is_absolute() or ".." in name.parts or content is None:
        raise ReleaseError("archive-form", f"{member.name!r} is no name of a file in an archive", _AGAIN)
    target = directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.read())


def _check_archive(path: Path, digest: str, key: PublicKey) -> None:
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(path) as archive:
        # Only documents: layers are in the sums, and large.
        for member in archive:
            if member.isfile() and member.size < MAX_DOCUMENT:
                _lay_out(archive, member, Path(scratch))
        signing.check_image(Path(scratch), digest, key)
