"""How `fastness agent run` gets configs for a node that never attests: from the config server, for the certificate of the node.

Certificate and key are those of the kubeconfig, which is read anew for each config: a kubelet gets another certificate every now
and then. So is the authority of the doors, whose file whoever installs the machine keeps current.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fastness.cli.errors import CliError
from fastness.cli.exits import Exit

if TYPE_CHECKING:
    from fastness.agent.configs import NodeConfigs


@dataclass(frozen=True, slots=True)
class Shown:
    """Where the config server is, whom the node believes there, and where its certificate is."""

    url: str
    doors_ca: Path
    kubeconfig: Path | None
    context: str

    def configs(self) -> NodeConfigs:
        """Rendered configs from the config server; raises CliError, BadConfig."""
        from fastness.agent.configs import NodeConfigs
        from fastness.agent.imagetrust import is_origin

        if not is_origin(self.url):
            hint = "It is https://host:port, without a path."
            raise CliError(f"{self.url!r} is no address of a config server", hint, Exit.USAGE)
        self.tls()  # what is missing now is told now, not at the first change of the config
        return NodeConfigs(self.url, self.tls_now)

    def tls_now(self) -> ssl.SSLContext:
        """The same, for an agent at work: files that are being replaced are there again in a moment; raises Unavailable."""
        from fastness.cluster.errors import Unavailable
        from fastness.cluster.kube.errors import ConfigError

        try:
            return self.tls()
        except (CliError, ConfigError) as error:
            raise Unavailable(str(error)) from error

    def tls(self) -> ssl.SSLContext:
        """What the node believes and shows, as the files say now; raises CliError, BadConfig."""
        from fastness.cluster.kube import Surroundings, find
        from fastness.cluster.kube.tls import context_for

        connection = find(Surroundings(os.environ, Path.home()), kubeconfig=self.kubeconfig, context=self.context)
        if not connection.certificate:
            hint = "Use the kubeconfig of the kubelet; the config server knows nodes by their certificates."
            raise CliError("the kubeconfig has no client certificate to show to the config server", hint, Exit.MISSING)
        try:
            authority = self.doors_ca.read_bytes()
        except OSError as error:
            hint = "Give --doors-ca FILE: the authority of the doors, as in the user-data of the pool."
            raise CliError(f"{self.doors_ca}: {error.strerror}", hint, Exit.MISSING) from error
        if not authority.strip():
            raise CliError(f"{self.doors_ca} is empty", "It holds the authority of the doors, as PEM.", Exit.MISSING)
        # The doors are believed for their own authority alone, whatever the kubeconfig says of the API.
        return context_for(replace(connection, ca=authority, insecure=False, origin=str(self.doors_ca)))
