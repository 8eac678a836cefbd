"""The keys of the API are made once, renewed in time and with overlap, and never loaded from an open file."""

from __future__ import annotations

import base64
import ssl
import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from fastness.crypto.errors import UntrustedCertificate
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.crypto.x509 import Certificate, split_pem, verify_client, verify_server
from fastness.keys.errors import DamagedKeyFile, UnsafeKeyFile
from fastness.keys.key_files import write_private
from fastness.keys.pki import ADMIN_LIFETIME, CA_LIFETIME, SERVING_LIFETIME, ApiPki, kubeconfig
from tests.unit.crypto.seeded import NOW, Seeded

HOSTS = ("127.0.0.1", "localhost")
DAY = timedelta(days=1)


def opened(directory: Path, now: datetime = NOW, seed: int = 1, hosts: tuple[str, ...] = HOSTS) -> ApiPki:
    return ApiPki.open(directory / "pki", hosts, now, Seeded(seed))


def test_first_start_makes_everything_private(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in pki.directory.iterdir()}
    assert modes == {
        "ca.pem": 0o600, "serving.pem": 0o600, "admin.pem": 0o600, "service-account.pem": 0o600, "ca.crt": 0o644,
    }  # fmt: skip
    assert stat.S_IMODE(pki.directory.stat().st_mode) == 0o700


def test_second_start_finds_the_same_keys(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path, seed=2)
    assert second.authority.certificate.der == first.authority.certificate.der
    assert second.serving.certificate.der == first.serving.certificate.der
    assert second.admin.certificate.der == first.admin.certificate.der
    assert second.token_keys.signer.id == first.token_keys.signer.id
    assert second.renew(NOW) == set()


