"""Debian's part of an image: a handful of packages, of each the files that a program reads when it runs.

    pins(lock.read_text())            what `requirements/image.lock` names: package, version, hash
    fetch(pins, cache)                their archives, by hash from the cache or with apt
    unpack(archive, root)             the files that count, in a root with /usr merged

No script of a package runs and no shell comes along: what scripts would have done is two files, which are written here. The way
of a package is apt's, so its signature was checked against Debian's keys; the lock makes the choice repeatable. Debian's archives
drop a version when the next one comes. Then a build takes that one and says so, and a release is refused until the lock has it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.release.errors import ReleaseError

# What Python 3.11 and the wheels of run.lock load. tests/e2e/release imports everything that is in an image.
PACKAGES: Final = (
    "base-files", "ca-certificates", "gcc-12-base", "libatomic1", "libbz2-1.0", "libc6", "libcrypt1", "libexpat1", "libffi8",
    "libgcc-s1", "liblzma5", "libpython3.11-minimal", "libpython3.11-stdlib", "libsqlite3-0", "libssl3", "libstdc++6", "libuuid1",
    "python3.11-minimal", "zlib1g",
)  # fmt: skip
# The agent installs packages on its node by `chroot`.
AGENT_PACKAGES: Final = ("coreutils",)
# Programs of a build run in the base image, so all that is needed here is buildah with its libraries; transfers are ours.
BUILDER_PACKAGES: Final = (
    "buildah", "libassuan0", "libdevmapper1.02.1", "libgpg-error0", "libgpgme11", "libpcre2-8-0", "libseccomp2", "libselinux1",
    "libudev1",
)  # fmt: skip
LOCK: Final = Path(__file__).parents[2] / "requirements" / "image.lock"
FETCH_SECONDS: Final = 600.0
TAKEN: Final = re.compile(
    r"usr/lib/[a-z0-9_]+-linux-gnu/[^/]+\.so[.0-9]*|usr/lib64/.+|usr/lib/python3\.11/.+|usr/bin/python3\.11|usr/sbin/chroot"
    r"|usr/bin/buildah"
    r"|usr/share/doc/[^/]+(/copyright)?|usr/share/common-licenses/.+|usr/share/ca-certificates/.+"
    r"|usr/lib/os-release|etc/os-release|etc/debian_version"
)
# Of the standard library: tests, installers and documentation, and modules of libraries that no image has.
LEFT_OUT: Final = re.compile(
    r"usr/lib/python3\.11/((curses|dbm|distutils|ensurepip|idlelib|lib2to3|pydoc_data|test|tkinter|turtledemo|unittest|venv)/.+"
    r"|sitecustomize\.py|.*\.(txt|exe|rst)|lib-dynload/(_curses|_dbm|_gdbm|_test|_xx|nis|ossaudiodev|audioop|readline|_tkinter|xx).*)"
    r"|.*/(libBrokenLocale|libanl|libc_malloc_debug|libmemusage|libnsl|libnss_hesiod|libnss_compat|libpcprofile|libthread_db)\.so.*"
)
_PIN: Final = re.compile(r"([a-z0-9][a-z0-9+.-]+)=(\S+) sha256:([0-9a-f]{64})")
_LICENCE: Final = re.compile(r"^License: *(\S.*)$", re.MULTILINE)
_MERGED: Final = re.compile(r"^(bin|sbin|lib|lib64)/")


class Pin(NamedTuple):
    """A package as the lock names it."""

    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name}={self.version} sha256:{self.sha256}"


class Archive(NamedTuple):
    """A package that is here."""

    pin: Pin
    path: Path


def pins(text: str) -> dict[str, Pin]:
    """The lines of a lock; raises ReleaseError."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    matches = [_PIN.fullmatch(line) for line in lines]
    for line, match in zip(lines, matches, strict=True):
        if match is None:
            raise ReleaseError("lock-line", f"{line!r} is not NAME=VERSION sha256:HASH", "Write it by `make lock`.")
    return {match[1]: Pin(*match.groups()) for match in matches if match is not None}


def lock_text(archives: Iterable[Archive]) -> str:
    """The lock of these packages."""
    lines = sorted(str(archive.pin) for archive in archives)
    return "\n".join(["# Debian packages of the images; written by `make lock`, do not edit.", *lines, ""])


def fetch(names: Sequence[str], locked: dict[str, Pin], cache: Path, *, strict: bool) -> list[Archive]:
    """The archives of packages. `strict` raises ReleaseError where one is not the locked one."""
    cache.mkdir(parents=True, exist_ok=True)
    archives = []
    for name in names:
        pin = locked.get(name)
        place = cache / f"{pin.sha256}.deb" if pin else None
        if pin and place and place.exists() and _sha256(place) == pin.sha256:
            archives.append(Archive(pin, place))
        else:
            archives.append(_fetched(name, pin, cache, strict=strict))
    return archives


