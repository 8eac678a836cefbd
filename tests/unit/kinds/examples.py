"""Objects that must be accepted, and changes to them that must be refused.

One full example per kind of ours and of the groups with an exact schema. A `Refusal` is a merge patch on the example together
with the field that the answer has to name. `by` says who can see the fault: the structural schema, a CEL rule on the new
object, or a CEL rule that compares with the old one. The unit tests check the first kind with a plain schema validator; the
component tests send all of them to a real API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fastness.kinds.kind import JsonObject
from tests.unit.kinds.registry_examples import REGISTRIES

UID = "0b8f7c1e-52f6-4f7a-9a0e-3f6a1c9d2e11"
OTHER_UID = "9d3b2f60-1c55-4d4f-8f0a-6a2f6f0f7b22"
DIGEST = "sha256:" + "ab" * 32
IMAGE = "quay.example.com/os/rhcos@" + DIGEST
THUMBPRINT = "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
NOW = "2026-11-15T20:00:00Z"
LATER = "2026-11-15T21:00:00Z"


@dataclass(frozen=True)
class Refusal:
    """A change that must be refused, and why."""

    crd: str
    change: JsonObject
    field: str
    by: Literal["schema", "rule", "transition"] = "schema"
    about: str = ""

    def __str__(self) -> str:
        return f"{self.crd.partition('.')[0]}: {self.about or self.field}"


def _object(api_version: str, kind: str, name: str, **rest: Any) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


def ours(kind: str, name: str, spec: JsonObject) -> JsonObject:
    """An object of our own group."""
    return _object("fastness.dev/v1alpha1", kind, name, spec=spec)


def mco(kind: str, name: str, **rest: Any) -> JsonObject:
    """An object of the machine configuration group."""
    return _object("machineconfiguration.openshift.io/v1", kind, name, **rest)


FASTNESS: dict[str, JsonObject] = {
    "confidentialclusters.fastness.dev": ours(
        "ConfidentialCluster",
        "cluster",
        {
            "mode": "Enforce",
            "simulated": True,
            "pools": [
                {"name": "worker", "trustModel": "ConfidentialCluster"},
                {"name": "infra", "trustModel": "None"},
                {"name": "kata-oc", "trustModel": "ContainersHost"},
            ],
            "delivery": {"via": "Broker", "sync": "Scheduled", "interval": "5m"},
            "attestation": {
                "evidence": ["tpm", "tdx", "snp", "az-snp-vtpm", "az-tdx-vtpm", "nvidia"],
                "extraRoots": [{"sha256": "cd" * 32, "for": "tpm", "reason": "the lab's own TPM vendor"}],
                "reattestInterval": "15m",
                "tokenLifetime": "10m",
                "challengeLifetime": "60s",
                "collateralStaleness": "24h",
                "minimumTcb": {
                    "snp": {"bootloader": 4, "tee": 0, "snp": 22, "microcode": 213},
                    "tdx": {"evaluationDataNumber": 17, "tcbDate": NOW},
                    "nvidia": {"driver": "570.86", "vbios": "96.00.9F"},
                },
            },
            "join": {"approval": "Manual", "trustOnFirstUse": False},
        },
    ),
    "jointickets.fastness.dev": ours(
        "JoinTicket", "worker-1", {"pool": "worker", "uses": 3, "expires": LATER, "secretHash": DIGEST}
    ),
    "verdicts.fastness.dev": ours(
        "Verdict",
        "v-1",
        {
            "subject": {"machine": UID, "keyThumbprint": THUMBPRINT, "endorsement": "evidence"},
            "evidence": {"type": "tdx", "digest": DIGEST},
            "policyVersion": "default/3",
            "valueSets": [{"name": "rhcos-9-6", "version": "7"}],
            "result": "Refused",
            "reason": "tdx.mrtd.mismatch",
            "simulated": False,
            "checks": [
                {
                    "name": "mrtd",
                    "result": "Fail",
                    "seen": "aa",
                    "expected": "bb",
                    "source": "rhcos-9-6",
                    "hint": "approve the image that the machine booted",
                    "code": "tdx.mrtd.mismatch",
                }
            ],
            "trustVector": {"hardware": 2, "executables": 33, "configuration": -1},
            "expires": LATER,
        },
    ),
    "referencevaluesets.fastness.dev": ours(
        "ReferenceValueSet",
        "rhcos-9-6",
        {
            "source": "image",
            "image": IMAGE,
            "values": [
                {"name": "tpm_pcr4", "register": "pcr4", "algorithm": "sha256", "value": "ab" * 32, "state": "Current"},
                {
                    "name": "tpm_pcr4",
                    "register": "pcr4",
                    "algorithm": "sha256",
                    "value": "cd" * 32,
                    "state": "Retiring",
                },
                {"name": "tpm_svn", "value": "1"},
            ],
            "validity": {"notBefore": NOW, "notAfter": LATER},
        },
    ),
    "appraisalpolicies.fastness.dev": ours(
        "AppraisalPolicy",
        "only-current",
        {
            "for": "tdx",
            "rego": "package policy\nallow := true\n",
            "cases": [
                {"name": "good", "input": {"a": 1}, "data": {}, "expect": "Affirmed", "expectVector": {"hardware": 2}}
            ],
            "active": True,
        },
    ),
    "distrusts.fastness.dev": ours(
        "Distrust", "stolen", {"machine": UID, "reason": "stolen from the rack", "expires": LATER}
    ),
    "nodeoverlays.fastness.dev": ours(
        "NodeOverlay",
        "gpu",
        {"match": {"properties": {"tee": "tdx"}}, "config": {"ignition": {"version": "3.5.0"}}, "priority": 200},
    ),
    "rolloutpolicies.fastness.dev": ours(
        "RolloutPolicy",
        "careful",
        {
            "poolSelector": {"matchLabels": {"tier": "prod"}},
            "waves": [{"count": 1, "soak": "30m"}, {"percent": 25, "soak": "1h"}],
            "stopOn": {"degraded": 2},
            "window": {"days": ["Sat", "Sun"], "start": "22:00", "duration": "6h", "timeZone": "Europe/Berlin"},
            "tryFor": "20m",
        },
    ),
    "resourcebindings.fastness.dev": ours(
        "ResourceBinding",
        "shared",
        {"resource": "default/shared/*", "subjects": {"machines": [UID], "pools": ["worker"], "tenants": ["blue"]}},
    ),
    "auditbatches.fastness.dev": ours(
        "AuditBatch",
        "gate-1-2",
        {
            "door": "gate-1",
            "sequence": 2,
            "previous": DIGEST,
            "key": "0123456789abcdef",
            "signature": "A" * 86 + "==",
            "entries": [
                {
                    "time": NOW,
                    "what": "release",
                    "who": THUMBPRINT,
                    "resource": "pool/worker/config",
                    "verdict": "v-1",
                    "grant": "g-1",
                    "evidence": DIGEST,
                    "detail": {"pool": "worker"},
                }
            ],
        },
    ),
    "auditcheckpoints.fastness.dev": ours(
        "AuditCheckpoint",
        "c-42",
        {
            "origin": "fastness.dev/log",
            "size": 42,
            "rootHash": "q83vq83vq80=",
            "time": NOW,
            "note": "fastness.dev/log\n42\n",
        },
    ),
    "spentchallenges.fastness.dev": ours("SpentChallenge", "ab" * 16, {"expires": LATER}),
    "seenlaunches.fastness.dev": ours(
        "SeenLaunch", "launch-" + "ab" * 16, {"use": "Unlock", "machine": UID, "key": "cd" * 32, "expires": LATER}
    ),
    "evidenceblobs.fastness.dev": ours(
        "EvidenceBlob", "ab" * 16, {"digest": DIGEST, "type": "tpm", "encoding": "gzip", "data": "H4sIAAAAAAAAAw=="}
    ),
    "tenantclusters.fastness.dev": ours("TenantCluster", "blue", {"privateNodes": {"enabled": True}}),
}

OTHERS: dict[str, JsonObject] = {
    "machineconfigs.machineconfiguration.openshift.io": mco(
        "MachineConfig",
        "99-worker-x",
        spec={
            "config": {"ignition": {"version": "3.5.0"}, "storage": {"files": [{"path": "/etc/x", "mode": 420}]}},
            "kernelArguments": None,
            "kernelType": "whatever",
            "extensions": ["usbguard"],
            "fips": False,
            "osImageURL": IMAGE,
        },
    ),
    "machineconfigpools.machineconfiguration.openshift.io": mco(
        "MachineConfigPool",
        "infra",
        spec={
            "machineConfigSelector": {
                "matchExpressions": [
                    {"key": "machineconfiguration.openshift.io/role", "operator": "In", "values": ["worker", "infra"]}
                ]
            },
            "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/infra": ""}},
            "maxUnavailable": "30%",
            "paused": False,
            "configuration": {"name": "rendered-infra-1", "source": [{"kind": "MachineConfig", "name": "00-worker"}]},
            "pinnedImageSets": [{"name": "base"}],
        },
    ),
    "controllerconfigs.machineconfiguration.openshift.io": mco(
        "ControllerConfig",
        "machine-config-controller",
        spec={
            "clusterDNSIP": "172.30.0.10",
            "ipFamilies": "IPv4",
            "images": {"a": "b"},
            "rootCAData": "aGk=",
            "proxy": None,
        },
    ),
    "kubeletconfigs.machineconfiguration.openshift.io": mco(
        "KubeletConfig", "max-pods", spec={"logLevel": 4, "kubeletConfig": {"maxPods": 500}, "autoSizingReserved": True}
    ),
    "containerruntimeconfigs.machineconfiguration.openshift.io": mco(
        "ContainerRuntimeConfig",
        "kata-crio-config",
        spec={
            "containerRuntimeConfig": {"logLevel": "debug", "pidsLimit": 4096, "logSizeMax": "-1", "overlaySize": "8Gi"}
        },
    ),
    "machineosconfigs.machineconfiguration.openshift.io": mco(
        "MachineOSConfig",
        "worker",
        spec={
            "machineConfigPool": {"name": "worker"},
            "imageBuilder": {"imageBuilderType": "Job"},
            "renderedImagePushSecret": {"name": "push"},
            "renderedImagePushSpec": "image-registry.openshift-image-registry.svc:5000/ocb/os:latest",
            "containerFile": [{"content": "FROM configs AS final\n"}],
        },
    ),
    "machineosbuilds.machineconfiguration.openshift.io": mco(
        "MachineOSBuild",
        "worker-1",
        spec={
            "machineConfig": {"name": "rendered-worker-1"},
            "machineOSConfig": {"name": "worker"},
            "renderedImagePushSpec": "quay.example.com/org/os:latest",
        },
    ),
    "machineconfignodes.machineconfiguration.openshift.io": mco(
        "MachineConfigNode",
        "worker-0",
        spec={"node": {"name": "worker-0"}, "pool": {"name": "worker"}, "configVersion": {"desired": "not-yet-set"}},
    ),
    "pinnedimagesets.machineconfiguration.openshift.io": mco(
        "PinnedImageSet", "base", spec={"pinnedImages": [{"name": IMAGE}]}
    ),
    "osimagestreams.machineconfiguration.openshift.io": mco(
        "OSImageStream", "cluster", spec={"defaultStream": "rhel-9"}
    ),
    "machineconfigurations.operator.openshift.io": _object(
        "operator.openshift.io/v1",
        "MachineConfiguration",
        "cluster",
        spec={
            "managementState": "Managed",
            "managedBootImages": {
                "machineManagers": [
                    {
                        "resource": "machinesets",
                        "apiGroup": "machine.openshift.io",
                        "selection": {
                            "mode": "Partial",
                            "partial": {"machineResourceSelector": {"matchLabels": {"a": "b"}}},
                        },
                    }
                ]
            },
            "nodeDisruptionPolicy": {
                "files": [
                    {"path": "/etc/x", "actions": [{"type": "Restart", "restart": {"serviceName": "x.service"}}]}
                ],
                "units": [{"name": "y.service", "actions": [{"type": "Drain"}, {"type": "DaemonReload"}]}],
                "sshkey": {"actions": [{"type": "None"}]},
            },
            "irreconcilableValidationOverrides": {"storage": ["Disks"]},
            "bootImageSkewEnforcement": {"mode": "Manual", "manual": {"mode": "OCPVersion", "ocpVersion": "4.18.2"}},
        },
    ),
    "apiservers.config.openshift.io": _object(
        "config.openshift.io/v1",
        "APIServer",
        "cluster",
        spec={
            "tlsSecurityProfile": {
                "type": "Custom",
                "custom": {
                    "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"],
                    "minTLSVersion": "VersionTLS12",
                    "groups": ["X25519"],
                },
            },
            "audit": {"profile": "Default"},
        },
    ),
    "featuregates.config.openshift.io": _object(
        "config.openshift.io/v1",
        "FeatureGate",
        "cluster",
        spec={"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": ["EventedPLEG"], "disabled": None}},
    ),
    "nodes.config.openshift.io": _object(
        "config.openshift.io/v1",
        "Node",
        "cluster",
        spec={
            "cgroupMode": "v2",
            "workerLatencyProfile": "MediumUpdateAverageReaction",
            "minimumKubeletVersion": "1.36.0",
        },
    ),
    "trustedexecutionclusters.trusted-execution-clusters.io": _object(
        "trusted-execution-clusters.io/v1alpha1",
        "TrustedExecutionCluster",
        "main",
        spec={"publicTrusteeAddr": "kbs.example.com", "trusteeKbsPort": 8080, "trusteeSecret": "kbs-tls"},
    ),
    "machines.trusted-execution-clusters.io": _object(
        "trusted-execution-clusters.io/v1alpha1", "Machine", "machine-1", spec={"id": UID, "approval": "Approved"}
    ),
    "approvedimages.trusted-execution-clusters.io": _object(
        "trusted-execution-clusters.io/v1alpha1", "ApprovedImage", "rhcos", spec={"image": IMAGE}
    ),
    "attestationkeys.trusted-execution-clusters.io": _object(
        "trusted-execution-clusters.io/v1alpha1",
        "AttestationKey",
        "ak-1",
        spec={"publicKey": "-----BEGIN PUBLIC KEY-----\n", "uuid": UID},
    ),
    "kataconfigs.kataconfiguration.openshift.io": _object(
        "kataconfiguration.openshift.io/v1",
        "KataConfig",
        "example-kataconfig",
        spec={
            "kataConfigPoolSelector": None,
            "checkNodeEligibility": True,
            "logLevel": "trace",
            "enablePeerPods": False,
        },
    ),
    "nodefeaturerules.nfd.openshift.io": _object(
        "nfd.openshift.io/v1alpha1",
        "NodeFeatureRule",
        "tdx",
        spec={
            "rules": [
                {
                    "name": "tdx",
                    "labels": {"intel.feature.node.kubernetes.io/tdx": "true"},
                    "extendedResources": {"tdx.intel.com/keys": "@cpu.security.tdx.total_keys"},
                    "matchFeatures": [
                        {"feature": "cpu.security", "matchExpressions": {"tdx.enabled": {"op": "Exists"}}},
                        {"feature": "kernel.version", "matchName": {"op": "In", "value": ["major"]}},
                    ],
                }
            ]
        },
    ),
    "nodefeaturediscoveries.nfd.openshift.io": _object(
        "nfd.openshift.io/v1",
        "NodeFeatureDiscovery",
        "nfd",
        spec={
            "operand": {"image": "x", "imagePullPolicy": "Always"},
            "workerConfig": {"configData": ""},
            "other": {"kept": 1},
        },
    ),
    "nodefeatures.nfd.openshift.io": _object(
        "nfd.openshift.io/v1alpha1",
        "NodeFeature",
        "worker-0",
        spec={
            "features": {
                "flags": {"cpu.cpuid": {"elements": {"AESNI": {}}}},
                "attributes": {"kernel.version": {"elements": {"major": "6"}}},
                "instances": {"pci.device": {"elements": [{"attributes": {"vendor": "10de"}}]}},
            }
        },
    ),
    "fastnessconfigs.bootstrap.cluster.x-k8s.io": _object(
        "bootstrap.cluster.x-k8s.io/v1alpha1", "FastnessConfig", "node-1", spec={"pool": "worker"}
    ),
    "fastnessconfigtemplates.bootstrap.cluster.x-k8s.io": _object(
        "bootstrap.cluster.x-k8s.io/v1alpha1",
        "FastnessConfigTemplate",
        "workers",
        spec={"template": {"spec": {"pool": "worker"}}},
    ),
    "nodeproviders.management.loft.sh": _object(
        "management.loft.sh/v1",
        "NodeProvider",
        "bare-metal",
        spec={
            "metal3": {
                "clusterRef": {"cluster": "datacenter", "namespace": "metal3"},
                "nodeTypes": [
                    {
                        "name": "tdx-large",
                        "resources": {"cpu": "64", "memory": "512Gi"},
                        "bareMetalHosts": {"selector": {"matchLabels": {"confidential-compute": "tdx"}}},
                        "properties": {"confidential-compute": "tdx"},
                    }
                ],
            }
        },
    ),
    "nodetypes.management.loft.sh": _object(
        "management.loft.sh/v1", "NodeType", "bare-metal.tdx-large", spec={"providerRef": "bare-metal", "cost": 10}
    ),
    "nodeclaims.management.loft.sh": _object(
        "management.loft.sh/v1",
        "NodeClaim",
        "claim-1",
        spec={
            "typeRef": "bare-metal.tdx-large",
            "taints": [{"key": "tenant", "value": "blue", "effect": "NoSchedule"}],
        },
    ),
    "kbsconfigs.confidentialcontainers.org": _object(
        "confidentialcontainers.org/v1alpha1",
        "KbsConfig",
        "kbsconfig",
        spec={
            "kbsDeploymentType": "AllInOneDeployment",
            "kbsServiceType": "ClusterIP",
            "kbsSecretResources": ["kbsres1", "attestation-status"],
            "KbsEnvVars": {"RUST_LOG": "debug"},
            "KbsDeploymentSpec": {"replicas": 2},
            "kbsLocalCertCacheSpec": {"secrets": [{"secretName": "vcek", "mountPath": "/opt/vcek"}]},
        },
    ),
    "trusteeconfigs.confidentialcontainers.org": _object(
        "confidentialcontainers.org/v1alpha1",
        "TrusteeConfig",
        "trustee",
        spec={"profileType": "Restricted", "httpsSpec": {"tlsSecretName": "tls"}},
    ),
}

EXAMPLES = {**FASTNESS, **OTHERS, **REGISTRIES}

# Field selectors on verdicts, and the examples that they find.
SELECTIONS = {
    "spec.result=Refused": ["v-1"],
    "spec.result=Affirmed": [],
    "spec.subject.machine={machine},spec.result!=Affirmed": ["v-1"],
}
