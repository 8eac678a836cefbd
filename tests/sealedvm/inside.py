"""What runs in a sealed machine: it takes steps from the console hvc0, one line of JSON each, and tells how each went.

A step is `[verb, arguments]`. What refuses answers with its message; a step never ends the run. The driver of the operating
system is the product's own, `fastness.agent.host.composefs`, and so is the agent that is started here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastness.agent.host.boot_entries import BootEntries
from fastness.agent.host.composefs import ComposefsOs
from fastness.agent.host.errors import DriverError
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import Deployment

CONSOLE = "/dev/hvc0"
MARK = "@@"
LONGEST = 400
Answer = dict[str, Any]
_running: dict[str, subprocess.Popen[bytes]] = {}


def system() -> ComposefsOs:
    """The driver of this machine."""
    return ComposefsOs(RootedFiles(Path("/")), BootEntries())


def shell(command: str, seconds: float = LONGEST) -> Answer:
    """Run a command of the machine."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False, timeout=seconds)
    return {"exit": done.returncode, "output": (done.stdout + done.stderr).decode(errors="replace")[-6000:]}


def write(path: str, text: str) -> Answer:
    """Write a file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return {}


def start(name: str, command: list[str]) -> Answer:
    """Start a program and leave it running."""
    with open(f"/run/{name}.log", "wb") as log:
        _running[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    return {}


def stop(name: str) -> Answer:
    """End a program that was started here; what it said."""
    process = _running.pop(name)
    process.terminate()
    return {"exit": process.wait(timeout=60), "output": Path(f"/run/{name}.log").read_text(errors="replace")[-6000:]}


def booted() -> Answer:
    """What runs, as the driver says it."""
    here = system()
    waiting = here.staged()
    return {
        "image": here.booted().image, "trial": here.on_trial(), "staged": waiting.image if waiting else "",
        "cmdline": Path("/proc/cmdline").read_text().strip(),
    }  # fmt: skip


def stage(image: str) -> Answer:
    """Let the next boot run an image once."""
    system().stage(Deployment(image))
    return booted()


def keep() -> Answer:
    """Keep what runs."""
    system().booted_well()
    return booted()


VERBS: dict[str, Callable[..., Answer]] = {
    "sh": shell, "write": write, "start": start, "stop": stop, "booted": booted, "stage": stage, "keep": keep,
}  # fmt: skip


def answered(line: str) -> Answer:
    """One step."""
    verb, arguments = json.loads(line)
    try:
        return {"ok": True, **VERBS[verb](**arguments)}
    except DriverError as error:
        return {"ok": False, "kind": type(error).__name__, "message": error.message, "hint": error.hint}
    except (OSError, subprocess.SubprocessError) as error:
        return {"ok": False, "kind": type(error).__name__, "message": str(error), "hint": ""}


def main() -> None:
    """All steps, until the machine goes down."""
    descriptor = os.open(CONSOLE, os.O_RDWR)
    tty.setraw(descriptor)
    with os.fdopen(descriptor, "rb", buffering=0) as console:
        os.write(descriptor, f"{MARK}ready\n".encode())
        waiting = b""
        while piece := console.read(65536):
            *lines, waiting = (waiting + piece).split(b"\n")
            for line in lines:
                os.write(descriptor, (MARK + json.dumps(answered(line.decode())) + "\n").encode())


if __name__ == "__main__" and sys.argv[1:] == ["run"]:
    main()
