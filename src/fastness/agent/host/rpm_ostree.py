"""Packages on a host that is an image: layered on top of it by `rpm-ostree`.

Installing takes effect at once (`--apply-live`); what is taken away stays until the next boot. Both are no more than a word
to the program, which does the work of finding and checking packages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from fastness.agent.host.errors import CommandFailed, ImageFailure
from fastness.agent.host.process import run
from fastness.formats import json
from fastness.formats.errors import JsonError

PROGRAM: Final = "rpm-ostree"
SECONDS: Final = 1800.0
Run = Callable[[Sequence[str]], str]


def _patiently(command: Sequence[str]) -> str:
    return run(command, seconds=SECONDS)


class LayeredPackages:
    """One package layered on the image of a host."""

    def __init__(self, package: str, run: Run = _patiently, program: Sequence[str] = (PROGRAM,)) -> None:
        self._package = package
        self._run = run
        self._program = tuple(program)

    def installed(self) -> bool:
        """Whether the booted deployment has the package; raises ImageFailure."""
        status = self._ask("status", "--json", "--booted")
        try:
            deployments: Any = json.decode(status.encode())["deployments"]
            layered = [
                package
                for deployment in deployments
                if deployment.get("booted")
                for package in deployment.get("packages") or ()
            ]
            live = [
                package
                for deployment in deployments
                if deployment.get("live-replaced")
                for package in deployment.get("requested-packages") or ()
            ]
        except (JsonError, KeyError, TypeError, AttributeError) as error:
            raise ImageFailure(f"`{PROGRAM} status` says something that cannot be read: {error}") from error
        return self._package in layered or self._package in live

    def install(self) -> None:
        """Add the package to the running system; raises ImageFailure."""
        self._ask("install", "--idempotent", "--apply-live", "--assumeyes", self._package)

    def uninstall(self) -> bool:
        """Take the package away with the next boot; raises ImageFailure."""
        self._ask("uninstall", self._package)
        return True

    def _ask(self, *words: str) -> str:
        try:
            return self._run([*self._program, *words])
        except CommandFailed as error:
            raise ImageFailure(error.message, error.hint) from error
