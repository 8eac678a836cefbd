"""`fastness agent`: the part of Fastness that runs on a machine.

It is also a command of its own, `fastness-agent`, in a wheel that has nothing of the server (`tools/agent_wheel.py`). Each verb
is imported alone: `boot` runs in an initial file system, where time and memory are short.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from fastness.agent.host.own_process import forbid_core_dumps
from fastness.cli.lazy import LazyGroup, Verb

VERBS: Mapping[str, Verb] = {
    "attest": Verb("fastness.cli.machine.agent_attest:attest", "Prove this machine again and again, so that it stays attested."),
    "boot": Verb("fastness.cli.machine.agent_boot:boot", "Prove this machine and give Ignition its configuration, once."),
    "features": Verb("fastness.cli.machine.agent_features:features", "Find out what this machine can do and tell the cluster."),
    "join": Verb("fastness.cli.machine.agent_attest:join", "Prove this machine and get the token that its kubelet joins with."),
    "kata": Verb("fastness.cli.machine.agent_kata:kata", "Install the runtime for confidential containers on this node."),
    "keep-identity": Verb("fastness.cli.machine.agent_boot:keep_identity", "Put the key of a first boot on the disk."),
    "run": Verb("fastness.cli.machine.agent_run:run", "Follow the desired config of this machine's node until stopped."),
}  # fmt: skip


@click.group(cls=LazyGroup, verbs=VERBS)
def agent() -> None:
    """Run on a machine and keep it where its config says."""
    # Before any verb: the memory of an agent holds tickets and keys, and a core dump would put them on a disk.
    forbid_core_dumps()
