"""Errors of the agent's layers as sentences.

Not those of `cli.errors`: the wheel of the agent has none of the server's layers, and must not need them to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastness.cli.errors import CliError
from fastness.cli.exits import Exit


@contextmanager
def agent_told() -> Iterator[None]:
    """Turn what the agent, its drivers and the cluster raise into `CliError`."""
    from fastness.agent.errors import AgentError
    from fastness.agent.host.errors import DriverError
    from fastness.kube.client.errors import ConfigError
    from fastness.kube.errors import ApiError

    try:
        yield
    except ApiError as error:
        raise CliError(error.message, error.hint, Exit.CLUSTER) from error
    except (AgentError, DriverError, ConfigError) as error:
        raise CliError(str(error), error.hint, Exit.MISSING) from error
