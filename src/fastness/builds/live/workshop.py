"""The directory of one build, and what is run in it: the same on the machine of the control plane and in the pod of a Job.

    begin(work)                          empty directories
    write_context(work / CONTEXT, order) files of the config and the Containerfile
    code = await run(work, BUILD, …)     one command in the sandbox after the other

`work` holds `base` (the image that the build begins with), `context`, `out` (what it made), and what buildah needs. Everything in
it belongs to the users of the build, so what stands in it afterwards is the word of a stranger.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import shutil
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.builds import containerfile
from fastness.builds.errors import BuildFailed
from fastness.builds.inputs import ImageFile
from fastness.builds.live.builder import Order
from fastness.builds.live.sandbox import users_here
from fastness.formats import json
from fastness.runtime.tasks import uninterrupted

PROGRAM: Final = "buildah"
TIMESTAMP: Final = 0
LOOK_EVERY: Final = 0.5
BASE: Final = "base"
CONTEXT: Final = "context"
OUT: Final = "out"
NO_SANDBOX: Final = (125, 126)
_BUILDAH: Final = (PROGRAM, "--root", "/build/store", "--runroot", "/build/run", "--storage-driver", "vfs")
BUILD: Final = (
    (
        *_BUILDAH, "bud", "--layers=false", "--timestamp", str(TIMESTAMP), "--pull-never", "--network", "none", "--format", "oci",
        "-f", "/build/context/Containerfile", "-t", "built", "/build/context",
    ),
    (*_BUILDAH, "push", "--quiet", "built", "oci:/build/out:built"),
)  # fmt: skip
PROBE: Final = ((PROGRAM, "--version"),)


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """What a build may use; `free` bytes must stay on the disk."""

    seconds: float = 3600.0
    processes: int = 2048
    memory: int = 8 * 1024**3
    file: int = 16 * 1024**3
    free: int = 1024**3


def begin(work: Path) -> None:
    """Make the directories of a build, and nothing of an earlier one; raises OSError."""
    shutil.rmtree(work, ignore_errors=True)
    for name in (f"{BASE}/blobs/sha256", f"{CONTEXT}/{containerfile.ROOT}", "store", "run", "tmp", OUT):
        (work / name).mkdir(parents=True)


def write_context(context: Path, order: Order) -> None:
    """The files of the config and the Containerfile; raises OSError, BuildFailed."""
    (context / "Containerfile").write_text(containerfile.whole(order.inputs.layer, order.labels))
    root = context / containerfile.ROOT
    for file in order.inputs.files:
        _write(root, file)


def _write(root: Path, file: ImageFile) -> None:
    path = root / file.path.lstrip("/")
    if ".." in path.parts:
        raise BuildFailed(f"{file.path} is no path of an image")
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.link:
        path.symlink_to(file.link)
        return
    path.write_bytes(file.content)
    path.chmod(file.mode)


def packed(context: Path) -> bytes:
    """A context as one archive, for whoever builds elsewhere; equal contexts are equal bytes."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(context.rglob("*")):
            archive.add(path, str(path.relative_to(context)), recursive=False, filter=_plain)
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
            if ".." in path.parts or not path.is_relative_to(context):
                raise BuildFailed(f"{entry.name} is no path of a context")
            if entry.issym():
                path.symlink_to(entry.linkname)
            elif entry.isdir():
                path.mkdir(exist_ok=True)
            elif (file := archive.extractfile(entry)) is not None:
                path.write_bytes(file.read())
                path.chmod(entry.mode)


async def run(work: Path, commands: Sequence[Sequence[str]], limits: BuildLimits, say: Callable[[bytes], None]) -> int:
    """Run commands in the sandbox until one fails; its exit code; raises BuildFailed where a limit ends it, OSError."""
    await uninterrupted(lambda: _give(work))
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
            _require_space(work, limits)
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
        await asyncio.wait((listening,))


def _require_space(work: Path, limits: BuildLimits) -> None:
    if shutil.disk_usage(work).free < limits.free:
        raise BuildFailed(f"the build was ended: less than {limits.free} bytes were left on the disk")


async def _listen(process: asyncio.subprocess.Process, say: Callable[[bytes], None]) -> None:
    stream = process.stdout
    while stream is not None and (chunk := await stream.read(65536)):
        say(chunk)


def _give(work: Path) -> None:
    """Everything below a directory belongs to the users of the build."""
    first = users_here()[0]
    for place, directories, files in os.walk(work):
        for name in (*directories, *files):
            os.lchown(Path(place, name), first, first)
    os.lchown(work, first, first)
