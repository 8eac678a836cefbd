"""The chart as helm renders it: who runs as whom, what is reachable, what outlives it, and what a wrong value is told."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fastness.app import chart
from fastness.app.accounts import ACCOUNTS, everything
from fastness.app.parts import Part
from fastness.attestation.status.first_cluster import FirstCluster
from fastness.cli.run.people_options import people_of
from fastness.cli.run.serve import serve
from fastness.kinds.crd.sets import OTHERS, own_names
from fastness.kinds.machineconfiguration.names import OPERATOR_NAMESPACE
from fastness.observe import metrics
from tests.realkube.fixtures import binaries_or_skip
from tools import manifests
from tools.chart_pages import CHART
from tools.realkube import CHARTS

Documents = list[dict[str, Any]]
MONITORED = (
    "--api-versions",
    "monitoring.coreos.com/v1",
    "--set",
    "monitoring.serviceMonitor=true,monitoring.alerts=true",
)


@pytest.fixture(scope="module")
def helm() -> Path:
    return binaries_or_skip(os.environ, CHARTS) / "helm"


def template(helm: Path, *words: str, namespace: str = "fastness-system") -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [helm, "template", "fastness", CHART, "--namespace", namespace, *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PATH": os.defpath, "HOME": "/nonexistent"}
    )


def rendered(helm: Path, *words: str) -> Documents:
    done = template(helm, *words)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: Documents, kind: str) -> dict[str, dict[str, Any]]:
    return {document["metadata"]["name"]: document for document in documents if document["kind"] == kind}


@pytest.fixture(scope="module")
def defaults(helm: Path) -> Documents:
    return rendered(helm)


def test_every_role_is_a_deployment_of_its_own_with_its_own_account_and_passes_the_restricted_level(
    defaults: Documents,
) -> None:
    deployments = of_kind(defaults, "Deployment")
    assert set(deployments) == {f"fastness-{part}" for part in Part} == {role.account for role in ACCOUNTS}
    for name, deployment in deployments.items():
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["serviceAccountName"] == name
        assert f"--roles={name.removeprefix('fastness-')}" in container["args"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert {"startupProbe", "livenessProbe", "readinessProbe", "resources"} <= container.keys()
        assert deployment["spec"]["replicas"] == 2
        assert name in of_kind(defaults, "PodDisruptionBudget")


def test_rights_are_those_of_the_accounts_and_nothing_is_added(defaults: Documents) -> None:
    kinds = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "ValidatingAdmissionPolicy")
    plain = {
        (entry["kind"], entry["metadata"].get("namespace"), entry["metadata"]["name"]): entry for entry in everything()
    }
    for document in defaults:
        if document["kind"] in kinds and "selftest" not in document["metadata"]["name"]:
            source = plain.get((document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"]))
            if source is not None:
                parts = ("rules", "roleRef", "subjects", "spec")
                assert [document.get(part) for part in parts] == [source.get(part) for part in parts]
            else:
                assert document["kind"] == "ClusterRole", "people's roles alone come from elsewhere"
    assert {key for key in plain if key[0] in kinds} <= {
        (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"]) for document in defaults
    }


def test_only_our_own_definitions_come_without_asking_and_keys_and_record_outlive_the_release(
    helm: Path, defaults: Documents
) -> None:
    assert of_kind(defaults, "CustomResourceDefinition").keys() == own_names()
    lasting = [
        entry for entry in defaults if entry["kind"] in ("CustomResourceDefinition", "Secret", "ConfigMap", "Namespace")
    ]
    assert all(entry["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for entry in lasting)
    assert not any("data" in entry for entry in lasting), "a release that holds keys would bring old ones back"
    everything_gone = rendered(helm, "--set", "keep=false")
    assert not any("keep" in str(entry["metadata"].get("annotations")) for entry in everything_gone)
    more = rendered(helm, "--set", "crds.with={nfd}")
    assert any("nfd" in name for name in of_kind(more, "CustomResourceDefinition"))


def test_the_first_cluster_is_asked_for_and_no_release_owns_it(helm: Path, defaults: Documents) -> None:
    assert "first-cluster" not in of_kind(defaults, "ConfigMap")
    made = rendered(helm, "--set", "cluster.create=true,cluster.mode=Enforce,webhook.enabled=false")
    config_map = of_kind(made, "ConfigMap")["first-cluster"]
    assert FirstCluster.of(config_map) == FirstCluster("Enforce", simulated=False, await_webhook=False)
    assert config_map["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert of_kind(made, "ConfidentialCluster") == {}
    hooks = [entry for entry in made if "helm.sh/hook" in (entry["metadata"].get("annotations") or {})]
    assert {entry["metadata"]["annotations"]["helm.sh/hook"] for entry in hooks} == {"test"}, "nothing waits on install"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gate.replica=3",), "at '/gate': additional properties 'replica' not allowed"),
        (("crds.with={nothing}",), "at '/crds/with/0': value must be one of 'machineconfig'"),
        (("broker.url=http://plain",), "at '/broker/url'"),
        (("configserver.enabled=false",), "gate.enabled needs configserver.enabled"),
        (("controllers.enabled=false",), "needs controllers.enabled: the controllers issue the certificate"),
        (("certificates.issuer.name=site",), "certificates.issuer needs the kinds of cert-manager"),
        (("certificates.issuer.name=No Name",), "at '/certificates/issuer/name'"),
        (("leaveSeconds=0",), "at '/leaveSeconds'"),
        (("oidc.issuerUrl=http://login.example.com",), "at '/oidc/issuerUrl'"),
        (("oidc.issuerUrl=https://login.example.com",), "oidc.issuerUrl and oidc.clientId belong together"),
        (("oidc.issuerUrl=https://login.example.com", "oidc.clientId=page"), "oidc.issuerUrl needs page.url"),
        (("oidc.clientSecret.name=oidc",), "oidc.clientSecret and oidc.ca are for a provider"),
        (("page.url=https://page.example.com/somewhere",), "at '/page/url'"),
        (
            ("builds.enabled=true", f"image.digest=sha256:{'a' * 64}"),
            "builds.enabled with image.digest needs builds.image",
        ),
        (("monitoring.alerts=true",), "monitoring needs the kinds of the Prometheus operator"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(helm: Path, words: tuple[str, ...], message: str) -> None:
    refused = template(helm, *(word for value in words for word in ("--set", value)))
    assert (refused.returncode, message in refused.stderr) == (1, True), refused.stderr


CERT_MANAGER = ("--api-versions", "cert-manager.io/v1", "--set", "certificates.issuer.name=site")


def test_an_issuer_of_the_site_issues_for_the_page_alone(helm: Path, defaults: Documents) -> None:
    documents = rendered(helm, *CERT_MANAGER, "--set", "page.hosts={page.example.com}")
    (certificate,) = of_kind(documents, "Certificate").values()
    assert certificate["spec"] == {
        "secretName": "fastness-page-tls",
        "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
        "usages": ["digital signature", "server auth"],
        "dnsNames": ["fastness-page.fastness-system.svc", "page.example.com"],
        "issuerRef": {"name": "site", "kind": "ClusterIssuer", "group": "cert-manager.io"},
    }
    for name, deployment in of_kind(documents, "Deployment").items():
        pod = deployment["spec"]["template"]["spec"]
        mounted = [volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume]
        shows = "--page-certificate=/etc/fastness-certificate" in pod["containers"][0]["args"]
        assert (mounted, shows) == ((["fastness-page-tls"], True) if name == "fastness-page" else ([], False)), name
    assert not of_kind(defaults, "Certificate")
    refused = template(helm, *CERT_MANAGER, "--set", "page.hosts={10.0.0.1}")
    assert "page.hosts: 10.0.0.1 is an address" in refused.stderr


PROVIDER = (
    "--set", "oidc.issuerUrl=https://login.example.com/realms/a,oidc.clientId=page,page.url=https://page.example.com",
    "--set", "oidc.clientSecret.name=page-client,oidc.ca.name=site-ca,oidc.usernameClaim=email",
)  # fmt: skip


def test_an_identity_provider_is_told_to_the_page_alone_and_its_secret_mounted_there_alone(
    helm: Path, defaults: Documents
) -> None:
    deployments = of_kind(rendered(helm, *PROVIDER), "Deployment")
    page = deployments.pop("fastness-page")["spec"]["template"]["spec"]
    (container,) = page["containers"]
    assert {
        "--oidc-issuer-url=https://login.example.com/realms/a", "--oidc-client-id=page", "--oidc-username-claim=email",
        "--oidc-username-prefix=oidc:", "--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:",
        "--page-url=https://page.example.com", "--oidc-client-secret-file=/etc/fastness-oidc-client/secret",
        "--oidc-ca-file=/etc/fastness-oidc-ca/ca.crt",
    } <= set(container["args"])  # fmt: skip
    volumes = {volume["name"]: volume for volume in page["volumes"]}
    assert volumes["oidc-client"]["secret"] == {
        "secretName": "page-client", "items": [{"key": "client-secret", "path": "secret"}],
    }  # fmt: skip
    assert volumes["oidc-ca"]["configMap"] == {"name": "site-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    mounted = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert all(mounted[name]["readOnly"] is True for name in ("oidc-client", "oidc-ca"))
    plain = of_kind(defaults, "Deployment")
    assert all(deployments[name] == plain[name] for name in deployments)
    assert "oidc" not in json.dumps(plain["fastness-page"])


def test_people_come_back_to_the_host_of_the_ingress_unless_another_address_is_given(helm: Path) -> None:
    provider = (
        "oidc.issuerUrl=https://login.example.com,oidc.clientId=page,page.ingress.enabled=true,page.ingress.host=p.test"
    )
    deployments = of_kind(rendered(helm, "--set", provider), "Deployment")
    assert (
        "--page-url=https://p.test" in deployments["fastness-page"]["spec"]["template"]["spec"]["containers"][0]["args"]
    )


def test_a_browser_stays_at_one_replica_of_the_page_and_machines_are_spread(defaults: Documents) -> None:
    affinities = {name: entry["spec"].get("sessionAffinity") for name, entry in of_kind(defaults, "Service").items()}
    assert {name for name, affinity in affinities.items() if affinity == "ClientIP"} == {"fastness-page"}


BUILDS = ("--set", "builds.enabled=true")


@pytest.mark.parametrize("words", [(), ("--set", "adopt={kata}"), PROVIDER, BUILDS])
def test_the_program_knows_every_argument_that_the_chart_gives(helm: Path, words: tuple[str, ...]) -> None:
    for name, deployment in of_kind(rendered(helm, *words), "Deployment").items():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        verb, *arguments = container["args"]
        assert verb == "serve", name
        given = serve.make_context("serve", arguments).params
        assert given["roles"] == name.removeprefix("fastness-")
        people_of({**given, "oidc_client_secret_file": None})  # which is mounted in the pod alone


def test_builds_bring_their_image_rights_network_and_pod_security_and_nothing_of_it_is_there_without(
    helm: Path, defaults: Documents
) -> None:
    egress = "builds.egress[0].to[0].ipBlock.cidr=192.0.2.7/32"
    documents = rendered(
        helm, *BUILDS, "--set", egress, "--set", "image.repository=registry.example/fastness,image.tag=v7"
    )
    (container,) = of_kind(documents, "Deployment")["fastness-controllers"]["spec"]["template"]["spec"]["containers"]
    assert "--builder-image=registry.example/fastness-builder:v7" in container["args"]
    role = of_kind(documents, "Role")["fastness-builds"]
    assert role["metadata"]["namespace"] == OPERATOR_NAMESPACE
    policy = of_kind(documents, "NetworkPolicy")["fastness-builds"]
    assert (policy["spec"]["policyTypes"], "ingress" in policy["spec"]) == (["Ingress", "Egress"], False)
    assert policy["spec"]["egress"] == [{"to": [{"ipBlock": {"cidr": "192.0.2.7/32"}}]}]
    level = "pod-security.kubernetes.io/enforce"
    labelled = {
        name for name, each in of_kind(documents, "Namespace").items() if level in each["metadata"].get("labels", {})
    }
    assert labelled == {OPERATOR_NAMESPACE}
    assert of_kind(documents, "Namespace")[OPERATOR_NAMESPACE]["metadata"]["labels"][level] == "privileged"
    assert "fastness-builds" not in {*of_kind(defaults, "Role"), *of_kind(defaults, "NetworkPolicy")}
    assert level not in str(of_kind(defaults, "Namespace"))


def test_doors_go_on_answering_for_a_while_and_the_test_asks_the_gate(helm: Path, defaults: Documents) -> None:
    for name, deployment in of_kind(defaults, "Deployment").items():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        hook = container.get("lifecycle", {}).get("preStop")
        assert hook == (None if name == "fastness-controllers" else {"sleep": {"seconds": 5}}), name
    trial = ("--set", "cluster.create=true,cluster.simulated=true,cluster.mode=Enforce")
    for more, words in ((), {"--not-configured"}), (("--set", "crds.with={machineconfig}"), {"--pool=worker"}):
        (container,) = of_kind(rendered(helm, *trial, *more), "Pod")["fastness-selftest"]["spec"]["containers"]
        assert {"--simulated", "--config-keys=/etc/fastness-configs/jwks.json", *words} <= set(container["args"])


def test_another_namespace_is_refused_with_the_flag_that_is_missing(helm: Path) -> None:
    refused = template(helm, namespace="default")
    assert "install with --namespace fastness-system --create-namespace" in refused.stderr


def test_alerts_ask_for_metrics_that_there_are(helm: Path) -> None:
    rules = of_kind(rendered(helm, *MONITORED), "PrometheusRule")["fastness"]["spec"]["groups"][0]["rules"]
    series = {name for rule in rules for name in re.findall(r"fastness_[a-z_]+", rule["expr"])}
    declared = set(re.findall(r"fastness_[a-z_]+", metrics.exposition().decode())) | set(
        re.findall(r"`(fastness_[a-z_]+)`", (CHART.parents[1] / "docs/reference/metrics.md").read_text())
    )
    assert series <= declared
    assert all((CHART.parents[1] / rule["annotations"]["runbook"]).is_file() for rule in rules)


def test_rights_to_approve_an_image_are_given_to_the_test_of_a_simulated_cluster_alone(
    helm: Path, defaults: Documents
) -> None:
    assert "fastness-selftest" not in of_kind(defaults, "ServiceAccount")
    assert of_kind(defaults, "Pod")["fastness-selftest"]["spec"]["automountServiceAccountToken"] is False
    trial = rendered(helm, "--set", "cluster.create=true,cluster.simulated=true,cluster.mode=Enforce")
    assert "fastness-selftest" in of_kind(trial, "ServiceAccount")


def test_every_value_is_described_and_every_described_value_has_a_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def compare(node: dict[str, Any], values: Any, path: str) -> None:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        assert path == "" or node.get("description"), path
        if node.get("additionalProperties") is False and not path.endswith("resources"):
            assert set(values) == set(node["properties"]) - {"global"}, path
        for name, inner in (node.get("properties") or {}).items():
            if name != "global" and isinstance(values, dict):
                compare(inner, values.get(name), f"{path}.{name}")

    compare(schema, yaml.safe_load((CHART / "values.yaml").read_text()), "")
    assert schema["properties"]["crds"]["properties"]["with"]["items"]["enum"] == list(OTHERS)


def test_what_is_generated_is_in_step(helm: Path, tmp_path: Path) -> None:
    assert chart.stale(CHART) == []
    assert manifests.FILE.read_text() == manifests.rendered(helm)
    assert chart.main(["--write", str(tmp_path)]) == 0
    assert chart.main(["--check", str(tmp_path)]) == 0
    (tmp_path / "files" / "people.yaml").write_text("changed")
    (tmp_path / "files" / "old.yaml").write_text("left over")
    assert chart.stale(tmp_path) == ["files/old.yaml", "files/people.yaml"]
    assert chart.main(["--check", str(tmp_path)]) == 1
    assert chart.main(["--write", str(tmp_path)]) == 0
    assert chart.stale(tmp_path) == []
