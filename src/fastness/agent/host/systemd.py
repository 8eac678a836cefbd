"""Units through the real `systemctl`, on this machine or offline on a root directory.

With `--root` systemctl needs no running systemd: it enables, masks and presets by making links below the root. Reload and restart
need the running one, so they are only for the machine itself; a root directory refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed, UnitFailure
from fastness.agent.host.process import Run, run

_CA_TRUST: Final = "coreos-update-ca-trust.service"
_HOST: Final = Path("/")
NOT_FOUND: Final = "not-found"


class Systemctl:
    """The units of a machine."""

    def __init__(self, root: Path = _HOST, run: Run = run) -> None:
        self._root = root
        self._run = run
        # With --root systemctl works on files alone, without a bus: it is what makes units of a directory possible.
        self._base = ["systemctl", *([f"--root={root}"] if root != _HOST else [])]

    def is_enabled(self, unit: str) -> str:
        """The word of `systemctl is-enabled`: enabled, disabled, masked, static, not-found, …"""
        try:
            word = self._run([*self._base, "is-enabled", *_names([unit])])
        except CommandFailed as error:
            if error.status is None:
                raise UnitFailure(error.message, error.hint) from error
            word = error.output  # every word but `enabled` and its like comes with a status of its own
        words = word.split()
        return words[-1] if words else NOT_FOUND  # older ones print nothing for a unit that is not there

    def is_running(self, unit: str) -> bool:
        """Whether a service runs now; the word for one that waits to be started again is another. Raises UnitFailure."""
        if self._root != _HOST:
            return True  # nothing runs in a directory, and nothing there has failed
        try:
            return self._run(["systemctl", "is-active", *_names([unit])]).strip() == "active"
        except CommandFailed as error:
            if error.status is None:
                raise UnitFailure(error.message, error.hint) from error
            return False

    def enable(self, units: Sequence[str]) -> None:
        """Start units at boot; raises UnitFailure."""
        self._ask("enable", units)

    def disable(self, units: Sequence[str]) -> None:
        """Do not start units at boot; raises UnitFailure."""
        self._ask("disable", units)

    def preset(self, unit: str) -> None:
        """Do what the distribution's presets say; raises UnitFailure."""
        self._ask("preset", [unit])

    def daemon_reload(self) -> None:
        """Let systemd read its units again."""
        self._live("daemon-reload")

    def reload(self, service: str) -> None:
        """Let a service read its configuration again; raises UnitFailure."""
        self._live("reload", *_names([service]))

    def restart(self, service: str) -> None:
        """Restart a service; raises UnitFailure."""
        try:
            self._live("restart", *_names([service]))
        except UnitFailure:
            if service != _CA_TRUST:
                raise
            # Hosts without that unit have the program behind it.
            self._ask_program(["update-ca-trust"])

    def stop(self, service: str) -> None:
        """Stop a service; raises UnitFailure."""
        self._live("stop", *_names([service]))

    def start(self, service: str) -> None:
        """Start a service; raises UnitFailure."""
        self._live("start", *_names([service]))

    def _live(self, *words: str) -> None:
        if self._root != _HOST:
            raise UnitFailure(f"systemctl {' '.join(words)}: {self._root} is a directory, not a running machine")
        self._ask_program(["systemctl", *words])

    def _ask(self, verb: str, units: Sequence[str]) -> None:
        if units:
            self._ask_program([*self._base, verb, *_names(units)])

    def _ask_program(self, command: list[str]) -> None:
        try:
            self._run(command)
        except CommandFailed as error:
            raise UnitFailure(error.message, error.hint) from error


def _names(units: Sequence[str]) -> list[str]:
    """Units as arguments: a name may begin with a dash, as `-.mount` does, and whoever writes a config must not give options."""
    return ["--", *units]
