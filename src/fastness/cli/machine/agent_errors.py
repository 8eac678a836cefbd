"""Errors of the agent, as one sentence for a person and an exit code.

A leaf beside `cli.room_errors`: the agent's wheel has none of the server's rooms, and must not need them to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.cli.errors import CliError, Exit
from fastness.kube.client.errors import ConfigError
from fastness.kube.errors import ApiError


@contextmanager
def reported_agent_errors() -> Iterator[None]:
    """Turn what the agent, its drivers and the cluster raise into `CliError`."""
    try:
        yield
    except ApiError as error:
        raise CliError(error.message, error.hint, Exit.CLUSTER) from error
    except (AgentError, DriverError, ConfigError) as error:
        raise CliError(str(error), error.hint, Exit.MISSING) from error
