"""What an agent of a node that never attests shows to the config server, and whom it believes there."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from fastness.agent.boot.image_trust import BadTrust
from fastness.cli.errors import CliError
from fastness.cli.machine.agent_node import Shown, node_of
from fastness.crypto.eddsa import SEED_BYTES, Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import CertificateAuthority
from fastness.formats import json
from fastness.keys.pki import kubeconfig
from fastness.kube.errors import Unavailable
from fastness.runtime.clock import SystemClock, SystemEntropy

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
URL = "https://configs.example:22624"


@pytest.fixture
def options(tmp_path: Path) -> Shown:
    authority = CertificateAuthority.create("api", CLOCK.now(), ENTROPY)
    node = authority.issue_client("system:node:n", ["system:nodes"], timedelta(hours=1), CLOCK.now())
    config = kubeconfig("https://api.example:6443", authority.certificate.pem, node)
    config["clusters"][0]["cluster"].pop("certificate-authority-data")
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    (tmp_path / "kubeconfig").write_bytes(json.encode(config))
    doors = CertificateAuthority.create("doors", CLOCK.now(), ENTROPY)
    signer = Ed25519Signer(SecretBytes(ENTROPY.token(SEED_BYTES)))
    trust = {"ca": doors.certificate.pem.decode(), "configKeys": [dict(signer.verifier.jwk())]}
    (tmp_path / "trust.json").write_bytes(json.encode(trust))
    return Shown(URL, tmp_path / "trust.json", tmp_path / "kubeconfig", "")


def test_only_the_doors_authority_is_believed_also_where_the_api_is_not_verified(options: Shown) -> None:
    identity = options.identity()
    tls = identity.tls
    assert identity.node == node_of(options.kubeconfig, "") == "n"
    assert identity.certificate.startswith("sha256:")
    assert len(identity.keys) == 1
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert [authority["subject"] for authority in tls.get_ca_certs()] == [((("commonName", "doors"),),)]


def test_what_is_missing_is_told_at_the_start(options: Shown, tmp_path: Path) -> None:
    with pytest.raises(CliError, match="not the address of a config server"):
        Shown("configs.example", options.trust, options.kubeconfig, "").configs(CLOCK, ENTROPY)
    with pytest.raises(BadTrust, match="No such file"):
        Shown(URL, tmp_path / "missing", options.kubeconfig, "").configs(CLOCK, ENTROPY)
    (tmp_path / "empty").touch()
    with pytest.raises(BadTrust, match="not JSON"):
        Shown(URL, tmp_path / "empty", options.kubeconfig, "").configs(CLOCK, ENTROPY)


@pytest.mark.parametrize(
    ("user", "message"),
    [(None, "no client certificate"), ("system:node:n", "not that of a node"), ("admin", "not that of a node")],
)
def test_a_kubeconfig_without_the_certificate_of_a_node_is_told_at_the_start(
    options: Shown, user: str | None, message: str
) -> None:
    assert options.kubeconfig is not None
    config = json.decode(options.kubeconfig.read_bytes())
    config["users"][0]["user"] = {"token": "t"}
    if user is not None:
        authority = CertificateAuthority.create("api", CLOCK.now(), ENTROPY)
        pair = authority.issue_client(user, ["system:authenticated"], timedelta(hours=1), CLOCK.now())
        config["users"] = kubeconfig(URL, authority.certificate.pem, pair)["users"]
    options.kubeconfig.write_bytes(json.encode(config))
    with pytest.raises(CliError, match=message):
        options.configs(CLOCK, ENTROPY)
    assert node_of(options.kubeconfig, "") == ""


async def test_files_that_are_being_replaced_do_not_end_an_agent_at_work(options: Shown) -> None:
    configs = options.configs(CLOCK, ENTROPY)
    options.trust.unlink()
    with pytest.raises(Unavailable, match="No such file"):
        await configs.fetch(f"rendered-plain-{'a' * 32}")
