"""What runs in the containers of a Job that builds: one step each, with what that step needs and no more.

    fastness-builder pull      /way      ▶ /work/base, /known/base      base and extensions, and the digest of the base
    fastness-builder build     /order    ▶ /work/out                    buildah in the sandbox
    fastness-builder push      /way, /known, /work/out ▶ registry       what the build left is read as a stranger's

How it ended is the exit code, and a sentence or the image in the termination message, from where the control plane reads it. What
is printed is the log, and holds no credential.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fastness.builds import job
from fastness.builds.errors import BuildError, BuildFailed, TransferFailed
from fastness.builds.job import BUILD, CONTEXT_KEY, IMAGE, LAYERS, PULL, PUSH, WAY_KEY, Exit
from fastness.builds.live import transfers, workshop
from fastness.builds.live.layout import collect
from fastness.builds.live.transfers import Way
from fastness.builds.live.workshop import BASE, CONTEXT, EXTENSIONS, NO_SANDBOX, OUT, BuildLimits
from fastness.builds.log import BuildLog, forms_of
from fastness.formats import json
from fastness.formats.errors import FormatError

TERMINATION: Final = "/dev/termination-log"
MOST_SAID: Final = 3500
"""Of the 4096 bytes that a kubelet reads, what is left when quotes and line ends are escaped."""
_KNOWN_BASE: Final = "base"
_NO_SANDBOX: Final = (
    "the sandbox of builds cannot be made in this pod: {why}. Nodes need user namespaces for pods (Kubernetes 1.33, containerd "
    "2, kernel 6.3), or set builds.userNamespaces=false in the chart, which makes the container that builds privileged"
)


class NoSandbox(BuildError):
    """This pod may not make namespaces."""

    code = "no-sandbox"


class Places:
    """Where things lie in a pod; elsewhere in tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        root = environment.get("FASTNESS_BUILD_ROOT", "")
        self.work = Path(f"{root}{job.WORK}") / "build"
        self.way = Path(f"{root}{job.WAY}") / WAY_KEY
        self.known = Path(f"{root}{job.KNOWN}") / _KNOWN_BASE
        self.context = Path(f"{root}{job.ORDER}") / CONTEXT_KEY
        self.termination = Path(f"{root}{TERMINATION}")


def _print(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


async def pull(places: Places) -> dict[str, str]:
    """The base, and what it is called; raises BuildError, OSError."""
    base, extensions = _way(places), _way(places, EXTENSIONS)
    workshop.begin(places.work)
    _print(f"pulling the base image {base.image}\n".encode())
    places.known.write_text(await transfers.pull(base, places.work / BASE))
    if extensions.image:
        _print(f"pulling the extensions image {extensions.image}\n".encode())
        await transfers.pull(extensions, places.work / EXTENSIONS, "extensions image")
    return {}


async def build(places: Places, limits: BuildLimits = BuildLimits(free=0)) -> dict[str, str]:  # noqa: B008
    """An image as a directory; raises BuildError, OSError."""
    log = BuildLog()

    def say(content: bytes) -> None:
        log.add(content)
        _print(content)

    try:
        workshop.unpack(places.context.read_bytes(), places.work / CONTEXT)
    except tarfile.TarError as error:
        raise BuildFailed(f"what is to be built cannot be read: {error}") from error
    code = await workshop.build(places.work, limits, say)
    if code in NO_SANDBOX:
        raise NoSandbox(_NO_SANDBOX.format(why=log.tail(500)))
    if code != 0:
        raise BuildFailed(workshop.why(log, code))
    return {}


async def push(places: Places) -> dict[str, str]:
    """The image in its registry; raises BuildError, OSError."""
    way = _way(places)
    layers = [str(word) for word in _given(places).get(LAYERS) or ()]
    made = collect(places.work / OUT, places.work / BASE, places.known.read_text(), layers)
    _print(f"pushing {way.image}\n".encode())
    image = await transfers.push(way, made)
    _print(f"pushed {image}\n".encode())
    return {"image": image}


def _given(places: Places) -> dict[str, Any]:
    try:
        given = json.decode(places.way.read_bytes())
    except FormatError as error:
        raise BuildFailed(f"what this step was given cannot be read: {error}") from error
    return given if isinstance(given, dict) else {}


def _way(places: Places, name: str = IMAGE) -> Way:
    """The way to an image, one to nowhere where none was given; raises BuildFailed, OSError."""
    given = _given(places).get(name)
    try:
        return Way.of_json(given) if given is not None else Way("")
    except (FormatError, KeyError, TypeError, ValueError) as error:
        raise BuildFailed(f"the way to the registry cannot be read: {error}") from error


STEPS: Final = {PULL: pull, BUILD: build, PUSH: push}


async def step(name: str, places: Places) -> Exit:
    """Do one step, and say how it ended."""
    message: dict[str, Any]
    try:
        message, code = await STEPS[name](places), Exit.DONE
    except TransferFailed as error:
        message, code = {"error": _safe(error.message, places)}, Exit.TRANSFER
    except NoSandbox as error:
        message, code = {"error": error.message}, Exit.NO_SANDBOX
    except BuildError as error:
        message, code = {"error": error.message}, Exit.FAILED
    except OSError as error:
        message, code = {"error": f"{error.filename or places.work}: {error.strerror}"}, Exit.FAILED
    if "error" in message:
        message["error"] = str(message["error"])[-MOST_SAID:]
        _print(f"{message['error']}\n".encode() if name != BUILD else b"")
    places.termination.write_bytes(json.encode(message)[:4096])
    return code


def _safe(text: str, places: Places) -> str:
    """What went wrong with a registry, without what it was asked with."""
    log = BuildLog(forms_of([*_way(places).logins, *_way(places, EXTENSIONS).logins]))
    log.add(text.encode())
    return log.text


def main() -> None:
    """Do the step that is named."""
    if len(sys.argv) != 2 or sys.argv[1] not in STEPS:
        print(f"usage: fastness-builder {'|'.join(STEPS)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(asyncio.run(step(sys.argv[1], Places(os.environ))))


if __name__ == "__main__":
    main()
