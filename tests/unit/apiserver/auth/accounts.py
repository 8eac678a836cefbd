"""A server's credentials and a few service accounts, for the tests of authentication."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from fastness.apiserver.auth import (
    Authenticator,
    ClientCertificates,
    ServiceAccountTokens,
    issue_token,
)
from fastness.crypto.jws import SigningKey, TokenKeys
from fastness.crypto.x509 import CertificateAuthority
from tests.unit.crypto.seeded import NOW, Seeded

Object = dict[str, Any]
ISSUER = "https://kubernetes.default.svc"
ACCOUNT: Object = {"metadata": {"name": "bot", "namespace": "ci", "uid": "sa-1"}}
HOUR = timedelta(hours=1)


class Objects:
    """Live objects by (resource, namespace, name)."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], Object] = {
            ("serviceaccounts", "ci", "bot"): ACCOUNT,
            ("pods", "ci", "p"): {
                "metadata": {"uid": "pod-1"},
                "spec": {"serviceAccountName": "bot", "nodeName": "n1"},
            },
            ("pods", "ci", "q"): {"metadata": {"uid": "pod-2"}, "spec": {"serviceAccountName": "other"}},
            ("secrets", "ci", "s"): {"metadata": {"uid": "secret-1"}},
            ("nodes", "", "n1"): {"metadata": {"uid": "node-1"}},
        }
        self.asked = 0

    def live_uid(self, resource: str, namespace: str, name: str) -> str | None:
        self.asked += 1
        stored = self.known.get((resource, namespace, name))
        return None if stored is None or stored["metadata"].get("deletionTimestamp") else str(stored["metadata"]["uid"])

    def find(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        return self.known.get((resource, namespace, name))


class Server:
    """Everything that authentication needs, made from a seed."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.authority = CertificateAuthority.create("fastness api", NOW, Seeded(1))
        self.key = SigningKey.generate(Seeded(2))
        self.tokens = ServiceAccountTokens(TokenKeys([self.key]), ISSUER, [ISSUER, "fastness"], self.objects)
        self.certificates = ClientCertificates([self.authority.certificate])
        self.authenticator = Authenticator(self.certificates, self.tokens)

    def issue(self, **spec: Any) -> Object:
        """An answered TokenRequest."""
        return issue_token({"spec": spec}, ACCOUNT, NOW, self.tokens, Seeded(3))

    def token(self, **spec: Any) -> str:
        """Just the token."""
        return str(self.issue(**spec)["status"]["token"])
