"""TrustedExecutionCluster: the oldest counts, addresses become URLs, and each is told how it stands."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.enrolment.trusted_cluster import broker_url, conditions_of, enrolment_url, honoured
from fastness.kinds.kind import JsonObject


def cluster(
    name: str = "one", namespace: str = "fastness-system", made: str = "2026-01-01T00:00:00Z", **more: Any
) -> JsonObject:
    deleted = {"deletionTimestamp": made} if more.pop("deleted", False) else {}
    return {"metadata": {"name": name, "namespace": namespace, "creationTimestamp": made, **deleted}, "spec": more}


def test_the_oldest_counts() -> None:
    old, new = cluster("z", made="2026-01-01T00:00:00Z"), cluster("a", made="2026-01-02T00:00:00Z")
    assert honoured([new, old]) == old
    assert honoured([new, cluster("z", deleted=True)]) == new
    assert honoured([]) is None
    twins = [cluster("b"), cluster("a")]
    assert honoured(twins) == honoured(reversed(twins)) == cluster("a")


@pytest.mark.parametrize(
    ("spec", "url"),
    [
        ({"publicTrusteeAddr": "kbs.example"}, "https://kbs.example:8080"),
        ({"publicTrusteeAddr": "KBS.example", "trusteeKbsPort": 443}, "https://kbs.example:443"),
        ({"publicTrusteeAddr": "kbs.example:8443", "trusteeKbsPort": 443}, "https://kbs.example:8443"),
        ({"publicTrusteeAddr": "10.0.0.1:8443"}, "https://10.0.0.1:8443"),
        ({"publicTrusteeAddr": "fd00::1"}, "https://[fd00::1]:8080"),
        ({"publicTrusteeAddr": "[fd00::1]:443"}, "https://[fd00::1]:443"),
        ({}, ""),
        ({"publicTrusteeAddr": "http://kbs.example"}, ""),
        ({"publicTrusteeAddr": "kbs.example/path"}, ""),
        ({"publicTrusteeAddr": "kbs.example:0"}, ""),
        ({"publicTrusteeAddr": "kbs.example:99999"}, ""),
        ({"publicTrusteeAddr": "user@kbs.example"}, ""),
        ({"publicTrusteeAddr": "kbs.example\n"}, ""),
        ({"publicTrusteeAddr": 7}, ""),
    ],
)
def test_an_address_becomes_a_url_or_nothing(spec: JsonObject, url: str) -> None:
    assert broker_url(cluster(**spec)) == url


def test_keys_are_registered_where_machines_enrol() -> None:
    named: JsonObject = {"publicAttestationKeyRegisterAddr": "enrol.example"}
    assert enrolment_url(cluster(**named)) == "https://enrol.example:8000"
    assert enrolment_url(cluster(**named, registerServerPort=81)) == "https://enrol.example:81"
    assert (
        enrolment_url(cluster(**named, registerServerPort=81, attestationKeyRegisterPort=82))
        == "https://enrol.example:82"
    )
    assert enrolment_url(None) == ""


def condition_rows(
    cluster: JsonObject, counts: JsonObject | None, *, doors: bool = True, confidential: bool = True
) -> list[Any]:
    conditions = conditions_of(cluster, counts, doors=doors, confidential=confidential)
    return [(condition.kind, condition.status, condition.reason) for condition in conditions]


def test_each_is_told_how_it_stands() -> None:
    resource = cluster(publicTrusteeAddr="kbs.example")
    address = ("KnownTrusteeAddress", True, "AddressFound")
    assert condition_rows(resource, resource) == [("Installed", True, "InstallationCompleted"), address]
    assert condition_rows(resource, resource, doors=False) == [("Installed", False, "Installing"), address]
    assert condition_rows(resource, resource, confidential=False) == [("Installed", False, "Installing"), address]
    assert condition_rows(resource, cluster("other")) == [("Installed", False, "NonUnique")]
    assert condition_rows(cluster("x", "default"), None) == [("Installed", False, "NonUnique")]
    assert condition_rows(cluster(deleted=True), None) == [("Installed", False, "Uninstalling")]
    unknown = condition_rows(cluster(), cluster())
    assert unknown[1] == ("KnownTrusteeAddress", False, "NoAddressFound")


def test_settings_that_are_not_used_are_named() -> None:
    resource = cluster(trusteeSecret="tls", registerServerSecret="tls2")
    (installed, _) = conditions_of(resource, resource, doors=True, confidential=True)
    assert "trusteeSecret, registerServerSecret" in installed.message
