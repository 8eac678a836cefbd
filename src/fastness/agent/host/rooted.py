"""The way to a path below a root directory, one component at a time, with directory descriptors.

No component is followed by the kernel:

- Paths are absolute, without `.` and `..`, without NUL.
- A symbolic link on the way is resolved here. It may lead anywhere below the root; one that climbs above the root, or is absolute
  while the root is not `/`, is refused: for every other program it would lead out.
- A link of somebody else is followed only to a directory of that same somebody, as the kernel's protected_symlinks does:
  otherwise the owner of one directory on the way would choose where root reads and writes.

Owners are set only where the process may (`owners`): a virtual machine of an ordinary user keeps its files as that user's.
`files.py` stands on it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fastness.agent.host.errors import DriverError, FileFailure, PathTaken, UnsafePath

# As the kernel has it (path_resolution(7)); without a bound two links that point at each other would be followed for ever.
MAX_LINKS = 40
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Owner = tuple[int | None, int | None]


class RootedPaths:
    """Directories below a root directory."""

    def __init__(self, root: Path, *, owners: bool | None = None) -> None:
        self.root = root
        self.owners = os.geteuid() == 0 if owners is None else owners

    def own(self, descriptor: int, uid: int | None, gid: int | None) -> None:
        """Give what is open to somebody, if the process may."""
        if self.owners and (uid is not None or gid is not None):
            os.fchown(descriptor, -1 if uid is None else uid, -1 if gid is None else gid)

    @contextmanager
    def parent(
        self, path: str, make: int | None = None, owner: Owner = (None, None)
    ) -> Iterator[tuple[int | None, str]]:
        """The directory that holds the last component, and that component; missing directories get mode `make`."""
        parts = split(path)
        if not parts:
            raise UnsafePath(f"{path!r} names the root itself")
        with self.directory(parts[:-1], make, owner) as reached:
            yield reached, parts[-1]

    @contextmanager
    def directory(self, parts: list[str], make: int | None = None, owner: Owner = (None, None)) -> Iterator[int | None]:
        """A descriptor of a directory below the root, None if it is not there."""
        stack = [os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            yield stack[-1] if self._walk(stack, parts, make, owner) else None
        finally:
            for descriptor in stack:
                os.close(descriptor)

    def _walk(self, stack: list[int], parts: list[str], make: int | None, owner: Owner) -> bool:
        """Open the directories one after the other; the stack holds the way, so that `..` of a link is a step back."""
        waiting: list[str | _LinkOf] = list(reversed(parts))
        links = 0
        while waiting:
            name = waiting.pop()
            if isinstance(name, _LinkOf):
                name.check(stack[-1], parts)
                continue
            if name == "..":
                # The kernel stays at the root there; for a root that is a directory of the host, staying would be to guess what
                # the link meant.
                if len(stack) == 1:
                    raise UnsafePath(f"a symbolic link on the way to /{'/'.join(parts)} leads out of the root")
                os.close(stack.pop())
                continue
            try:
                # From descriptor to descriptor: a name that is checked and then opened could be exchanged for a link in between.
                stack.append(os.open(name, _DIRECTORY, dir_fd=stack[-1]))
            except FileNotFoundError:
                if make is None:
                    return False
                stack.append(self._make(stack[-1], name, make, owner))
            except OSError as error:
                # Linux answers ENOTDIR, not ELOOP, for a link where both O_DIRECTORY and O_NOFOLLOW are asked for.
                if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                links += 1
                waiting += self._resolved(stack, name, parts, links)
        return True

    def _resolved(self, stack: list[int], name: str, parts: list[str], links: int) -> list[str | _LinkOf]:
        """What a link stands for, last first, and before it who may have made it; raises UnsafePath when it leads out."""
        path = "/" + "/".join(parts)
        try:
            owner = _LinkOf(os.lstat(name, dir_fd=stack[-1]).st_uid)
            target = os.readlink(name, dir_fd=stack[-1])
        except OSError as error:
            raise PathTaken(f"{path}: {name} is not a directory") from error
        if links > MAX_LINKS:
            raise UnsafePath(f"too many symbolic links on the way to {path}")
        if target.startswith("/"):
            if self.root != Path("/"):
                raise UnsafePath(f"a symbolic link on the way to {path} leads out of the root, to {target}")
            while len(stack) > 1:
                os.close(stack.pop())
        return [owner, *(part for part in reversed(target.split("/")) if part not in ("", "."))]

    def _make(self, parent: int, name: str, mode: int, owner: Owner) -> int:
        # Private until it has its owner: nobody puts anything into it in between.
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
        os.fchmod(descriptor, mode)
        self.own(descriptor, *owner)
        os.fsync(parent)
        return descriptor


@dataclass(frozen=True, slots=True)
class _LinkOf:
    """A link on the way that somebody made; where it led is checked when that is open."""

    uid: int

    def check(self, reached: int, parts: list[str]) -> None:
        """Raise UnsafePath unless the link is root's, ours, or leads to a directory of its own owner."""
        if self.uid not in (0, os.geteuid(), os.fstat(reached).st_uid):
            raise UnsafePath(
                f"a symbolic link on the way to /{'/'.join(parts)} belongs to user {self.uid} and leads to what is not theirs"
            )


def split(path: str) -> list[str]:
    """The components of an absolute path; raises UnsafePath."""
    if not path.startswith("/") or "\0" in path:
        raise UnsafePath(f"{path!r} is not an absolute path")
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts):
        raise UnsafePath(f"{path!r} has dot segments")
    return parts


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Errors of the system as errors of this package."""
    try:
        yield
    except DriverError:
        raise
    except OSError as error:
        raise FileFailure(f"{path}: {error.strerror or error}") from error
