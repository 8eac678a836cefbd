"""The container runtime's own files: CRI-O with the libraries that it shares with podman, or containerd.

`STORAGE_CONF`, `REGISTRIES_CONF` and `POLICY_JSON` are the ground that other configs stand on: what an Image object or a
ContainerRuntimeConfig asks for is merged into these texts and written in their place, so they are constants here and nowhere
else.

kubelet and runtime must agree: both use systemd's control groups, and the runtime looks for networks where the network plug-in
of the distribution puts them.
"""

from __future__ import annotations

from typing import Final

from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.rows import CONTAINERD, CRIO, PROXY, Row

STORAGE_CONF: Final = """\
[storage]
driver = "overlay"
runroot = "/run/containers/storage"
graphroot = "/var/lib/containers/storage"

[storage.options]
additionalimagestores = []

[storage.options.overlay]
skip_mount_home = "true"
size = ""
"""

REGISTRIES_CONF: Final = 'unqualified-search-registries = ["registry.access.redhat.com", "docker.io"]\n'

POLICY_JSON: Final = """\
{
  "default": [{"type": "insecureAcceptAnything"}],
  "transports": {"docker-daemon": {"": [{"type": "insecureAcceptAnything"}]}}
}
"""

CRIO_CONF: Final = "/etc/crio/crio.conf.d/00-default"
CONTAINERD_CONF: Final = "/etc/containerd/config.toml"
CERTIFICATES: Final = "/etc/containerd/certs.d"
# Authorities of registries, one directory for each: containerd looks there for hosts without a hosts.toml.
AUTHORITIES: Final = "/etc/docker/certs.d"
PULL_SECRET: Final = "/var/lib/kubelet/config.json"
PROXY_ENVIRONMENT: Final = "[Service]\nEnvironmentFile=/etc/mco/proxy.env\n"


def networks(inputs: NodeInputs) -> tuple[str, tuple[str, ...]]:
    """Where network plug-ins put their configuration, and where their programs are."""
    if inputs.openshift:
        return "/etc/kubernetes/cni/net.d", ("/var/lib/cni/bin", "/usr/libexec/cni")
    return "/etc/cni/net.d", ("/opt/cni/bin", "/usr/lib/cni")


def crio_conf(inputs: NodeInputs) -> str:
    """What CRI-O is told before any ContainerRuntimeConfig."""
    directory, programs = networks(inputs)
    pause = f'pause_image = "{inputs.pause_image}"\n' if inputs.pause_image else ""
    # The pod image of OpenShift has its program there; that of Kubernetes starts by itself.
    pause += 'pause_command = "/usr/bin/pod"\n' if inputs.openshift else ""
    return f"""\
[crio]
internal_wipe = true
internal_repair = true

[crio.api]
stream_address = "127.0.0.1"
stream_port = "0"

[crio.runtime]
selinux = true
conmon_cgroup = "pod"
log_level = "info"
cgroup_manager = "systemd"
default_sysctls = ["net.ipv4.ping_group_range=0 2147483647"]
default_runtime = "crun"
manage_ns_lifecycle = true
drop_infra_ctr = true

[crio.runtime.runtimes.runc]
runtime_root = "/run/runc"

[crio.runtime.runtimes.crun]
runtime_root = "/run/crun"

[crio.image]
global_auth_file = "{PULL_SECRET}"
pause_image_auth_file = "{PULL_SECRET}"
{pause}short_name_mode = "disabled"

[crio.network]
network_dir = "{directory}"
plugin_dirs = [{", ".join(f'"{program}"' for program in programs)}]

[crio.metrics]
enable_metrics = true
metrics_host = "127.0.0.1"
metrics_port = 9537
"""


def containerd_conf(inputs: NodeInputs) -> str:
    """The whole configuration of containerd; the second version of its language, which 1.6 and all later ones read."""
    directory, (programs, *_) = networks(inputs)
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    pause = f'sandbox_image = "{inputs.pause_image}"\n' if inputs.pause_image else ""
    return f"""\
version = 2

[{cri}]
{pause}
[{cri}.containerd]
default_runtime_name = "runc"

[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = true

[{cri}.cni]
bin_dir = "{programs}"
conf_dir = "{directory}"

[{cri}.registry]
config_path = "{CERTIFICATES}:{AUTHORITIES}"
"""


ROWS: Final = (
    Row("/etc/containers/registries.conf", "short names of images are looked for at these registries, as users of"
        " CRI-O and podman expect; mirrors of an Image object are added to this text", REGISTRIES_CONF, CRIO),
    Row("/etc/containers/policy.json", "CRI-O and podman pull nothing without a signature policy; without an Image"
        " object or an image policy everything is accepted", POLICY_JSON, CRIO),
    Row("/etc/containers/storage.conf", "one place for layers of CRI-O and podman, on the disk that the machine writes",
        STORAGE_CONF, CRIO),
    Row(CRIO_CONF, "control groups as the kubelet has them, pull secret and pod image of the cluster, and networks"
        " where the network plug-in puts them", crio_conf, CRIO),
    Row("/etc/docker/certs.d/.create", "authorities of registries are skipped as long as this directory is missing",
        "This file makes the directory.\n", CRIO, mode=0o600),
    Row("crio.service/05-mco-ordering.conf", "CRI-O starts when the network and the first boot are done, so that it wipes and"
        " repairs its storage before the kubelet comes",
        "[Unit]\nAfter=kubelet-dependencies.target\nRequires=kubelet-dependencies.target\n", CRIO),
    Row("crio.service/10-mco-default-env.conf", "images are pulled through the proxy", PROXY_ENVIRONMENT, CRIO & PROXY),
    Row(CONTAINERD_CONF, "control groups as the kubelet has them, pod image, networks where the network plug-in puts them,"
        f" and registries as {CERTIFICATES} says, with authorities of {AUTHORITIES}", containerd_conf, CONTAINERD),
    Row("containerd.service/10-mco-default-env.conf", "images are pulled through the proxy", PROXY_ENVIRONMENT,
        CONTAINERD & PROXY),
)  # fmt: skip
