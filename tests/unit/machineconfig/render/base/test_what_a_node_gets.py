"""Every file, unit and flag of a worker as users of the machine-config operator know them, byte by byte.

What follows from inputs alone (scripts, the pull secret, the kubelet's TLS) has tests of its own; here stand the words that a
person who comes from there looks for.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from typing import Any

import pytest
import yaml

from fastness.formats import data_url
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.table import Part, documents
from tests.unit.machineconfig.nodes import OPENSHIFT, PLAIN, PROXY, units_of

HERE = replace(OPENSHIFT, platform="None")
FILES = {
    "/etc/kubernetes/kubelet-plugins/volume/exec/.dummy": (0o755, ""),
    "/etc/kubernetes/cloud.conf": (0o644, ""),
    "/etc/kubernetes/apiserver-url.env": (
        0o644, "KUBERNETES_SERVICE_HOST='api.example'\nKUBERNETES_SERVICE_PORT='6443'\n",
    ),
    "/var/lib/kubelet/config.json": (0o600, '{"auths":{"registry.example":{"auth":"dXNlcjpwYXNz"}}}\n'),
    "/etc/mco/proxy.env": (0o644, ""),
    "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt": (0o600, ""),
    "/etc/containers/registries.conf": (
        0o644, 'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\n',
    ),
    "/etc/sysctl.d/inotify.conf": (0o644, "fs.inotify.max_user_watches = 65536\nfs.inotify.max_user_instances = 8192\n"),
    "/etc/sysctl.d/vm-max-map.conf": (0o644, "vm.max_map_count = 262144\n"),
    "/etc/sysctl.d/gc-thresh.conf": (
        0o644,
        "net.ipv4.neigh.default.gc_thresh1 = 8192\nnet.ipv4.neigh.default.gc_thresh2 = 32768\n"
        "net.ipv4.neigh.default.gc_thresh3 = 65536\nnet.ipv6.neigh.default.gc_thresh1 = 8192\n"
        "net.ipv6.neigh.default.gc_thresh2 = 32768\nnet.ipv6.neigh.default.gc_thresh3 = 65536\n",
    ),
    "/etc/sysctl.d/arp.conf": (0o644, "net.ipv4.conf.all.arp_announce = 2\n"),
    "/etc/sysctl.d/enable-userfaultfd.conf": (0o644, "vm.unprivileged_userfaultfd = 1\n"),
    "/etc/modules-load.d/iptables.conf": (0o644, "ip_tables\n"),
    "/etc/systemd/system.conf.d/kubelet-cgroups.conf": (
        0o644, "[Manager]\nDefaultCPUAccounting=yes\nDefaultMemoryAccounting=yes\nDefaultBlockIOAccounting=yes\n",
    ),
    "/etc/systemd/system.conf.d/10-default-timeout-stop.conf": (0o644, "[Manager]\nDefaultTimeoutStopSec=200\n"),
    "/etc/systemd/system.conf.d/10-default-env-godebug.conf": (
        0o644, "[Manager]\nDefaultEnvironment=GODEBUG=x509ignoreCN=0\n",
    ),
    "/etc/systemd/system/kubelet.service.d/20-logging.conf": (0o644, '[Service]\nEnvironment="KUBELET_LOG_LEVEL=2"\n'),
    "/etc/node-sizing-enabled.env": (
        0o644,
        "NODE_SIZING_ENABLED=true\nSYSTEM_RESERVED_MEMORY=1Gi\nSYSTEM_RESERVED_CPU=500m\nSYSTEM_RESERVED_ES=1Gi\n",
    ),
}  # fmt: skip
PARSED = {
    "/etc/kubernetes/kubelet.conf", "/etc/containers/policy.json", "/etc/containers/storage.conf",
    "/etc/crio/crio.conf.d/00-default",
}  # fmt: skip
PROGRAMS = {
    "/usr/local/sbin/dynamic-system-reserved-calc.sh", "/usr/local/bin/mco-hostname",
    "/usr/local/bin/nodeip-configuration",
}  # fmt: skip
ANY_TEXT = {"/etc/docker/certs.d/.create": 0o600}
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
    "authentication": {"x509": {"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"}, "anonymous": {"enabled": False}},
    "cgroupDriver": "systemd", "cgroupRoot": "/", "clusterDNS": ["10.96.0.10"], "clusterDomain": "cluster.local",
    "containerLogMaxSize": "50Mi", "enableSystemLogQuery": True, "failSwapOn": False,
    "memorySwap": {"swapBehavior": "NoSwap"}, "maxPods": 250, "kubeAPIQPS": 50, "kubeAPIBurst": 100, "podPidsLimit": 4096,
    "protectKernelDefaults": True, "rotateCertificates": True, "serverTLSBootstrap": True, "serializeImagePulls": False,
    "staticPodPath": "/etc/kubernetes/manifests", "systemCgroups": "/system.slice", "systemReservedCgroup": "/system.slice",
    "enforceNodeAllocatable": ["pods", "system-reserved-compressible"], "nodeStatusUpdateFrequency": "10s",
    "nodeStatusReportFrequency": "5m",
}  # fmt: skip
CRIO = {
    "crio": {
        "internal_wipe": True, "internal_repair": True,
        "api": {"stream_address": "127.0.0.1", "stream_port": "0"},
        "runtime": {
            "selinux": True, "conmon_cgroup": "pod", "log_level": "info", "cgroup_manager": "systemd",
            "default_sysctls": ["net.ipv4.ping_group_range=0 2147483647"], "default_runtime": "crun",
            "manage_ns_lifecycle": True, "drop_infra_ctr": True,
            "runtimes": {"runc": {"runtime_root": "/run/runc"}, "crun": {"runtime_root": "/run/crun"}},
        },
        "image": {
            "global_auth_file": "/var/lib/kubelet/config.json", "pause_image_auth_file": "/var/lib/kubelet/config.json",
            "pause_image": OPENSHIFT.pause_image, "pause_command": "/usr/bin/pod", "short_name_mode": "disabled",
        },
        "network": {"network_dir": "/etc/kubernetes/cni/net.d", "plugin_dirs": ["/var/lib/cni/bin", "/usr/libexec/cni"]},
        "metrics": {"enable_metrics": True, "metrics_host": "127.0.0.1", "metrics_port": 9537},
    }
}  # fmt: skip
FLAGS = [
    "--config=/etc/kubernetes/kubelet.conf", "--config-dir=/etc/openshift/kubelet.conf.d",
    "--bootstrap-kubeconfig=/etc/kubernetes/kubeconfig", "--kubeconfig=/var/lib/kubelet/kubeconfig",
    "--runtime-cgroups=/system.slice/crio.service", "--node-ip=${KUBELET_NODE_IP}",
    "--hostname-override=${KUBELET_NODE_NAME}", "--provider-id=${KUBELET_PROVIDERID}", "--cloud-provider=",
    "--v=${KUBELET_LOG_LEVEL}",
]  # fmt: skip
OPENSHIFT_FLAGS = [
    "--container-runtime-endpoint=/var/run/crio/crio.sock",
    "--node-labels=node-role.kubernetes.io/worker,node.openshift.io/os_id=${ID},${CUSTOM_KUBELET_LABELS}",
    "--minimum-container-ttl-duration=6m0s", "--volume-plugin-dir=/etc/kubernetes/kubelet-plugins/volume/exec",
]  # fmt: skip


def files(inputs: NodeInputs) -> dict[str, tuple[int, str]]:
    """Mode and text of every file, over all three configs of a role."""
    entries = [
        entry for document in documents(inputs).values() for entry in (document.get("storage") or {}).get("files") or ()
    ]
    return {entry["path"]: (entry["mode"], data_url.contents(entry["contents"]).decode()) for entry in entries}


def units(inputs: NodeInputs) -> dict[str, dict[str, Any]]:
    return {name: unit for document in documents(inputs).values() for name, unit in units_of(document).items()}


def flags(inputs: NodeInputs) -> list[str]:
    """The flags of the kubelet, in order."""
    command = units(inputs)["kubelet.service"]["contents"].split("ExecStart=/usr/bin/kubelet")[1].split("Restart=")[0]
    return re.findall(r"--\S+", command)


def test_every_file_of_a_worker_has_its_name_its_mode_and_its_content() -> None:
    made = files(HERE)
    assert {path: made.get(path) for path in FILES} == FILES
    assert {path: made[path][0] for path in ANY_TEXT} == ANY_TEXT
    assert {path: made[path][0] for path in PROGRAMS} == dict.fromkeys(PROGRAMS, 0o755)
    assert {path: made[path][0] for path in PARSED} == dict.fromkeys(PARSED, 0o644)
    left = {path for path in made if path not in FILES and path not in PARSED | PROGRAMS | ANY_TEXT.keys()}
    assert all("fastness" in path for path in left), "whatever else there is belongs to us, and says so"


def test_files_of_the_runtime_say_what_crio_and_its_libraries_need() -> None:
    made = files(HERE)
    assert tomllib.loads(made["/etc/crio/crio.conf.d/00-default"][1]) == CRIO
    assert tomllib.loads(made["/etc/containers/storage.conf"][1]) == {
        "storage": {
            "driver": "overlay", "runroot": "/run/containers/storage", "graphroot": "/var/lib/containers/storage",
            "options": {"additionalimagestores": [], "overlay": {"skip_mount_home": "true", "size": ""}},
        }
    }  # fmt: skip
    accept = [{"type": "insecureAcceptAnything"}]
    policy = yaml.safe_load(made["/etc/containers/policy.json"][1])
    assert policy == {"default": accept, "transports": {"docker-daemon": {"": accept}}}


def test_the_kubelet_of_a_worker_has_these_settings_and_no_others() -> None:
    assert yaml.safe_load(files(HERE)["/etc/kubernetes/kubelet.conf"][1]) == KUBELET
    plain = {
        **KUBELET, "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "volumePluginDir": "/etc/kubernetes/kubelet-plugins/volume/exec",
    }  # fmt: skip
    assert yaml.safe_load(files(PLAIN)["/etc/kubernetes/kubelet.conf"][1]) == plain


def test_the_kubelet_of_a_worker_has_these_flags_and_no_others() -> None:
    assert flags(HERE) == [*FLAGS, *OPENSHIFT_FLAGS]
    assert flags(PLAIN) == [flag.replace("crio.service", "containerd.service") for flag in FLAGS]
    cloud = [flag.replace("--cloud-provider=", "--cloud-provider=external") for flag in FLAGS]
    credentials = [
        "--image-credential-provider-bin-dir=/usr/libexec/kubelet-image-credential-provider-plugins",
        "--image-credential-provider-config=/etc/kubernetes/credential-providers/ecr-credential-provider.yaml",
    ]
    assert flags(OPENSHIFT) == [*cloud, *OPENSHIFT_FLAGS, *credentials]
    assert flags(replace(HERE, platform="BareMetal"))[-1] == "--address=${KUBELET_NODE_IP}"


@pytest.mark.parametrize(
    ("role", "labels", "taint"),
    [
        ("worker", ["worker"], ""), ("arbiter", ["arbiter"], "arbiter"),
        ("master", ["control-plane", "master"], "master"),
    ],
)  # fmt: skip
def test_labels_and_taints_are_of_the_role_alone(role: str, labels: list[str], taint: str) -> None:
    """An arbiter that called itself a master would be taken by the pool of masters."""
    prefix = "node-role.kubernetes.io/"
    by_name = dict(flag.split("=", 1) for flag in flags(replace(HERE, role=role)))
    assert by_name["--node-labels"].split(",")[: len(labels)] == [prefix + label for label in labels]
    assert by_name["--node-labels"].count(prefix) == len(labels)
    assert by_name.get("--register-with-taints", "") == (f"{prefix}{taint}=:NoSchedule" if taint else "")
    settings = yaml.safe_load(files(replace(PLAIN, role=role))["/etc/kubernetes/kubelet.conf"][1])
    plain = {"worker": [], "arbiter": ["arbiter"], "master": ["control-plane"]}[role]
    assert settings.get("registerWithTaints", []) == [{"key": prefix + name, "effect": "NoSchedule"} for name in plain]


def test_units_have_the_names_that_other_configs_refer_to() -> None:
    made = units(HERE)
    enabled = {name for name, unit in made.items() if unit.get("enabled")}
    assert enabled >= {
        "kubelet.service", "kubelet-cleanup.service", "kubelet-auto-node-size.service", "node-valid-hostname.service",
        "nodeip-configuration.service", "firstboot-osupdate.target",
    }  # fmt: skip
    target = made["kubelet-dependencies.target"]["contents"]
    assert "Requires=basic.target network-online.target\n" in target
    assert (
        "Wants=NetworkManager-wait-online.service crio-wipe.service rpc-statd.service chrony-wait.service\n" in target
    )
    kubelet = made["kubelet.service"]["contents"]
    for line in (
        "Requires=crio.service kubelet-dependencies.target", "Type=notify", "Restart=always", "RestartSec=10",
        "ExecStartPre=/bin/mkdir --parents /etc/kubernetes/manifests /etc/openshift/kubelet.conf.d",
        "EnvironmentFile=/etc/os-release", "EnvironmentFile=-/etc/kubernetes/kubelet-workaround",
        "EnvironmentFile=-/etc/kubernetes/kubelet-env", "WantedBy=multi-user.target",
    ):  # fmt: skip
        assert f"\n{line}\n" in kubelet
    cleaned = "cpu_manager_state", "memory_manager_state", "dra_manager_state"
    assert all(f"/var/lib/kubelet/{name}" in made["kubelet-cleanup.service"]["contents"] for name in cleaned)


def test_drop_ins_of_services_that_the_image_brings() -> None:
    never = "[Unit]\nConditionPathExists=/enoent\n"
    joined = "[Unit]\nConditionPathExists=/var/lib/kubelet/pki/kubelet-client-current.pem\n"
    ordering = "[Unit]\nAfter=kubelet-dependencies.target\nRequires=kubelet-dependencies.target\n"
    proxy = "[Service]\nEnvironmentFile=/etc/mco/proxy.env\n"

    def dropins(inputs: NodeInputs) -> dict[str, str]:
        return {
            f"{name}/{dropin['name']}": dropin["contents"]
            for name, unit in units(inputs).items()
            for dropin in unit.get("dropins") or ()
            if "fastness" not in name
        }

    without = {
        "chrony-wait.service/20-mco-ordering.conf": joined, "zincati.service/mco-disabled.conf": never,
        "docker.socket/mco-disabled.conf": never, "crio.service/05-mco-ordering.conf": ordering,
    }  # fmt: skip
    assert dropins(HERE) == without
    through = {
        f"{name}.service/10-mco-default-env.conf": proxy for name in ("crio", "kubelet", "rpm-ostreed")
    }  # fmt: skip
    assert dropins(replace(HERE, proxy=PROXY)) == {**without, **through}
    assert files(replace(HERE, proxy=PROXY))["/etc/mco/proxy.env"][1] == (
        "HTTP_PROXY=http://proxy.example:3128\nHTTPS_PROXY=http://proxy.example:3128\nNO_PROXY=.cluster.local,10.0.0.0/8\n"
    )


def test_plain_kubernetes_has_what_its_images_lack() -> None:
    made = files(PLAIN)
    assert made["/etc/modules-load.d/k8s.conf"] == (0o644, "overlay\nbr_netfilter\n")
    assert made["/etc/sysctl.d/90-kubelet.conf"] == (
        0o644,
        "vm.overcommit_memory = 1\nvm.panic_on_oom = 0\nkernel.panic = 10\nkernel.panic_on_oops = 1\n"
        "kernel.keys.root_maxkeys = 1000000\nkernel.keys.root_maxbytes = 25000000\nnet.ipv4.ip_forward = 1\n"
        "net.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n",
    )
    cri = tomllib.loads(made["/etc/containerd/config.toml"][1])["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": True}
    assert cri["cni"] == {"bin_dir": "/opt/cni/bin", "conf_dir": "/etc/cni/net.d"}
    assert cri["registry"]["config_path"].split(":")[0] == "/etc/containerd/certs.d"
    only_openshift = {
        "/etc/kubernetes/cloud.conf",
        "/etc/kubernetes/apiserver-url.env",
        "/etc/modules-load.d/iptables.conf",
    }
    assert not {path for path in made if path in only_openshift or path.startswith(("/etc/crio", "/etc/containers"))}


def test_the_first_boot_lets_no_repository_hold_it_up_and_keeps_the_names_of_network_cards() -> None:
    unit = units(HERE)["fastness-firstboot.service"]["contents"]
    repositories, cards, boot = (
        unit.index(word) for word in ("/etc/yum.repos.d", "persist-nic-names", "ExecStart=/usr")
    )
    assert repositories < cards < boot
    assert "Before=kubelet-dependencies.target\n" in unit
    assert "RequiredBy=firstboot-osupdate.target\n" in unit


def test_configs_of_a_role_hold_what_belongs_to_them() -> None:
    made = documents(HERE)
    assert "/etc/kubernetes/kubelet.conf" in str(made[Part.KUBELET])
    assert "/etc/crio/crio.conf.d/00-default" in str(made[Part.RUNTIME])
    assert all("osImageURL" not in document for document in made.values())
