"""What is stored and not acted on: kinds and fields that a client may write, and that change nothing.

This is the one list. Admission warns whoever writes such a field, `kube.controllers.not_acted_on` says it on the object, and the
reference page prints it. An entry names the kind, the field (empty: the whole kind), why nothing comes of it, and what to do
instead. Rules for entries:

* `embedded` entries are about work that somebody else does in a real cluster: there, only that somebody knows.
* A value that asks for nothing (empty, false, or one of `harmless`) is no reason to warn: servers fill defaults in.
* Objects that are acted on all the same stand in `apart_from`, by namespace and name.
* Objects that every installation has stand in `built_in`, by name: they ask for nothing until somebody changes them.
* Whoever makes Fastness act on a field deletes its entry; a test compares whole kinds with what controllers read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG, TRUSTEE_CONFIG
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.tenant_cluster import TENANT_CLUSTER
from fastness.kinds.kata import names as kata
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import Kind
from fastness.kinds.kubernetes.definitions import REFERENCE, definition
from fastness.kinds.kubernetes.native import native
from fastness.kinds.loft.node_claim import NODE_CLAIM
from fastness.kinds.loft.node_provider import NODE_PROVIDER
from fastness.kinds.loft.node_type import NODE_TYPE
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.openshift.config import CLUSTER_OPERATOR, CLUSTER_VERSION, PROXY
from fastness.kinds.openshift.images import IMAGE
from fastness.kinds.openshift.node_settings import API_SERVER
from fastness.kinds.openshift.operators import CATALOG_SOURCE, OPERATOR_GROUP, SUBSCRIPTION
from fastness.kinds.openshift.security import SECURITY_CONTEXT_CONSTRAINTS
from fastness.kinds.openshift.workloads import (
    CLUSTER_POLICY,
    DEPLOYMENT_CONFIG,
    PROMETHEUS_RULE,
    ROUTE,
    SERVICE_MONITOR,
)
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION


@dataclass(frozen=True, slots=True)
class NotActedOn:
    """A field, or with an empty one a whole kind, that is stored and changes nothing."""

    kind: Kind
    field: str
    why: str
    instead: str
    embedded: bool = False
    harmless: tuple[Any, ...] = ()
    apart_from: tuple[tuple[str, str], ...] = ()
    built_in: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """What whoever sets it reads."""
        place = f"{self.kind.kind} {self.field}" if self.field else self.kind.kind
        return f"{place}: stored, and Fastness does not act on it: {self.why}. {self.instead}"


def _fields(kind: Kind, why: str, instead: str, *fields: str, **more: Any) -> Iterator[NotActedOn]:
    for field in fields or ("",):
        yield NotActedOn(kind, field, why, instead, **more)


_BROKER: Final = "the key broker is built in and has no deployment of its own"
_BROKER_INSTEAD: Final = "Set spec.attestation of the ConfidentialCluster, or remove it."
_BROKER_TLS: Final = ("the doors have certificates of the control plane", "Remove it.")
_LEFT: Final = "Remove it."
_DISCOVERY: Final = ("the agent on each node discovers, and no other program runs", _LEFT)
_NO_NETWORK: Final = "Use a Kubernetes for workloads."

EVERYWHERE: Final[tuple[NotActedOn, ...]] = (
    *_fields(CONFIDENTIAL_CLUSTER, "evidence of GPUs is not compared with least versions",
             "Refuse old GPUs in an AppraisalPolicy.", "spec.attestation.minimumTcb.nvidia"),
    *_fields(TENANT_CLUSTER, "nothing makes clusters for tenants", "Make it with its own tool, and add its nodes as machines."),
    *_fields(MACHINE_CONFIGURATION, "pools are looked after whatever it says", "Pause pools: spec.paused of a MachineConfigPool.",
             "spec.managementState", harmless=("Managed",)),
    *_fields(MACHINE_CONFIGURATION, "the log level is an option of the process", "Start with --log-level.",
             "spec.logLevel", "spec.operatorLogLevel", harmless=("Normal",)),
    *_fields(MACHINE_CONFIGURATION, "there is no operand to deploy anew", "Change a MachineConfig to roll out.",
             "spec.forceRedeploymentReason"),
    *_fields(MACHINE_CONFIGURATION, "there are no revisions of an operand", _LEFT,
             "spec.failedRevisionLimit", "spec.succeededRevisionLimit"),
    *_fields(MACHINE_CONFIGURATION, "settings come from the kinds that have them", "Set them there, or write a MachineConfig.",
             "spec.observedConfig", "spec.unsupportedConfigOverrides"),
    *_fields(CONTROLLER_CONFIG, "no release reads it any more", _LEFT,
             "spec.etcdDiscoveryDomain", "spec.etcdCAData", "spec.kubeletIPv6"),
    *_fields(CONTROLLER_CONFIG, "no file of a machine follows from it", "Write the file in a MachineConfig.",
             "spec.networkType", "spec.network", "spec.bgpVIPPeersJSON"),
    *_fields(CONTROLLER_CONFIG, "machines take their images from other fields",
             "Set baseOSContainerImage, or osImageURL of a MachineConfig.", "spec.releaseImage"),
    *_fields(KATA_CONFIG, "a cluster is installed in one way on all nodes",
             "Choose nodes with spec.kataConfigPoolSelector.", "spec.enableMixedCluster"),
    *_fields(KBS_CONFIG, _BROKER, _BROKER_INSTEAD,
             "spec.kbsConfigMapName", "spec.kbsAsConfigMapName", "spec.kbsRvpsConfigMapName", "spec.kbsServiceType",
             "spec.kbsDeploymentType", "spec.KbsEnvVars", "spec.KbsDeploymentSpec", "spec.kbsLocalCertCacheSpec"),
    *_fields(KBS_CONFIG, "administrators are those of the API", "Give them a role on ResourceBindings.",
             "spec.kbsAuthSecretName"),
    *_fields(KBS_CONFIG, *_BROKER_TLS, "spec.kbsHttpsKeySecretName", "spec.kbsHttpsCertSecretName"),
    *_fields(KBS_CONFIG, "collateral is fetched or imported by the control plane",
             "See the how-to about running without the internet.", "spec.tdxConfigSpec"),
    *_fields(KBS_CONFIG, "evidence of IBM Secure Execution is not judged", _LEFT, "spec.ibmSEConfigSpec"),
    *_fields(TRUSTEE_CONFIG, _BROKER, _BROKER_INSTEAD, "spec.kbsServiceType"),
    *_fields(TRUSTEE_CONFIG, *_BROKER_TLS, "spec.httpsSpec"),
    *_fields(TRUSTEE_CONFIG, "tokens are signed and checked with keys of the control plane", _LEFT,
             "spec.attestationTokenVerificationSpec"),
    *_fields(NODE_FEATURE_DISCOVERY, *_DISCOVERY, "spec.operand", "spec.instance", "spec.topologyUpdater",
             harmless=({"servicePort": 12000},)),
    *_fields(NODE_FEATURE_DISCOVERY, "the agent looks at everything that it can read",
             "Restrict labels with spec.labelWhiteList.", "spec.workerConfig.configData"),
    *_fields(NODE_FEATURE_DISCOVERY, "rules are objects", "Write a NodeFeatureRule.", "spec.customConfig"),
)  # fmt: skip
"""What holds in every cluster."""

_NO_PODS: Final = ("no controller of this API makes pods", "Use a Kubernetes for workloads.")
_NOT_CALLED: Final = ("this API calls no webhooks and runs no policies of users", "Use a Kubernetes, or remove it.")
_NO_VOLUMES: Final = ("this API has no volumes", "Use a Kubernetes for workloads.")
_NO_LIMITS: Final = ("this API counts nothing against limits", "Use a Kubernetes for workloads.")
_TENANTS: Final = ("nothing provides nodes to tenants", "Add machines by enrolment, and give their pool a trust model.")
_PROXIES: Final = (
    "machines get what the status says, and nothing computes it here",
    "Set spec.proxy of the ControllerConfig.",
)
_CATALOGS: Final = ("the catalogs are built in", "Name redhat-operators in the Subscription.")
_ADMISSION: Final = "admissionregistration.k8s.io"

EMBEDDED: Final[tuple[NotActedOn, ...]] = (
    *(NotActedOn(native(group, kind), "", *_NO_PODS, embedded=True) for group, kind in (
        ("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("", "ReplicationController"),
        ("batch", "Job"), ("batch", "CronJob"))),
    # The loop that installs the runtime makes DaemonSets and looks at them, so the kind itself is read; virtual machines do
    # what the pods of two of them would.
    *_fields(native("apps", "DaemonSet"), *_NO_PODS, "spec.template", embedded=True,
             apart_from=((kata.NAMESPACE, kata.INSTALLER), (kata.NAMESPACE, kata.UNINSTALLER))),
    *_fields(DEPLOYMENT_CONFIG, *_NO_PODS, embedded=True),
    *_fields(native("", "Service"), "there is no service network", _NO_NETWORK, "spec.selector", embedded=True),
    *_fields(native("networking.k8s.io", "Ingress"), "there is no service network", _NO_NETWORK, embedded=True),
    *_fields(ROUTE, "there is no service network", _NO_NETWORK, embedded=True),
    *_fields(native("networking.k8s.io", "NetworkPolicy"), "there is no network of pods", _NO_NETWORK, embedded=True),
    *_fields(native("", "PersistentVolumeClaim"), *_NO_VOLUMES, embedded=True),
    *_fields(native("", "PersistentVolume"), *_NO_VOLUMES, embedded=True),
    *_fields(native("", "LimitRange"), *_NO_LIMITS, embedded=True),
    *_fields(native("", "ResourceQuota"), *_NO_LIMITS, embedded=True),
    *(NotActedOn(native(_ADMISSION, kind), "", *_NOT_CALLED, embedded=True) for kind in (
        "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding")),
    *_fields(native("apiregistration.k8s.io", "APIService"), "no other API server is asked", "Use a Kubernetes.", embedded=True),
    *(NotActedOn(kind, "", "nothing collects metrics here", "Point a Prometheus at /metrics.", embedded=True)
      for kind in (SERVICE_MONITOR, PROMETHEUS_RULE)),
    # The same loop makes one of these; every one has this field.
    *_fields(SECURITY_CONTEXT_CONSTRAINTS, "this API admits pods by its own rules", "Use a Kubernetes for workloads.",
             "runAsUser", embedded=True, built_in=("privileged",)),
    *_fields(CLUSTER_OPERATOR, "no operator reports here", "Look at the conditions of pools and of the ConfidentialCluster.",
             embedded=True),
    *_fields(CLUSTER_POLICY, "no GPU operator runs here", "See the how-to about confidential containers.", embedded=True),
    *(NotActedOn(kind, "", *_TENANTS, embedded=True) for kind in (NODE_CLAIM, NODE_PROVIDER, NODE_TYPE)),
    *_fields(CLUSTER_VERSION, "nothing upgrades the cluster", "Install a newer Fastness, and change osImageURL for machines.",
             "spec.desiredUpdate", "spec.channel", "spec.upstream", "spec.overrides", "spec.capabilities", embedded=True),
    *_fields(PROXY, *_PROXIES, "spec.httpProxy", "spec.httpsProxy", "spec.noProxy", "spec.readinessEndpoints", embedded=True),
    *_fields(API_SERVER, "the embedded API has options of its own", "See `fastness up --help`.",
             "spec.audit", "spec.clientCA", "spec.encryption", "spec.servingCerts", "spec.additionalCORSAllowedOrigins",
             embedded=True),
    *_fields(IMAGE, "there is no registry and there are no image streams in the cluster", _LEFT,
             "spec.allowedRegistriesForImport", "spec.externalRegistryHostnames", "spec.imageStreamImportMode", embedded=True),
    *_fields(CATALOG_SOURCE, *_CATALOGS, "spec.image", "spec.address", "spec.configMap", "spec.updateStrategy",
             "spec.grpcPodConfig", "spec.secrets", embedded=True),
    *_fields(SUBSCRIPTION, "operators are built in and have no pods", _LEFT, "spec.config", embedded=True),
    *_fields(OPERATOR_GROUP, "namespaces are named, and operators act as the control plane", "Use spec.targetNamespaces.",
             "spec.selector", "spec.serviceAccountName", "spec.upgradeStrategy", embedded=True),
)  # fmt: skip
"""What holds where Fastness itself is the API server."""

ENTRIES: Final[tuple[NotActedOn, ...]] = (*EVERYWHERE, *EMBEDDED)


@dataclass(frozen=True, slots=True)
class SetField:
    """An entry of the list that an object has set, and to what."""

    entry: NotActedOn
    value: Any


@cache
def _by_resource() -> Mapping[tuple[str, str], tuple[NotActedOn, ...]]:
    table: dict[tuple[str, str], tuple[NotActedOn, ...]] = {}
    for entry in ENTRIES:
        place = (entry.kind.group, entry.kind.plural)
        table[place] = (*table.get(place, ()), entry)
    return table


def entries_of(group: str, plural: str) -> tuple[NotActedOn, ...]:
    """The entries about one resource, in the order of the list."""
    return _by_resource().get((group, plural), ())


def set_fields(obj: Mapping[str, Any], entries: Iterable[NotActedOn]) -> tuple[SetField, ...]:
    """Those of the entries that an object asks something of; total."""
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name, first = meta.get("name"), meta.get("generation") == 1
    asked = (
        (entry, _asked(obj, entry))
        for entry in entries
        if (meta.get("namespace"), name) not in entry.apart_from and not (first and name in entry.built_in)
    )
    return tuple(SetField(entry, values[0] if len(values) == 1 else values) for entry, values in asked if values)


def _asked(obj: Mapping[str, Any], entry: NotActedOn) -> list[Any]:
    """What stands at a path and asks for something, of all members where it goes through a list (`pools[].disk`).

    For a whole kind all that its writer wrote, so that a label or a status is no new request.
    """
    if not entry.field:
        written = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
        return [written] if written else []
    values: list[Any] = [obj]
    for name in entry.field.split("."):
        values = [value.get(name.removesuffix("[]")) for value in values if isinstance(value, Mapping)]
        if name.endswith("[]"):
            values = [member for value in values if isinstance(value, list) for member in value]
    return [value for value in values if value and value not in entry.harmless]


def conditions_of(kind: Kind) -> bool:
    """Whether objects of a kind have a status with conditions, written through its subresource."""
    if not kind.has_status:
        return False
    if kind.native:
        return "conditions" in _native_status(kind)
    status = kind.schema.get("properties", {}).get("status", {})
    return "conditions" in status.get("properties", {}) or bool(status.get("x-kubernetes-preserve-unknown-fields"))


def _native_status(kind: Kind) -> Mapping[str, Any]:
    status = definition(kind.definition).get("properties", {}).get("status", {})
    reference = next((part["$ref"] for part in (status, *status.get("allOf", ())) if "$ref" in part), "")
    properties: Mapping[str, Any] = (
        definition(reference.removeprefix(REFERENCE)).get("properties", {}) if reference else {}
    )
    return properties
