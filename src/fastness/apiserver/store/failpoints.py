"""The places where a process may die, by name.

Every step of a write, a compaction, a checkpoint, a backup, a restore and the creation of a store calls its failpoint. In
production the call does nothing; tests hand in a function that raises or kills the process at the n-th call, and prove for
every name that nothing acknowledged is lost. A test fails when a name here is never reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Failpoints = Callable[[str], None]

FAILPOINTS: Final = (
    "create.before-rename",
    "create.after-rename",
    "write.reserved",
    "write.queued",
    "commit.dispatched",
    "commit.before-begin",
    "commit.after-begin",
    "commit.after-statement",
    "commit.before-commit",
    "commit.after-commit",
    "resume.before",
    "resume.after",
    "publish.before",
    "publish.visible",
    "publish.answered",
    "compact.before-begin",
    "compact.after-delete",
    "compact.after-commit",
    "checkpoint.before",
    "checkpoint.after",
    "reseal.before-commit",
    "reseal.after-commit",
    "backup.before-copy",
    "backup.before-rename",
    "backup.after-rename",
    "restore.before-replace",
    "restore.set-aside",
    "restore.after-replace",
    "close.before-checkpoint",
)


def none(_name: str) -> None:
    """No failpoint is armed."""
