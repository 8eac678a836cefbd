"""What a ConfigMap of certificates would do to machines, told before it is applied."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.trust.plan import plan_sources
from tests.unit.machineconfig.build import CERTIFICATE

BUNDLE = {"ca-bundle.crt": CERTIFICATE}


def config_map(namespace: str, name: str, data: dict[str, str]) -> JsonObject:
    return {"kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data}


@pytest.mark.parametrize(
    ("place", "data", "file", "says"),
    [
        (
            ("openshift-config-managed", "image-registry-ca"),
            {"r..5": CERTIFICATE},
            "/etc/docker/certs.d/r:5/ca.crt",
            "nothing",
        ),
        (("openshift-config-managed", "kube-apiserver-client-ca"), BUNDLE, "/etc/kubernetes/kubelet-ca.crt", "nothing"),
        (("openshift-config-managed", "kube-apiserver-server-ca"), BUNDLE, "/var/lib/kubelet/kubeconfig", "stopped"),
        (
            ("openshift-config-managed", "kube-cloud-config"),
            {"cloud.conf": "x"},
            "/etc/kubernetes/cloud.conf",
            "reboot",
        ),
        (("openshift-config", "user-ca-bundle"), BUNDLE, "openshift-config-user-ca-bundle.crt", "a new config"),
        (
            ("openshift-config", "mine"),
            {"r.example": CERTIFICATE},
            "/etc/docker/certs.d/r.example/ca.crt",
            "additionalTrustedCA",
        ),
    ],
)
def test_each_source_says_its_files_and_what_happens_after(
    place: tuple[str, str], data: dict[str, str], file: str, says: str
) -> None:
    [plan] = plan_sources([config_map(*place, data)])
    assert any(file in path for path in plan.files)
    assert says in plan.effect
    assert plan.problems == ()
    [broken] = plan_sources([config_map(*place, dict.fromkeys(data, "x" * 70000))])
    assert broken.problems


def test_other_config_maps_are_about_no_machine() -> None:
    assert plan_sources([config_map("default", "image-registry-ca", {"a": "b"})]) == []
