"""Every name that machine configuration agrees on: annotations, labels, conditions, states, events, files.

The names are part of the public interface of the kinds (dashboards, scripts and people read them), so each is spelled once,
here, and everyone imports it. Grouped as the flow goes: what a config carries, what a node carries, what a pool and a
MachineConfigNode report, which events tell the story, which files on a machine have a meaning of their own.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from fastness.kinds.machineconfiguration import GROUP

API_VERSION: Final = f"{GROUP}/v1"

# What a MachineConfig carries.
ROLE_LABEL: Final = f"{GROUP}/role"
CONTROLLER_VERSION: Final = f"{GROUP}/generated-by-version"
GENERATED_BY: Final = f"{GROUP}/generated-by-controller-version"
RELEASE_IMAGE_VERSION: Final = f"{GROUP}/release-image-version"
OS_IMAGE_OVERRIDDEN: Final = f"{GROUP}/os-image-url-overridden"
RESOLVED_FROM: Final = "fastness.dev/resolved-from"
NAME_SUFFIX: Final = f"{GROUP}/mc-name-suffix"
RENDERED_PREFIX: Final = "rendered-"

# What a pool carries.
MASTER: Final = "master"
WORKER: Final = "worker"
ARBITER: Final = "arbiter"
BUILT_IN_POOLS: Final = (MASTER, WORKER, ARBITER)
BUILT_IN_LABEL: Final = f"{GROUP}/mco-built-in"
REQUIRED_FOR_UPGRADE_LABEL: Final = f"operator.{GROUP}/required-for-upgrade"
POOL_LABEL_PREFIX: Final = f"pools.operator.{GROUP}/"
POINTER_VERSION: Final = "fastness.dev/pointer-version"
# On a machine set whose image does not tell: the release, a space, the image. On an ApprovedImage: the release that it is of.
BOOT_IMAGE: Final = "fastness.dev/boot-image"
WANTED_MACHINES: Final = "fastness.dev/wanted-machines"
USER_DATA_DIGEST: Final = "fastness.dev/user-data-digest"
PINNED_IMAGE_SETS: Final = "fastness.dev/pinned-image-sets"

# What a pool, or the ControllerConfig for all of them, chooses: fields of ours on kinds of another project would be pruned.
CONTAINER_RUNTIME: Final = "fastness.dev/container-runtime"
DISTRIBUTION: Final = "fastness.dev/distribution"
PAUSE_IMAGE: Final = "fastness.dev/pause-image"
CONFIG_SERVER: Final = "fastness.dev/config-server"
# What the ControllerConfig remembers: where its values were read, and which base configs were made of them.
READ_FROM: Final = "fastness.dev/read-from"
BASE_CONFIGS: Final = "fastness.dev/base-configs"
# Whether nodes take a new authority of the API server into their kubeconfigs; "false" is a person's, and holds it back.
SERVICE_CA_ROTATE: Final = f"{GROUP}/service-ca-rotate"
# What the OSImageStream remembers: a digest of what its offers were read from.
STREAM_SOURCES: Final = "fastness.dev/stream-sources"
# The condition of MachineConfiguration `cluster` about streams: the OSImageStream itself has no place for one.
STREAMS_AVAILABLE: Final = "OSImageStreamsAvailable"

# What a build of a pool's image carries, and the MachineOSConfig that it is of.
BUILD_POOL_LABEL: Final = f"{GROUP}/target-machine-config-pool"
BUILD_CONFIG_LABEL: Final = f"{GROUP}/rendered-machine-config"
BUILD_OF_LABEL: Final = f"{GROUP}/machine-os-config"
PUSH_SECRET: Final = f"{GROUP}/rendered-image-push-secret"
MADE_OF: Final = "fastness.dev/made-of"
"""On a build: the MachineConfigs that its rendered config was made of, joined by commas."""
CURRENT_BUILD: Final = f"{GROUP}/current-machine-os-build"
REBUILD: Final = f"{GROUP}/rebuild"
# Whether the image of a MachineOSConfig can be built, a condition of it; and what an image was made of, on its build.
BUILDABLE: Final = "Buildable"
IMAGE_PULL: Final = "fastness.dev/image-pull-secret"
"""On a MachineOSConfig: the Secret with which nodes of the pool pull the built image; proven ones alone get it."""
PUBLIC: Final = "fastness.dev/public"
IMAGE_INPUTS: Final = "fastness.dev/image-inputs"
# An image that was built before the cluster was there: the annotation that names it, and a label of the build in its place.
PRE_BUILT: Final = f"{GROUP}/pre-built-image"
SEEDED: Final = "Seeded"
PRE_BUILT_SEEDED: Final = "PreBuiltImageSeeded"
BUILD_FINALIZER: Final = "fastness.dev/built-image"
# Whether nodes come back when a MachineOSConfig goes, a condition of it; and the label of one that the cluster made by itself.
REMOVABLE: Final = "Removable"
BY_DEFAULT_LABEL: Final = "fastness.dev/image-by-default"
# On MachineConfiguration `cluster`: the stage of image mode, and where images of pools go that nobody described.
IMAGE_MODE_STAGE: Final = "fastness.dev/image-mode-stage"
IMAGE_PUSH_SPEC: Final = "fastness.dev/image-push-spec"
IMAGE_PUSH_SECRET: Final = "fastness.dev/image-push-secret"

NODE_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
WORKER_LABEL: Final = f"{NODE_ROLE_PREFIX}{WORKER}"
MASTER_LABEL: Final = f"{NODE_ROLE_PREFIX}{MASTER}"

# What a node carries.
CURRENT_CONFIG: Final = f"{GROUP}/currentConfig"
DESIRED_CONFIG: Final = f"{GROUP}/desiredConfig"
CURRENT_IMAGE: Final = f"{GROUP}/currentImage"
DESIRED_IMAGE: Final = f"{GROUP}/desiredImage"
# The NodeOverlays of a node: name and version of each, for people; and the digest of all of them that it has and goes to.
OVERLAYS: Final = "fastness.dev/overlays"
CURRENT_OVERLAY: Final = "fastness.dev/current-overlay"
DESIRED_OVERLAY: Final = "fastness.dev/desired-overlay"
STATE: Final = f"{GROUP}/state"
REASON: Final = f"{GROUP}/reason"
DESIRED_DRAIN: Final = f"{GROUP}/desiredDrain"
LAST_APPLIED_DRAIN: Final = f"{GROUP}/lastAppliedDrain"
POST_CONFIG_ACTION: Final = f"{GROUP}/post-config-action"
FIRST_PIVOT_CONFIG: Final = f"{GROUP}/firstPivotConfig"
CUSTOM_POOL_LABELS_APPLIED: Final = f"{GROUP}/customPoolLabelsApplied"
CONTROL_PLANE_TOPOLOGY: Final = f"{GROUP}/controlPlaneTopology"
DESIRED_TRUST: Final = "fastness.dev/desired-trust"
CURRENT_TRUST: Final = "fastness.dev/current-trust"
LAST_SYNCED_CONTROLLER_CONFIG: Final = f"{GROUP}/lastSyncedControllerConfigResourceVersion"
LAST_OBSERVED_SERVER_CA: Final = f"{GROUP}/lastObservedServerCAAnnotation"
FINALIZE_STAGED_FAILURE: Final = f"{GROUP}/ostree-finalize-staged-failure"
# What the machine booted, and what it goes back to when no config names an image; UNKNOWN_IMAGE where nobody recorded that.
BOOTED_IMAGE: Final = "fastness.dev/booted-image"
BASE_IMAGE: Final = "fastness.dev/base-image"
UNKNOWN_IMAGE: Final = "unknown"
# What deploys the operating system of the node, a colon, and why that one.
OS_DRIVER: Final = "fastness.dev/os-driver"
# What the cluster asks of the driver, for the agent; and how a driver says that it is only what nobody asked to change.
OS_DRIVER_RULE: Final = "fastness.dev/os-driver-rule"
BOOTC_NOT_PREFERRED: Final = "bootc is not preferred"
# On the MachineConfigNode: which images its node booted, in order. The control plane writes it.
IMAGE_QUEUE: Final = "fastness.dev/image-queue"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
OS_LABEL: Final = "kubernetes.io/os"
UPDATE_TAINT: Final = {"key": "UpdateInProgress", "effect": "PreferNoSchedule"}
REBOOTING: Final = "Rebooting"
MAX_REASON_CHARS: Final = 2000

# Infrastructure.status.controlPlaneTopology.
SINGLE_REPLICA: Final = "SingleReplica"
HIGHLY_AVAILABLE_ARBITER: Final = "HighlyAvailableArbiter"


class OsDriverRule(StrEnum):
    """What a cluster asks of the program that deploys its hosts; the values are what nodes are told."""

    BY_HOST = ""
    BOOTC_FIRST = "prefer-bootc"
    BOOTC_ALONE = "bootc-alone"


class NodeState(StrEnum):
    """What the agent on a node says in its `state` annotation."""

    WORKING = "Working"
    DONE = "Done"
    DEGRADED = "Degraded"
    UNRECONCILABLE = "Unreconcilable"


class PoolCondition(StrEnum):
    """Types of the conditions of a MachineConfigPool."""

    UPDATED = "Updated"
    UPDATING = "Updating"
    DEGRADED = "Degraded"
    NODE_DEGRADED = "NodeDegraded"
    RENDER_DEGRADED = "RenderDegraded"
    REGISTRIES_DEGRADED = "RegistriesDegraded"
    IMAGE_BUILD_DEGRADED = "ImageBuildDegraded"
    PINNED_IMAGE_SETS_DEGRADED = "PinnedImageSetsDegraded"
    POOL_SYNCHRONIZER_DEGRADED = "PoolSynchronizerDegraded"
    USER_DATA_DEGRADED = "UserDataDegraded"


class Progress(StrEnum):
    """Types of the conditions of a MachineConfigNode: parents first, then their children."""

    UPDATE_PREPARED = "UpdatePrepared"
    UPDATE_EXECUTED = "UpdateExecuted"
    UPDATE_POST_ACTION_COMPLETE = "UpdatePostActionComplete"
    UPDATE_COMPLETE = "UpdateComplete"
    UPDATED = "Updated"
    RESUMED = "Resumed"
    CORDONED = "Cordoned"
    DRAINED = "Drained"
    APPLIED_FILES_AND_OS = "AppliedFilesAndOS"
    APPLIED_FILES = "AppliedFiles"
    APPLIED_OS_IMAGE = "AppliedOSImage"
    IMAGE_PULLED = "ImagePulledFromRegistry"
    REBOOTED_NODE = "RebootedNode"
    UNCORDONED = "Uncordoned"
    NODE_DEGRADED = "NodeDegraded"
    PINNED_IMAGE_SETS_PROGRESSING = "PinnedImageSetsProgressing"
    PINNED_IMAGE_SETS_DEGRADED = "PinnedImageSetsDegraded"
    INTERNAL_RELEASE_IMAGE_DEGRADED = "InternalReleaseImageDegraded"


NOT_YET_OCCURRED: Final = "NotYetOccurred"
# Reasons of the two conditions about pinned images.
IMAGE_PREFETCH: Final = "ImagePrefetch"
AS_EXPECTED: Final = "AsExpected"
PREFETCH_FAILED: Final = "PrefetchFailed"
NOT_YET_SET: Final = "not-yet-set"
NODE_FIELD_MANAGER: Final = "machine-config-operator"


class Event(StrEnum):
    """Reasons of events."""

    RENDERED_CONFIG_GENERATED = "RenderedConfigGenerated"
    RENDER_WAITING = "RenderWaiting"
    SET_REFUSED = "MachineSetRefused"
    SET_LEFT_ALONE = "MachineSetLeftAlone"
    CLUSTER_FACTS_READ = "ClusterFactsRead"
    OS_IMAGE_OVERRIDDEN = "OSImageURLOverridden"
    REGISTRIES_REFUSED = "RegistriesRefused"
    REGISTRIES_WAITING = "NoImageConfig"
    PAYLOAD_NOT_BLOCKED = "PayloadNotBlocked"
    SELECTING_ALL = "SelectingAll"
    SET_DESIRED_CONFIG = "SetDesiredConfig"
    SET_DESIRED_CONFIG_AND_IMAGE = "SetDesiredConfigAndOSImage"
    GAVE_UP = "GaveUp"
    DEFERRING_OPERATOR_NODE = "DeferringOperatorNodeUpdate"
    COMPLETED = "Completed"
    BUILD_STARTED = "BuildStarted"
    BUILD_COMPLETED = "BuildCompleted"
    BUILD_FAILED = "BuildFailed"
    BUILD_INTERRUPTED = "BuildInterrupted"
    BUILD_DELETED = "BuildDeleted"
    BUILD_REFUSED = "ConfigReconcileFailed"
    REBUILD_REQUESTED = "RebuildRequested"
    IMAGE_BY_DEFAULT = "ImageByDefault"
    POOL_CONFLICT = "NodeInSeveralPools"
    PRUNED = "RenderedConfigsPruned"
    USER_DATA_ADOPTED = "UserDataAdopted"
    USER_DATA_RESTORED = "UserDataRestored"
    USER_DATA_UPDATED = "UserDataUpdated"
    STUB_UPGRADED = "StubIgnitionUpgraded"
    CA_REFRESHED = "CertificateAuthorityRefreshed"
    BAD_POINTER = "BadPointer"
    STUB_LEFT_ALONE = "StubLeftAlone"
    BOOT_IMAGE_UNKNOWN = "BootImageUnknown"
    BOOT_IMAGE_UPDATED = "BootImageUpdated"
    BOOT_IMAGE_REFUSED = "BootImageRefused"
    BOOT_IMAGE_SKIPPED = "BootImageSkipped"
    CORDON = "Cordon"
    DRAIN = "Drain"
    UNCORDON = "Uncordon"
    DRAIN_THRESHOLD_EXCEEDED = "DrainThresholdExceeded"
    DRAIN_FAILED = "DrainFailed"
    FAILED_TO_DRAIN = "FailedToDrain"
    FAILED_TO_UNCORDON = "FailedToUncordon"
    FAILED_TO_RECONCILE = "FailedToReconcile"
    BOOT_RESYNC = "BootResync"
    REBOOT = "Reboot"
    BOOT_FAILED = "BootFailed"
    BOOT_LOADER_NOT_UPDATED = "BootLoaderNotUpdated"
    STAGED_IMAGE_DROPPED = "StagedImageDropped"
    SKIP_REBOOT = "SkipReboot"
    ON_DISK_VALIDATION_FAILED = "OnDiskStateValidationFailed"
    PREFLIGHT_DRIFT_CHECK_FAILED = "PreflightConfigDriftCheckFailed"
    CONFIG_DRIFT_DETECTED = "ConfigDriftDetected"
    CONFIG_DRIFT_REPLACED = "ConfigDriftReplaced"
    JOURNAL_SET_ASIDE = "JournalSetAside"
    ACTION_PROHIBITED = "ActionProhibited"
    SETTINGS_LEFT_OUT = "SettingsLeftOut"
    HOST_TAKEN = "HostTaken"
    REPLACEMENT = "ControlPlaneReplacement"
    DELETION_WAITS = "DeletionWaits"
    TRUST_SOURCE_MISSING = "TrustSourceMissing"
    TRUST_WRITTEN = "NodeTrustWritten"
    TRUST_NOT_WRITTEN = "NodeTrustNotWritten"
    API_AUTHORITY_CHANGED = "APIServerAuthorityChanged"


# The two words of the drain handshake; what follows the first hyphen is a rendered config.
DRAIN: Final = "drain"
UNCORDON: Final = "uncordon"

# Files on a machine that mean something beyond their content.
FORCE_FILE: Final = "/run/machine-config-daemon-force"
TUNING_FILE: Final = "/etc/pivot/kernel-args"
KARGS_DIRECTORY: Final = "/usr/lib/bootc/kargs.d"
REGISTRIES_CONF: Final = "/etc/containers/registries.conf"
PINNED_IMAGES_FILE: Final = "/etc/crio/crio.conf.d/50-pinned-images"
KUBELET_CA: Final = "/etc/kubernetes/kubelet-ca.crt"
CURRENT_CONFIG_FILE: Final = "/etc/machine-config-daemon/currentconfig"
# Whether a new image brings its boot loader too; nothing but the word does.
BOOT_LOADER_FILE: Final = "/etc/fastness/boot-loader"
UPDATE_BOOT_LOADER: Final = "update\n"
BASE_IMAGE_FILE: Final = "/etc/machine-config-daemon/baseimage"
CURRENT_IMAGE_FILE: Final = "/etc/machine-config-daemon/currentimage"
NODE_ANNOTATIONS_FILE: Final = "/etc/machine-config-daemon/node-annotations.json"
OVERLAY_FILE: Final = "/etc/machine-config-daemon/overlays.json"
NODE_TRUST_FILE: Final = "/etc/machine-config-daemon/node-trust.json"
CONTENT_FILE: Final = "/etc/mcs-machine-config-content.json"
ENCAPSULATED_FILE: Final = "/etc/ignition-machine-config-encapsulated.json"

# Where the boot images of the release are published.
OPERATOR_NAMESPACE: Final = "openshift-machine-config-operator"
BOOT_IMAGES: Final = "coreos-bootimages"

# Managed user-data.
USER_DATA_NAMESPACE: Final = "openshift-machine-api"
USER_DATA_SUFFIX: Final = "-user-data-managed"
UNMANAGED_USER_DATA_SUFFIX: Final = "-user-data"
MANAGED_CA_LABEL: Final = f"{GROUP}/managed-ca-bundle-derived-from-configmap"
STUB_UPGRADED_TO: Final = f"{GROUP}/stub-ignition-upgraded-to"
STUB_UPGRADED_AT: Final = f"{GROUP}/stub-ignition-upgraded-at"
CORE_USER: Final = "core"


def target_of(config: str, overlay: str, image: str = "") -> str:
    """What a node goes to in one word: a rendered config, the digest of its overlays and the image built for it, if any."""
    return (f"{config}@{overlay}" if overlay else config) + (f" {image}" if image else "")


def split_target(target: str) -> tuple[str, str]:
    """The rendered config and the digest of the overlays in the name of a target."""
    config, _, overlay = target.partition(" ")[0].partition("@")
    return config, overlay


def image_in_target(target: str) -> str:
    """The image that was built for a target; empty where the config names its own."""
    return target.partition(" ")[2]


def drain_verb(request: str) -> str:
    """What a request to drain asks for, the word before its first hyphen: `drain` or `uncordon`."""
    return request.partition("-")[0]
