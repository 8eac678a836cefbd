"""All kinds are found, each under its names, and no name means two things."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastness.kinds import registry
from fastness.kinds.errors import DuplicateKind, UnknownKind
from fastness.kinds.kind import Kind, Scope
from fastness.kinds.kubernetes import definitions
from fastness.kinds.kubernetes.native import DESCRIPTIONS

KINDS = registry.all_kinds()

USERS_TOUCH = """
CustomResourceDefinition Namespace Project Route Proxy ClusterVersion Infrastructure OperatorGroup Subscription InstallPlan
ClusterServiceVersion SecurityContextConstraints ClusterPolicy NodeFeature MachineSet ControlPlaneMachineSet BareMetalHost
DeploymentConfig ReplicationController ReplicaSet Deployment StatefulSet DaemonSet Job CronJob PersistentVolumeClaim StorageClass
NetworkPolicy PodDisruptionBudget ServiceMonitor PrometheusRule ValidatingWebhookConfiguration MutatingWebhookConfiguration
ValidatingAdmissionPolicy
MachineConfig MachineConfigPool ControllerConfig KubeletConfig ContainerRuntimeConfig MachineOSConfig MachineOSBuild
MachineConfigNode PinnedImageSet MachineConfiguration TrustedExecutionCluster Machine ApprovedImage AttestationKey KataConfig
NodeFeatureDiscovery NodeFeatureRule NodeProvider NodeType NodeClaim KbsConfig TrusteeConfig
ConfidentialCluster JoinTicket Verdict ReferenceValueSet AppraisalPolicy Distrust NodeOverlay RolloutPolicy ResourceBinding
AuditBatch AuditCheckpoint SpentChallenge SeenLaunch EvidenceBlob TenantCluster
Pod Node Secret ConfigMap Service ServiceAccount Event Endpoints EndpointSlice Lease Role RoleBinding ClusterRole
ClusterRoleBinding CertificateSigningRequest RuntimeClass PriorityClass Ingress IngressClass LimitRange ResourceQuota
PersistentVolume APIService ControllerRevision ValidatingAdmissionPolicyBinding
SelfSubjectReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview LocalSubjectAccessReview TokenReview
"""


def test_every_kind_that_users_touch_is_registered() -> None:
    assert set(USERS_TOUCH.split()) - {kind.kind for kind in KINDS} == set()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.api_version}/{kind.kind}")
def test_kind_has_what_a_client_needs(kind: Kind) -> None:
    assert kind.description.endswith("."), "a sentence"
    assert kind.plural.islower()
    assert kind.singular.islower()
    assert kind.kind[0].isupper()
    assert kind.list_kind == f"{kind.kind}List"
    assert kind.native or kind.schema["type"] == "object"
    assert all(name.islower() for name in kind.short_names)


def test_each_name_finds_its_kind() -> None:
    for name in ("machineconfigpools", "machineconfigpool", "MachineConfigPool", "mcp"):
        assert registry.find("machineconfiguration.openshift.io", "v1", name).kind == "MachineConfigPool"
    assert registry.find("", "v1", "po").kind == "Pod"
    assert registry.find("fastness.dev", "", "Verdict").version == "v1alpha1"


def test_unknown_name_comes_with_the_closest_one() -> None:
    with pytest.raises(UnknownKind) as caught:
        registry.find("fastness.dev", "v1alpha1", "verdit")
    assert caught.value.hint == "did you mean 'verdict'?"


def test_rules_of_feature_discovery_have_three_addresses_and_one_storage() -> None:
    rules = [kind for kind in KINDS if kind.kind == "NodeFeatureRule"]
    assert {kind.api_version for kind in rules} == {
        "nfd.openshift.io/v1alpha1", "nfd.openshift.io/v1", "nfd.k8s-sigs.io/v1alpha1",
    }  # fmt: skip
    assert {kind.storage for kind in rules} == {("nfd.openshift.io", "nodefeaturerules")}


def test_events_of_both_groups_share_their_storage() -> None:
    assert registry.find("events.k8s.io", "v1", "events").storage == registry.find("", "v1", "events").storage


def test_a_project_is_a_namespace_to_look_at() -> None:
    project = registry.find("project.openshift.io", "v1", "projects")
    assert project.storage == ("", "namespaces")
    assert set(project.verbs) == {"get", "list", "watch"}


def test_kinds_that_show_another_kind_can_only_be_read() -> None:
    own = {kind.storage: kind.kind for kind in KINDS if kind.storage == (kind.group, kind.plural)}
    for kind in KINDS:
        assert kind.kind == own[kind.storage] or not {"create", "update", "patch", "delete"} & set(kind.verbs)


def test_storage_is_ones_own_otherwise() -> None:
    shared = {"NodeFeatureRule", "NodeFeature", "Event", "Project"}
    for kind in KINDS:
        assert kind.kind in shared or kind.storage == (kind.group, kind.plural)


def test_native_kinds_are_those_of_the_pinned_server() -> None:
    native = {(kind.group, kind.plural): kind for kind in KINDS if kind.native}
    assert native.keys() == {(resource.group, resource.plural) for resource in definitions.resources()}
    for resource in definitions.resources():
        kind = native[resource.group, resource.plural]
        assert (kind.namespaced, kind.verbs, kind.short_names) == (
            resource.namespaced,
            resource.verbs,
            resource.short_names,
        )
        assert definitions.definition(kind.definition)["type"] == "object"
    assert not native["", "namespaces"].namespaced
    assert "deletecollection" not in native["", "namespaces"].verbs
    assert "eviction" in native["", "pods"].subresources


def test_descriptions_of_native_kinds_are_all_used() -> None:
    assert DESCRIPTIONS.keys() == {resource.kind for resource in definitions.resources()}


def test_questions_are_not_stored() -> None:
    computed = {kind.kind for kind in KINDS if kind.computed}
    assert computed == {
        "Binding", "SelfSubjectReview", "TokenReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview",
        "SelfSubjectRulesReview", "SubjectAccessReview",
    }  # fmt: skip


def kind(**fields: object) -> Kind:
    """A kind of no interest."""
    base = Kind(group="example.com", version="v1", kind="Thing", plural="things", scope=Scope.CLUSTER)
    return replace(base, **fields)  # type: ignore[arg-type]  # fields of Kind, checked by the constructor


def test_second_claim_to_a_name_is_refused() -> None:
    other = Kind(
        group="example.com", version="v1", kind="Other", plural="others", scope=Scope.CLUSTER, short_names=("thing",)
    )
    with pytest.raises(DuplicateKind, match="both claim 'thing'"):
        registry.index([kind(), other])


def test_same_name_in_two_groups_is_fine() -> None:
    index = registry.index([kind(), kind(group="example.org", storage=("example.org", "things"))])
    assert {group for group, _, _ in index} == {"example.com", "example.org"}


def test_versions_must_agree_on_names() -> None:
    with pytest.raises(DuplicateKind, match="disagree"):
        registry.check_versions([kind(), kind(version="v2", storage_version=False, short_names=("th",))])


@pytest.mark.parametrize("stored", [(True, True), (False, False)])
def test_exactly_one_version_is_stored(stored: tuple[bool, bool]) -> None:
    versions = [kind(version=f"v{at}", storage_version=flag) for at, flag in enumerate(stored)]
    with pytest.raises(DuplicateKind, match="exactly one stored version"):
        registry.check_versions(versions)
