"""A page with a certificate of somebody else: shown from its files with its chain, and followed when they change."""

from __future__ import annotations

import asyncio
import os
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.errors import BadCertificate, CryptoError
from fastness.crypto.x509 import Certificate, CertificateAuthority
from fastness.http.mounted import CERTIFICATE, KEY, MountedCertificate
from fastness.kube.informers import Informers
from fastness.page import server
from fastness.page.server import PageOptions, web_server
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

ENTROPY, CLOCK = SystemEntropy(), SystemClock()


def authority(name: str = "somebody else") -> CertificateAuthority:
    return CertificateAuthority.create(name, CLOCK.now(), ENTROPY)


def issue(issuer: CertificateAuthority, directory: Path) -> Certificate:
    """Write a new certificate as a kubelet does: files appear whole."""
    directory.mkdir(exist_ok=True)
    made = issuer.issue_server(["page.example.com"], timedelta(days=1), CLOCK.now())
    for name, content in ((KEY, made.key_pem.reveal()), (CERTIFICATE, made.certificate.pem + issuer.certificate.pem)):
        (directory / f".{name}").write_bytes(content)
        os.replace(directory / f".{name}", directory / name)
    return made.certificate


async def shown(port: int, issuer: CertificateAuthority) -> Certificate:
    """What a browser sees that believes this authority alone."""
    context = ssl.create_default_context(cadata=issuer.certificate.pem.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="page.example.com")
    peer = cast("ssl.SSLObject", writer.get_extra_info("ssl_object")).getpeercert(binary_form=True)
    writer.close()
    assert peer is not None
    return Certificate.from_der(peer)


async def test_the_page_shows_what_is_mounted_and_follows_it(
    embedded_server: Embedded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.05)
    cluster, issuer, visitors = embedded_server.cluster, authority(), cast("Any", None)
    first = issue(issuer, tmp_path / "tls")
    async with (
        Informers(cluster, clock=CLOCK, entropy=ENTROPY) as informers,
        issuing(cluster, informers, CLOCK, ENTROPY),
        web_server(cluster, informers, visitors, CLOCK, ENTROPY, PageOptions(certificate=tmp_path / "tls")) as page,
        asyncio.timeout(PATIENCE),
    ):
        assert (await shown(page.port, issuer)).fingerprint == first.fingerprint
        second = issue(issuer, tmp_path / "tls")
        while (await shown(page.port, issuer)).fingerprint != second.fingerprint:  # noqa: ASYNC110  # files
            await asyncio.sleep(0.05)


def test_files_that_do_not_belong_together_change_nothing(tmp_path: Path) -> None:
    issuer, mounted = authority(), MountedCertificate(tmp_path / "tls")
    first = issue(issuer, tmp_path / "tls")
    assert mounted.current().certificate.fingerprint == first.fingerprint
    assert [each.fingerprint for each in mounted.current().chain] == [issuer.certificate.fingerprint]
    for name, content in ((KEY, b"no key"), (CERTIFICATE, b"cut off"), (CERTIFICATE, b"")):
        good = (tmp_path / "tls" / name).read_bytes()
        (tmp_path / "tls" / name).write_bytes(content)
        assert mounted.current().certificate.fingerprint == first.fingerprint
        (tmp_path / "tls" / name).write_bytes(good)
    other = issue(issuer, tmp_path / "other")
    (tmp_path / "tls" / CERTIFICATE).write_bytes(other.pem)
    assert mounted.current().certificate.fingerprint == first.fingerprint
    (tmp_path / "tls" / KEY).write_bytes((tmp_path / "other" / KEY).read_bytes())
    assert mounted.current().certificate.fingerprint == other.fingerprint


def test_without_a_good_one_at_the_start_nothing_is_shown(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"tls\.crt"):
        MountedCertificate(tmp_path).current()
    issue(authority(), tmp_path / "tls")
    issue(authority(), tmp_path / "other")
    (tmp_path / "tls" / KEY).write_bytes((tmp_path / "other" / KEY).read_bytes())
    with pytest.raises(BadCertificate, match="not the key of the first certificate"):
        MountedCertificate(tmp_path / "tls").current()
    (tmp_path / "tls" / CERTIFICATE).write_bytes(b"")
    with pytest.raises(CryptoError):
        MountedCertificate(tmp_path / "tls").current()
