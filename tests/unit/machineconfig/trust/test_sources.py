"""Where whom-to-believe comes from: what each object gives, and what is told of one that cannot be used."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.machineconfig.trust.sources import DOCKER_CONFIG, SourcedTrust, TrustSources, sourced_trust
from fastness.protocol.node_trust import MAX_BUNDLE, MAX_REGISTRIES
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE

BROKEN = CERTIFICATE.replace("MII", "???")


def config_map(**data: str) -> JsonObject:
    return {"data": data}


def text(trust: SourcedTrust, name: str) -> str:
    return base64.b64decode(trust.values[name][0]).decode()


def pull_secret(name: str, auths: Any, kind: str = DOCKER_CONFIG) -> JsonObject:
    value, key = ({"auths": auths}, ".dockerconfigjson") if kind == DOCKER_CONFIG else (auths, ".dockercfg")
    content = base64.b64encode(json.encode(value)).decode()
    return {"metadata": {"namespace": "ns", "name": name}, "type": kind, "data": {key: content}}


@pytest.mark.parametrize(
    ("bootstrap", "initial", "expected"),
    [
        (None, CERTIFICATE, CERTIFICATE),
        ({"data": {"status": "progressing"}}, CERTIFICATE, CERTIFICATE),
        ({"data": {"status": "complete"}}, CERTIFICATE, OTHER_CERTIFICATE),
        (None, None, OTHER_CERTIFICATE),
    ],
)
def test_the_authority_of_kubelets_clients_is_another_one_until_bootstrap_completed(
    bootstrap: JsonObject | None, initial: str | None, expected: str
) -> None:
    sources = TrustSources(
        bootstrap=bootstrap, initial_server_ca=config_map(**{"ca-bundle.crt": initial}) if initial else None,
        openshift_client_ca=config_map(**{"ca-bundle.crt": OTHER_CERTIFICATE}),
        client_ca=config_map(**{"client-ca-file": "not asked"}),
    )  # fmt: skip
    assert text(sourced_trust(sources), "kubeAPIServerServingCAData") == expected


def test_registries_have_their_bundles_by_key_and_base64_is_read() -> None:
    encoded = base64.b64encode(OTHER_CERTIFICATE.encode()).decode()
    sources = TrustSources(
        image_registry_ca=config_map(**{"registry.example..5000": CERTIFICATE, "empty.example": ""}),
        registry_user_ca=config_map(**{"mine.example": encoded}), registry_user_ca_name="mine",
    )  # fmt: skip
    trust = sourced_trust(sources)
    assert trust.problems == []
    assert trust.values["imageRegistryBundleData"][0] == [
        {"file": "registry.example..5000", "data": base64.b64encode(CERTIFICATE.encode()).decode()}
    ]
    assert trust.values["imageRegistryBundleUserData"][0] == [{"file": "mine.example", "data": encoded}]


def test_a_bad_certificate_is_told_by_config_map_key_and_number_and_the_field_is_held() -> None:
    bad = config_map(**{"a.example": CERTIFICATE, "b.example": CERTIFICATE + BROKEN + CERTIFICATE})
    trust = sourced_trust(TrustSources(image_registry_ca=bad))
    [problem] = trust.problems
    assert problem.place == "ConfigMap openshift-config-managed/image-registry-ca, key 'b.example'"
    assert "number 2 of 3" in problem.reason
    assert trust.held == {"imageRegistryBundleData"}
    assert "imageRegistryBundleData" not in trust.values


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("garbage", "holds no certificate"),
        (CERTIFICATE + "-----BEGIN CERTIFICATE-----\nMII", "not whole, after 1"),
        ("x" * (MAX_BUNDLE + 1), f"at most {MAX_BUNDLE}"),
    ],
)
def test_what_is_no_bundle_is_refused(content: str, says: str) -> None:
    [problem] = sourced_trust(TrustSources(image_registry_ca=config_map(**{"a.example": content}))).problems
    assert says in problem.reason


@pytest.mark.parametrize(
    "key", ["../../etc/passwd", "a/b", "..", ".", "host..5000..6000", "-a", "a..port", "host..123456", "ä.example", ""]
)
def test_a_key_that_would_lead_elsewhere_is_refused_and_says_so(key: str) -> None:
    [problem] = sourced_trust(TrustSources(image_registry_ca=config_map(**{key: CERTIFICATE}))).problems
    assert f"key {key!r}" in problem.place
    assert ("has a slash" in problem.reason) == ("/" in key)


def test_registries_have_a_limit_of_number_and_of_size() -> None:
    many = config_map(**{f"r{number}.example": CERTIFICATE for number in range(MAX_REGISTRIES + 1)})
    assert "257 registries" in sourced_trust(TrustSources(image_registry_ca=many)).problems[0].reason
    large = config_map(**{f"r{number}.example": CERTIFICATE * 100 for number in range(10)})
    assert "more than" in sourced_trust(TrustSources(image_registry_ca=large)).problems[0].reason


def test_a_user_bundle_that_is_not_there_is_a_remark_and_one_of_the_proxy_an_error() -> None:
    remark = sourced_trust(TrustSources(registry_user_ca_name="mine"))
    assert (remark.problems, remark.held) == ([], {"imageRegistryBundleUserData"})
    assert "ConfigMap openshift-config/mine is not there" in remark.remarks[0]
    for proxy_ca, says in ((None, "is not there"), (config_map(), "has nothing in ca-bundle.crt")):
        error = sourced_trust(TrustSources(proxy_ca=proxy_ca, proxy_ca_name="proxied"))
        assert says in error.problems[0].reason
        assert error.held == {"additionalTrustBundle"}


def test_a_cloud_has_its_settings_and_its_authority() -> None:
    trust = sourced_trust(
        TrustSources(cloud_config=config_map(**{"cloud.conf": "[Global]", "ca-bundle.pem": CERTIFICATE}))
    )
    assert trust.values["cloudProviderConfig"][0] == "[Global]"
    assert text(trust, "cloudProviderCAData") == CERTIFICATE
    broken = config_map(**{"cloud.conf": "x" * 70000, "ca-bundle.pem": BROKEN})
    assert len(sourced_trust(TrustSources(cloud_config=broken)).problems) == 2


def test_the_internal_registry_s_credentials_come_with_the_global_ones_in_both_forms() -> None:
    sources = TrustSources(
        puller_secrets=(
            pull_secret("new", {"internal": {"auth": "MQ=="}}), pull_secret("old", {"svc": {}}, "kubernetes.io/dockercfg"),
        ),
        pull_secret=pull_secret("global", {"registry.example": {"auth": "Mg=="}, "internal": {"auth": "older"}}),
    )  # fmt: skip
    trust = sourced_trust(sources)
    auths = json.decode(text(trust, "internalRegistryPullSecret").encode())["auths"]
    assert auths == {"internal": {"auth": "MQ=="}, "registry.example": {"auth": "Mg=="}, "svc": {}}
    assert "internalRegistryPullSecret" not in sourced_trust(TrustSources(pull_secret=sources.pull_secret)).values


def test_a_pull_secret_of_the_puller_that_cannot_be_read_is_told_by_its_name() -> None:
    trust = sourced_trust(TrustSources(puller_secrets=(pull_secret("odd", {}, "Opaque"),)))
    assert "Secret ns/odd" in trust.problems[0].place
    assert trust.held == {"internalRegistryPullSecret"}
