"""Build the agent as one directory that needs no Python of the system: `python tools/agent_image.py DIRECTORY`.

    DIRECTORY/bin/fastness-agent        starts it; moves with the directory
    DIRECTORY/bin/python3.11            the interpreter that ran this tool
    DIRECTORY/lib/python3.11            standard library, the agent's wheel and its dependencies, compiled
    DIRECTORY/lib/native                shared libraries that these need, except those of the C library

What is copied is what is installed here, so the pins of `requirements` decide the versions, and nothing is downloaded. The C
library is the image's own: build on a system whose C library is not newer than that of the image.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import Requirement

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from tools import agent_wheel

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Parts of the standard library that an agent never imports: tests, windows, installers, debuggers, old formats.
LEFT_OUT = frozenset({
    "test", "tests", "idlelib", "tkinter", "turtledemo", "turtle", "lib2to3", "ensurepip", "distutils", "pydoc_data", "pydoc",
    "venv", "unittest", "doctest", "sqlite3", "curses", "dbm", "xmlrpc", "site-packages", "dist-packages", "__pycache__",
    "lib-dynload",
    "antigravity", "this", "cProfile", "profile", "pstats", "pdb", "zipapp", "mailbox", "nntplib", "telnetlib", "cgi", "cgitb",
    "msilib", "imaplib", "smtplib", "poplib", "ftplib", "pickletools", "trace", "tabnanny", "pyclbr",
})  # fmt: skip
NATIVE_LEFT_OUT = re.compile(
    r"(_test|_xxtest|xx|_ctypes_test|_tkinter|_sqlite3|_curses|readline|_dbm|_gdbm|nis|audioop|ossaudiodev|_codecs_)"
)
UNREAD = (".exe", ".a", ".txt")
C_LIBRARY = re.compile(r"(ld-linux|libc\.so|libm\.so|libpthread|libdl\.|librt\.|libutil|libresolv|linux-vdso|libnss)")
# The directory may lie anywhere: the program finds its own place. Programs that it starts get a clean environment.
LAUNCHER = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$here/../lib/native"
exec "$here/{version}" -I -B -c 'from fastness.cli.machine.agent import agent; agent(prog_name="fastness-agent")' "$@"
"""


def build(directory: Path) -> dict[str, int]:
    """Build the directory, which must not exist; bytes of its parts."""
    directory.mkdir(parents=True)
    library = directory / "lib" / VERSION
    _standard_library(library)
    site = library / packages_directory()
    site.mkdir()
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(agent_wheel.build(Path(scratch))) as wheel:
        wheel.extractall(site)
    for name in dependencies():
        _distribution(name, site)
    _compiled(library)
    _programs(directory)
    _native(directory)
    _stripped(directory)
    parts = (directory / "bin", library / "lib-dynload", site, directory / "lib" / "native")
    return {part.name: _size(part) for part in parts} | {"all": _size(directory)}


def packages_directory() -> str:
    """Where the interpreter that is packed looks for packages, beside its own library: Debian's has another name for it."""
    command = [_interpreter(), "-I", "-S", "-c", "import site; print(*site.getsitepackages(['/']))"]
    places = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return "dist-packages" if f"/lib/{VERSION}/dist-packages" in places else "site-packages"


def _interpreter() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def dependencies() -> list[str]:
    """Every distribution that the agent needs, itself left out, as the metadata of what is installed says."""
    waiting, names = [Requirement(line) for line in _declared()], set[str]()
    while waiting:
        requirement = waiting.pop()
        if (requirement.marker and not requirement.marker.evaluate({"extra": ""})) or requirement.name.lower() in names:
            continue
        names.add(requirement.name.lower())
        waiting += [Requirement(line) for line in importlib.metadata.requires(requirement.name) or ()]
    return sorted(names)


def _declared() -> list[str]:
    declared: list[str] = tomllib.loads(agent_wheel.RECIPE.read_text())["project"]["dependencies"]
    return declared


def _standard_library(target: Path) -> None:
    source = Path(sysconfig.get_path("stdlib"))

    def skipped(_: str, names: list[str]) -> set[str]:
        return {
            name
            for name in names
            if name.partition(".")[0] in LEFT_OUT or name.startswith("config-") or name.endswith(UNREAD)
        }

    shutil.copytree(source, target, ignore=skipped)
    native = target / "lib-dynload"
    native.mkdir()
    for path in Path(sysconfig.get_config_var("DESTSHARED")).glob("*.so"):
        if not NATIVE_LEFT_OUT.match(path.name):
            shutil.copy2(path, native)


def _distribution(name: str, site: Path) -> None:
    for entry in importlib.metadata.files(name) or ():
        source = Path(str(entry.locate()))
        unwanted = {"tests", "test", "__pycache__"} & set(entry.parts) or ".." in entry.parts
        if unwanted or source.suffix in (".pyi", ".c", ".h", ".pxd", ".pyx", ".typed") or not source.is_file():
            continue
        target = site / entry
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _compiled(library: Path) -> None:
    """Byte code beside nothing: the interpreter reads it without looking for sources or writing anything."""
    quiet = compileall.compile_dir(str(library), quiet=2, legacy=True, optimize=0, workers=1, stripdir=str(library))
    if not quiet:
        raise SystemExit("something in the library does not compile")
    for path in library.rglob("*.py"):
        path.unlink()


def _programs(directory: Path) -> None:
    programs = directory / "bin"
    programs.mkdir()
    shutil.copyfile(_interpreter(), programs / VERSION)
    (programs / "fastness-agent").write_text(LAUNCHER.format(version=VERSION))
    for path in programs.iterdir():
        path.chmod(0o755)


def _native(directory: Path) -> None:
    target = directory / "lib" / "native"
    target.mkdir()
    for library in sorted(set(_needed([directory / "bin" / VERSION, *directory.rglob("*.so")]))):
        shutil.copyfile(os.path.realpath(library), target / library.name)


def _needed(programs: Iterable[Path]) -> Iterator[Path]:
    """Shared libraries of programs, all the way down, without those of the C library."""
    where = os.pathsep.join([sysconfig.get_config_var("LIBDIR") or "", os.environ.get("LD_LIBRARY_PATH", "")])
    around = {**os.environ, "LD_LIBRARY_PATH": where.strip(os.pathsep)}
    for program in programs:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, env=around).stdout
        if "not found" in listed:
            raise SystemExit(f"{program.name} needs a library that is not installed:\n{listed}")
        yield from (Path(place) for name, place in re.findall(r"(\S+) => (/\S+)", listed) if not C_LIBRARY.match(name))


def _stripped(directory: Path) -> None:
    """Leave out what only debuggers read, where the tool for it is installed."""
    if shutil.which("strip"):
        targets = [directory / "bin" / VERSION, *directory.rglob("*.so"), *(directory / "lib" / "native").iterdir()]
        subprocess.run(["strip", "--strip-unneeded", *map(str, targets)], check=False, stderr=subprocess.DEVNULL)


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


if __name__ == "__main__":
    for part, size in build(Path(sys.argv[1])).items():
        print(f"{part:<16}{size / 1024**2:8.1f} MiB")
