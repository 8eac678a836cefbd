"""What an agent of a node that never attests shows to the config server, and whom it believes there."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from fastness.cli.agentnode import Shown
from fastness.cli.errors import CliError
from fastness.cluster.clock import SystemClock, SystemEntropy
from fastness.cluster.errors import Unavailable
from fastness.crypto.x509 import CertificateAuthority
from fastness.formats import json
from fastness.trust.kubeconfig import kubeconfig

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
URL = "https://configs.example:22624"


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    authority = CertificateAuthority.create("api", CLOCK.now(), ENTROPY)
    node = authority.issue_client("system:node:n", ["system:nodes"], timedelta(hours=1), CLOCK.now())
    config = kubeconfig("https://api.example:6443", authority.certificate.pem, node)
    config["clusters"][0]["cluster"].pop("certificate-authority-data")
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    (tmp_path / "kubeconfig").write_bytes(json.encode(config))
    doors = CertificateAuthority.create("doors", CLOCK.now(), ENTROPY)
    (tmp_path / "doors-ca.crt").write_bytes(doors.certificate.pem)
    return Shown(URL, tmp_path / "doors-ca.crt", tmp_path / "kubeconfig", "")


def test_only_the_doors_authority_is_believed_also_where_the_api_is_not_verified(shown: Shown) -> None:
    tls = shown.tls()
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert [one["subject"] for one in tls.get_ca_certs()] == [((("commonName", "doors"),),)]


def test_what_is_missing_is_told_at_the_start(shown: Shown, tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no address of a config server"):
        Shown("configs.example", shown.doors_ca, shown.kubeconfig, "").configs()
    with pytest.raises(CliError, match="No such file"):
        Shown(URL, tmp_path / "missing", shown.kubeconfig, "").configs()
    (tmp_path / "empty").touch()
    with pytest.raises(CliError, match="is empty"):
        Shown(URL, tmp_path / "empty", shown.kubeconfig, "").configs()
    assert shown.kubeconfig is not None
    config = json.decode(shown.kubeconfig.read_bytes())
    config["users"][0]["user"] = {"token": "t"}
    shown.kubeconfig.write_bytes(json.encode(config))
    with pytest.raises(CliError, match="no client certificate"):
        shown.configs()


async def test_files_that_are_being_replaced_do_not_end_an_agent_at_work(shown: Shown) -> None:
    configs = shown.configs()
    shown.doors_ca.unlink()
    with pytest.raises(Unavailable, match="No such file"):
        await configs.fetch(f"rendered-plain-{'a' * 32}")
