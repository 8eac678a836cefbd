"""What unlocking needs of a machine's volumes, as small as it can be.

`luks_volumes.py` does it with LUKS2 on block devices; virtual machines have files that only the released key opens. Which volumes
a machine has is in its measured image (`/usr/lib/fastness/volumes.json`), never on a disk: a host that takes a disk away must not
get a machine that boots without it.

    {"var": "/dev/disk/by-partlabel/fastness-var"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from fastness.agent.errors import AgentError
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_keys import DiskKey, is_volume

PLACE: Final = Path("/usr/lib/fastness/volumes.json")
MOST: Final = 8
# Where the agent keeps its own files on a volume: /var/lib/fastness of the system that it becomes a part of.
ROOT: Final = "root"
STATE: Final = {"var": "lib/fastness"}
STATE_OF_ROOT: Final = "var/lib/fastness"
_MAX_BYTES: Final = 16 * 1024
_MAX_PATH: Final = 256
_LIMITS: Final = json.JsonLimits(max_bytes=_MAX_BYTES, max_depth=2)


class DiskRefused(AgentError):
    """A volume is not made or opened, and waiting does not change that; `reason` is the code of why."""

    code = "disk-refused"
    hint = "On the control plane run: fastness machine disk list. The machine stays down until a person has looked."

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.reason = reason


class BadVolumes(AgentError):
    """The image does not say understandably which volumes its machines have."""

    code = "bad-volumes"
    hint = "Build the image again with a volumes.json that gives each volume the path of its device."


@dataclass(frozen=True, slots=True)
class OpenVolume:
    """A volume that is open: by which key, with which header, and where its files are."""

    key: str
    header: JsonObject
    directory: Path


class Volumes(Protocol):
    """The volumes of one machine. All calls may take long, and raise DiskRefused."""

    def make(self, volume: str, key: DiskKey, integrity: str) -> None:
        """Encrypt a volume anew under this key, empty; whatever it held is lost."""

    def open(self, volume: str, keys: Sequence[DiskKey], expect: JsonObject | None) -> OpenVolume:
        """Open a volume with one of the keys, if its header is the one that was recorded; its files are then there."""

    def rekey(self, volume: str, keys: Sequence[DiskKey], expect: JsonObject | None) -> str:
        """Let the first key be the only one that opens it; the name of that key. Can be repeated after a power cut."""

    def settle(self, volume: str) -> None:
        """The agent has written what is its own: all of that is on the disk, and the volume stays open for the system."""


def state_of(volume: str) -> str:
    """Where the agent's own files are on a volume."""
    return STATE.get(volume, STATE_OF_ROOT)


def load_volumes(path: Path = PLACE) -> Mapping[str, Path]:
    """The volumes that an image gives its machines, each with its device; none without the file; raises BadVolumes."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadVolumes(f"{path} cannot be read: {error.strerror}") from error
    try:
        value, repeated = json.decode_reporting_duplicates(content, _LIMITS)
    except JsonError as error:
        raise BadVolumes(f"{path} is not JSON: {error.message}") from error
    # An empty table is an error: whoever wrote the file wanted a volume, and a machine must not go on without it.
    if not isinstance(value, dict) or repeated or not 1 <= len(value) <= MOST:
        raise BadVolumes(f"{path} is an object of one to {MOST} volumes, each once")
    for name, device in value.items():
        if not is_volume(name) or not isinstance(device, str) or not _is_device(device):
            raise BadVolumes(f"{path}: {name!r} is no volume with a path below /dev")
    if len(set(value.values())) != len(value):
        raise BadVolumes(f"{path}: two volumes are on one device")
    return {name: Path(device) for name, device in value.items()}


def _is_device(path: str) -> bool:
    return path.startswith("/dev/") and len(path) <= _MAX_PATH and ".." not in path.split("/") and path.isprintable()
