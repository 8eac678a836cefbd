"""The second pass of a sealed build: look at what was made, make the kernel image, add it in a layer of its own.

`cfsctl` names the root, in the sandbox, where what people wrote may have left anything; what both left is read back as the
files of a stranger. The kernel image is written outside, and the second pass copies it in.
"""

from __future__ import annotations

import re
import shutil
import stat
from pathlib import Path
from typing import Final

from fastness.builds.errors import BuildFailed
from fastness.builds.sealing import DIRECTORY, MAX_ARGUMENTS_FILE, MAX_FILES, NAME, SealParts, sealed_kernel_image

PROGRAM: Final = "cfsctl"
MAX_PART: Final = 512 * 1024 * 1024
PLACE: Final = "seal"
_KARG: Final = re.compile(r"composefs\.digest=\S{1,300}", re.ASCII)
# Links are copied as links, which nobody follows afterwards: inside, they may lead anywhere.
LOOK: Final = """
set -e
working=$({buildah} from --pull-never built)
tree=$({buildah} mount $working)
cd "$tree"
set -- usr/lib/modules/*/vmlinuz
[ $# = 1 ] && [ -f "$1" ] || {{ echo "the image has not exactly one kernel, usr/lib/modules/*/vmlinuz"; exit 3; }}
version=$(dirname "$1")
[ -f "$version/initramfs.img" ] || {{ echo "the image has no $version/initramfs.img"; exit 3; }}
for place in boot sysroot usr; do
    [ -d $place ] && [ ! -L $place ] || {{ echo "the image has no directory /$place, which a sealed root must have"; exit 3; }}
done
stub=usr/lib/systemd/boot/efi/linuxx64.efi.stub
[ -f $stub ] || {{ echo "the image has no $stub"; exit 3; }}
cp -P "$1" /build/seal/kernel
cp -P "$version/initramfs.img" /build/seal/initrd
cp -P $stub /build/seal/stub
if [ -f usr/lib/os-release ]; then cp -P usr/lib/os-release /build/seal/os-release; fi
if [ -d usr/lib/bootc/kargs.d ]; then cp -RP usr/lib/bootc/kargs.d /build/seal/kargs.d; fi
cd /
/build/seal/cfsctl --no-repo compute-karg "$tree" > /build/seal/karg
{buildah} umount $working > /dev/null
{buildah} rm $working > /dev/null
"""
COPY: Final = "FROM localhost/built\nCOPY sealed.efi {directory}/{name}\n"


def seal_obstacle() -> str:
    """Why nothing can be sealed here; empty when it can."""
    if shutil.which(PROGRAM) is None:
        return (
            f"{PROGRAM} is not installed here, which names the root of a sealed image: cargo install composefs-ctl "
            "--version 0.9.4 --locked --no-default-features --features pre-6.15,pre-6.16,oci; or take the annotation back"
        )
    return ""


def lay_out_seal(work: Path) -> Path:
    """Bring what names roots into the directory of a build, a place of its own; raises BuildFailed, OSError."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise BuildFailed(seal_obstacle())
    place = work / PLACE
    place.mkdir()
    shutil.copy(program, place / PROGRAM)
    (place / PROGRAM).chmod(0o755)
    return place


def write_kernel_image(work: Path) -> Path:
    """Make the kernel image of what the first pass made, in the directory of the second; raises BuildFailed, OSError."""
    place = work / PLACE
    if place.is_symlink():
        raise BuildFailed("the build left a link in the place of what is sealed")
    printed = _part(place / "karg", 4096).decode("ascii", "replace").split()
    roots = [word for word in printed if _KARG.fullmatch(word)]
    if len(roots) != 1:
        raise BuildFailed(f"{PROGRAM} named no root: {' '.join(printed)[:200]!r}")
    names = _names(place / "kargs.d")
    parts = SealParts(
        roots[0], _part(place / "kernel"), _part(place / "initrd"), _part(place / "stub"),
        _part(place / "os-release", 65536) if (place / "os-release").exists() else b"",
        {name: _part(place / "kargs.d" / name, MAX_ARGUMENTS_FILE) for name in names},
    )  # fmt: skip
    context = work / "sealed"
    context.mkdir()
    (context / "sealed.efi").write_bytes(sealed_kernel_image(parts))
    (context / "Containerfile").write_text(COPY.format(directory=DIRECTORY, name=NAME))
    return context


def _names(directory: Path) -> list[str]:
    if directory.is_symlink() or not directory.is_dir():
        return []
    names = sorted(place.name for place in directory.iterdir() if place.suffix == ".toml")
    if len(names) > MAX_FILES:
        raise BuildFailed(f"kargs.d has more than {MAX_FILES} files")
    return names


def _part(path: Path, most: int = MAX_PART) -> bytes:
    """What a build left in a file, which must be one; raises BuildFailed, OSError."""
    state = path.lstat()
    if not stat.S_ISREG(state.st_mode) or state.st_size > most:
        raise BuildFailed(f"{path.name} of the image is no file of at most {most} bytes")
    return path.read_bytes()
