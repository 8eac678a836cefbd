"""The document that nodes get: what of a ControllerConfig is in it, what is refused, and which files it becomes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.trust.files import (
    IMAGE_PULL_SECRET,
    INTERNAL_PULL_SECRET,
    Memory,
    first_files,
    parse_memory,
    remembered,
    trust_files,
)
from fastness.machineconfig.trust.kubeconfig import authority_in, may_wait, with_authority
from fastness.machineconfig.trust.node_trust import listed_certificates, merged_bundle, node_trust
from fastness.protocol.node_trust import MAX_BUNDLE, NodeTrust, NodeTrustError, parse_node_trust
from tests.unit.machineconfig.build import CERTIFICATE, OTHER_CERTIFICATE, controller_config
from tests.unit.machineconfig.signers import NAMES, signer

AUTHORITY = {"data": {"ca-bundle.crt": OTHER_CERTIFICATE}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def bundles(**texts: str) -> list[JsonObject]:
    return [{"file": name, "data": encoded(text)} for name, text in texts.items()]


def test_everything_of_a_controller_config_is_in_the_document_and_the_same_has_the_same_name() -> None:
    controller = controller_config(
        imageRegistryBundleData=bundles(**{"r.example..5000": CERTIFICATE}), cloudProviderCAData=encoded(CERTIFICATE),
        imageRegistryBundleUserData=bundles(**{"r.example..5000": OTHER_CERTIFICATE + CERTIFICATE}),
        internalRegistryPullSecret=encoded('{"auths":{}}'),
    )  # fmt: skip
    trust, problems = node_trust(controller, AUTHORITY)
    assert problems == []
    assert trust.registries == {"r.example:5000": CERTIFICATE + OTHER_CERTIFICATE}, "each once, the cluster's first"
    assert (trust.kubelet_ca, trust.cloud_ca, trust.api_ca) == (CERTIFICATE, CERTIFICATE, OTHER_CERTIFICATE)
    assert parse_node_trust(trust.body) == trust
    assert node_trust(controller, AUTHORITY)[0].name == trust.name
    assert node_trust(controller_config(), AUTHORITY)[0].name != trust.name
    assert "auths" not in repr(trust)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("imageRegistryBundleData", bundles(**{"../../etc/passwd": CERTIFICATE}), "has a slash"),
        ("imageRegistryBundleData", bundles(**{"r.example": "x"}), "'r.example' holds no certificate"),
        (
            "imageRegistryBundleData",
            [{"file": f"r{n}", "data": encoded(CERTIFICATE)} for n in range(257)],
            "257 registries",
        ),
        ("cloudProviderCAData", "###", "spec.cloudProviderCAData holds no certificate"),
        ("internalRegistryPullSecret", encoded("[]"), "holds no credentials"),
        ("internalRegistryPullSecret", encoded("{"), "holds no credentials"),
    ],
)
def test_what_a_person_wrote_wrong_is_told_by_its_place(field: str, value: Any, says: str) -> None:
    _, problems = node_trust(controller_config(**{field: value}), None)
    assert any(says in problem for problem in problems)
    assert all(problem.startswith("ControllerConfig machine-config-controller: ") for problem in problems)


def test_a_rotation_that_a_person_holds_back_is_not_in_the_document() -> None:
    held = controller_config(notes={names.SERVICE_CA_ROTATE: "false"})
    assert node_trust(held, AUTHORITY)[0].api_ca == ""
    assert "kubeconfig-data" in node_trust(controller_config(), {"data": {"ca-bundle.crt": "x"}})[1][0]


@pytest.mark.parametrize(
    "change",
    [
        {"more": ""}, {"registries": []}, {"registries": {"a/b": ""}}, {"registries": {"..": ""}}, {"kubeletCA": 1},
        {"registries": {"a": "x" * (MAX_BUNDLE + 1)}}, {"kubeletCA": "a\0b"},
    ],
)  # fmt: skip
def test_a_document_of_another_shape_is_refused(change: JsonObject) -> None:
    value = {**json.decode(NodeTrust().body), **change}
    with pytest.raises(NodeTrustError):
        parse_node_trust(json.encode(value))


def test_merged_and_listed_certificates_name_every_bundle() -> None:
    controller = controller_config(imageRegistryBundleData=bundles(**{"r.example": CERTIFICATE + OTHER_CERTIFICATE}))
    assert merged_bundle(controller) == CERTIFICATE + OTHER_CERTIFICATE
    listed = [(entry.bundle, entry.subject) for entry in listed_certificates(controller)]
    assert listed == [
        ("KubeAPIServerServingCAData", "CN=authority.example"), ("r.example", "CN=authority.example"),
        ("r.example", "CN=another.example"),
    ]  # fmt: skip


def test_files_end_in_a_newline_secrets_are_private_and_new_machines_get_no_empty_ones() -> None:
    trust = NodeTrust(kubelet_ca=CERTIFICATE.rstrip(), registries={"r:5": CERTIFICATE}, pull_secret="{}")
    files = trust_files(trust)
    assert files[names.KUBELET_CA].content == CERTIFICATE.encode()
    assert files["/etc/docker/certs.d/r:5/ca.crt"].mode == 0o644
    assert files[INTERNAL_PULL_SECRET].mode == 0o600
    first = first_files(trust)
    assert {path for path in files if path not in first} == {
        "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem", IMAGE_PULL_SECRET,
    }  # fmt: skip
    assert first[names.NODE_TRUST_FILE].mode == 0o600
    assert parse_memory(first[names.NODE_TRUST_FILE].content) == remembered(trust)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"hosts":1,"trust":{},"pending":true,"restart":""}'])
def test_a_memory_that_nobody_of_us_wrote_is_none(data: bytes) -> None:
    assert parse_memory(data) is None


def test_a_memory_names_no_directory_that_is_no_registry() -> None:
    value = json.decode(Memory(NodeTrust(), ("r",)).encode())
    parsed = parse_memory(json.encode({**value, "hosts": ["r", "../x", 3]}))
    assert parsed is not None
    assert parsed.hosts == ("r",)


def kubeconfig(bundle: str) -> str:
    return f"""\
apiVersion: v1
kind: Config
# the installer's
clusters:
- name: local
  cluster: {{server: "https://api:6443", certificate-authority-data: {encoded(bundle)}}}
users: []
"""


def test_the_authority_in_a_kubeconfig_is_replaced_and_nothing_else() -> None:
    before = kubeconfig(CERTIFICATE)
    after = with_authority(before, OTHER_CERTIFICATE)
    assert authority_in(after) == OTHER_CERTIFICATE
    assert after == kubeconfig(OTHER_CERTIFICATE)


@pytest.mark.parametrize(
    "text", ["", "{", "clusters: 3", "clusters: [3]", "clusters: [{cluster: {certificate-authority: /x}}]"]
)
def test_what_has_no_authority_inside_stays_as_it_is(text: str) -> None:
    assert (authority_in(text), with_authority(text, CERTIFICATE)) == ("", text)


def test_only_new_signers_of_the_api_server_s_own_hosts_may_wait() -> None:
    old = CERTIFICATE
    for name in NAMES:
        assert may_wait(old, old + signer(name)), name
    assert not may_wait(old, old + signer("lb") + OTHER_CERTIFICATE)
    assert not may_wait(old, OTHER_CERTIFICATE)
    assert not may_wait(old, old)
    assert not may_wait(old + OTHER_CERTIFICATE, old), "nothing new: what went is no reason to wait"
