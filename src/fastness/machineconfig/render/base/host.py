"""What every machine gets whatever runs on it: kernel settings, names and addresses, trust, the proxy, and targets to wait for.

Names of files and units are those of the machine-config operator, so that whoever knows its nodes, or has overridden one of these
files, finds them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from fastness.formats import json
from fastness.machineconfig.render.base.node_inputs import NodeInputs
from fastness.machineconfig.render.base.rows import (
    KUBERNETES,
    OPENSHIFT,
    PROXY,
    WITHOUT_CLOUD,
    Row,
    When,
)
from fastness.machineconfig.render.base.runtime import PROXY_ENVIRONMENT, PULL_SECRET

NO_CREDENTIALS: Final = '{"auths":{}}'
USER_CA: Final = "/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"
TRUST_BUNDLE: Final = "/etc/fastness/user-ca-bundle.crt"
TRUSTING: Final = When("with certificates of the user", lambda inputs: bool(inputs.trust_bundle))
_FAMILIES: Final = {"IPv4": "4", "IPv6": "6", "DualStack": "4 6", "DualStackIPv6Primary": "6 4"}


@cache
def script(name: str) -> str:
    """The text of one of our scripts."""
    return (files(__package__) / "scripts" / name).read_text()


def pull_secret(inputs: NodeInputs) -> str:
    """The credentials for registries in one line, as every tool that pulls images reads them."""
    text = inputs.sources.pull_secret or NO_CREDENTIALS
    return json.encode(json.decode(text.encode())).decode() + "\n"


def proxy_environment(inputs: NodeInputs) -> str:
    """The proxy as services read it; empty without one, and then nobody is pointed to it."""
    values = {
        "HTTP_PROXY": inputs.proxy.http, "HTTPS_PROXY": inputs.proxy.https, "NO_PROXY": inputs.proxy.none_for,
    }  # fmt: skip
    return "".join(f"{name}={value}\n" for name, value in values.items() if value)


def api_server_environment(inputs: NodeInputs) -> str:
    """Where pods of the host network find the API server."""
    parts = urlsplit(inputs.api_server)
    return f"KUBERNETES_SERVICE_HOST='{parts.hostname}'\nKUBERNETES_SERVICE_PORT='{parts.port or 443}'\n"


def node_ip_unit(inputs: NodeInputs) -> str:
    """nodeip-configuration.service."""
    return _early(
        "Find the address of this node",
        f"/usr/local/bin/nodeip-configuration {_FAMILIES[inputs.ip_families]}",
        "Wants=network-online.target\nAfter=network-online.target",
        "EnvironmentFile=-/etc/default/nodeip-configuration\n",
    )


def _early(description: str, start: str, unit: str = "", service: str = "") -> str:
    """A unit that does its work once, before the kubelet and what it depends on."""
    return f"""\
[Unit]
Description={description}
Before=kubelet-dependencies.target
{unit}

[Service]
Type=oneshot
RemainAfterExit=yes
{service}ExecStart={start}

[Install]
RequiredBy=kubelet-dependencies.target
"""


DEPENDENCIES: Final = """\
[Unit]
Description=What must be there before the kubelet starts
Requires=basic.target network-online.target
Wants=NetworkManager-wait-online.service crio-wipe.service rpc-statd.service chrony-wait.service
After=basic.target network-online.target
After=NetworkManager-wait-online.service crio-wipe.service rpc-statd.service chrony-wait.service
"""
FIRST_BOOT: Final = """\
[Unit]
Description=The operating system is the one that the configuration asks for
Requires=basic.target
After=basic.target

[Install]
WantedBy=default.target
"""
_CA_TRUST: Final = f"""\
[Unit]
Description=Believe the certificates of the cluster's users
Before=kubelet-dependencies.target crio.service containerd.service
ConditionPathExists={TRUST_BUNDLE}

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/fastness-ca-trust {TRUST_BUNDLE}
# Programs read whom they believe when they start. At boot neither of the two runs yet.
ExecStartPost=-/usr/bin/systemctl --no-block try-restart crio.service containerd.service

