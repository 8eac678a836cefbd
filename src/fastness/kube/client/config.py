"""Find the cluster as kubectl does.

In this order: the file that was named (`--kubeconfig`), the files of `KUBECONFIG` merged, `~/.kube/config`, the service account
of the pod that we run in. The context is the one that was named (`--context`) or the current one.

Not taken, with an error that says so: exec plugins and auth providers (a control plane does not run programs that a file names),
basic authentication (Kubernetes dropped it), proxies, and credentials over plain http, which kubectl would silently leave out.

Disk and environment come in as `Surroundings`, so all of this is tested without either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from fastness.crypto.secret import SecretBytes, SecretText
from fastness.kube.client.connection import Connection, Impersonation
from fastness.kube.client.kubeconfig import Kubeconfig, KubeconfigEntry, Selected, merge, parse, select
from fastness.kube.errors import BadConfig, NoCluster, Unsupported

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REFUSED = {
    # A kubeconfig that somebody sent would run a program as whoever opens it; kubectl does so, and a control plane must not.
    "exec": "Use a client certificate, a token or a tokenFile; `kubectl create token` makes one.",
    "auth-provider": "Use a client certificate, a token or a tokenFile; `kubectl create token` makes one.",
    "username": "Kubernetes has no basic authentication any more; use a token or a client certificate.",
    "password": "Kubernetes has no basic authentication any more; use a token or a client certificate.",
    "as-user-extra": "Impersonation takes as, as-uid and as-groups.",
}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment, the home directory and how to read a file (raises OSError)."""

    env: Mapping[str, str]
    home: Path
    read: Callable[[Path], bytes] = Path.read_bytes


def find(
    around: Surroundings, *, kubeconfig: Path | None = None, context: str = "", act_as: Impersonation | None = None
) -> Connection:
    """The cluster that kubectl would talk to; raises ConfigError."""
    config = _load(around, kubeconfig)
    if config is not None:
        connection = from_selected(select(config, context), around.read)
    elif context:
        raise NoCluster(f'there is no kubeconfig to find the context "{context}" in', "Name one with --kubeconfig.")
    else:
        connection = in_cluster(around)
    return replace(connection, impersonation=act_as) if act_as is not None and act_as.user else connection


def _load(around: Surroundings, named: Path | None) -> Kubeconfig | None:
    """The merged files; None when there is none. A file that was named must exist, others may be missing."""
    if named is not None:
        return parse(_read(around.read, named, "--kubeconfig"), named)
    listed = [Path(part) for part in around.env.get("KUBECONFIG", "").split(":") if part]
    configs = []
    for path in listed or [around.home / ".kube" / "config"]:
        try:
            configs.append(parse(around.read(path), path))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise BadConfig(f"{path}: {error.strerror or error}", "Make the file readable.") from error
    return merge(configs) if configs else None


def from_selected(selected: Selected, read: Callable[[Path], bytes]) -> Connection:
    """A connection from a cluster and a user of a kubeconfig; raises ConfigError."""
    cluster, user = selected.cluster, selected.user
    connection = Connection(
        server=_server(cluster),
        ca=_content(cluster, "certificate-authority", read),
        server_name=cluster.text("tls-server-name"),
        insecure=bool(cluster.fields.get("insecure-skip-tls-verify")),
        certificate=_content(user, "client-certificate", read),
        key=SecretBytes(_content(user, "client-key", read)),
        certificate_files=_certificate_files(user),
        token=SecretText(user.text("token")),
        token_file=user.path("tokenFile"),
        impersonation=_impersonation(user),
        namespace=selected.context.text("namespace") or "default",
        origin=f'{selected.context.source} context "{selected.context.name}"',
    )
    _check(connection, cluster, user)
    return connection


def _certificate_files(user: KubeconfigEntry) -> tuple[Path, Path] | None:
    """Where client certificate and key are, unless one of them stands in the kubeconfig itself."""
    files = user.path("client-certificate"), user.path("client-key")
    inline = user.text("client-certificate-data") or user.text("client-key-data")
    return (files[0], files[1]) if files[0] is not None and files[1] is not None and not inline else None


def _server(cluster: KubeconfigEntry) -> str:
    server = cluster.text("server")
    parts = urlsplit(server)
    plain = not (parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("https", "http") or not parts.hostname or not plain or not _has_good_port(server):
        raise BadConfig(f'{cluster.place}: server "{server}" is not an http(s) URL', "Write https://host:port.")
    if cluster.text("proxy-url"):
        raise Unsupported(f"{cluster.place}: proxy-url is not supported", "Reach the API server directly.")
    return server.rstrip("/")


def _has_good_port(server: str) -> bool:
    try:
        return urlsplit(server).port != 0
    except ValueError:
        return False


def _check(connection: Connection, cluster: KubeconfigEntry, user: KubeconfigEntry) -> None:
    for key, hint in REFUSED.items():
        if user.fields.get(key):
            raise Unsupported(f"{user.place}: {key} is not supported", hint)
    # client-go refuses the pair as well: whoever gave an authority meant it to be checked.
    if connection.insecure and connection.ca:
        raise BadConfig(
            f"{cluster.place}: insecure-skip-tls-verify and a certificate-authority exclude each other",
            "Remove insecure-skip-tls-verify.",
        )
    if bool(connection.certificate) != bool(connection.key):
        lacking = "client-key" if connection.certificate else "client-certificate"
        raise BadConfig(f"{user.place}: {lacking} is missing", "A client certificate needs its key.")
    if connection.server.startswith("http:") and (connection.token or connection.token_file or connection.certificate):
        raise Unsupported(f"{cluster.place}: credentials are not sent over plain http", "Use the https address.")


def _impersonation(user: KubeconfigEntry) -> Impersonation:
    groups = user.fields.get("as-groups") or []
    if not all(isinstance(group, str) for group in groups):
        raise BadConfig(f"{user.place}: as-groups must be a list of texts", "Quote the groups.")
    if (groups or user.text("as-uid")) and not user.text("as"):
        raise BadConfig(f"{user.place}: as-groups and as-uid need as", "Say whom to act as.")
    return Impersonation(user.text("as"), tuple(groups), user.text("as-uid"))


def _content(entry: KubeconfigEntry, key: str, read: Callable[[Path], bytes]) -> bytes:
    """Data of a field: inline data wins over the file that is named."""
    inline = entry.data(f"{key}-data")
    path = entry.path(key)
    return inline if inline or path is None else _read(read, path, f"{entry.place}: {key}")


def _read(read: Callable[[Path], bytes], path: Path, where: str) -> bytes:
    try:
        return read(path)
    except OSError as error:
        raise BadConfig(f"{where}: {path}: {error.strerror or error}", "Name a file that can be read.") from error


def in_cluster(around: Surroundings) -> Connection:
    """The service account of the pod that we run in; raises NoCluster, BadConfig."""
    host, port = around.env.get("KUBERNETES_SERVICE_HOST", ""), around.env.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise NoCluster(
            "no kubeconfig was found, and this is not a pod of a cluster",
            "Name a file with --kubeconfig or KUBECONFIG, or run `fastness up` for a cluster of your own.",
        )
    where = "service account"
    token_file = SERVICE_ACCOUNT / "token"
    token = _read(around.read, token_file, where).decode(errors="replace").strip()
    ca = _read(around.read, SERVICE_ACCOUNT / "ca.crt", where)
    namespace = _read(around.read, SERVICE_ACCOUNT / "namespace", where).decode(errors="replace").strip()
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca=ca, token=SecretText(token), token_file=token_file, namespace=namespace or "default",
        origin="the service account of this pod",
    )  # fmt: skip
