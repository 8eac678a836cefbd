"""Tokens of PCCS, and every object of Intel's remote attestation."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import orjson
import pytest

from fastness.crypto.secret import SecretBytes, SecretText
from fastness.workloads.intel.dcap import DcapInputs, Images, Serving, dcap_objects, weaknesses
from fastness.workloads.intel.tokens import WeakToken, random_token, require_key, require_strong, token_hash

Object = dict[str, Any]
GOOD, OTHER = SecretText("k9Xw-2pLq_7RtZ5vN8mB"), SecretText("Zq4T_8yHs-1KdG6cJ3nW")


def given(**changes: Any) -> DcapInputs:
    serving = Serving(b"CERT", SecretBytes(b"KEY"), b"AUTHORITY")
    return DcapInputs(**{
        "api_key": SecretText("0123456789abcdef" * 2), "user_token": GOOD, "admin_token": OTHER, "node": "master-0",
        "serving": serving, **changes,
    })  # fmt: skip


def by_kind(**changes: Any) -> dict[tuple[str, str], Object]:
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in dcap_objects(given(**changes))}


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("mytoken", "a sample that everybody knows"),
        ("MyToken123", "a sample that everybody knows"),
        ("changeme!", "a sample that everybody knows"),
        ("<API_KEY_VALUE>", "the gap of a template"),
        ("", "is empty"),
        ("sixteen letters!", "has spaces"),
        ("tökentökentökentöken", "do not survive"),
        ("short-0ne", "has 9 characters; it needs 16 to 256"),
        ("x9" * 200, "has 400 characters"),
        ("abababababababababab", "only 2 different characters"),
    ],
)
def test_token_that_could_be_guessed_is_refused_without_being_repeated(token: str, reason: str) -> None:
    with pytest.raises(WeakToken, match=reason) as caught:
        require_strong(SecretText(token), "user")
    assert not token or token not in str(caught.value)
    assert "random one is made" in caught.value.hint


def test_user_and_admin_token_must_differ() -> None:
    require_strong(OTHER, "admin", GOOD)
    with pytest.raises(WeakToken, match="are the same"):
        require_strong(GOOD, "admin", GOOD)


@pytest.mark.parametrize("key", ["", "<API_KEY_VALUE>", "with space", "short", "x" * 500])
def test_what_cannot_be_a_key_of_intel_is_refused(key: str) -> None:
    with pytest.raises(WeakToken, match="the API key is not one of Intel's"):
        require_key(SecretText(key))


def test_random_tokens_are_strong_and_the_hash_is_the_services() -> None:
    token = random_token(bytes(range(32)))
    require_strong(token, "user")
    assert token_hash(SecretText("mytoken")) == hashlib.sha512(b"mytoken").hexdigest()
    assert len(token_hash(token)) == 128


def test_namespace_accounts_and_rights_come_first() -> None:
    kinds = [obj["kind"] for obj in dcap_objects(given())]
    assert kinds == [
        "Namespace", "ServiceAccount", "ServiceAccount", "RoleBinding", "RoleBinding", "Secret", "Secret", "ConfigMap",
        "NetworkPolicy", "NetworkPolicy", "Service", "Deployment", "PersistentVolumeClaim", "CronJob", "DaemonSet",
    ]  # fmt: skip
    binding = by_kind()["RoleBinding", "qgs-sa-privileged"]
    assert binding["roleRef"]["name"] == "system:openshift:scc:privileged"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "qgs-sa", "namespace": "intel-dcap"}]


def test_secrets_hold_hashes_and_never_the_admin_token() -> None:
    objects = by_kind()
    data = {name: base64.b64decode(value).decode() for name, value in objects["Secret", "pccs-secrets"]["data"].items()}
    assert data == {
        "PCCS_API_KEY": "0123456789abcdef" * 2, "USER_TOKEN": GOOD.reveal(), "PCCS_USER_TOKEN_HASH": token_hash(GOOD),
        "PCCS_ADMIN_TOKEN_HASH": token_hash(OTHER),
    }  # fmt: skip
    everything = orjson.dumps(dcap_objects(given())).decode()
    assert OTHER.reveal() not in everything
    assert base64.b64encode(OTHER.reveal().encode()).decode() not in everything
    assert set(objects["Secret", "pccs-tls"]["data"]) == {"private.pem", "file.crt"}
    assert objects["ConfigMap", "pccs-ca"]["data"] == {"ca.crt": "AUTHORITY"}


def test_pccs_runs_once_where_its_database_is() -> None:
    spec = by_kind(https_proxy="http://proxy:3128", no_proxy=".local")["Deployment", "pccs"]["spec"]
    pod = spec["template"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "master-0"}
    assert pod["serviceAccountName"] == "pccs-sa"
    (container,) = pod["containers"]
    assert {variable["name"]: variable["value"] for variable in container["env"]} == {
        "PCCS_LOG_LEVEL": "info", "CLUSTER_HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".local", "PCCS_FILL_MODE": "LAZY",
    }  # fmt: skip
    assert container["readinessProbe"]
    assert {toleration["key"] for toleration in pod["tolerations"]} >= {"node-role.kubernetes.io/master"}


def test_qgs_runs_on_tdx_hosts_and_checks_whom_it_talks_to() -> None:
    template = by_kind()["DaemonSet", "tdx-qgs"]["spec"]["template"]
    pod = template["spec"]
    assert pod["nodeSelector"] == {"intel.feature.node.kubernetes.io/tdx": "true"}
    assert (pod["hostNetwork"], pod["dnsPolicy"], pod["serviceAccountName"]) == (
        True,
        "ClusterFirstWithHostNet",
        "qgs-sa",
    )
    assert pod["initContainers"][0]["restartPolicy"] == "Always"
    assert pod["containers"][0]["args"] == ["-p=4050", "-n=4"]
    assert set(pod["containers"][0]["resources"]["limits"]) == {
        f"sgx.intel.com/{resource}" for resource in ("epc", "enclave", "provision")
    }
    conf = orjson.loads(template["metadata"]["annotations"]["qcnl-conf"])
    assert conf == {
        "pccs_url": "https://pccs-service:8042/sgx/certification/v4/", "use_secure_cert": True, "pck_cache_expire_hours": 168,
    }  # fmt: skip
    assert "tls-ca-bundle.pem" in orjson.dumps(pod).decode()
    trusting = by_kind(verify=False)["DaemonSet", "tdx-qgs"]["spec"]["template"]
    assert orjson.loads(trusting["metadata"]["annotations"]["qcnl-conf"])["use_secure_cert"] is False
    assert "tls-ca-bundle.pem" not in orjson.dumps(trusting).decode()


@pytest.mark.parametrize(
    ("proxy", "port"),
    [("", 443), ("http://proxy:3128", 3128), ("http://proxy", 80), ("https://proxy", 443), ("http://proxy:x", 443)],
)
def test_pccs_may_talk_to_intel_or_the_proxy_only(proxy: str, port: int) -> None:
    spec = by_kind(https_proxy=proxy)["NetworkPolicy", "pccs-talks-to-intel"]["spec"]
    assert spec["egress"][1] == {"ports": [{"protocol": "TCP", "port": port}]}
    assert by_kind()["NetworkPolicy", "backup-talks-to-nobody"]["spec"].get("egress") is None


def test_backup_reads_the_database_every_night() -> None:
    spec = by_kind(schedule="5 4 * * *")["CronJob", "pccs-backup"]["spec"]
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"]) == ("5 4 * * *", "Forbid")
    assert pod["containers"][0]["volumeMounts"][0] == {
        "name": "database",
        "mountPath": "/var/cache/pccs",
        "readOnly": True,
    }
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "master-0"}


def test_weaknesses_are_told() -> None:
    assert weaknesses(given()) == []
    sentences = weaknesses(given(verify=False, images=Images(pccs="pccs:latest")))
    assert "not pinned by digest" in sentences[0]
    assert "does not check the certificate" in sentences[1]
