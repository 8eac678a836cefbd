"""From what a connection shows to a user, or to a 401 that says nothing."""

from __future__ import annotations

import base64
from datetime import timedelta

import orjson
import pytest

from fastness.apiserver.auth import certificates as module
from fastness.apiserver.auth.errors import NamelessCertificate
from fastness.crypto.errors import CertificateExpired, CertificateNotYetValid, UntrustedCertificate, WrongPurpose
from fastness.crypto.x509 import CertificateAuthority
from fastness.kube.errors import Unauthorized
from fastness.runtime.cache import ExpiringCache
from tests.unit.apiserver.auth.accounts import HOUR, Server
from tests.unit.crypto.seeded import NOW, Seeded


@pytest.fixture(scope="module")
def server() -> Server:
    return Server()


def refused(
    server: Server, der: bytes | None, header: str | None, later: timedelta = timedelta()
) -> BaseException | None:
    """The hidden cause of a refusal; what the caller reads is always the same."""
    with pytest.raises(Unauthorized) as caught:
        server.authenticator.authenticate(der, header, NOW + later)
    assert str(caught.value) == "Unauthorized"
    assert caught.value.status()["code"] == 401
    return caught.value.__cause__


def test_nothing_shown_is_nobody(server: Server) -> None:
    assert server.authenticator.authenticate(None, None, NOW) is None
    assert server.authenticator.authenticate(None, "", NOW) is None


def test_certificate_names_user_and_groups(server: Server) -> None:
    issued = server.authority.issue_client("alice", ["dev", "ops"], HOUR, NOW).certificate
    user = server.authenticator.authenticate(issued.der, None, NOW)
    assert user is not None
    assert (user.name, user.groups) == ("alice", ("dev", "ops", "system:authenticated"))
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={issued.fingerprint.hex}",)}


def test_expired_and_early_certificates_are_refused_also_when_they_are_cached(server: Server) -> None:
    der = server.authority.issue_client("bob", [], HOUR, NOW).certificate.der
    assert server.authenticator.authenticate(der, None, NOW) is not None
    assert isinstance(refused(server, der, None, HOUR + timedelta(seconds=1)), CertificateExpired)
    assert isinstance(refused(server, der, None, -HOUR), CertificateNotYetValid)
    assert server.authenticator.authenticate(der, None, NOW) is not None


def test_foreign_certificate_is_refused(server: Server) -> None:
    foreign = CertificateAuthority.create("fastness api", NOW, Seeded(77))
    der = foreign.issue_client("root", ["system:masters"], HOUR, NOW).certificate.der
    assert isinstance(refused(server, der, None), UntrustedCertificate)


def test_serving_certificate_is_refused(server: Server) -> None:
    der = server.authority.issue_server(["localhost"], HOUR, NOW).certificate.der
    assert isinstance(refused(server, der, None), WrongPurpose)


def test_rubbish_instead_of_a_certificate_is_refused(server: Server) -> None:
    assert refused(server, b"rubbish", None) is not None
    assert refused(server, b"", None) is not None


def test_certificate_without_a_name_is_refused() -> None:
    server = Server()
    der = server.authority.issue_client("x", ["dev"], HOUR, NOW).certificate.der
    nameless = der.replace(b"\x06\x03\x55\x04\x03\x0c\x01x", b"\x06\x03\x55\x04\x0b\x0c\x01x")  # CN becomes OU
    assert nameless != der
    # Such a certificate would have to be signed: the check of the name is reached with the check of the path taken out.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "verify_client", lambda certificate, authorities, at: certificate.subject)
        assert isinstance(refused(server, nameless, None), NamelessCertificate)


def test_replaced_authorities_count_at_once() -> None:
    server = Server()
    old = server.authority.issue_client("alice", [], HOUR, NOW).certificate.der
    assert server.authenticator.authenticate(old, None, NOW) is not None
    successor = CertificateAuthority.create("next", NOW, Seeded(9))
    server.certificates.replace([successor.certificate])
    assert isinstance(refused(server, old, None), UntrustedCertificate)
    assert server.authenticator.authenticate(successor.issue_client("a", [], HOUR, NOW).certificate.der, None, NOW)


def test_certificate_is_verified_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    der = server.authority.issue_client("carol", [], HOUR, NOW).certificate.der
    first = server.authenticator.authenticate(der, None, NOW)
    monkeypatch.setattr(module, "verify_client", None)
    assert server.authenticator.authenticate(der, None, NOW) is first


def test_token_names_its_service_account(server: Server) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        user = server.authenticator.authenticate(None, f"{scheme}  {server.token()} ", NOW)
        assert user is not None
        assert user.name == "system:serviceaccount:ci:bot"


def test_good_token_beside_a_bad_certificate_counts(server: Server) -> None:
    user = server.authenticator.authenticate(b"rubbish", f"Bearer {server.token()}", NOW)
    assert user is not None
    assert user.name == "system:serviceaccount:ci:bot"


def test_certificate_comes_before_the_token(server: Server) -> None:
    der = server.authority.issue_client("alice", [], HOUR, NOW).certificate.der
    user = server.authenticator.authenticate(der, f"Bearer {server.token()}", NOW)
    assert user is not None
    assert user.name == "alice"


def test_unsigned_and_expired_tokens_are_refused(server: Server) -> None:
    head = base64.urlsafe_b64encode(orjson.dumps({"alg": "none"})).decode().rstrip("=")
    body = server.token().split(".")[1]
    assert refused(server, None, f"Bearer {head}.{body}.") is not None
    assert refused(server, None, f"Bearer {server.token()}", 2 * HOUR) is not None


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic YTpi", "rubbish", " ", "Bearer \u00e9", "Bearer a b", "Bearer .", "Bearer x"]
)
def test_other_headers_are_refused(server: Server, header: str) -> None:
    assert refused(server, None, header) is not None


def test_cache_forgets_the_least_recently_used() -> None:
    cache: ExpiringCache[str] = ExpiringCache(2)
    for key in (b"a", b"b"):
        cache.put(key, key.decode(), NOW, NOW + HOUR)
    assert cache.get(b"a", NOW) == "a"
    cache.put(b"c", "c", NOW, NOW + HOUR)
    assert cache.get(b"b", NOW) is None
    assert cache.get(b"a", NOW) == "a"
    assert cache.get(b"a", NOW + HOUR) is None
    assert len(cache) == 1
