"""What the API server is told to ask us, as data.

Each entry is as narrow as its rules allow, because an entry that fails closed stops whatever it covers while no replica answers:

| entry | asks about | when nobody answers |
| --- | --- | --- |
| vkataconfig.kb.io | a second KataConfig, and pools that must not have one | refused |
| namespaces.workloads.fastness.dev | namespaces with our switches | refused |
| required.workloads.fastness.dev | all workloads of namespaces that ask for something | refused |
| sandboxed.workloads.fastness.dev | workloads elsewhere with a runtime class or init data | refused |
| protection.fastness.dev | what must not be weakened by accident, and who weakens it | refused |
| acts.fastness.dev | who approves, activates, widens, releases and takes back | refused |
| alarms.fastness.dev | who quarantines and distrusts: never stopped | accepted, and not on the record with the person |
| home.fastness.dev | the deletion of our own namespace | refused |
| owners.fastness.dev | owners of what must end by itself | refused |
| bars.fastness.dev | the deletion of a Machine, which may bar newcomers | refused |
| pools.fastness.dev | which configs and which stream a pool takes; its rollouts go on unasked | refused |
| boot-images.fastness.dev | the MachineConfiguration: what it is called, whose boot images are looked after | refused |
| streams.fastness.dev | the deletion of the OSImageStream | refused |
| daemons.fastness.dev | what another operator's daemon reports; ours is held to its node by an admission policy | refused |
| advice.fastness.dev | what is only warned about | accepted |
| feature-rules.fastness.dev | templates of feature rules that cannot be read | accepted, and the rule is skipped |
| not-acted-on.fastness.dev | fields that are stored and change nothing: a warning | accepted |
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.admission.not_acted_on import EVERYWHERE as NOT_ACTED_ON
from fastness.admission.table import PODDED
from fastness.attestation.admission.acts import ACCOUNTS
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.native import VALIDATING_WEBHOOK_CONFIGURATION
from fastness.kube.access.node import MCO_GROUP
from fastness.machineconfig.admission.policies import DAEMON
from fastness.workloads.admission import features
from fastness.workloads.admission.workloads import ENFORCEMENT, PREFIX
from fastness.workloads.initdata.workload import ANNOTATION

NAME: Final = "fastness"
RESOURCE: Final = VALIDATING_WEBHOOK_CONFIGURATION.resource
PROTECTION: Final = "protection.fastness.dev"
REVIEW_PATH: Final = "/review"
KATA_PATH: Final = "/validate-kataconfiguration-openshift-io-v1-kataconfig"
SERVICE: Final = "fastness-webhook"
SECONDS: Final = 10
OUTSIDE: Final = ("kube-system", NAMESPACE)  # what the webhook itself needs must never wait for the webhook
_WRITE: Final = ("CREATE", "UPDATE")
_MACHINES: Final = "trusted-execution-clusters.io"
_RECORDS: Final = "NoneOnDryRun"
# What the control plane writes must not wait for the webhook, and is recorded by its parts.
_PEOPLE: Final = ("not-the-control-plane", f"!request.userInfo.username.startsWith('{ACCOUNTS}')")
_QUARANTINES: Final = "has(object.spec) && has(object.spec.approval) && object.spec.approval == 'Quarantined'"
_MACHINE_UPDATE: Final = "request.resource.resource == 'machines' && request.operation == 'UPDATE'"
_TRUSTS: Final = ("trusts", f"!({_MACHINE_UPDATE}) || !({_QUARANTINES})")
_DISTRUSTS: Final = ("distrusts", f"!({_MACHINE_UPDATE}) || ({_QUARANTINES})")


@dataclass(frozen=True, slots=True)
class Reachable:
    """Where an API server finds us: a URL without a path, or else the Service of our namespace."""

    url: str = ""

    def client(self, path: str, bundle: str) -> JsonObject:
        """The clientConfig of one entry."""
        trusted = {"caBundle": base64.b64encode(bundle.encode()).decode()}
        if self.url:
            return {"url": f"{self.url.rstrip('/')}{path}", **trusted}
        return {"service": {"name": SERVICE, "namespace": NAMESPACE, "path": path, "port": 443}, **trusted}


def protects(configuration: JsonObject | None) -> bool:
    """Whether a stored configuration asks about lowerings, and refuses them when nobody answers."""
    entries = (configuration or {}).get("webhooks") or ()
    failing_closed = [
        entry for entry in entries if entry.get("name") == PROTECTION and entry.get("failurePolicy") == "Fail"
    ]
    return any(
        "confidentialclusters" in rule.get("resources", ())
        for entry in failing_closed
        for rule in entry.get("rules") or ()
    )


def configuration(where: Reachable, bundle: str, recorded: str = REVIEW_PATH) -> JsonObject:
    """The whole object; every field that a server would fill in is written out, so that two can be compared.

    `recorded` is the path of reviews whose person goes on the record (`paths`).
    """
    elsewhere = _selected("DoesNotExist")
    entries = [
        _entry("vkataconfig.kb.io", [_rule("kataconfiguration.openshift.io", ["kataconfigs"], ("CREATE",))], KATA_PATH),
        _entry("namespaces.workloads.fastness.dev", [_rule("", ["namespaces"])], conditions=(_SWITCHED,)),
        _entry("required.workloads.fastness.dev", _by_group(PODDED), namespaces=_selected("Exists")),
        _entry("sandboxed.workloads.fastness.dev", _by_group(PODDED), namespaces=elsewhere, conditions=(_SANDBOXED,)),
        _entry(PROTECTION, [
            _rule("fastness.dev", ["confidentialclusters"], (*_WRITE, "DELETE")),
            _rule("confidentialcontainers.org", ["trusteeconfigs"]),
        ], recorded, effects=_RECORDS),
        _entry("acts.fastness.dev", [
            _rule("fastness.dev", ["appraisalpolicies", "referencevaluesets", "resourcebindings"], (*_WRITE, "DELETE")),
            _rule("fastness.dev", ["distrusts"], ("UPDATE", "DELETE")),
            _rule(_MACHINES, ["approvedimages"], (*_WRITE, "DELETE")), _rule(_MACHINES, ["machines"], ("UPDATE", "DELETE")),
        ], recorded, conditions=(_PEOPLE, _TRUSTS), effects=_RECORDS),
        _entry("alarms.fastness.dev", [
            _rule("fastness.dev", ["distrusts"], ("CREATE",)), _rule(_MACHINES, ["machines"], ("UPDATE",)),
        ], recorded, conditions=(_PEOPLE, _DISTRUSTS), policy="Ignore", effects=_RECORDS),
        _entry("authors.fastness.dev", [
            _rule(MCO_GROUP, ["machineosconfigs"], (*_WRITE, "DELETE")), _rule(MCO_GROUP, ["machineconfigs"]),
        ], recorded, conditions=(_PEOPLE,), policy="Ignore", effects=_RECORDS),
        _entry("home.fastness.dev", [_rule("", ["namespaces"], ("DELETE",))], recorded, conditions=(_HOME,), effects=_RECORDS),
        _entry("owners.fastness.dev", _by_group(WITHOUT_OWNERS), conditions=(_OWNED,)),
        _entry("bars.fastness.dev", [_rule(_MACHINES, ["machines"], ("DELETE",))]),
        _entry("pools.fastness.dev", [_rule(MCO_GROUP, ["machineconfigpools"])], conditions=(_SELECTS,)),
        _entry("boot-images.fastness.dev", [_rule("operator.openshift.io", ["machineconfigurations"])],
               conditions=(_BOOT_IMAGES,)),
        _entry("streams.fastness.dev", [_rule(MCO_GROUP, ["osimagestreams"], ("DELETE",))]),
        _entry("daemons.fastness.dev", [_rule(MCO_GROUP, ["machineconfignodes", "machineconfignodes/status"])],
               conditions=(_DAEMON,)),
        _entry("advice.fastness.dev", [
            _rule(MCO_GROUP, ["machineconfigs"]), _rule("fastness.dev", ["nodeoverlays"]),
            _rule("config.openshift.io", ["nodes"]),
        ], policy="Ignore"),
        _entry("feature-rules.fastness.dev", _by_group([(group, features.RESOURCE) for group in features.GROUPS]),
               policy="Ignore"),
        _entry("not-acted-on.fastness.dev", _by_group(NOT_ACTED_ON), conditions=(_PEOPLE,), policy="Ignore"),
    ]  # fmt: skip
    for entry in entries:
        entry["clientConfig"] = where.client(entry["clientConfig"]["path"], bundle)
    meta = {"name": NAME, "labels": {"app.kubernetes.io/name": "fastness", "app.kubernetes.io/component": "webhook"}}
    return {"apiVersion": RESOURCE.api_version, "kind": RESOURCE.kind, "metadata": meta, "webhooks": entries}


def _entry(
    name: str, rules: Sequence[JsonObject], path: str = REVIEW_PATH, *, namespaces: JsonObject | None = None,
    conditions: Sequence[tuple[str, str]] = (), policy: str = "Fail", effects: str = "None",
) -> JsonObject:  # fmt: skip
    entry: dict[str, Any] = {
        "name": name, "clientConfig": {"path": path}, "rules": list(rules), "failurePolicy": policy,
        "matchPolicy": "Equivalent", "namespaceSelector": namespaces or {}, "objectSelector": {}, "sideEffects": effects,
        "timeoutSeconds": SECONDS, "admissionReviewVersions": ["v1"],
    }  # fmt: skip
    if conditions:
        entry["matchConditions"] = [{"name": name, "expression": expression} for name, expression in conditions]
    return entry


def _rule(group: str, resources: Sequence[str], operations: Sequence[str] = _WRITE) -> JsonObject:
    return {
        "apiGroups": [group], "apiVersions": ["*"], "resources": list(resources), "operations": list(operations), "scope": "*",
    }  # fmt: skip


def _by_group(resources: Sequence[tuple[str, str]]) -> list[JsonObject]:
    groups = dict.fromkeys(group for group, _ in resources)
    return [_rule(group, [resource for other, resource in resources if other == group]) for group in groups]


def _selected(operator: str) -> JsonObject:
    """Namespaces that ask for something, or those that do not; never those that the webhook needs itself."""
    ours = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(OUTSIDE)}
    return {"matchExpressions": [{"key": ENFORCEMENT, "operator": operator}, ours]}


def _has_sandbox(pod: str) -> str:
    """CEL: a pod at this place has a runtime class or init data."""
    noted = f"{pod}.metadata.annotations"
    return (
        f"(has({pod}.spec) && has({pod}.spec.runtimeClassName)) || "
        f"(has({pod}.metadata) && has({noted}) && '{ANNOTATION}' in {noted})"
    )


def _changed(field: str) -> str:
    """CEL: an update sets a field of the spec, or sets it to something else."""
    return (
        f"(has(object.spec.{field}) && (!has(oldObject.spec.{field}) || object.spec.{field} != oldObject.spec.{field}))"
    )


_SWITCHED: Final = (
    "has-our-switches",
    " || ".join(
        f"(has(object.metadata.{part}) && object.metadata.{part}.exists(name, name.startsWith('{PREFIX}')))"
        for part in ("labels", "annotations")
    ),
)
_OWNED: Final = (
    "has-owners", "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.size() > 0",
)  # fmt: skip
_HOME: Final = ("is-our-own", f"request.name == '{NAMESPACE}'")
_SELECTS: Final = (
    "selects-other-configs",
    "request.operation == 'CREATE' || !has(object.spec.machineConfigSelector) || !has(oldObject.spec.machineConfigSelector) || "
    "object.spec.machineConfigSelector != oldObject.spec.machineConfigSelector || " + _changed("osImageStream"),
)
_BOOT_IMAGES: Final = ("has-other-boot-images", f"request.operation == 'CREATE' || {_changed('managedBootImages')}")
_DAEMON: Final = ("is-a-daemon", f"request.userInfo.username == '{DAEMON}'")
_JOB: Final = "object.spec.jobTemplate.spec.template"
_SANDBOXED: Final = (
    "has-a-sandbox",
    f"request.kind.kind == 'Pod' ? ({_has_sandbox('object')}) : request.kind.kind == 'CronJob' ? "
    f"(has({_JOB}) && ({_has_sandbox(_JOB)})) : "
    f"(has(object.spec.template) && ({_has_sandbox('object.spec.template')}))",
)
