"""What the programs of a bed are told: pure functions from names and addresses to files."""

from __future__ import annotations

import json
from typing import Any

CLUSTER_DNS = "10.96.0.10"
PODS = "10.244.0.0/16"
# Kernel-wide settings that a kubelet wants. They are shown to it as files of its own mount namespace: the machine keeps its own.
TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def kubelet_settings(ca: str, **changes: Any) -> str:
    """A KubeletConfiguration for a node that shares its machine with others."""
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": ca}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "clusterDNS": [CLUSTER_DNS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        # A full disk of the machine is not the node's: no pod is evicted and no image removed for it.
        "evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "nodeStatusUpdateFrequency": "2s",
        "oomScoreAdj": 0,
        "protectKernelDefaults": True,
        "resolvConf": "/run/resolv.conf",
        "shutdownGracePeriod": "0s",
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        **changes,
    }
    return json.dumps(settings)


def proxy_settings(kubeconfig: str, node: str) -> str:
    """A KubeProxyConfiguration that leaves the machine's conntrack table alone."""
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": kubeconfig},
            "clusterCIDR": PODS,
            "conntrack": {
                "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
            },
            "hostnameOverride": node,
            "metricsBindAddress": "127.0.0.1:10249",
            "mode": "nftables",
        }
    )  # fmt: skip


def containerd_settings(hosts: str) -> str:
    """Configuration of containerd 1.6 with two runtimes; `hosts` is the directory that says where images come from."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""
version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.{'", "io.containerd.snapshotter.v1.'.join(OTHER_SNAPSHOTTERS)}"]
[{cri}]
  sandbox_image = "bed.invalid/bed/pause:1"
  # Lowering a score needs a capability that machines of tests lack; runc would end without a word.
  restrict_oom_score_adj = true
  [{cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    [{cri}.containerd.runtimes.crun]
      runtime_type = "io.containerd.runc.v2"
      [{cri}.containerd.runtimes.crun.options]
        BinaryName = "crun"
  [{cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/run/cni"
  [{cri}.registry]
    config_path = "{hosts}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""


OTHER_SNAPSHOTTERS = ("aufs", "btrfs", "devmapper", "native", "zfs")


def registry_hosts(registry: str) -> str:
    """`_default/hosts.toml`: the images of every host come from one registry."""
    return f'[host."{registry}"]\n  capabilities = ["pull", "resolve"]\n'


def registry_settings(directory: str, address: str) -> str:
    """Configuration of the private registry."""
    return json.dumps(
        {
            "version": "0.1",
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": directory}},
            "http": {"addr": address},
        }
    )


def pod_network(subnet: str) -> str:
    """The CNI chain of a node: a bridge with addresses of the node's own subnet, and host ports."""
    return json.dumps(
        {
            "cniVersion": "0.4.0",
            "name": "bed",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": subnet}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        }
    )
