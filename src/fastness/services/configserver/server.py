"""The config server as one thing that can be opened and closed: caches, certificate, listener."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster
from fastness.crypto.x509 import Credential
from fastness.model.registry import find
from fastness.services.configserver.app import ConfigServer
from fastness.services.configserver.replies import Replies
from fastness.services.http.listener import Listener, server_context
from fastness.trust.doors import DoorsAuthority

MCO = "machineconfiguration.openshift.io"
POOLS = find(MCO, "v1", "machineconfigpools").resource
CONFIGS = find(MCO, "v1", "machineconfigs").resource
TICKETS = find("fastness.dev", "v1alpha1", "jointickets").resource
CONFIDENTIAL = find("fastness.dev", "v1alpha1", "confidentialclusters").resource


@asynccontextmanager
async def config_server(
    cluster: Cluster,
    informers: Informers,
    doors: DoorsAuthority,
    clock: Clock,
    entropy: Entropy,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncIterator[Listener]:
    """A config server that listens for the time of the block."""
    pools, configs = informers.of(POOLS), informers.of(CONFIGS)
    tickets, confidential = informers.of(TICKETS), informers.of(CONFIDENTIAL)
    for informer in (pools, configs, tickets, confidential):
        await informer.synced()
    names = list(dict.fromkeys([host, "127.0.0.1", "localhost"]))
    context = tls_context(doors.serving(names, clock.now()))
    app = ConfigServer(Replies(pools, configs), tickets, confidential, clock)
    listener = Listener(app, host=host, port=port, tls=context)
    await listener.start()
    try:
        yield listener
    finally:
        await listener.stop()


def tls_context(credential: Credential) -> ssl.SSLContext:
    """A server context for a credential in memory; OpenSSL reads files only, so it sees one for a moment (0600)."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "serving.pem"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(credential.key_pem.reveal() + credential.certificate.pem)
        return server_context(path, path)
