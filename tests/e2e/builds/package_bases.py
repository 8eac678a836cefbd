"""Bases with a package manager and extensions images to install from, made of what this machine has: no network, no distribution.

A base is busybox, the files of some Debian packages of this machine, and the libraries that these need. An extensions image is a
repository of packages that are made here, each with one file.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.bed.images import Image, busybox_image
from tests.components import require_program
from tests.e2e.builds.registry_images import pushed
from tests.e2e.machineconfig.local_registry import LocalRegistry

DNF = (
    "dnf", "dnf-data", "python3-dnf", "python3-libdnf", "libdnf2-common", "python3-hawkey", "python3-libcomps", "python3-rpm",
    "python3-gpg", "rpm", "rpm-common", "python3-minimal", "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib",
)  # fmt: skip
APT = ("apt", "dpkg", "libc-bin", "tar")
PLACE = "usr/share/rpm-ostree/extensions"
_LEFT_OUT = re.compile(
    r"/usr/share/(doc|man|locale|info|lintian)/|/etc/(cron|logrotate|apt/|yum/|init\.d)|/var/|__pycache__|/config-3|/(test|tests|lib2to3|idlelib|distutils|unittest|pydoc_data)/|\.a\Z"
)
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def dnf_base(registry: LocalRegistry) -> str:
    """A base whose package manager is dnf, by digest; its kernel is a package that another can take the place of."""
    require_program(Path("/usr/bin/dnf"), "dnf")
    # Debian's rpm keeps its database in the home directory, which no distribution with dnf does.
    macros = {"etc/rpm/macros.dbpath": b"%_dbpath /var/lib/rpm\n"}
    return pushed(
        registry, _base("bed/dnf", DNF, {"etc/dnf/dnf.conf": b"[main]\n", "usr/lib/os-release": b"ID=bed\n", **macros})
    )


def apt_base(registry: LocalRegistry) -> str:
    """A base whose package manager is apt, by digest."""
    require_program(Path("/usr/bin/apt-get"), "apt")
    empty = dict.fromkeys(("var/lib/dpkg/status", "var/lib/dpkg/available", "etc/apt/sources.list"), b"")
    folders = ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/log/apt", "etc/apt/apt.conf.d",
               "etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial")  # fmt: skip
    return pushed(registry, _base("bed/apt", APT, empty, folders))


def _base(path: str, packages: Iterable[str], files: Mapping[str, bytes], folders: Iterable[str] = ()) -> Image:
    busybox = busybox_image(require_program(Path("/bin/busybox"), "busybox-static"))
    taken = _files_of(packages)
    sink = io.BytesIO(busybox.layer)
    with tarfile.open(fileobj=sink, mode="a", format=tarfile.PAX_FORMAT) as archive:
        there = {*archive.getnames(), *files}
        for each in sorted(taken | _libraries(taken)):
            if (inside := _inside(each)) not in there:
                archive.add(each, inside, recursive=False, filter=_plain)
                there.add(inside)
        for name in folders:
            archive.addfile(_folder(name))
        for name in ("lib", "lib64", "sbin"):
            archive.addfile(_link(name, f"usr/{name}"))
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return replace(busybox, path=path, layer=sink.getvalue())


def _inside(path: str) -> str:
    """Where a file lies in the base: below /usr, as on merged systems."""
    inside = path.lstrip("/")
    return f"usr/{inside}" if inside.split("/")[0] in ("bin", "sbin", "lib", "lib64") else inside


def _files_of(packages: Iterable[str]) -> set[str]:
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True, check=True).stdout.split("\n")
    return {
        each
        for each in listed
        if each and not _LEFT_OUT.search(each) and os.path.lexists(each) and not _is_folder(each)
    }


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and (not os.path.islink(path) or path.count("/") == 1)


def _libraries(files: Iterable[str]) -> set[str]:
    programs = [each for each in files if os.path.isfile(each) and _is_elf(each)]
    printed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    libraries = {each for each in _LIBRARY.findall(printed) if os.path.exists(each)}
    # A name that a program asks for is a link: what it leads to comes along.
    return libraries | {os.path.realpath(each) for each in libraries}


def _is_elf(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _folder(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry


def _link(name: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, target
    return entry


def rpm_extensions(registry: LocalRegistry, directory: Path, *names: str) -> str:
    """An extensions image as they are for dnf: packages, each with a file of its name, by digest."""
    require_program(Path("/usr/bin/rpmbuild"), "rpm")
    require_program(Path("/usr/bin/createrepo_c"), "createrepo-c")
    place = directory / "rpms"
    place.mkdir(parents=True)
    for name in names:
        spec = directory / f"{name}.spec"
        spec.write_text(
            f"Name: {name}\nVersion: 1\nRelease: 1\nSummary: {name}\nLicense: none\nBuildArch: noarch\n%description\n{name}\n"
            f"%install\nmkdir -p %{{buildroot}}/usr/lib/installed\necho {name} > %{{buildroot}}/usr/lib/installed/{name}\n"
            f"%files\n/usr/lib/installed/{name}\n"
        )
        command = ["rpmbuild", "-bb", f"--define=_topdir {directory / 'top'}", f"--define=_rpmdir {place}", str(spec)]
        subprocess.run(command, check=True, capture_output=True)
    subprocess.run(["createrepo_c", "--no-database", str(place)], check=True, capture_output=True)
    return _repository(registry, "bed/rpms", place)


def deb_extensions(registry: LocalRegistry, directory: Path, *names: str) -> str:
    """An extensions image as they are for apt, by digest."""
    place = directory / "debs"
    place.mkdir(parents=True)
    index = []
    for name in names:
        tree = directory / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "usr/lib/installed").mkdir(parents=True)
        (tree / "usr/lib/installed" / name).write_text(f"{name}\n")
        control = (
            f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <a@example.com>\nDescription: {name}\n"
        )
        (tree / "DEBIAN/control").write_text(control)
        target = place / f"{name}_1_all.deb"
        subprocess.run(["dpkg-deb", "--build", str(tree), str(target)], check=True, capture_output=True)
        checksum = subprocess.run(
            ["sha256sum", str(target)], check=True, capture_output=True, text=True
        ).stdout.split()[0]
        index.append(f"{control}Filename: ./{target.name}\nSize: {target.stat().st_size}\nSHA256: {checksum}\n")
    (place / "Packages").write_text("\n".join(index))
    return _repository(registry, "bed/debs", place)


def _repository(registry: LocalRegistry, path: str, place: Path) -> str:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(place, PLACE, filter=_plain)
    return pushed(registry, Image(path, "1", sink.getvalue()))
