"""An operating system deployed by `ostree` into a sysroot: the machine's own, or a directory.

An image is a commit under a ref that is derived from its pull specification; the commit must be in the repository before it can
be deployed (`import_tree` puts a directory there). The commit's metadata name the image, so the sysroot itself says what it has.
Rules:

- Staging is a deploy: it comes first in the boot order, and the one before stays as the way back. The kernel arguments of the
  booted deployment are kept, ours are replaced as a whole.
- Discarding is an undeploy of everything before the booted deployment.
- What is booted: ostree knows it on a running machine. A directory never boots, so a marker below the sysroot says it; whoever
  simulates the reboot calls `reboot`.
- Another kernel or package sets need a package manager; ostree has none, and says so.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final, NamedTuple

from fastness.agent.host.engine import Commands
from fastness.agent.host.errors import CommandFailed, ImageFailure
from fastness.agent.host.process import Run, run
from fastness.agent.host.states import NOTHING, Deployment, Pull

REFS: Final = "fastness/image"
ORIGIN: Final = "fastness-image"
MARKER: Final = "ostree/.fastness-booted"
_LINE: Final = re.compile(r"^(?P<booted>\*| ) (?P<os>\S+) (?P<checksum>[0-9a-f]{64})\.(?P<serial>\d+)", re.MULTILINE)


class _Entry(NamedTuple):
    """One deployment of the sysroot, in boot order."""

    checksum: str
    serial: str
    booted: bool

    @property
    def id(self) -> str:
        """As ostree names its directory."""
        return f"{self.checksum}.{self.serial}"


class OstreeOs:
    """The deployments of one sysroot; `base` are the kernel arguments that the machine itself needs."""

    brings_arguments = False
    owns_usr = True
    brings_usr = True

    finalizer = "ostree-finalize-staged.service"

    def __init__(self, sysroot: Path, name: str, *, base: tuple[str, ...] = (), run: Run = run) -> None:
        self._sysroot = sysroot
        self._name = name
        self._base = base
        self._run = run

    def initialise(self) -> None:
        """Make an empty sysroot; raises ImageFailure."""
        self._sysroot.mkdir(parents=True, exist_ok=True)
        self._ostree("admin", "init-fs", str(self._sysroot))
        self._admin("os-init", self._name)

    def import_tree(self, image: str, tree: Path, version: str = "") -> str:
        """Commit a directory as an image; its checksum; raises ImageFailure."""
        more = [f"--add-metadata-string=version={version}"] if version else []
        return self._ostree(
            f"--repo={self._repository}", "commit", f"--branch={ref_of(image)}", f"--tree=dir={tree}",
            f"--add-metadata-string={ORIGIN}={image}", *more,
        ).strip()  # fmt: skip

    def booted(self) -> Deployment:
        """What runs now."""
        entry = self._booted(self._entries())
        return self._deployment(entry) if entry else Deployment()

    def staged(self) -> Deployment | None:
        """What the next boot will run, if it differs."""
        entries = self._entries()
        if not entries or entries[0] == self._booted(entries):
            return None
        return self._deployment(entries[0])

    def stage(self, deployment: Deployment, old: Deployment = NOTHING, extensions_image: str = "") -> None:
        """Deploy, first in the boot order; raises ImageFailure."""
        if deployment.kernel or deployment.extensions:
            raise ImageFailure("ostree cannot change the kernel or add packages", "Bake them into the image.")
        self.discard()
        if deployment == self.booted():
            return
        arguments = [f"--karg-append={argument}" for argument in (*self._base, *deployment.arguments)]
        commit = self._commit(deployment.image)
        try:
            # ostree merges arguments of the booted deployment otherwise, and one that a config dropped would come back.
            self._admin("deploy", f"--os={self._name}", "--karg-none", *arguments, commit)
        except ImageFailure as error:
            raise ImageFailure(error.message, error.hint, pull=Pull.DONE) from error

    def discard(self) -> None:
        """Remove what comes before the booted deployment; raises ImageFailure."""
        entries = self._entries()
        booted = self._booted(entries)
        for _ in range(entries.index(booted) if booted else 0):
            self._admin("undeploy", "0")

    def on_trial(self) -> bool:
        """Never: what was deployed stays first in the order."""
        return False

    def booted_well(self) -> None:
        """The deployment before stays as the way back: nothing of ours depends on it."""

    def last_boot_log(self) -> str:
        """What the finalizer said at the last shutdown."""
        return Commands(ask=self._run).last_boot_log(self.finalizer)

    def reboot(self) -> None:
        """A simulated machine boots what comes first."""
        entries = self._entries()
        if entries:
            (self._sysroot / MARKER).write_text(entries[0].id + "\n")

    @property
    def _repository(self) -> Path:
        return self._sysroot / "ostree" / "repo"

    def _commit(self, image: str) -> str:
        """The commit of an image; without an image, the booted one."""
        booted = self._booted(self._entries())
        if not image and booted:
            return booted.checksum
        try:
            return self._ostree(f"--repo={self._repository}", "rev-parse", ref_of(image)).strip()
        except ImageFailure as error:
            raise ImageFailure(f"image {image or '(none)'} is not in the repository of this machine") from error

    def _entries(self) -> list[_Entry]:
        lines = _LINE.finditer(self._admin("status"))
        return [_Entry(m["checksum"], m["serial"], m["booted"] == "*") for m in lines if m["os"] == self._name]

    def _booted(self, entries: list[_Entry]) -> _Entry | None:
        marker = self._sysroot / MARKER
        marked = marker.read_text().strip() if marker.exists() else ""
        return next((entry for entry in entries if entry.booted or entry.id == marked), None)

    def _deployment(self, entry: _Entry) -> Deployment:
        image = self._metadata(entry.checksum)
        arguments = self._arguments(entry)
        ours = arguments[len(self._base) :] if arguments[: len(self._base)] == self._base else arguments
        return Deployment(image, ours)

    def _metadata(self, checksum: str) -> str:
        try:
            value = self._ostree(
                f"--repo={self._repository}", "show", f"--print-metadata-key={ORIGIN}", checksum
            ).strip()
        except ImageFailure:
            return ""  # a commit that others made
        return value[1:-1] if value.startswith("'") else value

    def _arguments(self, entry: _Entry) -> tuple[str, ...]:
        """The kernel arguments in the boot entry of a deployment, without the one that ostree adds."""
        for path in sorted((self._sysroot / "boot" / "loader" / "entries").glob("*.conf")):
            options = next((line for line in path.read_text().splitlines() if line.startswith("options ")), "")
            words = options.split()[1:]
            link = next((word for word in words if word.startswith("ostree=")), "")
            target = (self._sysroot / link.partition("=")[2].lstrip("/")).resolve()
            if target.name == entry.id:
                return tuple(word for word in words if not word.startswith("ostree="))
        return ()

    def _admin(self, *words: str) -> str:
        return self._ostree("admin", f"--sysroot={self._sysroot}", *words)

    def _ostree(self, *words: str) -> str:
        try:
            return self._run(["ostree", *words])
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint) from error


def ref_of(image: str) -> str:
    """The ref of an image: pull specifications have characters that refs must not have."""
    return f"{REFS}/{hashlib.sha256(image.encode()).hexdigest()}"
