"""Errors of the rooms, as one sentence for a person and an exit code.

Every error of ours has a `hint`; it is printed on a line of its own. An exception that is none of ours is a defect: its
traceback is shown, and the exit code says so. Of several errors at once, as groups of tasks raise them, the first is printed if
all of them are ours.

The rooms are named and not imported: a verb loads those that it uses, and one that was never loaded has raised nothing.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from fastness.cli.errors import CliError, Exit
from fastness.kube.errors import ApiError, ConfigError
from fastness.runtime.errors import FastnessError

NO_SPACE: Final = "Free space on that disk, or raise the quota; nothing that was acknowledged is lost."
# The first that fits counts.
ROOMS: Final[Mapping[str, Exit]] = {
    "fastness.app.parts:LacksOption": Exit.USAGE,
    "fastness.app.parts:LackingError": Exit.MISSING,
    "fastness.apiserver:StoreError": Exit.MISSING,
    "fastness.keys.errors:TrustError": Exit.MISSING,
    "fastness.crypto.errors:CryptoError": Exit.MISSING,
}


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn errors of the rooms into `CliError`; what is a defect passes as it is."""
    try:
        yield
    except CliError:
        raise
    except (FastnessError, ApiError, OSError, BaseExceptionGroup) as error:
        explained = [_explained(leaf) for leaf in _leaves(error)]
        # One defect among the errors of a group of tasks must not hide behind a sentence about another of them.
        if None in explained or explained[0] is None:
            raise
        raise explained[0] from error


def _explained(error: BaseException) -> CliError | None:
    match error:
        case CliError():
            return error
        case ConfigError():
            return CliError(str(error), error.hint, Exit.MISSING)
        case FastnessError():
            return next(
                (CliError(str(error), error.hint, code) for name, code in ROOMS.items() if _is(error, name)), None
            )
        case ApiError():
            return CliError(error.message, error.hint, Exit.CLUSTER)
        case OSError():
            hint = NO_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            return CliError(f"{error.filename or 'the system'}: {error.strerror or error}", hint, Exit.MISSING)
    return None


def _is(error: FastnessError, name: str) -> bool:
    module, _, kind = name.partition(":")
    room = sys.modules.get(module)
    return room is not None and isinstance(error, getattr(room, kind))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _leaves(member)
    else:
        yield error
