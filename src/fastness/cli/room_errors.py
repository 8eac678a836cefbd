"""Errors of the rooms, as one sentence for a person and an exit code.

Every error of ours has a `hint`; it is printed on a line of its own. An exception that is none of ours is a defect: its
traceback is shown, and the exit code says so. Of several errors at once, as groups of tasks raise them, the first is printed if
all of them are ours.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from fastness.apiserver import StoreError
from fastness.app.parts import LackingError, LacksOption
from fastness.cli.errors import CliError, Exit
from fastness.crypto.errors import CryptoError
from fastness.keys.errors import TrustError
from fastness.kube.client.errors import ConfigError
from fastness.kube.errors import ApiError

NO_SPACE = "Free space on that disk, or raise the quota; nothing that was acknowledged is lost."
_OURS = (LackingError, StoreError, TrustError, CryptoError, ConfigError, ApiError, OSError)


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn errors of the rooms into `CliError`; what is a defect passes as it is."""
    try:
        yield
    except CliError:
        raise
    except (*_OURS, BaseExceptionGroup) as error:
        explained = [_explained(leaf) for leaf in _leaves(error)]
        # One defect among the errors of a group of tasks must not hide behind a sentence about another of them.
        if None in explained or explained[0] is None:
            raise
        raise explained[0] from error


def _explained(error: BaseException) -> CliError | None:
    match error:
        case CliError():
            return error
        case LackingError():
            return CliError(str(error), error.hint, Exit.USAGE if isinstance(error, LacksOption) else Exit.MISSING)
        case StoreError() | TrustError() | CryptoError() | ConfigError():
            return CliError(str(error), error.hint, Exit.MISSING)
        case ApiError():
            return CliError(error.message, error.hint, Exit.CLUSTER)
        case OSError():
            hint = NO_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            return CliError(f"{error.filename or 'the system'}: {error.strerror or error}", hint, Exit.MISSING)
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _leaves(member)
    else:
        yield error
