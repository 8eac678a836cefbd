"""Every name that the installation of the runtime agrees on: labels, objects, files, states.

They are part of the public interface (scripts, dashboards and people read them), so each is spelled once, here. Grouped as the
flow goes: where it is asked for, how nodes are chosen, what is made, what a node says of itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fastness.kinds.kata import GROUP

# Where it is asked for.
NAMESPACE: Final = "openshift-sandboxed-containers-operator"
OPERATOR: Final = "sandboxed-containers-operator"
OPERATOR_SEEN: Final = "fastness.dev/kata-operator-seen"
FEATURE_GATES: Final = "osc-feature-gates"
LAYERED_IMAGE: Final = "layered-image-deploy-cm"
MODE_IN_USE: Final = "fastness.dev/kata-deployment-mode"
CLASS_FINALIZER: Final = "kataconfig.openshift.io/runtime-class-cleanup"

# How nodes are chosen.
BASE_LABEL: Final = "feature.node.kubernetes.io/runtime.kata"
TDX_LABEL: Final = "intel.feature.node.kubernetes.io/tdx"
SNP_LABEL: Final = "amd.feature.node.kubernetes.io/snp"
SE_LABEL: Final = "ibm.feature.node.kubernetes.io/se"
TRUE: Final = "true"
POOL: Final = "kata-oc"
ROLE_LABEL: Final = f"node-role.kubernetes.io/{POOL}"

# What is made.
EXTENSION_CONFIG: Final = "50-enable-sandboxed-containers-extension"
IMAGE_CONFIG: Final = "50-enable-sandboxed-containers-image"
EXTENSION: Final = "sandboxed-containers"
COMMUNITY_EXTENSION: Final = "kata-containers"
RUNTIME_CONFIG: Final = "kata-crio-config"
INSTALLER: Final = "osc-rpm-install"
UNINSTALLER: Final = "osc-rpm-uninstall"
INSTALLER_ACCOUNT: Final = "kata-install"
INSTALLER_SCC: Final = "kata-install-scc"
PULL_SECRET: Final = "auth-json-secret"
CLUSTER_PULL_SECRET: Final = ("openshift-config", "pull-secret")
MONITOR: Final = "openshift-sandboxed-containers-monitor"
MONITOR_ACCOUNT: Final = "monitor"
MONITOR_SCC: Final = "sandboxed-containers-operator-scc"
MEMORY_OVERHEAD: Final = "io.katacontainers.config.hypervisor.memory_overhead"
LOG_LEVEL_FILE: Final = "/etc/crio/crio.conf.d/01-ctrcfg-logLevel"
RUNTIME_FILE: Final = "/etc/crio/crio.conf.d/50-kata"
DASHBOARD: Final = "grafana-dashboard-sandboxed-containers"
DASHBOARD_LABEL: Final = "console.openshift.io/dashboard"
DASHBOARD_NAMESPACE: Final = "openshift-config-managed"

# What pods beside their node need.
REMOTE_CLASS: Final = "kata-remote"
REMOTE_CONFIG: Final = "40-worker-kata-remote-config"
REMOTE_RUNTIME_CONFIG: Final = "50-kata-remote"
REMOTE_FILE: Final = "/opt/kata/configuration-remote.toml"
REMOTE_RUNTIME_FILE: Final = "/etc/crio/crio.conf.d/50-kata-remote"
PEER_PODS_MAP: Final = "peer-pods-cm"
PEER_PODS_SECRET: Final = "peer-pods-secret"
PEER_PODS_IMAGE_MAP: Final = "podvm-image-cm"
ADAPTOR: Final = "osc-caa-ds"
PEER_PODS_VARIABLE: Final = "PEER_PODS"

# What a node says of itself where a DaemonSet installs.
STATE_LABEL: Final = f"{GROUP}/kata-ds-rpm-install"
FAILURE: Final = f"{GROUP}/kata-ds-failure"


class Tee(StrEnum):
    """Kinds of trusted execution environment that hosts of pod VMs have."""

    TDX = "tdx"
    SNP = "snp"
    SE = "se"

    @property
    def label(self) -> str:
        """The label by which a node says that it has it."""
        return {"tdx": TDX_LABEL, "snp": SNP_LABEL, "se": SE_LABEL}[self.value]


class InstallState(StrEnum):
    """The state label of a node. The failed ones are ours: what a node could not do must be visible."""

    WAITING_TO_INSTALL = "waiting_to_install"
    INSTALLING = "installing"
    INSTALLED = "installed"
    WAITING_TO_UNINSTALL = "waiting_to_uninstall"
    UNINSTALLING = "uninstalling"
    UNINSTALLED = "uninstalled"
    WAITING_FOR_REBOOT = "waiting_for_reboot"
    FAILED = "failed"
    FAILED_TO_UNINSTALL = "failed_to_uninstall"
