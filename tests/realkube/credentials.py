"""Who the real API server knows: one CA, a serving certificate, an admin certificate, and users with tokens.

- `admin` is in system:masters, by token and by client certificate.
- `alice` belongs to no group and has no role: what she may do is what every authenticated user may.
- `viewer` is bound to the ClusterRole `view` once the server is up.
- `node` is the kubelet of the node worker-0, held to its own node by the Node authorizer and NodeRestriction.

Tokens are random per cluster, so a kubeconfig of one run is worthless for the next.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme


@dataclass(frozen=True)
class User:
    """A user of the token file; `name` is what the server calls them."""

    name: str
    token: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Credentials:
    """Paths of the key material of one cluster, and its users by the names that tests call them."""

    ca: Path
    ca_key: Path
    serving_certificate: Path
    serving_key: Path
    admin_certificate: Path
    admin_key: Path
    account_key: Path
    token_file: Path
    users: dict[str, User]

    @classmethod
    def create(cls, directory: Path, names: Sequence[str] = ()) -> Credentials:
        """Write fresh key material into the directory (0700); `names` are further names of the API server."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(directory / "ca.crt")
        authority.private_key_pem.write_to_path(directory / "ca.key")
        serving = authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc", *names)
        # Go refuses the empty, critical list of names that trustme writes when a certificate has none.
        admin = authority.issue_cert("admin.invalid", common_name="admin", organization_name="system:masters")
        for name, leaf in (("serving", serving), ("admin", admin)):
            leaf.cert_chain_pems[0].write_to_path(directory / f"{name}.crt")
            leaf.private_key_pem.write_to_path(directory / f"{name}.key")
        # Service account tokens are signed with a key of their own; a leaf is how trustme makes one.
        authority.issue_cert(common_name="service-accounts").private_key_pem.write_to_path(directory / "accounts.key")
        users = {
            "admin": User("admin", secrets.token_hex(16), ("system:masters",)),
            "alice": User("alice", secrets.token_hex(16)),
            "viewer": User("viewer", secrets.token_hex(16)),
            "node": User("system:node:worker-0", secrets.token_hex(16), ("system:nodes",)),
        }
        token_file = directory / "tokens.csv"
        token_file.write_text("".join(token_line(user) for user in users.values()))
        return cls(
            ca=directory / "ca.crt",
            ca_key=directory / "ca.key",
            serving_certificate=directory / "serving.crt",
            serving_key=directory / "serving.key",
            admin_certificate=directory / "admin.crt",
            admin_key=directory / "admin.key",
            account_key=directory / "accounts.key",
            token_file=token_file,
            users=users,
        )

    def issue(self, directory: Path, common_name: str, *names: str, group: str = "") -> tuple[Path, Path]:
        """A certificate of this cluster's CA for somebody, and its key, as files in a directory."""
        authority = trustme.CA.from_pem(self.ca.read_bytes(), self.ca_key.read_bytes())
        stem = common_name.replace(":", "-")
        leaf = authority.issue_cert(
            *(names or ("client.invalid",)), common_name=common_name, organization_name=group or None
        )
        certificate, key = directory / f"{stem}.crt", directory / f"{stem}.key"
        leaf.cert_chain_pems[0].write_to_path(certificate)
        leaf.private_key_pem.write_to_path(key)
        return certificate, key


def token_line(user: User) -> str:
    """A line of the API server's static token file: token, name, uid, quoted groups."""
    groups = f',"{",".join(user.groups)}"' if user.groups else ""
    return f"{user.token},{user.name},{user.name}-uid{groups}\n"


def kubeconfig(url: str, ca: Path, user: dict[str, Any]) -> str:
    """A kubeconfig for one cluster and one user, as JSON (which is YAML)."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user"}}],
        "current-context": "real",
    }
    return json.dumps(document, indent=2) + "\n"
