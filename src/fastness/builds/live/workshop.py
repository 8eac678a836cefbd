"""The directory of one build, and what is run in it: the same on the machine of the control plane and in the pod of a Job.

    begin(work)                          empty directories
    write_context(work / CONTEXT, order) files of the config and the Containerfile
    code = await build(work, …)          look at the base where arguments of it go, then build, in the sandbox

`work` holds `base` (the image that the build begins with), `context`, `out` (what it made), and what buildah needs. Everything in
it belongs to the users of the build, so what stands in it afterwards is the word of a stranger.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.apply.into_root import apply_into
from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import ABSENT, File
from fastness.builds import containerfile, kernel_arguments, packages
from fastness.builds.errors import BuildFailed
from fastness.builds.live.builder import Order
from fastness.builds.live.removal import remove_tree
from fastness.builds.live.sandbox import drop_groups, users_here
from fastness.builds.log import SHORT, BuildLog
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.kinds.machineconfiguration import names
from fastness.runtime.tasks import uninterrupted

PROGRAM: Final = "buildah"
TIMESTAMP: Final = 0
LOOK_EVERY: Final = 0.5
BASE: Final = "base"
CONTEXT: Final = "context"
EXTENSIONS: Final = "extensions"
OUT: Final = "out"
REMOVED: Final = "removed-arguments.json"
MOST_ARGUMENT_FILES: Final = 256
NO_SANDBOX: Final = (125, 126)
BUILDAH: Final = (PROGRAM, "--root", "/build/store", "--runroot", "/build/run", "--storage-driver", "vfs")
BUILD: Final = (
    (
        *BUILDAH, "bud", "--layers=false", "--timestamp", str(TIMESTAMP), "--pull-never", "--network", "none", "--format", "oci",
        "-f", "/build/context/Containerfile", "-t", "built", "/build/context",
    ),
    (*BUILDAH, "push", "--quiet", "built", "oci:/build/out:built"),
)  # fmt: skip
SEAL: Final = (
    (
        *BUILDAH, "bud", "--layers=false", "--timestamp", str(TIMESTAMP), "--pull-never", "--network", "none", "--format", "oci",
        "-f", "/build/sealed/Containerfile", "-t", "sealed", "/build/sealed",
    ),
    ("/bin/sh", "-c", "rm -rf /build/out/*"),
    (*BUILDAH, "push", "--quiet", "sealed", "oci:/build/out:built"),
)  # fmt: skip
LOOK: Final = ((*BUILDAH, "from", "--quiet", "--pull-never", containerfile.BASE),)
PROBE: Final = ((PROGRAM, "--version"),)


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """What a build may use; `free` bytes must stay on the disk, and so many `names` of files, where it counts them."""

    seconds: float = 3600.0
    processes: int = 2048
    memory: int = 8 * 1024**3
    file: int = 16 * 1024**3
    free: int = 1024**3
    names: int = 100_000


def begin(work: Path) -> None:
    """Make the directories of a build, and nothing of an earlier one; raises OSError."""
    remove_tree(work)
    blobs = (f"{BASE}/blobs/sha256", f"{EXTENSIONS}/blobs/sha256")
    for name in (*blobs, f"{CONTEXT}/{containerfile.ROOT}", "store", "run", "tmp", OUT):
        (work / name).mkdir(parents=True)


def write_context(context: Path, order: Order) -> None:
    """The files of the config, by the writer that nodes have, and the Containerfile; raises OSError, BuildFailed."""
    made_of = order.inputs
    (context / "Containerfile").write_text(containerfile.whole(made_of.layer, order.labels, made_of.packages))
    (context / packages.SCRIPT).write_text(packages.script())
    (context / REMOVED).write_bytes(json.canonical(list(made_of.removed_arguments)))
    try:
        apply_into(context / containerfile.ROOT, {"spec": {"config": made_of.document}})
    except (AgentError, DriverError) as error:
        raise BuildFailed(f"the config cannot be written into an image: {error}") from error


def packed(context: Path) -> bytes:
    """A context as one archive, for whoever builds elsewhere; equal contexts are equal bytes."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(below(context)):
            archive.add(path, path.removeprefix(f"{context}/"), recursive=False, filter=_plain)
    return gzip.compress(sink.getvalue(), 9, mtime=0)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def unpack(content: bytes, context: Path) -> None:
    """A context from its archive; raises OSError, tarfile.TarError, BuildFailed."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for entry in archive:
            path = context / entry.name
            if ".." in path.parts or not path.is_relative_to(context) or _behind_link(path, context):
                raise BuildFailed(f"{entry.name[:200]} is no path of a context")
            if entry.issym():
                path.symlink_to(entry.linkname)
            elif entry.isdir():
                path.mkdir(exist_ok=True)
            elif (file := archive.extractfile(entry)) is not None:
                # Only where nothing is: what stands there may be a link to somewhere else.
                with path.open("xb") as made:
                    made.write(file.read())
                path.chmod(entry.mode)


def _behind_link(path: Path, context: Path) -> bool:
    return any(each.is_symlink() for each in path.parents if each != context and each.is_relative_to(context))


async def build(work: Path, limits: BuildLimits, say: Callable[[bytes], None]) -> int:
    """Make the image of a context; the exit code of what failed, or 0; raises BuildFailed, OSError."""
    removed = json.decode((work / CONTEXT / REMOVED).read_bytes())
    await uninterrupted(lambda: give(work))
    if removed:
        if code := await run(work, LOOK, limits, say):
            return code
        try:
            await uninterrupted(lambda: _take_out(work, removed))
        except DriverError as error:
            raise BuildFailed(f"the arguments of the base cannot be read: {error}") from error
        # Only what is new: owners in what was looked at are those of the image by now.
        await uninterrupted(lambda: give(work / CONTEXT))
    return await run(work, BUILD, limits, say)


def _take_out(work: Path, removed: Sequence[str]) -> None:
    """Files of the base without some arguments, as files of the config; what the look left is hostile; raises BuildFailed."""
    written = RootedFiles(work / CONTEXT / containerfile.ROOT)
    shipped = _looked_at(work)
    for name in shipped.names(names.KARGS_DIRECTORY)[:MOST_ARGUMENT_FILES]:
        place = f"{names.KARGS_DIRECTORY}/{name}"
        state = shipped.inspect(place, kernel_arguments.MOST_BYTES) if name.endswith(".toml") else ABSENT
        if state is ABSENT:
            continue
        if not isinstance(state, File):
            raise BuildFailed(f"{place[:120]} of the base is no file that can be read")
        try:
            content = kernel_arguments.without(state.content, removed)
        except ValueError as error:
            raise BuildFailed(f"{place[:120]} of the base cannot be read: {error}") from error
        if content is not None:
            written.put(place, File(content, 0o644, 0, 0))


def _looked_at(work: Path) -> RootedFiles:
    """The root file system of the container that was made of the base; raises BuildFailed."""
    try:
        listed = json.decode((work / "store/vfs-containers/containers.json").read_bytes())
        layer = str(listed[0]["layer"])
    except (OSError, FormatError, LookupError, TypeError) as error:
        raise BuildFailed(f"the base cannot be looked at: {error}") from error
    if not layer.isalnum():
        raise BuildFailed("the base cannot be looked at: its layer has no name")
    return RootedFiles(work / "store/vfs/dir" / layer)


def why(log: BuildLog, code: int) -> str:
    """Why a build ended, in our words where it was something of ours that ended it."""
    reasons = [line.partition(packages.TOLD)[2] for line in log.text.splitlines() if line.startswith(packages.TOLD)]
    return reasons[-1][-SHORT:] if reasons else f"buildah ended with {code}: {log.tail()}"


async def run(work: Path, commands: Sequence[Sequence[str]], limits: BuildLimits, say: Callable[[bytes], None]) -> int:
    """Run commands in the sandbox until one fails; its exit code; raises BuildFailed where a limit ends it, OSError."""
    try:
        async with asyncio.timeout(limits.seconds):
            for command in commands:
                if code := await _run(work, command, limits, say):
                    return code
    except TimeoutError as error:
        raise BuildFailed(f"the build did not end within {limits.seconds:.0f} seconds") from error
    return 0


async def _run(work: Path, command: Sequence[str], limits: BuildLimits, say: Callable[[bytes], None]) -> int:
    bounds = {"processes": limits.processes, "memory": limits.memory, "file": limits.file}
    sandbox = [sys.executable, "-P", "-m", "fastness.builds.live.sandbox", str(work), json.encode(bounds).decode()]
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *sandbox, *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT, env=environment, cwd=work.parent,
    )  # fmt: skip
    listening = asyncio.ensure_future(_listen(process, say))
    try:
        while not (await asyncio.wait((listening,), timeout=LOOK_EVERY))[0]:
            require_space(work, limits)
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
        await asyncio.wait((listening,))
        drop_groups()


def require_space(work: Path, limits: BuildLimits) -> None:
    """End a build that would leave too little on the disk, which others need; raises BuildFailed, OSError."""
    state = os.statvfs(work)
    if state.f_bavail * state.f_frsize < limits.free:
        raise BuildFailed(f"the build was ended: less than {limits.free} bytes were left on the disk")
    # A million empty files take no room, and nobody else could make one afterwards. Some file systems count none.
    if limits.free and state.f_files and state.f_favail < limits.names:
        raise BuildFailed(f"the build was ended: less than {limits.names} more files could be made on the disk")


async def _listen(process: asyncio.subprocess.Process, say: Callable[[bytes], None]) -> None:
    stream = process.stdout
    while stream is not None and (chunk := await stream.read(65536)):
        say(chunk)


def give(work: Path) -> None:
    """Everything below a directory belongs to the users of the build."""
    first = users_here()[0]
    for path in below(work):
        os.lchown(path, first, first)
    os.lchown(work, first, first)


def below(root: Path) -> Iterator[str]:
    """Everything below a directory, however deep: a path of a config may have more levels than Python has calls."""
    left = [str(root)]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                yield entry.path
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
