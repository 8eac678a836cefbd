"""`fastness agent`: the part of Fastness that runs on a machine.

It is also a command of its own, `fastness-agent`, in a wheel that has nothing of the server (`tools/agent_wheel.py`). Each verb
is imported alone: `boot` runs in an initial file system, where time and memory are short.

Its errors are told here, beside `cli.room_errors`: the wheel has none of the server's rooms, and must not need them to say what
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError
from fastness.agent.host.own_process import forbid_core_dumps
from fastness.cli.errors import CliError, Exit
from fastness.cli.lazy import LazyGroup, Verb
from fastness.kube.errors import ApiError, ConfigError

VERBS: Mapping[str, Verb] = {
    "apply": Verb("fastness.cli.machine.agent_apply:apply", "Write a config into the root directory of an image, once."),
    "attest": Verb("fastness.cli.machine.agent_attest:attest", "Prove this machine again and again, so that it stays attested."),
    "boot": Verb("fastness.cli.machine.agent_boot:boot", "Prove this machine and give Ignition its configuration, once."),
    "features": Verb("fastness.cli.machine.agent_features:features", "Find out what this machine can do and tell the cluster."),
    "firstboot": Verb(
        "fastness.cli.machine.agent_firstboot:firstboot", "Make the operating system what the configuration asks for, once."
    ),
    "join": Verb("fastness.cli.machine.agent_attest:join", "Prove this machine and get the token that its kubelet joins with."),
    "kata": Verb("fastness.cli.machine.agent_kata:kata", "Install the runtime for confidential containers on this node."),
    "keep-identity": Verb("fastness.cli.machine.agent_boot:keep_identity", "Put the key of a first boot on the disk."),
    "leave-initrd": Verb(
        "fastness.cli.machine.agent_unlock:leave_initrd",
        "Forget the unlock key and say in a register that the initial file system is over.",
    ),
    "run": Verb("fastness.cli.machine.agent_run:run", "Follow the desired config of this machine's node until stopped."),
    "unlock": Verb("fastness.cli.machine.agent_unlock:unlock", "Prove this machine and open its encrypted volumes."),
}  # fmt: skip


@click.group(cls=LazyGroup, verbs=VERBS)
def agent() -> None:
    """Run on a machine and keep it where its config says."""
    # Before any verb: the memory of an agent holds tickets and keys, and a core dump would put them on a disk.
    forbid_core_dumps()


@contextmanager
def reported_agent_errors() -> Iterator[None]:
    """Turn what the agent, its drivers and the cluster raise into `CliError`."""
    try:
        yield
    except ApiError as error:
        raise CliError(error.message, error.hint, Exit.CLUSTER) from error
    except (AgentError, DriverError, ConfigError) as error:
        raise CliError(str(error), error.hint, Exit.MISSING) from error
