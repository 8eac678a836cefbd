"""Changes to the examples that must be refused; see `examples.Refusal`."""

from __future__ import annotations

from typing import Any

from tests.unit.kinds.examples import DIGEST, LATER, NOW, OTHER_UID, THUMBPRINT, UID, Refusal
from tests.unit.kinds.registry_examples import KEY

_CLUSTER = "confidentialclusters.fastness.dev"
_TICKET = "jointickets.fastness.dev"
_VERDICT = "verdicts.fastness.dev"
_VALUES = "referencevaluesets.fastness.dev"
_POLICY = "appraisalpolicies.fastness.dev"
_DISTRUST = "distrusts.fastness.dev"
_OVERLAY = "nodeoverlays.fastness.dev"
_ROLLOUT = "rolloutpolicies.fastness.dev"
_BINDING = "resourcebindings.fastness.dev"
_BATCH = "auditbatches.fastness.dev"
_CHECKPOINT = "auditcheckpoints.fastness.dev"
_BLOB = "evidenceblobs.fastness.dev"
_MCO = "machineconfiguration.openshift.io"
_CONFIG = "config.openshift.io"
_OPERATOR = "machineconfigurations.operator.openshift.io"
_TEC = "trusted-execution-clusters.io"


def _spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


FASTNESS = [
    Refusal(_CLUSTER, _named("other"), "only one object", "rule", "is a singleton"),
    Refusal(_CLUSTER, _spec(mode="Strict"), "spec.mode"),
    Refusal(_CLUSTER, _spec(simulated="yes"), "spec.simulated"),
    Refusal(_CLUSTER, _spec(simulated=False), "spec.simulated", "transition", "simulated never changes"),
    Refusal(_CLUSTER, _spec(simulated=None), "spec.simulated", "transition", "simulated cannot be dropped"),
    Refusal(_CLUSTER, _spec(pools=[{"name": "worker"}]), "spec.pools[0].trustModel"),
    Refusal(_CLUSTER, _spec(pools=[{"name": "worker", "trustModel": "Some"}]), "spec.pools[0].trustModel"),
    Refusal(_CLUSTER, _spec(pools=[{"name": "Not A Name", "trustModel": "None"}]), "spec.pools[0].name"),
    Refusal(_CLUSTER, _spec(delivery={"via": "Pigeon"}), "spec.delivery.via"),
    Refusal(_CLUSTER, _spec(delivery={"interval": None}), "spec.delivery", "rule", "Scheduled needs an interval"),
    Refusal(_CLUSTER, _spec(attestation={"evidence": ["sgx"]}), "spec.attestation.evidence[0]"),
    Refusal(_CLUSTER, _spec(attestation={"evidence": []}), "spec.attestation.evidence"),
    Refusal(_CLUSTER, _spec(attestation={"tokenLifetime": "ten minutes"}), "spec.attestation.tokenLifetime"),
    Refusal(_CLUSTER, _spec(attestation={"extraRoots": [{"sha256": "ab", "for": "tpm", "reason": "x"}]}),
            "spec.attestation.extraRoots[0].sha256"),
    Refusal(_CLUSTER, _spec(attestation={"minimumTcb": {"snp": {"snp": 256}}}), "spec.attestation.minimumTcb.snp.snp"),
    Refusal(_CLUSTER, _spec(join={"approval": "Never"}), "spec.join.approval"),
    Refusal(_TICKET, _spec(pool=None), "spec.pool"),
    Refusal(_TICKET, _spec(uses=-1), "spec.uses"),
    Refusal(_TICKET, _spec(uses=5000), "spec.uses"),
    Refusal(_TICKET, _spec(secretHash="ab" * 32), "spec.secretHash", about="a digest carries its algorithm"),
    Refusal(_TICKET, _spec(pool="other"), "pool is immutable", "transition"),
    Refusal(_TICKET, _spec(secretHash="sha256:" + "00" * 32), "secretHash is immutable", "transition"),
    Refusal(_VERDICT, _spec(result="Maybe"), "spec.result"),
    Refusal(_VERDICT, _spec(subject={"machine": "worker-0"}), "spec.subject.machine"),
    Refusal(_VERDICT, _spec(subject={"keyThumbprint": None}), "spec.subject.keyThumbprint"),
    Refusal(_VERDICT, _spec(checks=[{"name": "x", "result": "Perhaps"}]), "spec.checks[0].result"),
    Refusal(_VERDICT, _spec(trustVector={"hardware": 300}), "spec.trustVector.hardware"),
    Refusal(_VERDICT, _spec(result="Affirmed"), "a verdict cannot be changed", "transition"),
    Refusal(_VALUES, _spec(source="rumour"), "spec.source"),
    Refusal(_VALUES, _spec(source="manual"), "image is required for source image", "rule"),
    Refusal(_VALUES, _spec(values=[{"name": "x"}]), "spec.values[0].value"),
    Refusal(_VALUES, _spec(values=[{"name": "x", "value": "1", "state": "Old"}]), "spec.values[0].state"),
    Refusal(_VALUES, _spec(values=[{"name": "x", "value": "ab", "algorithm": "sha256"}]), "lower-case hex", "rule"),
    Refusal(_VALUES, _spec(values=[{"name": "x", "value": "3.5", "type": "Number"}]), "of its type", "rule"),
    Refusal(_VALUES, _spec(values=[{"name": "x", "value": "yes", "type": "Boolean"}]), "of its type", "rule", "knows flags"),
    Refusal(_VALUES, _spec(values=[{"name": "x", "value": "1", "type": "Date"}]), "spec.values[0].type"),
    Refusal(_VALUES, _spec(withdrawn={"reason": "removed"}), "spec.withdrawn.at"),
    Refusal(_VALUES, _spec(validity={"notBefore": LATER, "notAfter": NOW}), "end after it begins", "rule"),
    Refusal(_POLICY, {"spec": {"for": "sgx"}}, "spec.for"),
    Refusal(_POLICY, {"spec": {"for": "a/b"}}, "spec.for", about="a resource has three segments"),
    Refusal(_POLICY, _spec(rego=""), "spec.rego"),
    Refusal(_POLICY, _spec(cases=[{"name": "x", "input": {}}]), "spec.cases[0].expect"),
    Refusal(_DISTRUST, _spec(reason=None), "spec.reason"),
    Refusal(_DISTRUST, _spec(machine=None), "exactly one of", "rule", "needs a target"),
    Refusal(_DISTRUST, _spec(tenant="blue"), "exactly one of", "rule", "has only one target"),
    Refusal(_DISTRUST, _spec(machine=None, image="quay.example.com/os:latest"), "spec.image"),
    Refusal(_DISTRUST, _spec(machine=None, tcbBelow={}), "spec.tcbBelow"),
    Refusal(_DISTRUST, _spec(machine=OTHER_UID), "machine is immutable", "transition"),
    Refusal(_DISTRUST, _spec(machine=None, key=THUMBPRINT), "machine is immutable", "transition", "keeps its target"),
    Refusal(_OVERLAY, _spec(match={"machines": [UID]}), "exactly one of machines, properties", "rule"),
    Refusal(_OVERLAY, _spec(match={"properties": None}), "exactly one of machines, properties", "rule", "matches something"),
    Refusal(_OVERLAY, _spec(config=None), "spec.config"),
    Refusal(_OVERLAY, _spec(priority=1001), "spec.priority"),
    Refusal(_ROLLOUT, _spec(waves=[{"count": 1, "percent": 5}]), "exactly one of count, percent", "rule"),
    Refusal(_ROLLOUT, _spec(waves=[{"percent": 101}]), "spec.waves[0].percent"),
    Refusal(_ROLLOUT, _spec(window={"start": "25:00"}), "spec.window.start"),
    Refusal(_ROLLOUT, _spec(stopOn={"degraded": 0}), "spec.stopOn.degraded"),
    Refusal(_ROLLOUT, _spec(tryFor="soon"), "spec.tryFor"),
    Refusal(_BINDING, _spec(resource="../../etc/passwd/x Y"), "spec.resource"),
    Refusal(_BINDING, _spec(subjects={"machines": None, "pools": None, "tenants": None}), "at least one of", "rule"),
    Refusal(_BATCH, _spec(sequence=0), "spec.sequence"),
    Refusal(_BATCH, _spec(entries=[]), "spec.entries"),
    Refusal(_BATCH, _spec(entries=[{"time": NOW, "what": "x", "who": "me"}] * 101), "spec.entries"),
    Refusal(_BATCH, _spec(previous="md5:abc"), "spec.previous"),
    Refusal(_BATCH, _spec(key=None), "spec.key"),
    Refusal(_BATCH, _spec(signature=None), "spec.signature"),
    Refusal(_BATCH, _spec(sequence=3), "a batch cannot be changed", "transition"),
    Refusal(_CHECKPOINT, _spec(size=-1), "spec.size"),
    Refusal(_CHECKPOINT, _spec(size=43), "a checkpoint cannot be changed", "transition"),
    Refusal("spentchallenges.fastness.dev", _spec(expires=None), "spec.expires"),
    Refusal("spentchallenges.fastness.dev", _spec(expires=NOW), "a spent challenge cannot be changed", "transition"),
    Refusal("seenlaunches.fastness.dev", _spec(use="Twice"), "spec.use"),
    Refusal("seenlaunches.fastness.dev", _spec(key="short"), "spec.key"),
    Refusal(
        "seenlaunches.fastness.dev", _spec(use="Session"), "a launch that was seen cannot be changed", "transition"
    ),
    Refusal(_BLOB, _spec(encoding="rot13"), "spec.encoding"),
    Refusal(_BLOB, _spec(data="A" * 700_000), "spec.data"),
    Refusal(_BLOB, _spec(type="tdx"), "evidence cannot be changed", "transition"),
]  # fmt: skip

