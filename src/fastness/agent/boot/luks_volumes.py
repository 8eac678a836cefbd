"""The volumes of a real machine: LUKS2 on block devices (`agent.disks`), with ext4 on top.

    /dev/mapper/fastness-var          the opened volume; it stays when the initial file system is left
    /run/fastness/volumes/var         where it is mounted while the agent writes what is its own
    /run/fastness/opened/var          a link to the opened volume, which the units of the initial file system mount

A new root volume is filled from the image (`root_source.py`), in the boot that makes it and before anything is reported: a boot
that is cut off in between begins anew.

The link is not below /dev on purpose: systemd would wait there for a device that udev announces, for 90 seconds and not for as
long as a broker is away.

It is `agent.boot.volumes.Volumes`. A file system is made in the boot that makes the volume and never again: one that cannot be
mounted later is a failure, and nothing is repaired over somebody's data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

from fastness.agent.boot.root_source import RootSource
from fastness.agent.boot.volumes import ROOT, DiskRefused, OpenVolume
from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.device_mapper import KernelMapper
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.formatting import format_volume
from fastness.agent.disks.opening import open_volume
from fastness.agent.disks.ports import DeviceMapper
from fastness.agent.disks.rekeying import rekey_volume
from fastness.agent.disks.volume import DiskKey as LuksKey
from fastness.agent.disks.volume import HeaderFacts, IntegrityMode, VolumeSettings
from fastness.agent.host.errors import CommandFailed
from fastness.agent.host.process import run
from fastness.kinds.kind import JsonObject
from fastness.protocol.disk_keys import DiskKey
from fastness.runtime.clock import Entropy

MOUNTS: Final = Path("/run/fastness/volumes")
OPENED: Final = Path("/run/fastness/opened")
# Of a terabyte under emulation; a disk that answers nothing for that long must not hold a console without a word.
SECONDS: Final = 900.0


class LuksVolumes:
    """Volumes by name, each on its device."""

    def __init__(
        self, devices: Mapping[str, Path], entropy: Entropy, *, mapper: DeviceMapper | None = None, mounts: Path = MOUNTS,
        program: Callable[[Sequence[str]], str] = lambda words: run(words, seconds=SECONDS),
        source: RootSource | None = None, opened: Path = OPENED,
    ) -> None:  # fmt: skip
        self._devices = devices
        self._entropy = entropy
        self._mapper = mapper or KernelMapper()
        self._mounts = mounts
        self._program = program
        self._source = source or RootSource(self._mapper, program)
        self._links = opened
        self._made: set[str] = set()

    def make(self, volume: str, key: DiskKey, integrity: str) -> None:
        """Format the device; raises DiskRefused."""
        settings = VolumeSettings(cast("IntegrityMode", integrity))
        if volume == ROOT:
            self._source.check()
        with self._device(volume) as device:
            format_volume(device, key.key, key.id, settings, self._entropy, self._mapper)
        self._made.add(volume)

    def open(self, volume: str, keys: Sequence[DiskKey], expect: JsonObject | None) -> OpenVolume:
        """Map and mount the device; raises DiskRefused."""
        with self._device(volume) as device:
            opened = open_volume(device, _luks(keys), _facts(expect), self._mapper, f"fastness-{volume}")
        directory = self._mounts / volume
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = volume in self._made
            if new:
                self._program(["mke2fs", "-q", "-F", "-t", "ext4", "-L", f"fastness-{volume}", opened.path])
            self._program(["mount", "-t", "ext4", "-o", "nodev,nosuid,noexec", opened.path, str(directory)])
            if new and volume == ROOT:
                self._source.fill(directory)
            self._made.discard(volume)
        except CommandFailed as error:
            raise DiskRefused(
                "file-system", f"volume {volume} is open and cannot be mounted or filled: {error.message}"
            ) from error
        return OpenVolume(opened.key_id, opened.facts.to_json(), directory)

    def rekey(self, volume: str, keys: Sequence[DiskKey], expect: JsonObject | None) -> str:
        """Exchange the slot; raises DiskRefused."""
        with self._device(volume) as device:
            return rekey_volume(device, _luks(keys), _facts(expect), self._entropy)

    def settle(self, volume: str) -> None:
        """Write everything back, take the mount away and leave the link; raises DiskRefused, OSError."""
        os.sync()
        try:
            self._program(["umount", str(self._mounts / volume)])
        except CommandFailed as error:
            raise DiskRefused("file-system", f"volume {volume} cannot be unmounted: {error.message}") from error
        link = self._links / volume
        self._links.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(f"/dev/mapper/fastness-{volume}")

    @contextmanager
    def _device(self, volume: str) -> Iterator[FileDevice]:
        """The device for the time of the block; what goes wrong with it is told as a refusal."""
        try:
            device = FileDevice(self._devices[volume])
            try:
                yield device
            finally:
                device.close()
        except DiskError as error:
            raise DiskRefused(error.code, f"volume {volume}: {error.message}", error.hint) from error


def _luks(keys: Sequence[DiskKey]) -> list[LuksKey]:
    return [LuksKey(key.id, key.key) for key in keys]


def _facts(expect: JsonObject | None) -> HeaderFacts | None:
    return HeaderFacts.from_json(expect) if expect is not None else None