def newest(names: Sequence[str], cache: Path) -> list[Archive]:
    """What apt offers today, whatever the lock says."""
    cache.mkdir(parents=True, exist_ok=True)
    _apt("update", "-qq", cwd=cache)
    return [_fetched(name, None, cache, strict=False) for name in names]


def _fetched(name: str, pin: Pin | None, cache: Path, *, strict: bool) -> Archive:
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        place = Path(scratch)
        # A machine that never asked, or asked long ago, does not know where the pinned version is.
        exact = f"{name}={pin.version}" if pin else name
        if not (_download(exact, place) or (_apt("update", "-qq", cwd=place) and _download(exact, place))):
            if strict or not _download(name, place):
                hint = "Take what there is by `make lock`, look at the difference, and build anew."
                raise ReleaseError("package-gone", f"apt has no {exact}", hint)
            print(f"{exact} is gone; taking the version that apt has now: `make lock` writes it down", file=sys.stderr)
        (path,) = place.glob("*.deb")
        package = Archive(Pin(name, control(path)["Version"], _sha256(path)), cache / f"{_sha256(path)}.deb")
        if pin and package.pin.version == pin.version and package.pin != pin:
            hint = "Do not use it. Somebody changed a package without changing its version: find out who."
            raise ReleaseError("package-changed", f"{exact} has another hash than the lock says", hint)
        path.rename(package.path)
        return package


def _download(package: str, place: Path) -> bool:
    return _apt("download", "-qq", package, cwd=place)


def _apt(*words: str, cwd: Path) -> bool:
    if shutil.which("apt-get") is None:
        raise ReleaseError("no-apt", "there is no apt-get here", "Build images on a Debian.")
    # Who may not change user reads downloads as root; the signature is checked all the same.
    command = ["apt-get", "-o", "APT::Sandbox::User=root", *words]
    return subprocess.run(command, cwd=cwd, check=False, capture_output=True, timeout=FETCH_SECONDS).returncode == 0


def control(path: Path) -> dict[str, str]:
    """The fields of a package about itself; continued lines are left out."""
    text = control_text(path)
    return dict(re.findall(r"^([A-Za-z-]+): (.*)$", text, re.MULTILINE))


def control_text(path: Path) -> str:
    """The paragraph of a package about itself."""
    return subprocess.run(["dpkg-deb", "-f", path], check=True, capture_output=True, text=True).stdout


def unpack(archive: Archive, root: Path) -> None:
    """Put the files of a package that count into a root; raises ReleaseError for a file that would lie outside."""
    command = ["dpkg-deb", "--fsys-tarfile", str(archive.path)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as tar,
    ):
        for member in tar:
            name = _MERGED.sub(r"usr/\1/", member.name.removeprefix("./"), count=1)
            if TAKEN.fullmatch(name) and not LEFT_OUT.fullmatch(name):
                _write(tar, member, name, root)
    if process.returncode:
        raise ReleaseError("package-damaged", f"{archive.pin.name} cannot be unpacked", "Remove it from the cache.")
    # As in other images without a package manager: scanners read what is installed from here.
    status = root / "var/lib/dpkg/status.d" / archive.pin.name
    status.parent.mkdir(parents=True, exist_ok=True)
    status.write_text(control_text(archive.path))


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, root: Path) -> None:
    target = root / name
    if ".." in target.parts:
        raise ReleaseError("package-path", f"a package has a file {name}", "Do not use that package.")
    if member.isdir():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        shutil.copy(root / _MERGED.sub(r"usr/\1/", member.linkname.removeprefix("./"), count=1), target)
    elif member.isreg():
        content = tar.extractfile(member)
        assert content is not None
        with target.open("wb") as sink:
            shutil.copyfileobj(content, sink)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)


def licences(root: Path, name: str) -> list[str]:
    """The licences in a package's copyright file, by the names that Debian gives them; empty where it has no such form."""
    path = root / "usr/share/doc" / name / "copyright"
    text = path.read_text(errors="replace") if path.exists() else ""
    return sorted(set(_LICENCE.findall(text)))


def merged_directories(root: Path) -> None:
    """The links of a Debian with one /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")


def trust_store(root: Path) -> None:
    """The authorities of ca-certificates in one file, where OpenSSL looks for them."""
    certificates = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True)
    bundle.write_bytes(b"".join(path.read_bytes().rstrip() + b"\n" for path in certificates))
    (root / "usr/lib/ssl").mkdir(parents=True)
    (root / "usr/lib/ssl/cert.pem").symlink_to("/etc/ssl/certs/ca-certificates.crt")
    (root / "usr/lib/ssl/certs").symlink_to("/etc/ssl/certs")


def _sha256(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
