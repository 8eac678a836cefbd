"""How `fastness agent run` gets configs for a node that never attests: from the config server, for the certificate of the node.

Certificate and key are those of the kubeconfig, which is read anew for each config: a kubelet gets another certificate every now
and then. So is the trust.json that says whom the node believes: doors by their authority, configs by their signatures. Whoever
installs the machine keeps it current.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastness.agent.boot.configs import NodeConfigs, NodeIdentity
from fastness.agent.boot.image_trust import BadTrust, ImageTrust
from fastness.cli.cluster import connection_to
from fastness.cli.errors import CliError, Exit
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.kube.access.user import User
from fastness.kube.client.connection import show_certificate
from fastness.kube.errors import ConfigError, Unavailable
from fastness.protocol.door import is_origin
from fastness.runtime.clock import Clock, Entropy

_KUBELET = "Use the kubeconfig of the kubelet; the config server knows nodes by their certificates."


@dataclass(frozen=True, slots=True)
class Shown:
    """Where the config server is, whom the node believes there, and where its certificate is."""

    url: str
    trust: Path
    kubeconfig: Path | None
    context: str

    def configs(self, clock: Clock, entropy: Entropy) -> NodeConfigs:
        """Rendered configs from the config server; raises CliError, BadConfig, BadTrust."""
        if not is_origin(self.url):
            hint = "It is https://host:port, without a path."
            raise CliError(f"{self.url!r} is not the address of a config server", hint, Exit.USAGE)
        self.identity()  # what is missing now is told now, not at the first change of the config
        return NodeConfigs(self.url, self.identity_now, clock, entropy)

    def identity_now(self) -> NodeIdentity:
        """The same, for an agent at work: files that are being replaced are there again in a moment; raises Unavailable."""
        try:
            return self.identity()
        except (CliError, ConfigError, BadTrust) as error:
            raise Unavailable(str(error)) from error

    def identity(self) -> NodeIdentity:
        """What the node believes and shows, as the files say now; raises CliError, BadConfig, BadTrust."""
        connection = connection_to(self.kubeconfig, self.context)
        node, certificate = _named(connection.certificate)
        # The doors are believed for their own authority alone, whatever the kubeconfig says of the API.
        trust = ImageTrust.load(self.trust)
        show_certificate(trust.tls, connection)
        return NodeIdentity(node, certificate, trust.tls, trust.keys)


def node_of(kubeconfig: Path | None, context: str) -> str:
    """The node that the certificate of a kubeconfig is for; empty where it is nobody's or somebody else's; raises BadConfig."""
    connection = connection_to(kubeconfig, context)
    try:
        return _named(connection.certificate)[0]
    except CliError:
        return ""


def _named(pem: bytes) -> tuple[str, str]:
    """The node that a certificate names, and its digest, as the config server signs for them; raises CliError."""
    if not pem:
        raise CliError("the kubeconfig has no client certificate to show to the config server", _KUBELET, Exit.MISSING)
    try:
        certificate = Certificate.from_pem(pem)
        subject = certificate.subject
    except CryptoError as error:
        raise CliError(f"the client certificate of the kubeconfig: {error.message}", _KUBELET, Exit.MISSING) from error
    node = User(subject.common_name, subject.organizations).node
    if not node:
        raise CliError("the client certificate of the kubeconfig is not that of a node", _KUBELET, Exit.MISSING)
    return node, str(certificate.fingerprint)
