"""The process around a build: what runs inside is nobody, sees nothing, reaches nobody, and ends with it.

    python -P -m fastness.builds.live.sandbox WORK LIMITS COMMAND...

It runs as root only to give the build users of its own, which are nobody outside. Inside are namespaces of its own for users,
mounts, processes, network, IPC and host name. Its root is memory with the programs of /usr, a few devices, and WORK as /build;
there is no network, not even loopback that is up. Processes, memory and file sizes have limits: by control groups where they can
be made, by rlimits always. When this process dies, for whatever reason, everything inside dies with it. A control group stays
then, empty: whoever started it, or the next one, takes it away.

Standard library alone: the process is small, and imports nothing of the control plane.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import signal
import sys
from pathlib import Path

FIRST_USER = 0x6FFF0000
USERS = 65536
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NEW_ROOT = "newroot"
DEVICES = ("null", "zero", "full", "random", "urandom")
_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_BIND, _REC, _PRIVATE, _NOSUID, _NODEV, _DETACH = 4096, 16384, 1 << 18, 2, 4, 2
_GROUP = "fastness-build-"
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_PDEATHSIG, _NO_NEW_PRIVILEGES = 1, 38
_libc = ctypes.CDLL(None, use_errno=True)


def users_here() -> tuple[int, int]:
    """The first user of builds and how many there are: nobody's, or in a pod with users of its own all but its first."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        first, _, count = (int(word) for word in line.split())
        if first <= FIRST_USER and first + count >= FIRST_USER + USERS:
            return FIRST_USER, USERS
    return 1, USERS - 1


