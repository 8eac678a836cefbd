"""Every object of Intel's remote attestation in a cluster, from a few inputs. Pure: the same inputs give the same objects.

PCCS caches what Intel certifies about platforms; one runs, on a control-plane node, and keeps its database on that node. QGS
signs quotes of TDX guests; one runs on every TDX host and first registers its platform. Beyond what the manual creates:

* accounts are named in the pods, so that `oc set serviceaccount` finds nothing left to do;
* QGS checks the certificate of PCCS (the manual switches that off): the authority is mounted where libcurl looks for it;
* the database is copied every night to a claim: without a copy, its loss means an SGX factory reset of every host;
* PCCS is ready when it answers, and it may talk to Intel or the proxy and to nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from fastness.crypto.secret import SecretBytes, SecretText
from fastness.formats import json
from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.workloads.intel import parts
from fastness.workloads.intel.parts import env, from_secrets, host_path, mount, obj
from fastness.workloads.intel.tokens import token_hash

_VENDOR: Final = "registry.redhat.io/openshift-sandboxed-containers"
SERVICE_NAMES: Final = tuple(
    f"{parts.SERVICE}{suffix}"
    for suffix in ("", f".{parts.NAMESPACE}", f".{parts.NAMESPACE}.svc", f".{parts.NAMESPACE}.svc.cluster.local")
)
TRUST_FILE: Final = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
SCHEDULE: Final = "17 3 * * *"
KEPT: Final = 7
# Two copies that are equal: nobody wrote to the database between them.
BACKUP: Final = f"""set -eu
name="pccs-$(date -u +%Y%m%dT%H%M%SZ).tar"
for attempt in 1 2 3 4 5; do
  tar -C /var/cache -cf "/backup/.$name" pccs
  tar -C /var/cache -cf - pccs | cmp -s - "/backup/.$name" && break
  test "$attempt" != 5
  sleep 10
