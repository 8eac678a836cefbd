"""The kernel's device mapper: the few ioctls by which a mapping is made, read back and removed.

One structure of 312 bytes goes in and comes back (linux/dm-ioctl.h), with a line of a table behind it where there is one. Volume
keys go to the kernel by its keyring, as a `logon` key, which even root cannot read back; the mapper copies it when the table is
loaded, and the keyring forgets it at once.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fastness.agent.disks.block_device import FileDevice
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.tables import Target
from fastness.crypto.secret import SecretBytes

CONTROL: Final = Path("/dev/mapper/control")
DEVICES: Final = Path("/dev")
_HEAD: Final = struct.Struct("=3I2IIiIIIQ128s129s7x")
_SPEC: Final = struct.Struct("=QQiI16s")
_CREATE, _REMOVE, _SUSPEND, _LOAD, _STATUS = 3, 4, 6, 9, 12
_DEEDS: Final = {_CREATE: "to make", _REMOVE: "to remove", _SUSPEND: "to start", _STATUS: "to show"}
_TABLE_FLAG, _FULL_FLAG, _SECURE_FLAG = 1 << 4, 1 << 8, 1 << 15
_BUFFER: Final = 16384
# add_key and keyctl, for which the C library has no functions.
_SYSCALLS: Final = {"x86_64": (248, 250), "aarch64": (217, 219), "ppc64le": (269, 271), "s390x": (278, 280)}
_THREAD_KEYRING, _UNLINK = -1, 9
_BUSY_TRIES: Final = 50


class KernelMapper:
    """The adapter of `DeviceMapper` to the kernel of this machine."""

    @contextmanager
    def hold_key(self, description: str, key: SecretBytes) -> Iterator[None]:
        """A key in the keyring of this thread for the time of the block; raises DiskError."""
        libc = ctypes.CDLL(None, use_errno=True)
        numbers = _SYSCALLS.get(os.uname().machine)
        if numbers is None:
            raise DiskError("mapper", f"nobody wrote down how a {os.uname().machine} is given a key")
        payload = key.reveal()
        serial = libc.syscall(
            numbers[0], b"logon", description.encode("ascii"), payload, ctypes.c_size_t(len(payload)), _THREAD_KEYRING
        )
        if serial < 0:
            raise DiskError("mapper", f"the kernel takes no key: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.syscall(numbers[1], _UNLINK, serial, _THREAD_KEYRING)

    def create(self, name: str, uuid: str, target: Target) -> FileDevice:
        """Make and start a mapping; raises DiskError, and then there is none."""
        number = _ioctl(_CREATE, name, uuid=uuid).number
        try:
            _ioctl(_LOAD, name, target=target, flags=_SECURE_FLAG)
            _ioctl(_SUSPEND, name)
            return FileDevice(_linked(name, number))
        except DiskError:
            with suppress(DiskError):
                self.remove(name)
            raise

    def table(self, name: str) -> tuple[Target, ...]:
        """What a mapping does; raises DiskError."""
        answer = _ioctl(_STATUS, name, flags=_TABLE_FLAG)
        if answer.flags & _FULL_FLAG:
            raise DiskError("mapper", f"the table of {name} is longer than {_BUFFER} bytes")
        return answer.targets

    def remove(self, name: str) -> None:
        """End a mapping; raises DiskError."""
        for attempt in range(_BUSY_TRIES):
            try:
                _ioctl(_REMOVE, name)
                break
            except DiskError as error:
                # The last close of a device is finished behind our back, and whoever listens for new devices looks into them.
                busy = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EBUSY
                if not busy or attempt == _BUSY_TRIES - 1:
                    raise
                time.sleep(0.02)
        link = DEVICES / "mapper" / name
        if link.is_symlink() and not link.exists():
            link.unlink()


class _Answer:
    """What the kernel left in the structure."""

    def __init__(self, buffer: bytes) -> None:
        fields = _HEAD.unpack_from(buffer)
        self.flags: int = fields[7]
        encoded: int = fields[10]
        self.number = os.makedev(encoded >> 8 & 0xFFF, encoded & 0xFF | encoded >> 12 & 0xFFF00)
        self.targets = tuple(_targets(buffer, fields[4], fields[5]))


def _targets(buffer: bytes, start: int, count: int) -> Iterator[Target]:
    place = start
    for _ in range(count):
        first, sectors, _, following, kind = _SPEC.unpack_from(buffer, place)
        text = buffer[place + _SPEC.size :].partition(b"\0")[0]
        yield Target(first, sectors, kind.rstrip(b"\0").decode("ascii", "replace"), text.decode("ascii", "replace"))
        # Counted from the start of the data when the kernel answers, unlike when it is asked.
        place = start + following


def _ioctl(command: int, name: str, *, uuid: str = "", target: Target | None = None, flags: int = 0) -> _Answer:
    line = b""
    if target is not None:
        text = target.parameters.encode("ascii") + b"\0"
        line = _SPEC.pack(target.start, target.sectors, 0, 0, target.kind.encode("ascii")) + text
        line += bytes(-len(line) % 8)
    head = _HEAD.pack(
        4, 0, 0, _BUFFER, _HEAD.size, 1 if target else 0, 0, flags, 0, 0, 0, name.encode("ascii"), uuid.encode("ascii")
    )
    buffer = bytearray((head + line).ljust(_BUFFER, b"\0"))
    request = 3 << 30 | _HEAD.size << 16 | 0xFD << 8 | command
    try:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(control, request, buffer)
        finally:
            os.close(control)
    except OSError as error:
        what = f"to load {target.kind} {target.parameters} as" if target else _DEEDS[command]
        raise DiskError("mapper", f"the kernel refuses {what} {name}: {error.strerror}") from error
    return _Answer(bytes(buffer))


def _linked(name: str, number: int) -> Path:
    """The path of a mapping: a link that udev makes, or that we make where there is none."""
    node = DEVICES / f"dm-{os.minor(number)}"
    if not node.exists():
        os.mknod(node, stat.S_IFBLK | 0o600, number)
    link = DEVICES / "mapper" / name
    with suppress(FileNotFoundError):
        if os.stat(link).st_rdev == number:
            return link
    link.unlink(missing_ok=True)
    link.symlink_to(f"../{node.name}")
    return link