def _checked(what: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    arguments = (
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(f"mount {source} on {target}", _libc.mount(*arguments))


def _die_with_parent() -> None:
    _checked("prctl", _libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def _make_root() -> None:
    """Mount everything that the build may see below NEW_ROOT, and make that the root."""
    _mount("none", "/", flags=_REC | _PRIVATE)
    _mount("tmpfs", NEW_ROOT, "tmpfs", _NOSUID | _NODEV, "size=64m,mode=755")
    work = os.open(".", os.O_PATH)
    for name in (
        "usr",
        "etc/containers",
        "proc",
        "dev/shm",
        "dev/pts",
        "dev/mqueue",
        "tmp",
        "build",
        "sys",
        "var/tmp",
        "run",
        "root",
    ):
        Path(NEW_ROOT, name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        place = Path("/", name)
        if place.is_symlink():
            Path(NEW_ROOT, name).symlink_to(place.readlink())
        elif place.is_dir():
            Path(NEW_ROOT, name).mkdir()
            _mount(str(place), f"{NEW_ROOT}/{name}", flags=_BIND | _REC)
    _mount("/usr", f"{NEW_ROOT}/usr", flags=_BIND | _REC)
    for name in DEVICES:
        Path(NEW_ROOT, "dev", name).touch()
        _mount(f"/dev/{name}", f"{NEW_ROOT}/dev/{name}", flags=_BIND)
    Path(NEW_ROOT, "dev/fd").symlink_to("/proc/self/fd")
    _mount("proc", f"{NEW_ROOT}/proc", "proc", _NOSUID | _NODEV)
    _mount(f"/proc/self/fd/{work}", f"{NEW_ROOT}/build", flags=_BIND)
    Path(NEW_ROOT, "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    Path(NEW_ROOT, "etc/group").write_text("root:x:0:\n")
    Path(NEW_ROOT, "etc/containers/policy.json").write_text('{"default":[{"type":"insecureAcceptAnything"}]}')
    Path(NEW_ROOT, "etc/containers/registries.conf").touch()
    os.close(work)
    os.chdir(NEW_ROOT)
    _checked("pivot_root", _libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."))
    _checked("umount of the old root", _libc.umount2(b".", _DETACH))
    os.chdir("/build")


def _limit(limits: dict[str, int]) -> None:
    for name, value in (
        (resource.RLIMIT_NPROC, limits["processes"]), (resource.RLIMIT_FSIZE, limits["file"]), (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 4096),
    ):  # fmt: skip
        resource.setrlimit(name, (value, value))


def _inside(limits: dict[str, int], command: list[str], ready: int, mapped: int) -> int:
    """In namespaces of its own, once users are mapped: the exit code of the command, which is the first process there."""
    _checked("unshare", _libc.unshare(_NAMESPACES))
    os.write(ready, b"1")
    if os.read(mapped, 1) != b"1":
        return 125
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    _die_with_parent()
    first = os.fork()
    if first == 0:
        try:
            _die_with_parent()
            _make_root()
            _limit(limits)
            _checked("prctl", _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
            environment = {
                "PATH": PATH,
                "HOME": "/root",
                "BUILDAH_ISOLATION": "chroot",
                "TMPDIR": "/build/tmp",
                "LC_ALL": "C",
            }
            os.execvpe(command[0], command, environment)  # noqa: S606 - no shell is meant
        except OSError as error:
            print(f"sandbox: {error}", flush=True)
            os._exit(126)
    _, status = os.waitpid(first, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


def _groups(name: str, limits: dict[str, int]) -> list[Path]:
    """Control groups of this process with limits, as far as this machine lets it have some."""
    root, made = Path("/sys/fs/cgroup"), list[Path]()
    drop_groups()
    rows = (("pids", "pids.max", limits["processes"]), ("memory", "memory.limit_in_bytes", limits["memory"]))
    for group, file, value in rows if (root / "pids").is_dir() else ():
        made += _group(root / group / name, {file: value})
    if not made and _UNIFIED.exists():
        made += _group(root / name, {"pids.max": limits["processes"], "memory.max": limits["memory"]})
    return made


def drop_groups() -> None:
    """Take away the control groups of builds that were killed. The system lets nobody take away one that has a process."""
    for place in Path("/sys/fs/cgroup").glob(f"{_GROUP}*" if _UNIFIED.exists() else f"*/{_GROUP}*"):
        if not Path("/proc", place.name.removeprefix(_GROUP)).exists():
            with contextlib.suppress(OSError):
                place.rmdir()


def _group(place: Path, values: dict[str, int]) -> list[Path]:
    try:
        place.mkdir(exist_ok=True)
        for file, value in values.items():
            (place / file).write_text(str(value))
        (place / "cgroup.procs").write_text(str(os.getpid()))
    except OSError:
        with contextlib.suppress(OSError):
            place.rmdir()
        return []
    return [place]


def _leave(groups: list[Path]) -> None:
    for place in groups:
        with contextlib.suppress(OSError):
            (place.parent / "cgroup.procs").write_text(str(os.getpid()))
            place.rmdir()


def main() -> int:
    """Run a command inside; its exit code, 125 and 126 where the sandbox could not be made."""
    work, limits, command = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
    _die_with_parent()
    os.chdir(work)
    Path(NEW_ROOT).mkdir(exist_ok=True)
    groups = _groups(f"{_GROUP}{os.getpid()}", limits)
    ready, mapping = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        # Else it would wait for itself where its users cannot be mapped.
        os.close(ready[0])
        os.close(mapping[1])
        try:
            os._exit(_inside(limits, command, ready[1], mapping[0]))
        except OSError as error:
            print(f"sandbox: {error}", flush=True)
            os._exit(125)
    os.close(ready[1])
    try:
        if os.read(ready[0], 1) == b"1":
            first, users = users_here()
            for kind in ("uid", "gid"):
                Path(f"/proc/{child}/{kind}_map").write_text(f"0 {first} {users}")
            os.write(mapping[1], b"1")
        os.close(mapping[1])
        _, status = os.waitpid(child, 0)
    finally:
        _leave(groups)
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(f"sandbox: {error}", flush=True)
        sys.exit(125)
