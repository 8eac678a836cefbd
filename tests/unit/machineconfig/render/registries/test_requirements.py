"""What policies require: every root of trust and identity, and refusals that name the field."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.machineconfig.render.errors import BadRegistries
from fastness.machineconfig.render.registries.requirements import cluster_policies
from tests.unit.machineconfig.render.registries.build import KEY, OTHER_KEY, signed, trusted

FULCIO = {
    "policyType": "FulcioCAWithRekor",
    "fulcioCAWithRekor": {
        "fulcioCAData": KEY,
        "rekorKeyData": OTHER_KEY,
        "fulcioSubject": {"oidcIssuer": "https://issuer.example/", "signedEmail": "a@example.com"},
    },
}
SUBJECT = {"email": "a@example.com", "hostname": "sign.example.com"}
PKI = {
    "policyType": "PKI",
    "pki": {"caRootsData": KEY, "caIntermediatesData": OTHER_KEY, "pkiCertificateSubject": SUBJECT},
}


def required(root: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return cluster_policies([signed("p", "a.io", root=root, **policy)])[0].requirement


def without(root: dict[str, Any], *path: str) -> dict[str, Any]:
    """A root of trust that lacks one member."""
    name, *rest = path
    if not rest:
        return {key: value for key, value in root.items() if key != name}
    return {**root, name: without(root[name], *rest)}


def test_a_public_key() -> None:
    identity = {"signedIdentity": {"type": "matchRepoDigestOrExact"}}
    assert required(trusted()) == {"type": "sigstoreSigned", "keyData": KEY, **identity}
    both = {"policyType": "PublicKey", "publicKey": {"keyData": KEY, "rekorKeyData": OTHER_KEY}}
    assert required(both) == {"type": "sigstoreSigned", "keyData": KEY, "rekorPublicKeyData": OTHER_KEY, **identity}


def test_a_fulcio_authority() -> None:
    requirement = required(FULCIO)
    assert requirement["fulcio"] == {
        "caData": KEY, "oidcIssuer": "https://issuer.example/", "subjectEmail": "a@example.com",
    }  # fmt: skip
    assert requirement["rekorPublicKeyData"] == OTHER_KEY
    assert "keyData" not in requirement


def test_an_authority_of_ones_own() -> None:
    names = {"subjectEmail": "a@example.com", "subjectHostname": "sign.example.com"}
    assert required(PKI)["pki"] == {"caRootsData": KEY, "caIntermediatesData": OTHER_KEY, **names}
    bare = without(without(PKI, "pki", "caIntermediatesData"), "pki", "pkiCertificateSubject", "email")
    assert required(bare)["pki"] == {"caRootsData": KEY, "subjectHostname": "sign.example.com"}


REMAP = {"prefix": "m.io/ns", "signedPrefix": "a.io/ns"}
IDENTITIES = [
    (None, {"type": "matchRepoDigestOrExact"}),
    ({}, {"type": "matchRepoDigestOrExact"}),
    ({"matchPolicy": "MatchRepoDigestOrExact"}, {"type": "matchRepoDigestOrExact"}),
    ({"matchPolicy": "MatchRepository"}, {"type": "matchRepository"}),
    (
        {"matchPolicy": "ExactRepository", "exactRepository": {"repository": "a.io/b"}},
        {"type": "exactRepository", "dockerRepository": "a.io/b"},
    ),
    ({"matchPolicy": "RemapIdentity", "remapIdentity": REMAP}, {"type": "remapIdentity", **REMAP}),
]


@pytest.mark.parametrize(("identity", "match"), IDENTITIES)
def test_identities(identity: dict[str, Any] | None, match: dict[str, str]) -> None:
    assert required(trusted(), signedIdentity=identity)["signedIdentity"] == match


ROOT = "spec.policy.rootOfTrust"
NOT_PEM = base64.b64encode(b"hello").decode()
BAD_ROOTS = [
    ({}, f"{ROOT}.policyType"),
    ({"policyType": "Faith"}, f"{ROOT}.policyType"),
    ({"policyType": "PublicKey"}, f"{ROOT}.publicKey: is missing"),
    ({"policyType": "PublicKey", "publicKey": {}}, f"{ROOT}.publicKey.keyData: is missing"),
    (trusted("no base64!"), f"{ROOT}.publicKey.keyData: is not PEM in base64"),
    (trusted(NOT_PEM), f"{ROOT}.publicKey.keyData: is not PEM in base64"),
    (
        {"policyType": "PublicKey", "publicKey": {"keyData": KEY, "rekorKeyData": NOT_PEM}},
        f"{ROOT}.publicKey.rekorKeyData",
    ),
    (without(FULCIO, "fulcioCAWithRekor"), f"{ROOT}.fulcioCAWithRekor"),
    (without(FULCIO, "fulcioCAWithRekor", "fulcioCAData"), f"{ROOT}.fulcioCAWithRekor.fulcioCAData"),
    (without(FULCIO, "fulcioCAWithRekor", "rekorKeyData"), f"{ROOT}.fulcioCAWithRekor.rekorKeyData"),
    (without(FULCIO, "fulcioCAWithRekor", "fulcioSubject"), f"{ROOT}.fulcioCAWithRekor.fulcioSubject"),
    (without(FULCIO, "fulcioCAWithRekor", "fulcioSubject", "oidcIssuer"), "fulcioSubject.oidcIssuer"),
    (without(FULCIO, "fulcioCAWithRekor", "fulcioSubject", "signedEmail"), "fulcioSubject.signedEmail"),
    (without(PKI, "pki"), f"{ROOT}.pki"),
    (without(PKI, "pki", "caRootsData"), f"{ROOT}.pki.caRootsData"),
    (without(PKI, "pki", "pkiCertificateSubject"), f"{ROOT}.pki.pkiCertificateSubject"),
    ({"policyType": "PKI", "pki": {"caRootsData": KEY, "pkiCertificateSubject": {}}}, "neither email nor hostname"),
]


@pytest.mark.parametrize(("root", "words"), BAD_ROOTS)
def test_a_root_of_trust_that_cannot_be_used_is_refused_by_its_field(root: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        required(root)
    assert words in refused.value.message
    assert str(refused.value.culprit) == "ClusterImagePolicy p"
    assert refused.value.hint


BAD_IDENTITIES = [
    ({"matchPolicy": "Vaguely"}, "spec.policy.signedIdentity.matchPolicy"),
    ("MatchRepository", "spec.policy.signedIdentity: is missing"),
    ({"matchPolicy": "ExactRepository"}, "signedIdentity.exactRepository: is missing"),
    ({"matchPolicy": "ExactRepository", "exactRepository": {"repository": "a.io/b:tag"}}, "exactRepository.repository"),
    ({"matchPolicy": "RemapIdentity", "remapIdentity": {"prefix": "a.io"}}, "remapIdentity.signedPrefix: is missing"),
    ({"matchPolicy": "RemapIdentity", "remapIdentity": {**REMAP, "prefix": "m"}}, '"m" is not a repository'),
]


@pytest.mark.parametrize(("identity", "words"), BAD_IDENTITIES)
def test_an_identity_that_cannot_be_used_is_refused_by_its_field(identity: Any, words: str) -> None:
    with pytest.raises(BadRegistries) as refused:
        required(trusted(), signedIdentity=identity)
    assert words in refused.value.message


@pytest.mark.parametrize("scope", ["busybox", "a.*.io", "*.a.io/b", "a.io/B", "", 7, "a.io\n"])
def test_a_scope_that_is_none_is_refused_by_its_place(scope: Any) -> None:
    with pytest.raises(BadRegistries, match=r"spec\.scopes\[1\]"):
        cluster_policies([signed("p", "a.io", scope)])


@pytest.mark.parametrize("spec", [None, {}, {"scopes": "a.io"}, {"scopes": ["a.io"]}])
def test_an_object_that_no_schema_has_seen_is_refused(spec: Any) -> None:
    broken = {**signed("p"), "spec": spec}
    with pytest.raises(BadRegistries, match="rootOfTrust"):
        cluster_policies([broken])