done
mv "/backup/.$name" "/backup/$name"
ls -1 /backup | grep '^pccs-.*[.]tar$' | sort | head -n -{KEPT} | while read -r old; do rm -- "/backup/$old"; done
"""


@dataclass(frozen=True, slots=True)
class Images:
    """What runs; by digest, so that nobody can put something else under the same name."""

    pccs: str = f"{_VENDOR}/osc-pccs@sha256:4fa43e59fb2117039bed34486278c9bb6633cd75002b0781a9aa066680195982"
    qgs: str = f"{_VENDOR}/osc-tdx-qgs@sha256:dcde026d5a4b241c75a0b0283a2151cc6de619390e99c3786bfd27032b56e4c4"
    tools: str = "registry.access.redhat.com/ubi9/ubi:9.7-1764578509"


@dataclass(frozen=True, slots=True)
class Serving:
    """What PCCS shows, and the authority that QGS believes."""

    certificate: bytes
    key: SecretBytes
    authority: bytes


@dataclass(frozen=True, slots=True)
class DcapInputs:
    """What differs between clusters."""

    api_key: SecretText
    user_token: SecretText
    admin_token: SecretText
    node: str
    serving: Serving
    https_proxy: str = ""
    no_proxy: str = ""
    verify: bool = True
    images: Images = field(default_factory=Images)
    schedule: str = SCHEDULE
    backup_size: str = "1Gi"


def namespace() -> JsonObject:
    """The namespace; its pods are privileged, and it says so."""
    labels = {**parts.PART_OF, "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": parts.NAMESPACE, "labels": labels}}


def dcap_objects(given: DcapInputs) -> list[JsonObject]:
    """Every object, in the order in which it can be created."""
    accounts = (parts.PCCS_ACCOUNT, parts.QGS_ACCOUNT)
    return [
        namespace(),
        *(obj("v1", "ServiceAccount", account) for account in accounts),
        *(parts.bound_to(account) for account in accounts),
        *secrets(given),
        *_egress(given),
        _service(),
        _pccs(given),
        *_backup(given),
        _qgs(given),
    ]


def secrets(given: DcapInputs) -> list[JsonObject]:
    """The Secrets with key, tokens and certificate. The admin token itself is stored nowhere."""
    values = {
        "PCCS_API_KEY": given.api_key.reveal(), "USER_TOKEN": given.user_token.reveal(),
        "PCCS_USER_TOKEN_HASH": token_hash(given.user_token), "PCCS_ADMIN_TOKEN_HASH": token_hash(given.admin_token),
    }  # fmt: skip
    authority = obj("v1", "ConfigMap", parts.AUTHORITY, data={"ca.crt": given.serving.authority.decode()})
    return [
        parts.secret(parts.SECRETS, {name: value.encode() for name, value in values.items()}),
        parts.secret(parts.TLS, {"private.pem": given.serving.key.reveal(), "file.crt": given.serving.certificate}),
        authority,
    ]


def _service() -> JsonObject:
    ports = [{"name": "pccs", "protocol": "TCP", "port": parts.PORT, "targetPort": "pccs-port"}]
    return obj("v1", "Service", parts.SERVICE, spec={"selector": {parts.CACHE_LABEL: parts.PCCS}, "ports": ports})


def _pccs(given: DcapInputs) -> JsonObject:
    proxy = env(CLUSTER_HTTPS_PROXY=given.https_proxy)
    # The service reads only the proxy; the libraries below it read the exception list.
    proxy += env(NO_PROXY=given.no_proxy) if given.no_proxy else []
    container = {
        "name": parts.PCCS, "image": given.images.pccs, "envFrom": from_secrets(),
        "env": [*env(PCCS_LOG_LEVEL="info"), *proxy, *env(PCCS_FILL_MODE="LAZY")],
        "ports": [{"name": "pccs-port", "containerPort": parts.PORT}],
        "readinessProbe": {"tcpSocket": {"port": "pccs-port"}, "periodSeconds": 10},
        "securityContext": {"runAsUser": 0},
        "volumeMounts": [
            mount(parts.TLS, "/opt/intel/pccs/ssl_key", readOnly=True), mount("host-database", f"{parts.DATABASE}/"),
        ],
    }  # fmt: skip
    relabel = {
        "name": "init-seclabel", "image": given.images.tools,
        "command": ["sh", "-c", f"chcon -Rt container_file_t {parts.DATABASE}"],
        "securityContext": {"runAsUser": 0, "runAsGroup": 0, "privileged": True},
        "volumeMounts": [mount("host-database", parts.DATABASE)],
    }  # fmt: skip
    labels = {"app": parts.PCCS, parts.CACHE_LABEL: parts.PCCS}
    volumes = [
        {"name": parts.TLS, "secret": {"secretName": parts.TLS}},
        host_path("host-database", f"{parts.DATABASE}/", "DirectoryOrCreate"),
    ]
    spec = {
        "serviceAccountName": parts.PCCS_ACCOUNT, "nodeSelector": {"kubernetes.io/hostname": given.node},
        "tolerations": parts.TOLERATIONS, "initContainers": [relabel], "containers": [container], "volumes": volumes,
    }  # fmt: skip
    # One writer of the database at a time: the old pod ends before the new one starts.
    return obj("apps/v1", "Deployment", parts.PCCS, spec={
        "replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": {"app": parts.PCCS}},
        "template": {"metadata": {"labels": labels}, "spec": spec},
    })  # fmt: skip


def _qgs(given: DcapInputs) -> JsonObject:
    conf = {
        "pccs_url": f"https://{parts.SERVICE}:{parts.PORT}/sgx/certification/v4/", "use_secure_cert": given.verify,
        "pck_cache_expire_hours": 168,
    }  # fmt: skip
    trust = [mount("pccs-ca", TRUST_FILE, subPath="ca.crt", readOnly=True)] if given.verify else []
    register = {
        "name": "platform-registration", "image": given.images.qgs, "restartPolicy": "Always",
        "command": ["/usr/bin/dcap-registration-flow"], "envFrom": from_secrets(),
        "env": env(PCCS_URL=f"https://{parts.SERVICE}:{parts.PORT}", SECURE_CERT="true" if given.verify else "false"),
        "securityContext": {
            "privileged": True, "allowPrivilegeEscalation": True, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["LINUX_IMMUTABLE"]},
        },
        "volumeMounts": [mount("efivars", "/sys/firmware/efi/efivars"), *trust],
    }  # fmt: skip
    resources = {"sgx.intel.com/epc": "512Ki", "sgx.intel.com/enclave": "1", "sgx.intel.com/provision": "1"}
    quoting = {
        "name": parts.QGS, "image": given.images.qgs, "args": ["-p=4050", "-n=4"], "resources": {"limits": resources},
        "env": env(QCNL_CONF_PATH="/run/dcap/qcnl_conf", XDG_CACHE_HOME="/run/dcap/cache"),
        "securityContext": {
            "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [mount("dcap-qcnl-cache", "/run/dcap/cache"), mount("qcnl-config", "/run/dcap/", readOnly=True), *trust],
    }  # fmt: skip
    annotation = {"fieldPath": "metadata.annotations['qcnl-conf']"}
    volumes: list[JsonObject] = [
        {"name": "dcap-qcnl-cache", "emptyDir": {"sizeLimit": "50Mi"}},
        {"name": "qcnl-config", "downwardAPI": {"items": [{"path": "qcnl_conf", "fieldRef": annotation}]}},
        host_path("efivars", "/sys/firmware/efi/efivars/"),
        *([{"name": "pccs-ca", "configMap": {"name": parts.AUTHORITY}}] if given.verify else []),
    ]
    spec = {
        "serviceAccountName": parts.QGS_ACCOUNT, "nodeSelector": {names.TDX_LABEL: "true"}, "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet", "initContainers": [register], "containers": [quoting], "volumes": volumes,
    }  # fmt: skip
    notes = {"sgx.intel.com/quote-provider": parts.QGS, "qcnl-conf": json.encode(conf).decode()}
    template = {"metadata": {"labels": {"app": parts.QGS}, "annotations": notes}, "spec": spec}
    return obj(
        "apps/v1", "DaemonSet", parts.QGS, spec={"selector": {"matchLabels": {"app": parts.QGS}}, "template": template}
    )


def _backup(given: DcapInputs) -> list[JsonObject]:
    """A claim, and a job that fills it every night."""
    claim = obj("v1", "PersistentVolumeClaim", "pccs-backup", spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": given.backup_size}},
    })  # fmt: skip
    container = {
        "name": "backup", "image": given.images.tools, "command": ["sh", "-c", BACKUP], "securityContext": {"runAsUser": 0},
        "volumeMounts": [mount("database", parts.DATABASE, readOnly=True), mount("backup", "/backup")],
    }  # fmt: skip
    volumes = [
        host_path("database", parts.DATABASE, "Directory"),
        {"name": "backup", "persistentVolumeClaim": {"claimName": "pccs-backup"}},
    ]
    pod = {
        "serviceAccountName": parts.PCCS_ACCOUNT, "restartPolicy": "Never", "automountServiceAccountToken": False,
        "nodeSelector": {"kubernetes.io/hostname": given.node}, "tolerations": parts.TOLERATIONS,
        "containers": [container], "volumes": volumes,
    }  # fmt: skip
    job = {"spec": {"backoffLimit": 2, "template": {"metadata": {"labels": {"app": "pccs-backup"}}, "spec": pod}}}
    spec = {"schedule": given.schedule, "concurrencyPolicy": "Forbid", "jobTemplate": job}
    return [claim, obj("batch/v1", "CronJob", "pccs-backup", spec=spec)]


def _egress(given: DcapInputs) -> list[JsonObject]:
    """PCCS asks names and Intel (or the proxy) and nobody else; the backup talks to nobody."""
    out = [{"protocol": "TCP", "port": _proxy_port(given.https_proxy)}]
    names_of = [{"protocol": protocol, "port": port} for protocol in ("UDP", "TCP") for port in (53, 5353)]
    answers = {"ports": [{"protocol": "TCP", "port": parts.PORT}]}
    pccs = {
        "podSelector": {"matchLabels": {"app": parts.PCCS}}, "policyTypes": ["Ingress", "Egress"], "ingress": [answers],
        "egress": [{"ports": names_of}, {"ports": out}],
    }  # fmt: skip
    backup = {"podSelector": {"matchLabels": {"app": "pccs-backup"}}, "policyTypes": ["Ingress", "Egress"]}
    return [
        obj("networking.k8s.io/v1", "NetworkPolicy", "pccs-talks-to-intel", spec=pccs),
        obj("networking.k8s.io/v1", "NetworkPolicy", "backup-talks-to-nobody", spec=backup),
    ]


def _proxy_port(proxy: str) -> int:
    """The port that PCCS dials: the proxy's, or https."""
    if not proxy:
        return 443
    try:
        parsed = urlsplit(proxy)
        return parsed.port or (443 if parsed.scheme == "https" else 80)
    except ValueError:
        return 443


def weaknesses(given: DcapInputs) -> list[str]:
    """What is weaker than it could be, one sentence each."""
    weaknesses = [
        f"image {name} is not pinned by digest: whoever owns the name can change what runs"
        for name in (given.images.pccs, given.images.qgs)
        if "@sha256:" not in name
    ]
    if not given.verify:
        weaknesses.append("QGS does not check the certificate of PCCS: somebody in between can read the user token")
    return weaknesses
