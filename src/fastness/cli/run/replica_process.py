"""What `fastness serve` does once its options are read: it runs the parts until somebody ends it.

Apart from the command, because it stands on every room: help, completion and a wrong option answer without loading them.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import uvloop

from fastness.app import replica
from fastness.app.parts import Part
from fastness.app.replica import ReplicaOptions
from fastness.cli.output import tell
from fastness.cli.room_errors import reported_errors


def run_replica(options: ReplicaOptions) -> None:
    """Run parts of a control plane against a Kubernetes API server until somebody ends it; raises CliError."""
    with reported_errors():
        uvloop.run(_run(options))


def with_reachable_webhook(options: ReplicaOptions) -> ReplicaOptions:
    """The same with a webhook that the API server reaches, or without one: it fails closed, and nobody asked for it by name."""
    if options.webhook_url or "KUBERNETES_SERVICE_HOST" in os.environ:
        return options
    if options.names:
        return replace(options, webhook_url=f"https://{options.names[0]}:{options.webhook_port}")
    return replace(options, parts=options.parts - {Part.WEBHOOK}, webhook_unreachable=True)


async def _run(options: ReplicaOptions) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await replica.serve(options, stop, tell)
