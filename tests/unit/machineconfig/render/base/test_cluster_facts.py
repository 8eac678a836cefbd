"""What is read of a cluster is written down with where it stands; what a person wrote stays."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.base.cluster_facts import (
    ClusterObjects,
    Restated,
    contents,
    facts,
    read_from,
    restated,
)
from fastness.machineconfig.trust.sources import DOCKER_CONFIG, TrustSources
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE

ENCODED = base64.b64encode(CERTIFICATE.encode()).decode()
CLUSTER_INFO = "apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {server: 'https://10.0.0.1:6443'}\n"
DNS_SERVICE = {"spec": {"clusterIP": "10.96.0.10"}}
CLIENT_CA = {"data": {"client-ca-file": CERTIFICATE}}
PLAIN = ClusterObjects(
    dns_service=DNS_SERVICE, trust=TrustSources(client_ca=CLIENT_CA), cluster_info={"data": {"kubeconfig": CLUSTER_INFO}},
    root_ca={"data": {"ca.crt": CERTIFICATE}},
)  # fmt: skip
INFRASTRUCTURE = {"status": {"apiServerInternalURI": "https://api-int:6443", "platformStatus": {"type": "AWS"}}}


def empty(**spec: Any) -> JsonObject:
    return {"metadata": {"name": "machine-config-controller", "annotations": {}}, "spec": spec}


def bundle(text: str) -> JsonObject:
    return {"data": {"ca-bundle.crt": text}}


def values(objects: ClusterObjects) -> dict[str, Any]:
    return {fact.field: fact.value for fact in facts(objects)}


def after(controller: JsonObject, objects: ClusterObjects) -> JsonObject:
    """A ControllerConfig that was news what there is to tell."""
    news = restated(controller, facts(objects), objects)
    return applied(controller, news) if news is not None else controller


def applied(controller: JsonObject, news: Restated) -> JsonObject:
    notes = {**controller["metadata"]["annotations"], **news.patch.get("metadata", {}).get("annotations", {})}
    spec = {**controller["spec"], **news.patch.get("spec", {})}
    meta = {**controller["metadata"], "annotations": notes}
    return {"metadata": meta, "spec": {name: value for name, value in spec.items() if value is not None}}


def test_a_plain_kubernetes_says_where_its_dns_its_authority_and_its_server_are() -> None:
    controller = after(empty(), PLAIN)
    assert controller["spec"]["clusterDNSIP"] == "10.96.0.10"
    assert controller["spec"]["kubeAPIServerServingCAData"] == ENCODED
    assert controller["spec"]["infra"]["status"]["apiServerInternalURI"] == "https://10.0.0.1:6443"
    notes = controller["metadata"]["annotations"]
    assert (notes[names.DISTRIBUTION], notes[names.CONTAINER_RUNTIME]) == ("kubernetes", "containerd")
    assert read_from(controller)["clusterDNSIP"][0] == "Service kube-system/kube-dns"


def test_openshift_s_own_objects_decide_where_there_are_any() -> None:
    network = {"status": {"serviceNetwork": ["172.30.0.0/16", "fd02::/112"]}}
    objects = ClusterObjects(
        dns_service=DNS_SERVICE, infrastructure=INFRASTRUCTURE, network=network, dns={"spec": {"baseDomain": "x"}},
        trust=TrustSources(client_ca=CLIENT_CA, openshift_client_ca=bundle(CERTIFICATE + CERTIFICATE)),
    )  # fmt: skip
    read = values(objects)
    assert (read["clusterDNSIP"], read["ipFamilies"]) == ("172.30.0.10", "DualStack")
    assert base64.b64decode(read["kubeAPIServerServingCAData"]).decode() == CERTIFICATE + CERTIFICATE
    assert read["infra"]["status"] == INFRASTRUCTURE["status"]
    assert (read["dns"]["kind"], read["dns"]["spec"]) == ("DNS", {"baseDomain": "x"})
    notes = after(empty(), objects)["metadata"]["annotations"]
    assert (notes[names.DISTRIBUTION], notes[names.CONTAINER_RUNTIME]) == ("openshift", "crio")


@pytest.mark.parametrize(
    ("blocks", "families"),
    [(["fd02::/112"], "IPv6"), (["fd02::/112", "172.30.0.0/16"], "DualStackIPv6Primary"), (["10.0.0.0/16"], "IPv4")],
)
def test_families_follow_from_the_blocks_of_services(blocks: list[str], families: str) -> None:
    assert values(ClusterObjects(network={"status": {"serviceNetwork": blocks}}))["ipFamilies"] == families


@pytest.mark.parametrize(
    "objects",
    [
        ClusterObjects(dns_service={"spec": {"clusterIP": "None"}}),
        ClusterObjects(dns_service={"spec": None}),
        ClusterObjects(trust=TrustSources(client_ca={"data": {"client-ca-file": "garbage"}})),
        ClusterObjects(trust=TrustSources(client_ca={"data": {"client-ca-file": "4pyT"}})),
        ClusterObjects(cluster_info={"data": {"kubeconfig": "clusters: 3"}}),
        ClusterObjects(cluster_info={"data": {"kubeconfig": "{"}}),
        ClusterObjects(network={"status": {"serviceNetwork": ["10.0.0.0/30", "x"]}}),
        ClusterObjects(proxy={"status": {"noProxy": "a"}}),
    ],
)
def test_what_says_nothing_is_no_fact(objects: ClusterObjects) -> None:
    assert facts(objects) == []


def test_telling_twice_changes_nothing() -> None:
    controller = after(empty(), PLAIN)
    assert restated(controller, facts(PLAIN), PLAIN) is None


def test_what_a_person_wrote_stays_before_and_after() -> None:
    mine = after(empty(clusterDNSIP="10.1.2.3"), PLAIN)
    assert mine["spec"]["clusterDNSIP"] == "10.1.2.3"
    assert "clusterDNSIP" not in read_from(mine)
    changed = after(empty(), PLAIN)
    changed["spec"]["clusterDNSIP"] = "10.1.2.3"
    later = after(changed, PLAIN)
    assert later["spec"]["clusterDNSIP"] == "10.1.2.3"
    assert "clusterDNSIP" not in read_from(later), "the entry goes: it is the person's from now on"
    chosen = empty()
    chosen["metadata"]["annotations"] = {names.CONTAINER_RUNTIME: "crio"}
    assert after(chosen, PLAIN)["metadata"]["annotations"][names.CONTAINER_RUNTIME] == "crio"


def test_what_was_read_follows_its_source_and_what_was_taken_away_is_read_again() -> None:
    controller = after(empty(), PLAIN)
    moved = ClusterObjects(dns_service={"spec": {"clusterIP": "10.96.0.99"}}, trust=TrustSources(client_ca=CLIENT_CA))
    assert after(controller, moved)["spec"]["clusterDNSIP"] == "10.96.0.99"
    del controller["spec"]["clusterDNSIP"]
    assert after(controller, PLAIN)["spec"]["clusterDNSIP"] == "10.96.0.10"


def test_a_proxy_goes_with_its_object_and_an_address_stays() -> None:
    with_proxy = ClusterObjects(dns_service=DNS_SERVICE, proxy={"status": {"httpProxy": "http://p:1", "noProxy": "a"}})
    controller = after(empty(), with_proxy)
    assert controller["spec"]["proxy"] == {"httpProxy": "http://p:1", "noProxy": "a"}
    gone = after(controller, ClusterObjects())
    assert "proxy" not in gone["spec"]
    assert gone["spec"]["clusterDNSIP"] == "10.96.0.10", "a node without it is none"
    mine = {**controller, "spec": {**controller["spec"], "proxy": {"httpProxy": "http://mine:1"}}}
    assert after(mine, ClusterObjects())["spec"]["proxy"] == {"httpProxy": "http://mine:1"}


def test_certificates_of_users_come_from_two_places_once_each() -> None:
    def read(second: str) -> str:
        sources = TrustSources(user_ca=bundle(CERTIFICATE), proxy_ca=bundle(second), proxy_ca_name="proxy-ca")
        return base64.b64decode(values(ClusterObjects(trust=sources))["additionalTrustBundle"]).decode()

    assert read(OTHER_CERTIFICATE) == CERTIFICATE + OTHER_CERTIFICATE
    assert read(ENCODED) == CERTIFICATE


def test_a_source_that_is_damaged_leaves_its_field_as_it_is_and_one_that_is_gone_empties_it() -> None:
    good = ClusterObjects(trust=TrustSources(user_ca=bundle(CERTIFICATE)))
    controller = after(empty(), good)
    damaged = ClusterObjects(trust=TrustSources(user_ca=bundle(CERTIFICATE.replace("MII", "???"))))
    assert after(controller, damaged)["spec"]["additionalTrustBundle"] == ENCODED
    [wrong] = contents(controller, damaged)[1]
    assert "ConfigMap openshift-config/user-ca-bundle" in str(wrong)
    assert "number 1 of 1" in str(wrong)
    assert "additionalTrustBundle" not in after(controller, ClusterObjects())["spec"]


def test_the_news_name_each_value_and_its_origin_and_no_content() -> None:
    news = restated(empty(), facts(PLAIN), PLAIN)
    assert news is not None
    assert "spec.clusterDNSIP from Service kube-system/kube-dns" in news.news
    assert any("absence of objects of config.openshift.io" in line for line in news.news)
    assert not any("MII" in line for line in news.news)


def secret(content: Any = None, kind: str = DOCKER_CONFIG, namespace: str = "openshift-config") -> JsonObject:
    text = json.encode(content if content is not None else {"auths": {"r": {"auth": "eDp5"}}})
    data = {".dockerconfigjson": base64.b64encode(text).decode()}
    return {"metadata": {"namespace": namespace, "name": "pull-secret"}, "type": kind, "data": data}


def test_the_pull_secret_is_referred_to_and_its_content_is_for_the_base_alone() -> None:
    objects = ClusterObjects(pull_secret=secret())
    controller = after(empty(), objects)
    assert controller["spec"]["pullSecret"] == {
        "apiVersion": "v1", "kind": "Secret", "namespace": "openshift-config", "name": "pull-secret",
    }  # fmt: skip
    sources, wrong = contents(controller, objects)
    assert json.decode(sources.pull_secret.encode()) == {"auths": {"r": {"auth": "eDp5"}}}
    assert wrong == []
    assert "eDp5" not in str(controller)


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (None, "is not there"),
        (secret(kind="Opaque"), "is of type Opaque"),
        (secret({"x": 1}), "has no credentials"),
        (secret([1]), "has no credentials"),
        ({"type": DOCKER_CONFIG, "data": {".dockerconfigjson": "#"}}, "has no credentials"),
        ({"type": DOCKER_CONFIG}, "has no credentials"),
    ],
)
def test_a_pull_secret_that_is_named_and_not_usable_is_told_by_its_name(stored: JsonObject | None, says: str) -> None:
    controller = empty(pullSecret={"name": "pull-secret", "namespace": "openshift-config"})
    [wrong] = contents(controller, ClusterObjects(pull_secret=stored))[1]
    assert wrong.field == "Secret openshift-config/pull-secret"
    assert says in wrong.reason


def test_what_may_not_be_read_is_told() -> None:
    [wrong] = contents(empty(), ClusterObjects(unreadable={"ConfigMap openshift-config/x": "forbidden"}))[1]
    assert "ConfigMap openshift-config/x cannot be read: forbidden" in str(wrong)


@pytest.mark.parametrize("note", ["{", "[]", '{"a": 3}', '{"a": {"from": 1}}'])
def test_a_damaged_note_is_none(note: str) -> None:
    controller = empty(clusterDNSIP="10.1.2.3")
    controller["metadata"]["annotations"] = {names.READ_FROM: note}
    assert after(controller, PLAIN)["spec"]["clusterDNSIP"] == "10.1.2.3"
