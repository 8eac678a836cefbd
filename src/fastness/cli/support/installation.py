"""What `fastness doctor` says about an installation on a Kubernetes: before it (`--preflight`), and afterwards.

    before      version, rights, clock, where keys will lie, definitions that are there already and whose they are
    afterwards  our own definitions, a Deployment for each role, the keys of each role, the webhook and whether the API reaches
                it, how much of the API server's room is taken

What cannot be looked at with the rights of whoever asks is said, and counts as neither good nor bad. A cluster in which no role
runs as a Deployment may run them as processes: then roles are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from fastness.admission.door.configuration import NAME as WEBHOOK
from fastness.cli.support.finding import Finding
from fastness.cli.support.stored import stored
from fastness.formats.words import counted
from fastness.kinds.crd.sets import OTHERS, definitions, own_names, set_of
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.kubernetes.core import CONFIG_MAP, SECRET
from fastness.kinds.kubernetes.native import DEPLOYMENT, VALIDATING_WEBHOOK_CONFIGURATION
from fastness.kinds.objects import annotations_of
from fastness.kinds.registry import find
from fastness.kube.errors import ApiError, Forbidden, InternalError, NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions

ROLES: Final = ("broker", "configserver", "controllers", "enrol", "gate", "page", "webhook")
KEYS: Final = (
    "doors-ca", "internal-ca", "record-key", "broker-certificates", "broker-vault", "token-keys", "config-signing-keys",
    "configserver-certificates", "enrolment-certificates", "gate-certificates", "webhook-certificates",
)  # fmt: skip
"""Secrets that are filled as soon as their role has run once."""
NEEDED: Final = (
    ("apiextensions.k8s.io", "customresourcedefinitions"), ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"), ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("", "namespaces"), ("apps", "deployments"), ("", "secrets"), ("policy", "poddisruptionbudgets"),
)  # fmt: skip
MOST_SKEW: Final = 30.0
_DRY: Final = WriteOptions(manager="fastness-doctor", dry_run=True)
_DEFINITIONS: Final = CUSTOM_RESOURCE_DEFINITION.resource


async def preflight(cluster: Cluster, now: datetime) -> list[Finding]:
    """What is looked for before an installation; raises ApiError."""
    return [
        await _policies(cluster),
        await _rights(cluster),
        await _clock(cluster, now),
        Finding(
            "storage",
            "ok",
            "no volume is needed: keys and the record are objects of the API",
            "what is decided is kept",
        ),
        await _whose_definitions(cluster),
    ]


async def installed(cluster: Cluster) -> list[Finding]:
    """What is looked for afterwards; raises ApiError."""
    looked = [await _our_definitions(cluster), await _roles(cluster), await _keys(cluster), await _webhook(cluster)]
    return [*looked, await stored(cluster)]


async def _policies(cluster: Cluster) -> Finding:
    """Admission policies came with 1.30, and with them everything else that is used."""
    purpose = "nobody writes to the record in the name of a role"
    try:
        await cluster.list(find("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies").resource, limit=1)
    except NotFound:
        fix = "use Kubernetes 1.30 or newer"
        return Finding("version", "missing", "the API has no ValidatingAdmissionPolicy", purpose, fix)
    except Forbidden:
        return Finding("version", "optional", "not for you to look at", purpose, "ask as an administrator")
    return Finding("version", "ok", "the API has what is needed (1.30 or newer)", purpose)


async def _rights(cluster: Cluster) -> Finding:
    """Whether whoever asks may install."""
    reviews = find("authorization.k8s.io", "v1", "selfsubjectaccessreviews").resource
    lacking = []
    for group, plural in NEEDED:
        attributes = {"group": group, "resource": plural, "verb": "create"}
        body: JsonObject = {
            "apiVersion": reviews.api_version, "kind": reviews.kind, "spec": {"resourceAttributes": attributes},
        }  # fmt: skip
        if not (await cluster.create(reviews, body))["status"].get("allowed"):
            lacking.append(plural)
    purpose = "the chart makes definitions, accounts and roles"
    if not lacking:
        return Finding("rights", "ok", "you may make everything that the chart brings", purpose)
    words = f"you may not create {', '.join(lacking)}"
    return Finding("rights", "missing", words, purpose, "install as an administrator of the cluster")


async def _clock(cluster: Cluster, now: datetime) -> Finding:
    """The time of the API server beside ours: certificates and proofs are good for minutes."""
    purpose = "certificates, tokens and proofs are good for minutes"
    body: JsonObject = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fastness-doctor", "namespace": "default"},
    }  # fmt: skip
    try:
        made = await cluster.create(CONFIG_MAP.resource, body, _DRY)
    except ApiError as error:
        return Finding("clock", "optional", f"not looked at: {error.message}", purpose)
    skew = (datetime.fromisoformat(str(made["metadata"]["creationTimestamp"])) - now).total_seconds()
    if abs(skew) <= MOST_SKEW:
        return Finding("clock", "ok", "the API server has the same time", purpose)
    words = f"the API server is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
    return Finding("clock", "missing", words, purpose, "synchronise clocks (chrony) here and there")


async def _present(cluster: Cluster) -> dict[str, JsonObject]:
    return {str(entry["metadata"]["name"]): entry for entry in (await cluster.list(_DEFINITIONS)).items}


async def _whose_definitions(cluster: Cluster) -> Finding:
    """Which of our definitions are there already, and who brought them."""
    purpose = "a definition belongs to whoever installed it"
    present, own = await _present(cluster), own_names()
    there = [present[name] for name in sorted(own & present.keys())]
    theirs = sorted({_owner(entry) for entry in there})
    others = _sets_in(present)
    sets = f"; of others there are {', '.join(others)}, which are left alone" if others else ""
    if not there:
        return Finding("definitions", "ok", f"none of ours is there yet{sets}", purpose)
    words = f"{counted(len(there), 'definition')} of ours from {', '.join(theirs)}{sets}"
    return Finding("definitions", "optional", words, purpose, "the chart takes over its own, and leaves others alone")


def _owner(definition: JsonObject) -> str:
    release = annotations_of(definition).get("meta.helm.sh/release-name")
    managers = [str(entry.get("manager")) for entry in definition["metadata"].get("managedFields") or ()]
    return f"helm release {release}" if release else next(iter(managers), "somebody")


def _sets_in(present: Iterable[str]) -> list[str]:
    groups = {
        set_of(entry["spec"]["group"]) for entry in definitions(OTHERS) if entry["metadata"]["name"] in set(present)
    }
    return sorted(groups - {"own"})


async def _our_definitions(cluster: Cluster) -> Finding:
    purpose, present = "nothing starts without our own kinds", await _present(cluster)
    missing, others = sorted(own_names() - present.keys()), _sets_in(present)
    if not missing:
        words = f"all {len(own_names())} of ours{f', and {chr(44).join(others)}' if others else ''}"
        return Finding("definitions", "ok", words, purpose)
    fix = "fastness crds | kubectl apply --server-side -f -"
    return Finding("definitions", "missing", f"not installed: {', '.join(missing[:3])}", purpose, fix)


async def _roles(cluster: Cluster) -> Finding:
    """A Deployment for each role, with a pod that is ready."""
    purpose = "each role does its part of the work"
    try:
        there = {
            entry["metadata"]["name"]: entry
            for entry in (await cluster.list(DEPLOYMENT.resource, Scope(NAMESPACE))).items
        }
    except Forbidden:
        return Finding("roles", "optional", "not for you to look at", purpose, "ask as an administrator")
    states = {role: there.get(f"fastness-{role}") for role in ROLES}
    if not any(states.values()):
        return Finding(
            "roles", "optional", "no role is a Deployment here", purpose, "see docs/how-to/run-on-kubernetes.md"
        )
    absent = [role for role, state in states.items() if state is None]
    waiting = [role for role, state in states.items() if state is not None and not _ready(state)]
    if not absent and not waiting:
        return Finding("roles", "ok", f"{len(ROLES)} run", purpose)
    words = [f"not installed: {', '.join(absent)}"] if absent else []
    words += [f"not ready: {', '.join(waiting)}"] if waiting else []
    fix = f"kubectl describe deployments -n {NAMESPACE}; kubectl logs -n {NAMESPACE} deployment/fastness-{(waiting or absent)[0]}"
    return Finding("roles", "missing", "; ".join(words), purpose, fix)


def _ready(deployment: JsonObject) -> bool:
    return bool((deployment.get("status") or {}).get("availableReplicas"))


async def _keys(cluster: Cluster) -> Finding:
    """Every key that a role has made once it ran."""
    purpose, empty = "doors show certificates, and seal and sign with keys of their own", []
    for name in KEYS:
        try:
            secret = await cluster.get(SECRET.resource, name, NAMESPACE)
        except Forbidden:
            return Finding("keys", "optional", "not for you to look at", purpose, "ask as an administrator")
        except NotFound:
            empty.append(name)
            continue
        if not secret.get("data"):
            empty.append(name)
    if not empty:
        return Finding("keys", "ok", f"{counted(len(KEYS), 'Secret')} with keys", purpose)
    fix = "roles make them when they run; if they were there before, restore them from a backup"
    return Finding("keys", "missing", f"empty or gone: {', '.join(empty)}", purpose, fix)


async def _webhook(cluster: Cluster) -> Finding:
    """Whether the webhook is registered, and whether the API server reaches it: a change that is not made is sent past it."""
    purpose = "what lowers protection is asked about before it is stored"
    try:
        await cluster.get(VALIDATING_WEBHOOK_CONFIGURATION.resource, WEBHOOK)
        await _asked(cluster, CONFIDENTIAL_CLUSTER.resource)
    except NotFound:
        return Finding("webhook", "missing", "not registered", purpose, "run the webhook role")
    except Forbidden:
        return Finding("webhook", "optional", "not for you to look at", purpose, "ask as an administrator")
    except InternalError as error:
        fix = f"kubectl get pods,endpointslices -n {NAMESPACE} -l app.kubernetes.io/component=webhook"
        return Finding("webhook", "missing", f"the API server does not reach it: {error.message}", purpose, fix)
    return Finding("webhook", "ok", "registered, and the API server reaches it", purpose)


async def _asked(cluster: Cluster, clusters: Resource) -> None:
    patch: dict[str, Any] = {"metadata": {"annotations": {"fastness.dev/doctor": "looked"}}}
    try:
        await cluster.get(clusters, NAME)
    except NotFound:
        return  # nothing to ask about
    await cluster.patch(clusters, NAME, patch, PatchType.MERGE, "", _DRY)
