"""What the layers raise, as one sentence for a person and an exit code.

Every error of ours has a `hint`; it is printed on a line of its own. An exception that is none of ours is a defect: its
traceback is shown, and the exit code says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from fastness.cli.exits import Exit


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
def told() -> Iterator[None]:
    """Turn errors of the layers into `CliError`."""
    # Imported here: a verb that needs none of these layers must not pay for them.
    from fastness.cluster.embedded.store import StoreError
    from fastness.cluster.errors import ApiError
    from fastness.cluster.kube.errors import ConfigError
    from fastness.crypto.errors import CryptoError
    from fastness.trust.errors import TrustError

    try:
        yield
    except (StoreError, TrustError, CryptoError, ConfigError) as error:
        raise CliError(str(error), getattr(error, "hint", ""), Exit.MISSING) from error
    except ApiError as error:
        raise CliError(error.message, error.hint, Exit.CLUSTER) from error
    except OSError as error:
        raise CliError(f"{error.filename or 'the system'}: {error.strerror or error}", code=Exit.MISSING) from error