_MOSC = f"machineosconfigs.{_MCO}"
_MOSB = f"machineosbuilds.{_MCO}"


def _disruption(*actions: dict[str, Any]) -> dict[str, Any]:
    return _spec(nodeDisruptionPolicy={"sshkey": {"actions": list(actions)}})


OTHERS = [
    Refusal(f"machineconfigs.{_MCO}", _spec(config="a string"), "spec.config"),
    Refusal(f"machineconfigpools.{_MCO}", _spec(maxUnavailable=1.5), "spec.maxUnavailable"),
    Refusal(f"machineconfigpools.{_MCO}", _spec(pinnedImageSets=[{"name": f"s{i}"} for i in range(101)]),
            "spec.pinnedImageSets"),
    Refusal(f"controllerconfigs.{_MCO}", _spec(ipFamilies="IPv5"), "spec.ipFamilies"),
    Refusal(f"kubeletconfigs.{_MCO}", _spec(logLevel=11), "spec.logLevel"),
    Refusal(f"nodes.{_CONFIG}", _spec(cgroupMode="v3"), "spec.cgroupMode", about="there are two versions of control groups"),
    Refusal(f"nodes.{_CONFIG}", _spec(workerLatencyProfile="Slow"), "spec.workerLatencyProfile"),
    Refusal(f"featuregates.{_CONFIG}", _spec(featureSet="All"), "spec.featureSet"),
    Refusal(f"apiservers.{_CONFIG}", _spec(tlsSecurityProfile={"type": "Ancient"}), "spec.tlsSecurityProfile"),
    Refusal(f"apiservers.{_CONFIG}", _spec(tlsSecurityProfile={"custom": {"groups": ["secp224r1"]}}),
            "spec.tlsSecurityProfile"),
    Refusal(f"apiservers.{_CONFIG}", _spec(tlsSecurityProfile={"custom": {"minTLSVersion": "VersionSSL30"}}),
            "spec.tlsSecurityProfile"),
    Refusal(f"containerruntimeconfigs.{_MCO}", _spec(containerRuntimeConfig={"defaultRuntime": "rkt"}),
            "spec.containerRuntimeConfig.defaultRuntime"),
    Refusal(f"containerruntimeconfigs.{_MCO}", _spec(containerRuntimeConfig={"overlaySize": "big"}),
            "spec.containerRuntimeConfig.overlaySize"),
    Refusal(_MOSC, _spec(imageBuilder={"imageBuilderType": "Pod"}), "spec.imageBuilder.imageBuilderType"),
    Refusal(_MOSC, _spec(renderedImagePushSpec="a.b/" + "x" * 450 + ":t"), "spec.renderedImagePushSpec", about="447 at most"),
    Refusal(_MOSC, _spec(containerFile=[{"content": "x" * 4097}]), "spec.containerFile[0].content"),
    Refusal(_MOSC, _spec(containerFile=[{"containerfileArch": "RISCV", "content": ""}]),
            "spec.containerFile[0].containerfileArch"),
    Refusal(_MOSB, _spec(machineConfig={"name": "short"}), "spec.machineConfig.name"),
    Refusal(f"pinnedimagesets.{_MCO}", _spec(pinnedImages=[]), "spec.pinnedImages"),
    Refusal(f"osimagestreams.{_MCO}", _spec(defaultStream=None), "spec.defaultStream"),
    Refusal(f"kubeletconfigs.{_MCO}", _spec(systemGomaxprocsBehavior="Some"), "spec.systemGomaxprocsBehavior"),
    Refusal(f"kubeletconfigs.{_MCO}", _spec(tlsSecurityProfile={"type": "Newest"}), "spec.tlsSecurityProfile.type", "rule"),
    Refusal(f"kubeletconfigs.{_MCO}", _spec(tlsSecurityProfile={"custom": {"minTLSVersion": "1.3"}}),
            "spec.tlsSecurityProfile.custom.minTLSVersion", "rule"),
    Refusal(f"kubeletconfigs.{_MCO}", _spec(tlsSecurityProfile={"custom": {"groups": ["P-256"]}}),
            "spec.tlsSecurityProfile.custom.groups[0]", "rule"),
    Refusal(f"containerruntimeconfigs.{_MCO}", _spec(containerRuntimeConfig={"additionalLayerStores": []}),
            "spec.containerRuntimeConfig.additionalLayerStores", about="no empty list of stores"),
    Refusal(f"containerruntimeconfigs.{_MCO}", _spec(containerRuntimeConfig={"additionalLayerStores": [
            {"path": f"/{i}"} for i in range(6)]}),
            "spec.containerRuntimeConfig.additionalLayerStores", about="five layer stores"),
    Refusal(f"containerruntimeconfigs.{_MCO}", _spec(containerRuntimeConfig={"additionalImageStores": [
            {"path": f"/{i}"} for i in range(11)]}),
            "spec.containerRuntimeConfig.additionalImageStores", about="ten image stores"),
    Refusal(f"containerruntimeconfigs.{_MCO}", _spec(containerRuntimeConfig={"containerGomaxprocsBehavior": "Some"}),
            "spec.containerRuntimeConfig.containerGomaxprocsBehavior"),
    Refusal(f"machineconfigpools.{_MCO}", _spec(pinnedImageSets=[{"name": "not_a_name"}]), "spec.pinnedImageSets[0].name",
            about="sets have names of hosts"),
    Refusal(f"controllerconfigs.{_MCO}", _spec(infra={"kind": "Infrastructure", "spec": {}}), "spec.infra.apiVersion",
            "rule", "a copy says what it is"),
    Refusal(f"controllerconfigs.{_MCO}", _spec(bgpVIPPeersJSON=""), "spec.bgpVIPPeersJSON"),
    Refusal(_OPERATOR, _disruption({"type": "Explode"}), "spec.nodeDisruptionPolicy.sshkey.actions[0].type"),
    Refusal(_OPERATOR, _disruption({"type": "Special"}), "spec.nodeDisruptionPolicy.sshkey.actions[0].type"),
    Refusal(_OPERATOR, _disruption(*[{"type": "Drain"}] * 11), "spec.nodeDisruptionPolicy.sshkey.actions"),
    Refusal(_OPERATOR, _spec(irreconcilableValidationOverrides={"storage": ["Tapes"]}),
            "spec.irreconcilableValidationOverrides.storage[0]"),
    Refusal(_OPERATOR, _spec(bootImageSkewEnforcement={"manual": {"ocpVersion": "4.18"}}),
            "spec.bootImageSkewEnforcement.manual.ocpVersion"),
    Refusal(f"trustedexecutionclusters.{_TEC}", _spec(trusteeKbsPort=70000), "spec.trusteeKbsPort"),
    Refusal(f"trustedexecutionclusters.{_TEC}", _spec(publicTrusteeAddr="evil.example.com"),
            "publicTrusteeAddr is immutable", "transition"),
    Refusal(f"trustedexecutionclusters.{_TEC}", _spec(trusteeSecret=None), "trusteeSecret is immutable", "transition"),
    Refusal(f"machines.{_TEC}", _spec(id="worker-0"), "spec.id"),
    Refusal(f"machines.{_TEC}", _spec(id=OTHER_UID), "id is immutable", "transition"),
    Refusal(f"approvedimages.{_TEC}", _spec(image="quay.example.com/os:latest"), "spec.image"),
    Refusal(f"approvedimages.{_TEC}", _spec(image="other.example.com/os@" + DIGEST), "image is immutable", "transition"),
    Refusal(f"attestationkeys.{_TEC}", _spec(publicKey=None), "spec.publicKey"),
    Refusal(f"attestationkeys.{_TEC}", _spec(publicKey="another"), "publicKey is immutable", "transition"),
    Refusal(f"attestationkeys.{_TEC}", _spec(uuid=OTHER_UID), "uuid is immutable", "transition"),
    Refusal(f"machines.{_TEC}", _spec(approval="Perhaps"), "spec.approval"),
    Refusal("kataconfigs.kataconfiguration.openshift.io", _spec(logLevel="loud"), "spec.logLevel"),
    Refusal("nodefeaturerules.nfd.openshift.io", _spec(rules=[{"labels": {}}]), "spec.rules[0].name"),
    Refusal("nodefeaturerules.nfd.openshift.io", _spec(rules=[{"name": "x", "matchFeatures": [
            {"feature": "a.b", "matchExpressions": {"c": {"op": "Is"}}}]}]),
            "spec.rules[0].matchFeatures[0].matchExpressions.c.op"),
    Refusal("nodefeaturerules.nfd.openshift.io", _spec(rules=[{"name": "x", "taints": [{"key": "a", "effect": "Never"}]}]),
            "spec.rules[0].taints[0].effect"),
    Refusal("nodefeatures.nfd.openshift.io", _spec(features={"flags": {"a.b": {}}}), "elements"),
    Refusal("fastnessconfigs.bootstrap.cluster.x-k8s.io", _spec(pool=None), "spec.pool", about="no pool"),
    Refusal("fastnessconfigs.bootstrap.cluster.x-k8s.io", _spec(pool="Not A Name"), "spec.pool"),
    Refusal("fastnessconfigtemplates.bootstrap.cluster.x-k8s.io", _spec(template=None), "spec.template"),
    Refusal("nodeproviders.management.loft.sh", _spec(bcm={}), "exactly one of", "rule", "one source"),
    Refusal("nodeproviders.management.loft.sh", _spec(metal3=None), "exactly one of", "rule", "some source"),
    Refusal("nodetypes.management.loft.sh", _spec(resources={"memory": "lots"}), "spec.resources.memory"),
    Refusal("nodeclaims.management.loft.sh", _spec(taints=[{"key": "a", "effect": "Never"}]), "spec.taints[0].effect"),
    Refusal("kbsconfigs.confidentialcontainers.org", _spec(kbsDeploymentType="Both"), "spec.kbsDeploymentType"),
    Refusal("trusteeconfigs.confidentialcontainers.org", _spec(profileType="Lenient"), "spec.profileType"),
]  # fmt: skip

