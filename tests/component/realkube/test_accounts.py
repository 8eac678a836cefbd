"""The accounts of doors and controllers on a real API server: each works with its own, and opens nothing of another."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fastness.agent.boot.configs import ConfigRefused, NodeConfigs, NodeIdentity
from fastness.app.accounts import (
    ACCOUNTS,
    BROKER,
    CONFIG_SERVER,
    CONTROLLERS,
    ENROLMENT,
    GATE,
    PAGE,
    WEBHOOK,
    adopted,
    everything,
)
from fastness.app.role_accounts import RoleAccount
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.crypto.x509 import CertificateAuthority
from fastness.enrolment.door.server import enrolment_door
from fastness.http.opening import ListenOptions
from fastness.keys.authorities import SECRETS
from fastness.keys.client_authorities import ClientAuthorities
from fastness.keys.keyrings import KeySecret
from fastness.keys.mac_keys import MAC_KEYS
from fastness.kinds.crd import manifests
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.connection import Impersonation, context_for
from fastness.kube.errors import Forbidden, Invalid
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from fastness.record.signing import batch_name
from fastness.release.door.broker.opening import broker_door
from fastness.release.door.config_server.server import config_server
from fastness.release.door.gate.server import gate
from fastness.release.live.signed_configs import CONFIG_KEYS, ConfigSigner
from fastness.release.live.tokens import TOKEN_KEYS, TokenIssuer
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.release.broker.brokered_cluster import until
from tests.component.release.config_server.doors import CONFIG, POOL, pool, rendered
from tests.contract.worlds import served
from tests.patience import PATIENCE
from tests.realkube import RealKube

CLOCK, ENTROPY = SystemClock(), SystemEntropy()
VERBS = ("get", "list", "watch", "patch", "update", "create", "delete", "deletecollection")
OWN = {"get", "list", "watch", "patch"}
OWNERS = {
    "token-keys": {"broker"}, "broker-admin-keys": {"broker"}, "broker-mac-keys": {"broker"}, "broker-record-key": {"broker"},
    "broker-vault": {"broker"},
    "gate-mac-keys": {"gate"}, "gate-record-key": {"gate"},
    "enrolment-mac-keys": {"enrol"}, "enrolment-record-key": {"enrol"},
    "config-signing-keys": {"configserver"}, "configserver-record-key": {"configserver"}, "webhook-record-key": {"webhook"},
    # The controllers issue what doors show, and write their own part of the record.
    "gate-certificates": {"gate", "controllers"}, "broker-certificates": {"broker", "controllers"},
    "configserver-certificates": {"configserver", "controllers"}, "enrolment-certificates": {"enrol", "controllers"},
    "page-certificates": {"page", "controllers"}, "webhook-certificates": {"webhook", "controllers"},
    "internal-ca": {"controllers"}, "doors-ca": {"controllers"}, "record-key": {"controllers"}, "guard-state": {"controllers"},
    "controllers-record-key": {"controllers"}, "image-signing-keys": {"controllers"}, "somebody-elses": set(),
    "gate-legacy-certificates": {"gate", "controllers"}, "legacy-stubs-ca": {"controllers"},
    "image-pull-credentials": {"controllers"},
}  # fmt: skip
# Read by a role, and written by another.
READERS: dict[tuple[str, str], set[str]] = {("configserver", "image-pull-credentials"): {"get", "list", "watch"}}
# Where Secrets have names that nobody knows before: what each role may do to all of a namespace. Tenants' have no row.
PLACES = (
    "default", "a-tenant", "kube-system", "fastness-resources", "fastness-joins", "fastness-pool-joins", "fastness-disks",
    "openshift-machine-api", "openshift-config",
    "openshift-config-managed", "openshift-marketplace", "openshift-sandboxed-containers-operator",
)  # fmt: skip
WITHOUT_NAMES: dict[tuple[str, str], set[str]] = {
    ("broker", "fastness-resources"): {"get", "list", "create", "patch", "delete"},
    ("broker", "fastness-joins"): {"get", "create", "patch"},
    ("controllers", "fastness-joins"): {"get", "list", "watch", "patch", "delete"},
    ("configserver", "fastness-pool-joins"): {"get", "create"},
    ("controllers", "fastness-pool-joins"): {"get", "list", "watch", "patch", "delete"},
    # The broker makes keys of disks and never destroys one; the controllers destroy them, each by its name.
    ("broker", "fastness-disks"): {"get", "list", "create", "patch"},
    ("controllers", "fastness-disks"): {"get", "patch", "delete"},
    ("controllers", "kube-system"): {"get", "list", "watch", "create", "patch", "delete"},
    ("controllers", "openshift-machine-api"): {"get", "list", "watch", "create", "patch", "delete"},
    ("controllers", "openshift-sandboxed-containers-operator"): {"create"},
}
# Of the controllers, by name; creating asks without a name.
NAMED_ELSEWHERE = {
    ("openshift-config", "pull-secret"): {"get", "list", "watch"},
    ("openshift-config", "htpasswd"): set[str](),
    ("openshift-sandboxed-containers-operator", "auth-json-secret"): {
        "get",
        "list",
        "watch",
        "create",
        "patch",
        "delete",
    },
    ("openshift-sandboxed-containers-operator", "peer-pods-secret"): {"get", "list", "watch", "create"},
    ("openshift-sandboxed-containers-operator", "somebody-elses"): {"create"},
}
GROUPS_OF = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated")


@pytest.fixture(scope="module")
def kube(real_kube_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKube]:
    with with_accounts(real_kube_binaries, tmp_path_factory.mktemp("accounts")) as server:
        yield server


@contextmanager
def with_accounts(binaries: Path, directory: Path) -> Iterator[RealKube]:
    """A server of its own, with our kinds and the accounts as `fastness crds --accounts` prints them."""
    flags = ["--enable-bootstrap-token-auth=true"]
    with RealKube.start(directory, binaries, unsafe_no_fsync=True, apiserver_flags=flags) as server:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        with server.client() as admin:
            for manifest in manifests():
                assert admin.post(path, json=manifest).status_code == 201, manifest["metadata"]["name"]
            for manifest in manifests():
                assert any(served(admin, f"{path}/{manifest['metadata']['name']}") for _ in range(600))
            for document in everything():
                apply(admin, document)
        yield server


def apply(admin: httpx.Client, document: dict[str, Any]) -> None:
    """What `kubectl apply --server-side` does."""
    version, kind, meta = document["apiVersion"], document["kind"], document["metadata"]
    plural = f"{kind[:-1]}ies" if kind.endswith("Policy") else f"{kind.lower()}s"
    root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    answer = admin.patch(
        f"{root}{space}/{plural.lower()}/{meta['name']}", json=document,
        params={"fieldManager": "kubectl", "force": "true"}, headers={"content-type": "application/apply-patch+yaml"},
    )  # fmt: skip
    assert answer.status_code in (200, 201), answer.text


@asynccontextmanager
async def acting(kube: RealKube, role: RoleAccount | None) -> AsyncIterator[Cluster]:
    """The API as an account sees it; without one, as the administrator does."""
    around = Surroundings({"KUBECONFIG": str(kube.kubeconfig)}, Path("/nonexistent"))
    connection = find(around)
    if role is not None:
        connection = replace(connection, impersonation=Impersonation(role.user, GROUPS_OF))
    async with connect(connection) as cluster:
        yield cluster


@pytest.mark.parametrize("role", ACCOUNTS, ids=lambda role: role.name)
def test_a_role_has_its_own_secrets_and_no_verb_on_any_other(kube: RealKube, role: RoleAccount) -> None:
    """Role × secret × verb, as the server decides."""
    with kube.client() as admin:
        for secret, owners in OWNERS.items():
            allowed = {verb for verb in VERBS if _may(admin, role, verb, NAMESPACE, secret)}
            read = READERS.get((role.name, secret), set())
            assert allowed == (OWN if role.name in owners else read), (role.name, secret)
        for verb in VERBS:
            assert not _may(admin, role, verb, NAMESPACE), "no Secret without a name"
        for place in PLACES:
            allowed = {verb for verb in VERBS if _may(admin, role, verb, place)}
            assert allowed == WITHOUT_NAMES.get((role.name, place), set()), (role.name, place)
        for (place, secret), verbs in NAMED_ELSEWHERE.items():
            allowed = {verb for verb in VERBS if _may(admin, role, verb, place, secret)}
            assert allowed == (verbs if role is CONTROLLERS else set()), (role.name, place, secret)
    assert {secret for secret, owners in OWNERS.items() if role.name in owners} == set(role.secrets)


def _may(admin: httpx.Client, role: RoleAccount, verb: str, namespace: str, name: str = "") -> bool:
    attributes = {"namespace": namespace, "verb": verb, "resource": "secrets", "version": "v1", "name": name}
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": role.user, "groups": list(GROUPS_OF), "resourceAttributes": attributes},
    }  # fmt: skip
    answer = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=body)
    return bool(answer.json()["status"]["allowed"])


async def test_every_door_works_with_its_own_account_and_a_gate_mints_nothing(kube: RealKube) -> None:
    cipher = KeyRing([SealKey.generate(ENTROPY)], ENTROPY)
    listen = ListenOptions()
    async with AsyncExitStack() as stack:
        roles = {role.name: await stack.enter_async_context(acting(kube, role)) for role in ACCOUNTS}
        caches = {
            name: await stack.enter_async_context(Informers(cluster, clock=CLOCK, entropy=ENTROPY))
            for name, cluster in roles.items()
        }
        admin = await stack.enter_async_context(acting(kube, None))
        await stack.enter_async_context(issuing(roles["controllers"], caches["controllers"], CLOCK, ENTROPY))
        spec = {"mode": "Enforce", "simulated": True}
        body = {"apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "spec": spec}
        await admin.create(CONFIDENTIAL_CLUSTER.resource, {**body, "metadata": {"name": "cluster"}})
        configs = await stack.enter_async_context(
            config_server(roles["configserver"], caches["configserver"], CLOCK, ENTROPY, listen)
        )
        broker, _ = await stack.enter_async_context(
            broker_door(roles["broker"], caches["broker"], CLOCK, ENTROPY, cipher=cipher, configs=configs.served)
        )
        await stack.enter_async_context(enrolment_door(roles["enrol"], caches["enrol"], CLOCK, ENTROPY, listen))
        records = {role: ClusterRecord(roles[role], CLOCK, ENTROPY, role) for role in ("gate", "broker")}
        await stack.enter_async_context(
            gate(roles["gate"], caches["gate"], configs.served, records["gate"], CLOCK, ENTROPY, listen)
        )
        for record in records.values():
            await record.append(RecordEntry("release", "somebody"))
        await broker.tokens.renew(roles["broker"])
        await broker.macs.renew(roles["broker"], ENTROPY)

        with pytest.raises(Forbidden):
            await roles["gate"].get(SECRETS, TOKEN_KEYS.name, NAMESPACE)
        with pytest.raises(Forbidden):
            await TokenIssuer.open(roles["gate"], caches["gate"], CLOCK, ENTROPY)
        with pytest.raises(Forbidden):
            await ConfigSigner.open(roles["broker"], caches["broker"], CLOCK, ENTROPY)
        for kind in (MAC_KEYS["broker"], CONFIG_KEYS, TOKEN_KEYS):
            await _kept_out(roles["gate"], kind)
        for name in ("token-public-keys", "config-public-keys", "broker-record-key", "record-doors"):
            with pytest.raises(Forbidden):
                maps = replace(SECRETS, plural="configmaps", kind="ConfigMap")
                await roles["gate"].patch(maps, name, {"data": {"jwks.json": "{}"}}, PatchType.MERGE, NAMESPACE)


async def _kept_out(cluster: Cluster, kind: KeySecret) -> None:
    """Neither reading nor writing nor making the keys of another role."""
    with pytest.raises(Forbidden):
        await kind.open(cluster, ENTROPY, CLOCK.now())
    with pytest.raises(Forbidden):
        await kind.renew(cluster, ENTROPY, CLOCK.now() + timedelta(days=4000))
    with pytest.raises(Forbidden):
        await cluster.patch(SECRETS, kind.name, {"data": {}}, PatchType.MERGE, NAMESPACE)


async def test_batches_are_written_by_their_own_door_alone(kube: RealKube) -> None:
    async with acting(kube, PAGE) as cluster:
        with pytest.raises(Forbidden):
            await cluster.create(AUDIT_BATCH.resource, _batch("gate-1"))
    writers: tuple[tuple[RoleAccount | None, str], ...] = (
        (GATE, "broker-1"), (BROKER, "gate-1"), (ENROLMENT, "gate-1"), (GATE, "nobody-1"), (None, "gate-1"),
        (CONFIG_SERVER, "gate-1"), (GATE, "configserver-1"), (WEBHOOK, "gate-1"), (GATE, "webhook-1"),
        (CONTROLLERS, "gate-1"), (GATE, "controllers-1"), (None, "controllers-1"),
    )  # fmt: skip
    for writer, door in writers:
        async with acting(kube, writer) as cluster:
            await until(lambda cluster=cluster, door=door: _refused(cluster, door))  # type: ignore[misc]
    async with acting(kube, GATE) as cluster:
        await cluster.create(AUDIT_BATCH.resource, _batch("gate-7"))


async def _refused(cluster: Cluster, door: str) -> bool:
    """Whether the server refuses a batch; its policy takes a moment to be in force."""
    try:
        made = await cluster.create(AUDIT_BATCH.resource, _batch(f"{door}{ENTROPY.token(4).hex()}"))
    except (Forbidden, Invalid) as error:
        return "alone, and it writes no others" in str(error)
    assert made
    return False


def _batch(door: str) -> dict[str, Any]:
    entries = [{"time": "2026-01-01T00:00:00Z", "what": "release", "who": "nobody"}]
    spec = {"door": door, "sequence": 1, "entries": entries, "key": "0" * 16, "signature": "AAAA"}
    meta = {"name": batch_name(door, 1)}
    return {"apiVersion": AUDIT_BATCH.api_version, "kind": AUDIT_BATCH.kind, "metadata": meta, "spec": spec}


async def test_the_controllers_write_bootstrap_tokens_in_kube_system_and_no_secret_of_others(kube: RealKube) -> None:
    """What rules cannot say: those of an account that may change Secrets there name none."""
    system = "kube-system"

    def secret(name: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": system}}

    async with acting(kube, None) as admin, acting(kube, CONTROLLERS) as cluster:
        await admin.create(SECRETS, secret("somebody-elses"))

        async def kept_out() -> bool:
            try:
                await cluster.patch(SECRETS, "somebody-elses", {"data": {}}, PatchType.MERGE, system)
            except (Forbidden, Invalid) as error:
                return "writes bootstrap tokens there, and nothing else" in str(error)
            return False

        await until(kept_out)
        with pytest.raises((Forbidden, Invalid)):
            await cluster.delete(SECRETS, "somebody-elses", system)
        with pytest.raises((Forbidden, Invalid)):
            await cluster.create(SECRETS, secret("mine"))
        await cluster.create(SECRETS, secret("bootstrap-token-abcdef"))
        await cluster.delete(SECRETS, "bootstrap-token-abcdef", system)


async def test_the_controllers_bind_what_is_named_and_raise_nobody(kube: RealKube) -> None:
    """Roles and bindings that they make give nothing that is not theirs to give."""
    group, api = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
    roles, bindings = (
        Resource(group, "v1", plural, kind, False)
        for plural, kind in (("clusterroles", "ClusterRole"), ("clusterrolebindings", "ClusterRoleBinding"))
    )
    everything_there_is = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    itself = {"kind": "ServiceAccount", "name": CONTROLLERS.account, "namespace": NAMESPACE}
    async with acting(kube, CONTROLLERS) as cluster:
        meta = {"name": "raised"}
        with pytest.raises(Forbidden):
            await cluster.create(
                roles, {"apiVersion": api, "kind": "ClusterRole", "metadata": meta, "rules": everything_there_is}
            )
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
        body = {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": meta, "roleRef": reference}
        with pytest.raises(Forbidden):
            await cluster.create(bindings, {**body, "subjects": [itself]})
        with pytest.raises(Forbidden):
            await cluster.patch(roles, CONTROLLERS.account, {"rules": everything_there_is}, PatchType.MERGE)


async def test_a_node_that_never_attested_reads_no_config_at_the_api_and_gets_its_own_from_the_config_server(
    kube: RealKube,
) -> None:
    """With the authority that the API server publishes, the accounts that we print, and a certificate that the API believes."""
    authority = CertificateAuthority.load(
        kube.credentials.ca.read_bytes(), SecretBytes(kube.credentials.ca_key.read_bytes()), ENTROPY
    )
    credential = authority.issue_client("system:node:plain-1", ["system:nodes"], timedelta(hours=1), CLOCK.now())
    own, other = (f"rendered-plain-{letter * 32}" for letter in "ab")
    notes = {names.DESIRED_CONFIG: own, names.CURRENT_CONFIG: own}
    labels = {f"{names.NODE_ROLE_PREFIX}plain": ""}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain-1", "labels": labels, "annotations": notes}}
    async with (
        acting(kube, None) as admin,
        acting(kube, CONFIG_SERVER) as account,
        Informers(account, clock=CLOCK, entropy=ENTROPY) as informers,
        Informers(admin, clock=CLOCK, entropy=ENTROPY) as all_caches,
        issuing(admin, all_caches, CLOCK, ENTROPY),
    ):
        for resource, made in (
            (CONFIG, rendered(own, "mine")), (CONFIG, rendered(other, "other")), (POOL, pool("plain", own)),
            (NODE.resource, node),
        ):  # fmt: skip
            await admin.create(resource, made)
        spec = {"mode": "Enforce", "simulated": True, "pools": [{"name": "plain", "trustModel": "None"}]}
        body = {"apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "spec": spec}
        await admin.patch(
            CONFIDENTIAL_CLUSTER.resource, "cluster", {**body, "metadata": {"name": "cluster"}}, PatchType.APPLY,
            options=WriteOptions(force=True),
        )  # fmt: skip
        clients = await ClientAuthorities.open(account, informers)
        async with config_server(account, informers, CLOCK, ENTROPY, ListenOptions(), clients) as door:
            bare = replace(
                find(Surroundings({"KUBECONFIG": str(kube.kubeconfig)}, Path("/nonexistent"))),
                certificate=credential.certificate.pem, key=credential.key_pem, token=SecretText(""),
            )  # fmt: skip
            async with connect(bare) as itself:
                assert (await itself.get(NODE.resource, "plain-1"))["metadata"]["name"] == "plain-1"
                with pytest.raises(Forbidden):
                    await itself.get(CONFIG, own)
            tls = context_for(replace(bare, ca=door.doors.bundle.encode()))
            keys = {key.id: key for key in map(Ed25519Verifier.from_jwk, door.served.signer.jwks())}
            identity = NodeIdentity("plain-1", str(credential.certificate.fingerprint), tls, keys)
            configs = NodeConfigs(f"https://127.0.0.1:{door.port}", lambda: identity, CLOCK, ENTROPY)
            assert (await configs.fetch(own))["metadata"]["name"] == own
            with pytest.raises(ConfigRefused, match="not-assigned"):
                await configs.fetch(other)
        # Written with the account of the config server, in its own name.
        batches = (await admin.list(AUDIT_BATCH.resource)).items
        entries = [
            entry
            for batch in batches
            if batch["spec"]["door"].startswith("configserver-")
            for entry in batch["spec"]["entries"]
        ]
        assert [(entry["what"], entry["who"]) for entry in entries] == [
            ("release", "system:node:plain-1"), ("refusal", "system:node:plain-1"),
        ]  # fmt: skip


async def test_a_node_reports_on_its_own_machineconfignode_and_chooses_nothing(kube: RealKube) -> None:
    around = Surroundings({"KUBECONFIG": str(kube.kubeconfig)}, Path("/nonexistent"))
    itself = Impersonation("system:node:one", ("system:nodes", "system:authenticated"))
    async with acting(kube, None) as admin, connect(replace(find(around), impersonation=itself)) as node:
        for name in ("one", "two"):
            spec = {
                "node": {"name": name},
                "pool": {"name": "worker"},
                "configVersion": {"desired": "rendered-worker-1"},
            }
            body = {"apiVersion": MACHINE_CONFIG_NODE.api_version, "kind": MACHINE_CONFIG_NODE.kind, "spec": spec}
            await admin.create(MACHINE_CONFIG_NODE.resource, {**body, "metadata": {"name": name}})

        status = WriteOptions(subresource="status")

        async def refused() -> bool:
            patch = {"status": {"observedGeneration": ENTROPY.token(1)[0] + 1}}
            try:
                await node.patch(MACHINE_CONFIG_NODE.resource, "two", patch, PatchType.MERGE, options=status)
            except (Forbidden, Invalid) as error:
                return "a node reports on its own MachineConfigNode" in str(error)
            return False

        await until(refused)
        with pytest.raises(Forbidden):
            await node.patch(
                MACHINE_CONFIG_NODE.resource, "one", {"spec": {"pool": {"name": "infra"}}}, PatchType.MERGE
            )
        mine = {"status": {"observedGeneration": 1}}
        await node.patch(MACHINE_CONFIG_NODE.resource, "one", mine, PatchType.MERGE, options=status)


def test_a_namespace_in_which_we_read_by_name_is_made_by_an_administrator(kube: RealKube) -> None:
    """Somebody who may make any namespace; each is administered by whoever made it, as platforms set it up."""
    rule = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create", "delete"]}
    bound = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maker"}
    path, rbac = "/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1"
    with kube.client() as admin:
        role = {"metadata": {"name": "maker"}, "rules": [rule]}
        admin.post(f"{rbac}/clusterroles", json=role)
        subjects = [{"kind": "User", "name": "maker"}]
        binding = {"metadata": {"name": "maker"}, "roleRef": bound, "subjects": subjects}
        admin.post(f"{rbac}/clusterrolebindings", json=binding)
        for name in ("trustee-operator-system", "openshift-nfd"):  # not made with the accounts
            body, ends = {"metadata": {"name": name}}, time.monotonic() + PATIENCE
            while True:  # the server reads roles and policies that were just made a moment later
                refused = admin.post(path, json=body, params={"dryRun": "All"}, headers={"impersonate-user": "maker"})
                if refused.status_code == 422 or time.monotonic() > ends:
                    break
                time.sleep(0.1)
            assert (refused.status_code, "an administrator makes it" in refused.text) == (422, True), refused.text
        made = admin.post(path, json={"metadata": {"name": "a-team"}}, headers={"impersonate-user": "maker"})
        assert made.status_code in (201, 409), made.text
        assert admin.post(path, json={"metadata": {"name": "openshift-nfd"}}).status_code in (201, 409)


def test_an_adopted_namespace_comes_with_rights_to_read_what_counts_there(kube: RealKube) -> None:
    """And with no more: neither Secrets, nor Machines, nor any write."""
    place = "trustee-operator-system"
    with kube.client() as admin:
        admin.post("/api/v1/namespaces", json={"metadata": {"name": place}})
        for document in adopted(place):
            apply(admin, document)
        for role, group, plural, may in (
            (BROKER, "confidentialcontainers.org", "kbsconfigs", True),
            (CONTROLLERS, "", "configmaps", True),
            (BROKER, "", "secrets", False),
            (CONTROLLERS, "", "secrets", False),
            (BROKER, "trusted-execution-clusters.io", "machines", False),
            (GATE, "trusted-execution-clusters.io", "approvedimages", False),
        ):
            assert _reads(admin, role, group, plural, place) is may, (role.name, plural)
        for document in adopted("a-place-of-ours"):
            assert not any("machines" in rule["resources"] for rule in document.get("rules", ()))


def _reads(admin: httpx.Client, role: RoleAccount, group: str, plural: str, namespace: str) -> bool:
    attributes = {"namespace": namespace, "verb": "list", "group": group, "resource": plural}
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": role.user, "groups": list(GROUPS_OF), "resourceAttributes": attributes},
    }  # fmt: skip
    return bool(admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=body).json()["status"]["allowed"])