[Install]
RequiredBy=kubelet-dependencies.target
"""
_NEVER: Final = "[Unit]\nConditionPathExists=/enoent\n"

ROWS: Final = (
    Row(PULL_SECRET, "kubelet, runtime and tools that update the system take credentials for registries from this one file",
        pull_secret, mode=0o600),
    Row("/etc/mco/proxy.env", "drop-ins of services name this file, so it is there with and without a proxy", proxy_environment),
    Row(USER_CA, "certificates of the user that all programs of the machine believe; empty without any", lambda i: i.trust_bundle,
        OPENSHIFT, mode=0o600),
    Row(TRUST_BUNDLE, "the same where the distribution is not known beforehand: fastness-ca-trust puts them where it looks",
        lambda i: i.trust_bundle, KUBERNETES & TRUSTING, mode=0o600),
    Row("/usr/local/bin/fastness-ca-trust", "Fedora's and Debian's kin have different programs for the same thing",
        lambda _: script("ca-trust.sh"), KUBERNETES & TRUSTING, mode=0o755),
    Row("fastness-ca-trust.service", "runs it before anything pulls an image, and again when the certificates change", _CA_TRUST,
        KUBERNETES & TRUSTING, enabled=True),
    Row("/etc/kubernetes/apiserver-url.env", "pods of the host network reach the API server before there is a service network",
        api_server_environment, OPENSHIFT),
    Row("/etc/sysctl.d/inotify.conf", "a node has hundreds of pods, each of which watches files",
        "fs.inotify.max_user_watches = 65536\nfs.inotify.max_user_instances = 8192\n"),
    Row("/etc/sysctl.d/vm-max-map.conf", "search engines and databases in pods map more areas than the kernel allows by default",
        "vm.max_map_count = 262144\n"),
    Row("/etc/sysctl.d/gc-thresh.conf", "a large cluster has more neighbours than the kernel's tables hold by default",
        "".join(f"net.{family}.neigh.default.gc_thresh{number} = {value}\n" for family in ("ipv4", "ipv6")
                for number, value in ((1, 8192), (2, 32768), (3, 65536)))),
    Row("/etc/sysctl.d/arp.conf", "a machine with several networks answers for an address on the one that it belongs to",
        "net.ipv4.conf.all.arp_announce = 2\n"),
    Row("/etc/sysctl.d/enable-userfaultfd.conf", "virtual machines in pods migrate by post-copy",
        "vm.unprivileged_userfaultfd = 1\n"),
    Row("/etc/sysctl.d/90-kubelet.conf", "protectKernelDefaults ends a kubelet that finds other values (OpenShift's images have"
        " them already); forwarding and bridged traffic are what most networks of pods need",
        "".join(f"{line}\n" for line in (
            "vm.overcommit_memory = 1", "vm.panic_on_oom = 0", "kernel.panic = 10", "kernel.panic_on_oops = 1",
            "kernel.keys.root_maxkeys = 1000000", "kernel.keys.root_maxbytes = 25000000", "net.ipv4.ip_forward = 1",
            "net.bridge.bridge-nf-call-iptables = 1", "net.bridge.bridge-nf-call-ip6tables = 1")), KUBERNETES),
    Row("/etc/modules-load.d/iptables.conf", "pods use legacy iptables in their own networks and cannot load modules",
        "ip_tables\n", OPENSHIFT),
    Row("/etc/modules-load.d/k8s.conf", "layers of images, and bridged traffic that rules of services must see",
        "overlay\nbr_netfilter\n", KUBERNETES),
    Row("/etc/systemd/system.conf.d/kubelet-cgroups.conf", "the kubelet counts what services of the system use",
        "[Manager]\nDefaultCPUAccounting=yes\nDefaultMemoryAccounting=yes\nDefaultBlockIOAccounting=yes\n"),
    Row("/etc/systemd/system.conf.d/10-default-timeout-stop.conf", "pods get the time to end that they ask for when the machine"
        " goes down", "[Manager]\nDefaultTimeoutStopSec=200\n"),
    Row("/etc/systemd/system.conf.d/10-default-env-godebug.conf", "certificates without alternative names are refused by every"
        " program in Go", "[Manager]\nDefaultEnvironment=GODEBUG=x509ignoreCN=0\n"),
    Row("/usr/local/bin/mco-hostname", "a machine may be given its name late, by DHCP or by its platform",
        lambda _: script("valid-hostname.sh"), mode=0o755),
    Row("node-valid-hostname.service", "the kubelet registers under the machine's name, so it waits for that",
        _early("Wait until this machine has a name", "/usr/local/bin/mco-hostname 300",
               "Wants=network-online.target\nAfter=network-online.target", "TimeoutStartSec=310\n"), enabled=True),
    Row("/usr/local/bin/nodeip-configuration", "without a cloud nobody says which of several addresses is the node's",
        lambda _: script("node-ip.sh"), WITHOUT_CLOUD, mode=0o755),
    Row("nodeip-configuration.service", "finds that address before the kubelet starts with it", node_ip_unit, WITHOUT_CLOUD,
        enabled=True),
    Row("kubelet-dependencies.target", "one name for all that must be there before runtime and kubelet start", DEPENDENCIES),
    Row("firstboot-osupdate.target", "a machine that must first become another image is not a node before", FIRST_BOOT,
        enabled=True),
    Row("rpm-ostreed.service/10-mco-default-env.conf", "images of the operating system are pulled through the proxy",
        PROXY_ENVIRONMENT, PROXY),
    Row("chrony-wait.service/20-mco-ordering.conf", "a first boot must not wait for time servers that the machine may not reach"
        " before it has joined; later boots do", "[Unit]\nConditionPathExists=/var/lib/kubelet/pki/kubelet-client-current.pem\n"),
    Row("zincati.service/mco-disabled.conf", "the cluster decides when a machine gets another image", _NEVER),
    Row("docker.socket/mco-disabled.conf", "a second runtime on the machine would escape the cluster's limits", _NEVER),
)  # fmt: skip
