"""Finding the cluster as kubectl does, without a disk."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fastness.kube.client.config import SERVICE_ACCOUNT, Surroundings, find
from fastness.kube.client.connection import Impersonation
from fastness.kube.errors import BadConfig, ConfigError, NoCluster, Unsupported

HOME = Path("/home/ann")
DEFAULT = HOME / ".kube" / "config"


def config(server: str = "https://dev:6443", cluster: Any = None, **user: Any) -> bytes:
    """A kubeconfig with one cluster and one user."""
    return json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    ).encode()


def around(files: dict[Path, bytes], **env: str) -> Surroundings:
    """A machine with these files and nothing else."""

    def read(path: Path) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[path]

    return Surroundings(env, HOME, read)


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
ACCOUNT = {
    SERVICE_ACCOUNT / "token": b"pod-token\n",
    SERVICE_ACCOUNT / "ca.crt": b"CA",
    SERVICE_ACCOUNT / "namespace": b"shop",
}


def test_a_named_file_wins_over_the_environment() -> None:
    files = {Path("/named"): config("https://named"), Path("/env"): config("https://env")}
    connection = find(around(files, KUBECONFIG="/env"), kubeconfig=Path("/named"))
    assert connection.server == "https://named"


def test_the_environment_wins_over_the_home_directory() -> None:
    files = {Path("/env"): config("https://env"), DEFAULT: config("https://home")}
    assert find(around(files, KUBECONFIG="/env")).server == "https://env"


def test_the_home_directory_wins_over_the_service_account() -> None:
    assert find(around({DEFAULT: config("https://home"), **ACCOUNT}, **POD)).server == "https://home"


def test_files_of_the_environment_are_merged_and_missing_ones_skipped() -> None:
    files = {Path("/b"): config("https://b"), Path("/c"): config("https://c")}
    assert find(around(files, KUBECONFIG="/a:/b::/c")).server == "https://b"


def test_in_a_pod_the_service_account_is_used() -> None:
    connection = find(around(dict(ACCOUNT), **POD))
    assert (connection.server, connection.ca, connection.namespace) == ("https://10.0.0.1:443", b"CA", "shop")
    assert connection.token.reveal() == "pod-token"
    assert connection.token_file == SERVICE_ACCOUNT / "token"


def test_an_ipv6_service_address_gets_brackets() -> None:
    connection = find(around(dict(ACCOUNT), **{**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}))
    assert connection.server == "https://[fd00::1]:443"


def test_nowhere_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(NoCluster) as caught:
        find(around({}))
    assert "--kubeconfig" in caught.value.hint


def test_a_named_context_without_any_file_is_an_error_also_in_a_pod() -> None:
    with pytest.raises(NoCluster, match='context "dev"'):
        find(around(dict(ACCOUNT), **POD), context="dev")


def test_a_named_file_must_exist() -> None:
    with pytest.raises(BadConfig, match="/absent: No such file"):
        find(around({DEFAULT: config()}), kubeconfig=Path("/absent"))


def test_a_file_that_cannot_be_read_is_not_skipped() -> None:
    def read(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(BadConfig, match="Permission denied"):
        find(Surroundings({}, HOME, read))


def test_certificates_come_from_data_or_from_files_and_data_wins() -> None:
    data = base64.b64encode(b"inline").decode()
    keys = {"client-certificate": "ann.crt", "client-key": "ann.key", "client-key-data": data}
    files = {DEFAULT: config(cluster={"certificate-authority": "ca.crt"}, **keys)}
    files |= {DEFAULT.parent / "ca.crt": b"CA", DEFAULT.parent / "ann.crt": b"CERT", DEFAULT.parent / "ann.key": b"KEY"}
    connection = find(around(files))
    assert (connection.ca, connection.certificate, connection.key.reveal()) == (b"CA", b"CERT", b"inline")


def test_a_certificate_file_that_is_missing_is_named_with_its_field() -> None:
    with pytest.raises(BadConfig) as caught:
        find(around({DEFAULT: config(cluster={"certificate-authority": "ca.crt"})}))
    assert "certificate-authority" in caught.value.message
    assert str(DEFAULT.parent / "ca.crt") in caught.value.message


@pytest.mark.parametrize(
    "server", ["", "dev:6443", "ftp://dev", "https://", "https://a:b", "https://u@dev", "https://d?x"]
)
def test_a_server_that_is_no_address_is_refused(server: str) -> None:
    with pytest.raises(BadConfig, match="is not an http"):
        find(around({DEFAULT: config(server)}))


@pytest.mark.parametrize(
    "user",
    [{"exec": {"command": "x"}}, {"auth-provider": {"name": "x"}}, {"username": "a", "password": "b"}],
)
def test_ways_to_authenticate_that_run_programs_or_are_gone_are_refused(user: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match=next(iter(user))):
        find(around({DEFAULT: config(**user)}))


def test_a_proxy_is_refused() -> None:
    with pytest.raises(Unsupported, match="proxy-url"):
        find(around({DEFAULT: config(cluster={"proxy-url": "http://proxy"})}))


def test_credentials_over_plain_http_are_refused_and_nothing_else_is() -> None:
    with pytest.raises(Unsupported, match="plain http"):
        find(around({DEFAULT: config("http://dev", token="x")}))
    assert find(around({DEFAULT: config("http://127.0.0.1:8001")})).server == "http://127.0.0.1:8001"


@pytest.mark.parametrize(
    ("cluster", "user", "complaint"),
    [
        ({"insecure-skip-tls-verify": True, "certificate-authority-data": "QQ=="}, {}, "exclude each other"),
        ({}, {"client-certificate-data": "QQ=="}, "client-key is missing"),
        ({}, {"client-key-data": "QQ=="}, "client-certificate is missing"),
        ({}, {"as-groups": ["a"]}, "need as"),
        ({}, {"as": "a", "as-groups": [1]}, "list of texts"),
    ],
)
def test_contradictions_are_refused(cluster: dict[str, Any], user: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        find(around({DEFAULT: config(cluster=cluster, **user)}))


def test_impersonation_comes_from_the_file_and_a_choice_wins() -> None:
    user: dict[str, Any] = {"token": "x", "as": "bob", "as-groups": ["dev", "ops"], "as-uid": "7"}
    files = {DEFAULT: config(**user)}
    headers = find(around(files)).impersonation.headers()
    assert headers == [
        ("Impersonate-User", "bob"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"), ("Impersonate-Uid", "7"),
    ]  # fmt: skip
    chosen = find(around(files), act_as=Impersonation("eve"))
    assert chosen.impersonation.headers() == [("Impersonate-User", "eve")]


def test_secrets_of_a_connection_do_not_print_themselves() -> None:
    data = base64.b64encode(b"private-canary").decode()
    files = {DEFAULT: config(token="token-canary", **{"client-certificate-data": data, "client-key-data": data})}
    printed = repr(find(around(files)))
    assert "token-canary" not in printed
    assert printed.count("canary") == 1, "the certificate is public, the key is not"