_IDMS = "imagedigestmirrorsets.config.openshift.io"
_ITMS = "imagetagmirrorsets.config.openshift.io"
_SIGNED = "clusterimagepolicies.config.openshift.io"
_SIGNED_HERE = "imagepolicies.config.openshift.io"


def _mirrored(**entry: Any) -> dict[str, Any]:
    return _spec(imageDigestMirrors=[{"source": "quay.example.com", "mirrors": ["mirror.example.com"], **entry}])


def _trust(**members: Any) -> dict[str, Any]:
    return _spec(policy={"rootOfTrust": members})


def _identity(**members: Any) -> dict[str, Any]:
    return _spec(policy={"signedIdentity": members})


_SCOPE = "spec.scopes[0]"
_ROOT = "spec.policy.rootOfTrust"
REGISTRIES = [
    Refusal(_IDMS, {"spec": None}, "spec"),
    Refusal(_IDMS, _mirrored(source=None), "spec.imageDigestMirrors[0].source"),
    Refusal(_IDMS, _mirrored(source="quay.example.com/Team"), "spec.imageDigestMirrors[0].source", about="lower case paths"),
    Refusal(_IDMS, _mirrored(source="*.example.com/team"), "spec.imageDigestMirrors[0].source", about="no path with *"),
    Refusal(_IDMS, _mirrored(source="https://quay.example.com"), "spec.imageDigestMirrors[0].source", about="no scheme"),
    Refusal(_IDMS, _mirrored(mirrors=["*.example.com"]), "spec.imageDigestMirrors[0].mirrors[0]", about="no wildcard"),
    Refusal(_IDMS, _mirrored(mirrorSourcePolicy="Sometimes"), "spec.imageDigestMirrors[0].mirrorSourcePolicy"),
    Refusal(_ITMS, _spec(imageTagMirrors=[{"source": "a b"}]), "spec.imageTagMirrors[0].source"),
    Refusal("imagecontentsourcepolicies.operator.openshift.io", _spec(repositoryDigestMirrors=[{"mirrors": []}]),
            "spec.repositoryDigestMirrors[0].source"),
    Refusal("images.config.openshift.io", _spec(registrySources={"containerRuntimeSearchRegistries": []}),
            "spec.registrySources.containerRuntimeSearchRegistries"),
    Refusal("images.config.openshift.io", _spec(registrySources={"blockedRegistries": "all"}),
            "spec.registrySources.blockedRegistries"),
    Refusal(_SIGNED, _spec(scopes=None), "spec.scopes"),
    Refusal(_SIGNED, _spec(scopes=["busybox"]), _SCOPE, about="a full name"),
    Refusal(_SIGNED, _spec(scopes=["*.example.com/x"]), _SCOPE, about="no path after a wildcard"),
    Refusal(_SIGNED, _spec(scopes=["example.*.com"]), _SCOPE, about="wildcards at the start only"),
    Refusal(_SIGNED, _spec(scopes=[f"quay.example.com/{n}" for n in range(257)]), "spec.scopes", about="256 at most"),
    Refusal(_SIGNED_HERE, _trust(policyType="Faith"), f"{_ROOT}.policyType"),
    Refusal(_SIGNED_HERE, _trust(publicKey={"keyData": "x" * 8193}), f"{_ROOT}.publicKey.keyData"),
    Refusal(_SIGNED_HERE, _trust(publicKey=None), "publicKey is required when policyType is PublicKey", "rule"),
    Refusal(_SIGNED_HERE, _trust(policyType="PKI"), "pki is required when policyType is PKI", "rule"),
    Refusal(_SIGNED_HERE, _trust(policyType="FulcioCAWithRekor"), "fulcioCAWithRekor is required when policyType is", "rule"),
    Refusal(_SIGNED_HERE, _trust(policyType="PKI", publicKey=None, pki={"caRootsData": KEY, "pkiCertificateSubject": {}}),
            "at least one of email or hostname", "rule"),
    Refusal(_SIGNED_HERE, _identity(matchPolicy="MatchRepository"), "remapIdentity is required when matchPolicy is", "rule"),
    Refusal(_SIGNED_HERE, _identity(matchPolicy="ExactRepository", remapIdentity=None), "exactRepository is required", "rule"),
    Refusal(_SIGNED_HERE, _identity(remapIdentity={"prefix": "quay.example.com/a:tag"}),
            "spec.policy.signedIdentity.remapIdentity.prefix", about="no tag"),
]  # fmt: skip

REFUSALS = [*FASTNESS, *OTHERS, *REGISTRIES]
