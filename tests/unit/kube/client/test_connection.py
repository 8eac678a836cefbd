"""TLS contexts from bytes: client keys without files, and mistakes with words."""

from __future__ import annotations

import logging
import ssl

import pytest
import trustme

from fastness.crypto.secret import SecretBytes
from fastness.kube.client.connection import Connection, context_for
from fastness.kube.errors import BadConfig

AUTHORITY = trustme.CA()
LEAF = AUTHORITY.issue_cert("client.example")
CERTIFICATE, KEY = LEAF.cert_chain_pems[0].bytes(), LEAF.private_key_pem.bytes()


def connection(ca: bytes = b"", certificate: bytes = b"", key: bytes = b"", insecure: bool = False) -> Connection:
    """A connection with this material."""
    return Connection(
        "https://dev", ca=ca, certificate=certificate, key=SecretBytes(key), insecure=insecure, origin="test"
    )


def test_only_the_named_authority_is_trusted() -> None:
    context = context_for(connection(AUTHORITY.cert_pem.bytes()))
    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_client_certificate_is_loaded_from_bytes() -> None:
    context_for(connection(AUTHORITY.cert_pem.bytes(), CERTIFICATE, KEY))


def test_insecure_is_honoured_and_said_aloud(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "fastness"):
        context = context_for(connection(insecure=True))
    assert context.verify_mode is ssl.CERT_NONE
    assert [record.getMessage() for record in caplog.records] == ["cluster.insecure"]


OTHER_KEY = AUTHORITY.issue_cert("other.example").private_key_pem.bytes()
ENCRYPTED = (
    b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
    b"MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjVvGbEpcqDzAICCAAw\n"
    b"DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEIRGU0tGfHw9eBBkX8w5pWQEgZBB\n"
    b"-----END ENCRYPTED PRIVATE KEY-----\n"
)


@pytest.mark.parametrize(
    ("ca", "certificate", "key"),
    [
        (b"not pem", b"", b""),
        (b"\xff\xfe", b"", b""),
        (b"", b"not pem", KEY),
        (b"", CERTIFICATE, b"not pem"),
        (b"", CERTIFICATE, OTHER_KEY),
        (b"", CERTIFICATE, ENCRYPTED),
    ],
)
def test_material_that_cannot_be_used_is_refused_with_its_origin(ca: bytes, certificate: bytes, key: bytes) -> None:
    with pytest.raises(BadConfig, match=r"^test: ") as caught:
        context_for(connection(ca, certificate, key))
    assert caught.value.hint
