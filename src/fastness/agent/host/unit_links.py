"""Units of a root directory without systemd: the links that `systemctl --root` would make, made by us.

A virtual machine has no systemd and its host may have none either, yet what is enabled must survive a restart, so it is kept
where systemd keeps it: links in `/etc/systemd/system`. The contract tests hold this adapter to the real `systemctl --root`.

- Enable: a link in `<target>.wants` or `.requires` for each WantedBy and RequiredBy, and one for each Alias. Disable removes
  every link to the unit, whatever made it.
- `is_enabled`: masked (link to /dev/null or empty file in /etc), enabled, disabled, static (nothing to install), not-found.
- Presets: the first line that matches in `/etc/systemd/system-preset`, `/usr/lib/systemd/system-preset` in the order of their
  file names; nothing matches: enable.
- Reload, restart, stop and start happen to nobody: they are written down, for those who watch the virtual machine.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fastness.agent.host.errors import UnitFailure
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import ABSENT, Absent, File, Link

ETC: Final = "/etc/systemd/system"
VENDOR: Final = ("/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
_PRESETS: Final = (
    "/etc/systemd/system-preset",
    "/usr/local/lib/systemd/system-preset",
    "/usr/lib/systemd/system-preset",
)
_FOLDERS: Final = {"WantedBy": "wants", "RequiredBy": "requires"}
MAX_CALLS: Final = 1000


@dataclass
class UnitLinks:
    """The units of a root directory; `calls` has the reloads and restarts that were asked for, the newest last."""

    files: RootedFiles
    calls: list[tuple[str, str]] = field(default_factory=list)

    def is_enabled(self, unit: str) -> str:
        """The word of `systemctl is-enabled`."""
        place = self._place(unit)
        if place is None:
            return "not-found"
        state = self.files.look(place)
        if isinstance(state, Link) and state.target == "/dev/null":
            return "masked"
        if isinstance(state, File) and not state.content and place.startswith(ETC):
            return "masked"
        if any(True for _ in self._links(unit)):
            return "enabled"
        return "disabled" if self._wanted_links(unit) else "static"

    def is_running(self, unit: str) -> bool:
        """Always: nothing runs in a directory, and nothing there has failed."""
        return True

    def enable(self, units: Sequence[str]) -> None:
        """Make the links of units; raises UnitFailure."""
        for unit in units:
            place = self._place(unit)
            if place is None:
                raise UnitFailure(f"unit {unit} could not be found")
            if self.is_enabled(unit) == "masked":
                raise UnitFailure(f"unit {unit} is masked", "Unmask it first.")
            for link in self._wanted_links(unit):
                self.files.put(link, Link(place))

    def disable(self, units: Sequence[str]) -> None:
        """Remove the links of units."""
        for unit in units:
            for link in list(self._links(unit)):
                self.files.put(link, ABSENT)
                if link.count("/") > ETC.count("/") + 1:
                    self.files.remove_empty(link.rpartition("/")[0])

    def preset(self, unit: str) -> None:
        """Enable or disable as the presets say."""
        if self._place(unit) is None:
            raise UnitFailure(f"unit {unit} could not be found")
        if self._preset_says_enable(unit):
            self.enable([unit])
        else:
            self.disable([unit])

    def daemon_reload(self) -> None:
        """Only noted, in `calls`: nothing runs here."""
        self._call("daemon-reload", "")

    def reload(self, service: str) -> None:
        """Only noted, in `calls`."""
        self._call("reload", service)

    def restart(self, service: str) -> None:
        """Only noted, in `calls`."""
        self._call("restart", service)

    def stop(self, service: str) -> None:
        """Only noted, in `calls`."""
        self._call("stop", service)

    def start(self, service: str) -> None:
        """Only noted, in `calls`."""
        self._call("start", service)

    def _call(self, verb: str, service: str) -> None:
        self.calls.append((verb, service))
        del self.calls[:-MAX_CALLS]

    def _place(self, unit: str) -> str | None:
        """Where the file of a unit is; an instance falls back to its template."""
        for name in _file_names(unit):
            for directory in (ETC, *VENDOR):
                if not isinstance(self.files.look(f"{directory}/{name}"), Absent):
                    return f"{directory}/{name}"
        return None

    def _install(self, unit: str) -> dict[str, list[str]]:
        place = self._place(unit)
        state = self.files.look(place) if place else ABSENT
        return _install_section(state.content) if isinstance(state, File) else {}

    def _wanted_links(self, unit: str) -> list[str]:
        """The links that enabling a unit makes."""
        section = self._install(unit)
        links = [
            f"{ETC}/{target}.{folder}/{unit}" for key, folder in _FOLDERS.items() for target in section.get(key, ())
        ]
        return [*links, *(f"{ETC}/{alias}" for alias in section.get("Alias", ()) if alias != unit)]

    def _links(self, unit: str) -> Iterator[str]:
        """The links that lead to a unit now."""
        for name in self.files.names(ETC):
            path = f"{ETC}/{name}"
            if name.endswith((".wants", ".requires")):
                if isinstance(self.files.look(f"{path}/{unit}"), Link):
                    yield f"{path}/{unit}"
                continue
            state = self.files.look(path)
            if name != unit and isinstance(state, Link) and state.target.rpartition("/")[2] == unit:
                yield path

    def _preset_says_enable(self, unit: str) -> bool:
        by_name: dict[str, str] = {}
        # systemd.preset(5): a file in /etc hides one of the same name in /usr; then all are read in the order of their names.
        for directory in reversed(_PRESETS):
            by_name |= {name: directory for name in self.files.names(directory) if name.endswith(".preset")}
        for name in sorted(by_name):
            state = self.files.look(f"{by_name[name]}/{name}")
            content = state.content.decode(errors="replace") if isinstance(state, File) else ""
            for line in content.splitlines():
                word, _, pattern = line.strip().partition(" ")
                if word in ("enable", "disable") and fnmatch.fnmatchcase(unit, pattern.split()[0] if pattern else ""):
                    return word == "enable"
        return True


def _file_names(unit: str) -> list[str]:
    stem, at, rest = unit.partition("@")
    if not at or rest.startswith("."):
        return [unit]
    # systemd.unit(5): an instance without a file of its own is made of its template.
    return [unit, f"{stem}@.{rest.rpartition('.')[2]}"]


def _install_section(content: bytes) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    inside = False
    for raw in content.decode(errors="replace").replace("\\\n", " ").splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == "[Install]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            if value.strip():
                options.setdefault(key.strip(), []).extend(value.split())
            else:
                options.pop(key.strip(), None)  # an empty value takes back what stood before
    return options
