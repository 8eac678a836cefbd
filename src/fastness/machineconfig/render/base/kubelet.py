"""The kubelet: its configuration, its unit, and what runs before it.

`kubelet_settings` is the KubeletConfiguration of a pool before any KubeletConfig; whatever carries a whole kubelet.conf starts
from it. The kubelet of plain Kubernetes differs from OpenShift's in three ways that would end it at its start or are on their way
out:

* It exits for labels of roles in a flag: controllers of ours label its node after it registered.
* It exits for feature gates that it does not know (`settings/gates`).
* Flags that are deprecated are settings of the file here.

In a pool that enforces attestation the agent makes the node's keys (ADR 43): the kubelet rotates nothing by itself, asks for its
first certificate with the token and the key that `agent join` left, and registers with a taint that only a proof takes away.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from fastness.formats import json, yaml_text
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.base.node_inputs import ON_PREMISES, NodeInputs

CONFIG_FILE: Final = "/etc/kubernetes/kubelet.conf"
SIZING_FILE: Final = "/etc/node-sizing-enabled.env"
LOG_FILE: Final = "/etc/systemd/system/kubelet.service.d/20-logging.conf"
DROPINS: Final = "/etc/openshift/kubelet.conf.d"
BOOTSTRAP: Final = "/etc/kubernetes/kubeconfig"
KUBECONFIG: Final = "/var/lib/kubelet/kubeconfig"
VOLUME_PLUGINS: Final = "/etc/kubernetes/kubelet-plugins/volume/exec"
PKI: Final = "/var/lib/kubelet/pki"
CREDENTIAL_PROVIDERS: Final = "/etc/kubernetes/credential-providers"
NOT_ATTESTED: Final = {"key": "fastness.dev/not-attested", "effect": "NoSchedule"}
"""The taint that `attestation.machine.proof_age` takes away; a test compares the two."""

TOKEN_FILE: Final = "/run/fastness/bootstrap-token"
NODE_ENVIRONMENT: Final = "/var/lib/fastness/node.env"
_SYSTEM: Final = "/system.slice"
_SOCKETS: Final = {"crio": "unix:///var/run/crio/crio.sock", "containerd": "unix:///run/containerd/containerd.sock"}


def kubelet_settings(inputs: NodeInputs) -> JsonObject:
    """What the cluster sets for every kubelet of a pool."""
    settings: JsonObject = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": names.KUBELET_CA}},
        "cgroupDriver": "systemd",
        "cgroupRoot": "/",
        "clusterDomain": inputs.cluster_domain,
        "containerLogMaxSize": "50Mi",
        "enableSystemLogQuery": True,
        "kubeAPIBurst": 100,
        "kubeAPIQPS": 50,
        "maxPods": 250,
        "nodeStatusReportFrequency": "5m",
        "nodeStatusUpdateFrequency": "10s",
        "podPidsLimit": 4096,
        "protectKernelDefaults": True,
        "rotateCertificates": not inputs.attested,
        "serializeImagePulls": False,
        "serverTLSBootstrap": not inputs.attested,
        "staticPodPath": "/etc/kubernetes/manifests",
        "systemCgroups": _SYSTEM,
        **_swap(inputs),
    }
    if inputs.cluster_dns:
        settings["clusterDNS"] = [inputs.cluster_dns]
    if not inputs.control_plane:
        settings["systemReservedCgroup"] = _SYSTEM
        settings["enforceNodeAllocatable"] = ["pods", "system-reserved-compressible"]
    if not inputs.openshift:
        settings["containerRuntimeEndpoint"] = _SOCKETS[inputs.runtime]
        settings["volumePluginDir"] = VOLUME_PLUGINS
    if taints := _taints(inputs):
        settings["registerWithTaints"] = taints
    return settings


def settings_text(settings: Mapping[str, Any]) -> str:
    """A KubeletConfiguration as its file has it: YAML, one setting in a line, so that a difference names the setting."""
    return _text(json.canonical(dict(settings)))


# Every look at a pool compares its configs with what their owners would make now, and writing YAML is most of that.
@lru_cache(maxsize=512)
def _text(canonical: bytes) -> str:
    return yaml_text.encode(json.decode(canonical))


def _swap(inputs: NodeInputs) -> JsonObject:
    # Memory of a confidential machine is encrypted, a swap device is its host's; and etcd must not wait for a disk.
    if inputs.confidential or inputs.control_plane:
        return {"failSwapOn": True}
    return {"failSwapOn": False, "memorySwap": {"swapBehavior": "NoSwap"}}


def _taints(inputs: NodeInputs) -> list[JsonObject]:
    taints: list[JsonObject] = []
    if inputs.control_plane and not inputs.openshift:
        role = names.ARBITER if inputs.role == names.ARBITER else "control-plane"
        taints.append({"key": f"{names.NODE_ROLE_PREFIX}{role}", "effect": "NoSchedule"})
    if inputs.attested:
        taints.append(dict(NOT_ATTESTED))
    return taints


def bootstrap_kubeconfig(inputs: NodeInputs) -> str:
    """How a kubelet of an attested pool asks for its first certificate: with a token that the agent brings after its proof.

    The token is in a file in memory, so this holds no secret, and is of no use to whoever has not attested.
    """
    return _kubeconfig(inputs.api_server, inputs.sources.api_ca, {"tokenFile": TOKEN_FILE})


def token_kubeconfig(api_server: str, authority: str, token: str) -> str:
    """The same for a kubelet of another pool, with the token in it: made for one machine, and part of no MachineConfig."""
    return _kubeconfig(api_server, authority, {"token": token})


def _kubeconfig(api_server: str, authority: str, user: JsonObject) -> str:
    cluster = {"server": api_server, "certificate-authority-data": b64encode(authority.encode()).decode()}
    kubeconfig = {
        "apiVersion": "v1", "kind": "Config", "current-context": "kubelet",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "kubelet", "user": user}],
        "contexts": [{"name": "kubelet", "context": {"cluster": "local", "user": "kubelet"}}],
    }  # fmt: skip
    return settings_text(kubeconfig)


def sizing(inputs: NodeInputs) -> str:
    """Whether the reserve of the system is counted from the size of the machine, and what it is where it is not."""
    enabled = "false" if inputs.control_plane else "true"
    reserve = {"MEMORY": "1Gi", "CPU": "500m", "ES": "1Gi"}
    return f"NODE_SIZING_ENABLED={enabled}\n" + "".join(f"SYSTEM_RESERVED_{key}={reserve[key]}\n" for key in reserve)


def kubelet_unit(inputs: NodeInputs) -> str:
    """kubelet.service."""
    runtime = f"{inputs.runtime}.service"
    after = ["kubelet-dependencies.target", runtime, "ostree-finalize-staged.service"]
    if inputs.confidential:
        after.append("fastness-attest.service")
    if inputs.attested:
        after.append("fastness-join.service")
    # Not required: a proof that comes late must find a kubelet that still tries, every ten seconds, until it has its name.
    wants = "Wants=fastness-join.service\n" if inputs.attested else ""
    any_address = "::" if inputs.ip_families in ("IPv6", "DualStackIPv6Primary") else "0.0.0.0"  # noqa: S104
    flags = " \\\n      ".join(_flags(inputs))
    name = f"EnvironmentFile={NODE_ENVIRONMENT}\n" if inputs.attested else ""
    return f"""\