def test_lifetimes_are_those_of_the_contract(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    assert pki.serving.certificate.not_after == NOW + SERVING_LIFETIME == NOW + 90 * DAY
    assert pki.authority.certificate.not_after == NOW + CA_LIFETIME == NOW + 3650 * DAY


def test_expiries_are_told_for_every_certificate(tmp_path: Path) -> None:
    ends = {"ca": NOW + CA_LIFETIME, "serving": NOW + SERVING_LIFETIME, "admin": NOW + ADMIN_LIFETIME}
    assert opened(tmp_path).expiries() == ends


def test_certificates_verify_for_their_use(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    for host in HOSTS:
        verify_server(pki.serving.certificate, split_pem(pki.bundle), host, NOW)
    admin = verify_client(pki.admin.certificate, pki.client_authorities, at=NOW)
    assert (admin.common_name, admin.organizations) == ("fastness-admin", ("system:masters",))
    node = pki.issue_node("worker-0", NOW)
    subject = verify_client(node.certificate, pki.client_authorities, at=NOW)
    assert (subject.common_name, subject.organizations) == ("system:node:worker-0", ("system:nodes",))
    assert node.certificate.not_after == NOW + timedelta(hours=1)


def test_openssl_shakes_hands_with_these_files(tmp_path: Path) -> None:
    # Real time: OpenSSL asks the machine's clock.
    pki = opened(tmp_path, now=datetime.now(NOW.tzinfo))
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(pki.serving_file)
    server_context.load_verify_locations(pki.directory / "ca.crt")
    server_context.verify_mode = ssl.CERT_OPTIONAL
    client_context = ssl.create_default_context(cafile=str(pki.directory / "ca.crt"))
    client_context.load_cert_chain(pki.directory / "admin.pem")
    peer_certificate = _handshake(server_context, client_context)
    assert peer_certificate == pki.admin.certificate.der


def _handshake(server_context: ssl.SSLContext, client_context: ssl.SSLContext) -> bytes | None:
    """Shake hands in memory; the peer certificate that the server sees."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
        if len(done) == 2:
            return server.getpeercert(binary_form=True)
    raise AssertionError("the handshake did not end")


def test_serving_certificate_is_renewed_with_a_third_left(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    first = pki.serving.certificate
    assert pki.renew(NOW + 59 * DAY) == set()
    assert pki.renew(NOW + 61 * DAY) == {"serving"}
    assert pki.serving.certificate.der != first.der
    assert opened(tmp_path, NOW + 61 * DAY).serving.certificate.der == pki.serving.certificate.der


def test_start_after_a_long_pause_renews(tmp_path: Path) -> None:
    opened(tmp_path)
    later = NOW + 2 * ADMIN_LIFETIME
    pki = opened(tmp_path, later)
    verify_server(pki.serving.certificate, split_pem(pki.bundle), "localhost", later)
    verify_client(pki.admin.certificate, pki.client_authorities, at=later)


@pytest.mark.parametrize("name", ["serving", "admin"])
def test_a_certificate_of_another_authority_is_replaced(tmp_path: Path, name: str) -> None:
    ours, theirs = opened(tmp_path / "ours"), opened(tmp_path / "theirs", seed=2)
    (ours.directory / f"{name}.pem").write_bytes((theirs.directory / f"{name}.pem").read_bytes())
    again = opened(tmp_path / "ours", seed=3)
    verify_server(again.serving.certificate, [ours.authority.certificate], HOSTS[0], NOW)
    verify_client(again.admin.certificate, [ours.authority.certificate], at=NOW)
    assert again.authority.certificate.der == ours.authority.certificate.der


def test_new_host_gives_a_new_serving_certificate(tmp_path: Path) -> None:
    opened(tmp_path)
    pki = opened(tmp_path, hosts=(*HOSTS, "api.example.com"))
    assert "api.example.com" in pki.serving.certificate.hosts
    fewer = opened(tmp_path)
    assert fewer.serving.certificate.der == pki.serving.certificate.der


def test_authority_changes_with_overlap(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    old = pki.authority.certificate
    clients_bundle = pki.bundle

    prepared = NOW + CA_LIFETIME * 0.7
    assert "ca" in pki.renew(prepared)
    assert pki.authority.certificate.der == old.der, "the successor is handed out before it issues"
    assert len(split_pem((pki.directory / "ca.crt").read_bytes())) == 2
    verify_server(pki.serving.certificate, split_pem(clients_bundle), "localhost", prepared)
    middle_bundle = pki.bundle
    long_lived = pki.authority.issue_client("old-client", [], CA_LIFETIME, prepared).certificate

    switched = NOW + CA_LIFETIME * 0.9
    assert {"ca", "serving"} <= pki.renew(switched)
    assert pki.authority.certificate.der != old.der
    verify_server(pki.serving.certificate, split_pem(middle_bundle), "localhost", switched)
    verify_client(long_lived, pki.client_authorities, at=switched)
    assert not (pki.directory / "ca-next.pem").exists()

    again = opened(tmp_path, switched, seed=9)
    assert [entry.der for entry in again.client_authorities] == [entry.der for entry in pki.client_authorities]

    gone = NOW + CA_LIFETIME + DAY
    pki.renew(gone)
    assert old.der not in [entry.der for entry in pki.client_authorities]
    with pytest.raises(UntrustedCertificate):
        verify_client(long_lived, pki.client_authorities, at=gone)


def test_crash_between_the_steps_of_a_promotion_is_mended(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    pki.renew(NOW + CA_LIFETIME * 0.7)
    successor = (pki.directory / "ca-next.pem").read_bytes()
    switched = NOW + CA_LIFETIME * 0.9
    pki.renew(switched)
    write_private(pki.directory / "ca-next.pem", SecretBytes(successor))
    again = opened(tmp_path, switched)
    assert len(again.client_authorities) == 2
    assert again.next_authority is None


@pytest.mark.parametrize("name", ["ca.pem", "serving.pem", "admin.pem", "service-account.pem"])
def test_readable_key_files_are_refused(tmp_path: Path, name: str) -> None:
    pki = opened(tmp_path)
    (pki.directory / name).chmod(0o644)
    with pytest.raises(UnsafeKeyFile) as caught:
        opened(tmp_path)
    assert name in caught.value.message
    assert "chmod 600" in caught.value.hint


@pytest.mark.parametrize("name", ["ca.pem", "serving.pem", "admin.pem", "service-account.pem"])
@pytest.mark.parametrize("damage", [b"", b"rubbish", b"cut"])
def test_damaged_key_files_are_refused_and_named(tmp_path: Path, name: str, damage: bytes) -> None:
    pki = opened(tmp_path)
    file = pki.directory / name
    content = file.read_bytes()[:100] if damage == b"cut" else damage
    write_private(file, SecretBytes(content))
    with pytest.raises(DamagedKeyFile) as caught:
        opened(tmp_path)
    assert str(file) in caught.value.message
    assert str(file) in caught.value.hint


def test_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    write_private(pki.directory / "serving.pem", SecretBytes(pki.admin.key_pem.reveal() + pki.serving.certificate.pem))
    with pytest.raises(DamagedKeyFile, match="does not belong"):
        opened(tmp_path)


def test_kubeconfig_with_a_certificate(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    document = kubeconfig("https://127.0.0.1:6443", pki.bundle, pki.admin)
    assert document["current-context"] == "fastness"
    assert document["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"]) == pki.bundle
    user = document["users"][0]["user"]
    certificate = Certificate.from_pem(base64.b64decode(user["client-certificate-data"]))
    assert certificate.der == pki.admin.certificate.der
    assert base64.b64decode(user["client-key-data"]) == pki.admin.key_pem.reveal()
    assert document["contexts"] == [{"name": "fastness", "context": {"cluster": "fastness", "user": "fastness"}}]


def test_kubeconfig_with_a_token_and_a_namespace(tmp_path: Path) -> None:
    document = kubeconfig("https://x", b"ca", SecretText("tok"), name="lab", namespace="d")
    assert document["users"] == [{"name": "lab", "user": {"token": "tok"}}]
    assert document["contexts"][0]["context"] == {"cluster": "lab", "user": "lab", "namespace": "d"}


def test_keys_do_not_print_themselves(tmp_path: Path) -> None:
    pki = opened(tmp_path)
    assert "PRIVATE KEY" not in repr(pki)
