"""What nothing acts on, over the wire: a write of each entry is warned of, and the object says so as long as it is set."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.not_acted_on import ENTRIES, NotActedOn, conditions_of
from fastness.kinds.objects import ObjectName, condition
from fastness.kinds.registry import find
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.not_acted_on import ACTED_ON, EmbeddedNotActedOnLoop, NotActedOnLoop, ObjectPlace
from fastness.kube.events import EVENTS
from fastness.kube.informers import Informers
from fastness.kube.places import EMBEDDED, HOME
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.unit.kinds.examples import EXAMPLES
from tests.virtual import VirtualClock

TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"},
}
ONCE = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}  # type: ignore[dict-item]
SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
CLIENT = {"url": "https://hook.example/x"}
HOOK = {
    "name": "a.example.org",
    "clientConfig": CLIENT,
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [],
}
NATIVE: dict[str, JsonObject] = {
    "Deployment": {"spec": SELECTED}, "ReplicaSet": {"spec": SELECTED}, "DaemonSet": {"spec": SELECTED},
    "StatefulSet": {"spec": {**SELECTED, "serviceName": "s"}},
    "ReplicationController": {"spec": {"selector": {"a": "b"}, "template": TEMPLATE}},
    "Job": {"spec": {"template": ONCE}},
    "CronJob": {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONCE}}}},
    "Service": {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    "NetworkPolicy": {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}},
    "PersistentVolumeClaim": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    "PersistentVolume": {"spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}},
    "LimitRange": {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}},
    "ResourceQuota": {"spec": {"hard": {"pods": "1"}}},
    "ValidatingWebhookConfiguration": {"webhooks": [HOOK]}, "MutatingWebhookConfiguration": {"webhooks": [HOOK]},
    "ValidatingAdmissionPolicy": {"spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
        "validations": [{"expression": "true"}]}},
    "ValidatingAdmissionPolicyBinding": {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
    "APIService": {"spec": {
        "group": "g.example", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
        "service": {"name": "s", "namespace": "d"}, "insecureSkipTLSVerify": True}},
}  # fmt: skip
NAMES = {
    "MachineOSConfig": "worker",
    "APIService": "v1.g.example",
    "MachineConfiguration": "cluster",
    "ConfidentialCluster": "cluster",
    "Image": "cluster",
}
# Values where a short text is not one of the field.
VALUES: dict[str, Any] = {
    "spec.attestation.minimumTcb.nvidia": {"driver": "550.54"},
    "spec.managementState": "Unmanaged", "spec.logLevel": "Debug", "spec.operatorLogLevel": "Debug",
    "spec.failedRevisionLimit": 3, "spec.succeededRevisionLimit": 3,
    "spec.observedConfig": {"a": "b"}, "spec.unsupportedConfigOverrides": {"a": "b"},
    "spec.etcdCAData": "YQ==", "spec.kubeletIPv6": True, "spec.internalRegistryPullSecret": "YQ==",
    "spec.network": {"mtuMigration": {"network": {"from": 1400}}}, "spec.enableMixedCluster": True,
    "spec.kbsServiceType": "NodePort", "spec.kbsDeploymentType": "AllInOneDeployment",
    "spec.KbsEnvVars": {"A": "b"}, "spec.KbsDeploymentSpec": {"replicas": 2},
    "spec.kbsLocalCertCacheSpec": {"secrets": [{"secretName": "s", "mountPath": "/x"}]},
    "spec.tdxConfigSpec": {"kbsTdxConfigMapName": "c"}, "spec.ibmSEConfigSpec": {"certStorePvc": "p"},
    "spec.httpsSpec": {"tlsSecretName": "s"}, "spec.attestationTokenVerificationSpec": {"tlsSecretName": "s"},
    "spec.operand": {"image": "i"},
    "spec.allowedRegistriesForImport": [{"domainName": "quay.example"}], "spec.externalRegistryHostnames": ["quay.example"],
    "spec.imageStreamImportMode": "Legacy", "runAsUser": {"type": "RunAsAny"},
}  # fmt: skip


def example(entry: NotActedOn) -> JsonObject:
    """An object that sets the field of an entry."""
    kind = entry.kind
    bare: JsonObject = {"spec": {}} if kind.kind != "SecurityContextConstraints" else {}
    obj: JsonObject = copy.deepcopy(EXAMPLES.get(kind.crd_name) or NATIVE.get(kind.kind) or bare)
    obj |= {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": NAMES.get(kind.kind, "walk")}}
    obj.pop("status", None)
    if kind.native or not entry.field:
        return obj if kind.native or obj.get("spec") else {**obj, "spec": {"a": "b"}}
    *parents, last = entry.field.split(".")
    place = obj
    for name in parents:
        if name.endswith("[]"):
            place.setdefault(name[:-2], []).append({"name": "walk", "trustModel": "ConfidentialCluster"})
            place = place[name[:-2]][-1]
        else:
            place = place.setdefault(name, {})
    place[last] = VALUES.get(entry.field, "x")
    return obj


async def test_a_write_of_each_entry_is_warned_of(embedded_server: Embedded) -> None:
    unwarned = []
    async with embedded_server.client() as admin:
        for entry in ENTRIES:
            path = entry.kind.resource.path(HOME if entry.kind.namespaced else None)
            answer = await admin.post(path, json=example(entry), params={"dryRun": "All"})
            texts = answer.headers.get_list("warning")
            if answer.status_code != 201 or f'299 - "{entry.warning}"' not in [
                text.replace('\\"', '"') for text in texts
            ]:
                unwarned.append((entry.kind.kind, entry.field, answer.status_code, answer.text[:200], texts))
    assert not unwarned


class Bench:
    """Both loops over one API, driven by hand."""

    def __init__(self, embedded: Embedded) -> None:
        self.cluster = embedded.cluster
        clock = VirtualClock()
        informers = Informers(self.cluster, clock=clock, entropy=SystemEntropy(), places=EMBEDDED)

        def fenced(loop: type[NotActedOnLoop | EmbeddedNotActedOnLoop]) -> FencedCluster:
            return FencedCluster(self.cluster, loop.name, loop.writes)

        self.loops: tuple[Controller, ...] = (
            NotActedOnLoop(fenced(NotActedOnLoop), informers, clock),
            EmbeddedNotActedOnLoop(fenced(EmbeddedNotActedOnLoop), clock),
        )

    async def look(self, kind: Kind, name: str, namespace: str = "") -> JsonObject:
        """The object after the loops have looked at it."""
        for loop in self.loops:
            for source in loop.sources:
                if source.resource == kind.resource:
                    for key in source.keys(await self.cluster.get(kind.resource, name, namespace)):
                        await loop.reconcile(key)
        return await self.cluster.get(kind.resource, name, namespace)

    async def create(self, kind: Kind, name: str, namespace: str = "", **rest: Any) -> None:
        """Write an object."""
        meta = {"name": name, **({"namespace": namespace} if namespace else {})}
        await self.cluster.create(
            kind.resource, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **rest}
        )


@pytest.fixture
async def bench(embedded_server: Embedded) -> Bench:
    return Bench(embedded_server)


SETTINGS = find("operator.openshift.io", "", "MachineConfiguration")
BROKER = find("confidentialcontainers.org", "", "TrusteeConfig")


async def test_the_object_says_what_is_not_acted_on_until_it_is_taken_out(bench: Bench) -> None:
    await bench.create(SETTINGS, "cluster", spec={"logLevel": "Debug", "forceRedeploymentReason": "please"})
    entry = condition(await bench.look(SETTINGS, "cluster"), ACTED_ON)
    assert entry is not None
    assert (entry["status"], entry["reason"], entry["observedGeneration"]) == ("False", "NotActedOn", 1)
    assert "spec.logLevel: stored" in entry["message"]
    assert "spec.forceRedeploymentReason: stored" in entry["message"]
    quiet = {"spec": {"logLevel": "Normal", "forceRedeploymentReason": None}}
    await bench.cluster.patch(SETTINGS.resource, "cluster", quiet, PatchType.MERGE)
    assert condition(await bench.look(SETTINGS, "cluster"), ACTED_ON) is None


async def test_conditions_of_others_stay_and_a_second_look_writes_nothing(bench: Bench) -> None:
    await bench.create(BROKER, "k", HOME, spec={"profileType": "Restricted", "kbsServiceType": "NodePort"})
    other = {
        "type": "Ready",
        "status": "True",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"conditions": [other]}}
    await bench.cluster.patch(BROKER.resource, "k", status, PatchType.MERGE, HOME, WriteOptions(subresource="status"))
    first = await bench.look(BROKER, "k", HOME)
    assert [entry["type"] for entry in first["status"]["conditions"]] == ["Ready", ACTED_ON]
    assert await bench.look(BROKER, "k", HOME) == first


async def test_an_object_that_asks_for_nothing_is_left_alone(bench: Bench) -> None:
    await bench.create(SETTINGS, "cluster", spec={"logLevel": "Normal"})
    before = await bench.cluster.get(SETTINGS.resource, "cluster")
    assert await bench.look(SETTINGS, "cluster") == before


async def test_workloads_of_kubernetes_say_it_in_their_own_conditions(bench: Bench) -> None:
    deployment = find("apps", "", "Deployment")
    await bench.create(find("", "", "Namespace"), "d")
    await bench.create(deployment, "web", "d", **NATIVE["Deployment"])
    entry = condition(await bench.look(deployment, "web", "d"), ACTED_ON)
    assert entry is not None
    assert "no controller of this API makes pods" in entry["message"]


async def test_a_kind_without_conditions_gets_an_event(bench: Bench) -> None:
    policy = find("networking.k8s.io", "", "NetworkPolicy")
    assert not conditions_of(policy)
    await bench.create(find("", "", "Namespace"), "d")
    await bench.create(policy, "p", "d", **NATIVE["NetworkPolicy"])
    before = await bench.cluster.get(policy.resource, "p", "d")
    assert await bench.look(policy, "p", "d") == before
    events = (await bench.cluster.list(EVENTS)).items
    assert [(event["type"], event["reason"], event["involvedObject"]["name"]) for event in events] == [
        ("Warning", "NotActedOn", "p")
    ]
    assert "there is no network of pods" in events[0]["message"]


async def test_an_object_that_is_gone_or_going_is_nothing_to_say(bench: Bench) -> None:
    gone = ObjectPlace(SETTINGS.group, SETTINGS.plural, ObjectName("", "cluster"))
    assert not (await bench.loops[0].reconcile(gone)).resync
