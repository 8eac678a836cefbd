"""What the rooms raise, as one sentence for a person and an exit code.

Every error of ours has a `hint`; it is printed on a line of its own. An exception that is none of ours is a defect: its
traceback is shown, and the exit code says so. Of several errors at once, as groups of tasks raise them, the first is told if all
of them are ours.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import click

from fastness.cli.exits import Exit

NO_SPACE = "Free space on that disk, or raise the quota; nothing that was acknowledged is lost."


class CliError(click.ClickException):
    """A sentence, a hint and an exit code."""

    def __init__(self, message: str, hint: str = "", code: Exit = Exit.NO) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = int(code)  # type: ignore[misc]  # click declares it on the class and reads it from the instance

    def show(self, file: object = None) -> None:
        """Print it to standard error."""
        click.echo(f"fastness: {self.message}", err=True)
        if self.hint:
            click.echo(f"  {self.hint}", err=True)


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn errors of the layers into `CliError`."""
    # Imported here: a verb that needs none of these layers must not pay for them.
    from fastness.apiserver import StoreError
    from fastness.app.parts import LackingError, LacksOption
    from fastness.crypto.errors import CryptoError
    from fastness.keys.errors import TrustError
    from fastness.kube.client.errors import ConfigError
    from fastness.kube.errors import ApiError

    def sentence(error: BaseException) -> CliError | None:
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

    try:
        yield
    except CliError:
        raise
    except (
        LackingError,
        StoreError,
        TrustError,
        CryptoError,
        ConfigError,
        ApiError,
        OSError,
        BaseExceptionGroup,
    ) as error:
        sentences = [sentence(one) for one in _leaves(error)]
        if None in sentences or sentences[0] is None:
            raise
        raise sentences[0] from error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error
