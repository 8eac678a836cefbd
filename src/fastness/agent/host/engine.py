"""What the drivers of image-based hosts share: patience with registries and daemons, credentials, logs of the last boot.

Commands(run, pause)    runs a program of the host; asks a registry again; waits
auth_link(root, path)   lets the program use the pull secret of the node
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from fastness.agent.host.errors import AnotherImage, CommandFailed, DriverError, ImageFailure
from fastness.agent.host.os_steps import OsStep, Switch
from fastness.agent.host.process import Run, run
from fastness.agent.host.states import Absent, File, Link, Pull, State
from fastness.formats import json
from fastness.formats.errors import JsonError

ASK_SECONDS: Final = 60.0
# A system image is gigabytes, and the line to its registry may be slow; after this it hangs.
DEPLOY_SECONDS: Final = 3600.0
# Seven tries; registries that restart are back within minutes, and a node is cordoned meanwhile.
PAUSES: Final = (10.0, 20.0, 40.0, 60.0, 60.0, 60.0)
INTERNAL_SECRET: Final = "/etc/mco/internal-registry-pull-secret.json"
PROXY: Final = "/etc/mco/proxy.env"
NODE_SECRET: Final = "/var/lib/kubelet/config.json"
IMAGE_SECRET: Final = "/etc/fastness/image-pull-secret.json"
MERGED_SECRETS: Final = "/run/fastness/image-auth.json"
AUTH_TARGETS: Final = (INTERNAL_SECRET, NODE_SECRET, MERGED_SECRETS)
CLIENT: Final = {"RPMOSTREE_CLIENT_ID": "fastness"}
LOG_LINES: Final = 20


class Tree(Protocol):
    """The part of the machine's files that drivers need."""

    def look(self, path: str) -> State:
        """What is at a path."""

    def put(self, path: str, state: State, *, directory_mode: int = ..., own_directories: bool = ...) -> None:
        """Bring a path into a state."""


def _ask(command: Sequence[str]) -> str:
    return run(command, seconds=ASK_SECONDS, environment=CLIENT)


def _deploy(command: Sequence[str]) -> str:
    return run(command, seconds=DEPLOY_SECONDS, environment=CLIENT)


@dataclass(frozen=True, slots=True)
class Commands:
    """Programs of the host, quick ones and those that deploy; `pause` waits, in seconds."""

    ask: Run = _ask
    deploy: Run = _deploy
    pause: Callable[[float], None] = time.sleep

    def persistently(self, command: Sequence[str]) -> str:
        """What a command that pulls printed; asked again while it ends badly; raises ImageFailure."""
        for seconds in (*PAUSES, None):
            try:
                return self.deploy(command)
            except CommandFailed as error:
                # One that did not end in time is not tried again: what hung for an hour would hang for seven.
                if seconds is None or error.status is None:
                    raise ImageFailure(error.message, _PULL_HINT, pull=_pull_of(error)) from error
                self.pause(seconds)
        raise AssertionError("the last try returns or raises")

    def last_boot_log(self, unit: str) -> str:
        """What a unit wrote at the end of the boot before this one; empty where nobody can tell."""
        command = ["journalctl", "--boot=-1", f"--unit={unit}", "--no-pager", f"--lines={LOG_LINES}", "--output=cat"]
        with suppress(CommandFailed):
            return self.ask(command).strip()
        return ""


_PULL_HINT: Final = (
    "Check that the image exists, that its registry answers and that the machine's pull secret may read it."
)


# One program pulls an image and deploys it, and its exit code is the same for both. The words are those of the library that
# speaks to registries for podman, bootc and rpm-ostree alike.
_OF_REGISTRIES: Final = (
    "manifest unknown", "initializing source", "reading manifest", "reading blob", "fetching blob", "pinging container registry",
    "unauthorized", "name unknown", "toomanyrequests", "service unavailable", "no such host", "connection refused",
)  # fmt: skip


def _pull_of(error: CommandFailed) -> Pull:
    """Whether a command that pulls and deploys failed at the pull: what its words do not say nobody knows."""
    text = error.message.lower()
    at_the_pull = error.status is not None and any(words in text for words in _OF_REGISTRIES)
    return Pull.FAILED if at_the_pull else Pull.UNKNOWN


def auth_link(root: Tree, path: str) -> None:
    """Let `path` lead to the pull secret: that of the cluster's own registry where there is one, else the node's.

    Where the pool's images have a credential of their own, to that together with the others: programs read one file, and the same
    machine pulls the image of its pool today and the one of its config tomorrow.
    """
    target = INTERNAL_SECRET if _logins(root, INTERNAL_SECRET) is not None else NODE_SECRET
    if own := _logins(root, IMAGE_SECRET):
        merged = {**(_logins(root, NODE_SECRET) or {}), **(_logins(root, INTERNAL_SECRET) or {}), **own}
        target = MERGED_SECRETS
        root.put(target, File(json.canonical({"auths": merged}), 0o600))
    present = root.look(path)
    # Somebody else's file is left: a machine whose administrator gave it credentials uses those.
    if isinstance(present, Absent | Link) and present != Link(target):
        root.put(path, Link(target))


def _logins(root: Tree, path: str) -> dict[str, Any] | None:
    """The logins in a file by registry; None for a file that is not there or cannot be read."""
    state = root.look(path)
    if not isinstance(state, File):
        return None
    try:
        content = json.decode(state.content)
    except JsonError:
        return None
    logins = content.get("auths") if isinstance(content, dict) else None
    return logins if isinstance(logins, dict) else {}


def in_a_unit(launcher: Sequence[str]) -> list[str]:
    """What starts a program that pulls in a unit: it does not end with the agent, and gets the node's proxy from its file."""
    return [
        *launcher, "--wait", "--collect", "--pipe", "--quiet", "-p", f"EnvironmentFile=-{PROXY}",
        "-p", f"RuntimeMaxSec={DEPLOY_SECONDS:.0f}",
    ]  # fmt: skip


class Course:
    """How far the steps of one deployment came, and with them its image: one that is here already needs no pull."""

    def __init__(self, steps: Sequence[OsStep]) -> None:
        self._pull = Pull.FAILED if any(isinstance(step, Switch) for step in steps) else Pull.DONE

    @contextmanager
    def of(self, step: OsStep) -> Iterator[None]:
        """Take note of a step that is carried out in the block."""
        try:
            yield
        except ImageFailure as error:
            if isinstance(step, Switch):
                self._pull = error.pull
            raise
        if isinstance(step, Switch):
            self._pull = Pull.DONE

    def pull_after(self, error: DriverError) -> Pull:
        """What became of the image when this ended the deployment."""
        return Pull.FAILED if isinstance(error, AnotherImage) else self._pull


def as_image_failure(error: DriverError, pull: Pull) -> ImageFailure:
    """What a host refused, as the failure of a deployment whose image came this far."""
    kind = type(error) if isinstance(error, ImageFailure) else ImageFailure
    return kind(error.message, error.hint, pull=pull)