[Unit]
Description=Kubernetes Kubelet
Requires={runtime} kubelet-dependencies.target
{wants}After={" ".join(after)}

[Service]
Type=notify
ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests {DROPINS}
# What the image says about its kubelet is measured, and wins over what was rendered.
ExecStartPre=-/bin/sh -c 'for file in /usr/lib/fastness/kubelet.conf.d/*.conf; do \
[ ! -e "$$file" ] || ln -sfn "$$file" {DROPINS}/; done'
Environment="KUBELET_NODE_IP={any_address}" "KUBELET_NODE_IPS={any_address}"
EnvironmentFile=/etc/os-release
EnvironmentFile=-/etc/kubernetes/kubelet-workaround
EnvironmentFile=-/etc/kubernetes/kubelet-env
{name}ExecStart=/usr/bin/kubelet \\
      {flags}
Restart=always
RestartSec=10

[Install]
WantedBy=multi-user.target
"""


def _flags(inputs: NodeInputs) -> list[str]:
    addresses = "KUBELET_NODE_IPS" if inputs.ip_families.startswith("DualStack") else "KUBELET_NODE_IP"
    flags = [
        f"--config={CONFIG_FILE}", f"--config-dir={DROPINS}", f"--bootstrap-kubeconfig={BOOTSTRAP}",
        f"--kubeconfig={KUBECONFIG}", f"--runtime-cgroups={_SYSTEM}/{inputs.runtime}.service",
        f"--node-ip=${{{addresses}}}", "--hostname-override=${KUBELET_NODE_NAME}", "--provider-id=${KUBELET_PROVIDERID}",
        f"--cloud-provider={inputs.cloud_provider}", "--v=${KUBELET_LOG_LEVEL}",
    ]  # fmt: skip
    if inputs.attested:
        # Where the agent writes. `tlsCertFile` would say it for the serving pair, and end the first start: there is none yet, and
        # a kubelet signs one for itself only while that is unset.
        flags.append(f"--cert-dir={PKI}")
    return [*flags, *_openshift_flags(inputs)] if inputs.openshift else flags


def _openshift_flags(inputs: NodeInputs) -> list[str]:
    # An arbiter has a vote and no API server: with the labels of a master the pool of masters would take it.
    roles = {names.MASTER: ("control-plane", names.MASTER)}.get(inputs.role, (inputs.role,))
    own = ("node.openshift.io/os_id=${ID}", "${CUSTOM_KUBELET_LABELS}")
    labels = ",".join((*(f"{names.NODE_ROLE_PREFIX}{role}" for role in roles), *own))
    flags = [
        "--container-runtime-endpoint=/var/run/crio/crio.sock", f"--node-labels={labels}",
        "--minimum-container-ttl-duration=6m0s", f"--volume-plugin-dir={VOLUME_PLUGINS}",
    ]  # fmt: skip
    if inputs.platform in ON_PREMISES:
        flags.append("--address=${KUBELET_NODE_IP}")
    if inputs.control_plane:
        flags.append(f"--register-with-taints={names.NODE_ROLE_PREFIX}{inputs.role}=:NoSchedule")
    if inputs.platform in CREDENTIALS:
        file = CREDENTIALS[inputs.platform][0]
        flags += [
            "--image-credential-provider-bin-dir=/usr/libexec/kubelet-image-credential-provider-plugins",
            f"--image-credential-provider-config={CREDENTIAL_PROVIDERS}/{file}.yaml",
        ]
    return flags


# Platform: the program that gets credentials of the platform's own registry, its arguments, and whose images they are for.
CREDENTIALS: Final[Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "AWS": ("ecr-credential-provider", (), ("*.dkr.ecr.*.amazonaws.com", "*.dkr.ecr.*.amazonaws.com.cn",
                                            "*.dkr.ecr-fips.*.amazonaws.com", "public.ecr.aws")),
    "GCP": ("gcr-credential-provider", ("get-credentials", "--v=3"), ("gcr.io", "*.gcr.io", "container.cloud.google.com",
                                                                     "*.pkg.dev")),
    "Azure": ("acr-credential-provider", ("/etc/kubernetes/cloud.conf",), ("*.azurecr.io", "*.azurecr.cn",
                                                                           "*.azurecr.de", "*.azurecr.us")),
}  # fmt: skip


def credential_provider(inputs: NodeInputs) -> str:
    """The configuration of the program that gets credentials of the platform's registry."""
    program, arguments, images = CREDENTIALS[inputs.platform]
    provider = {
        "name": program, "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "args": list(arguments),
        "matchImages": list(images), "defaultCacheDuration": "12h",
    }  # fmt: skip
    return settings_text(
        {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [provider]}
    )
