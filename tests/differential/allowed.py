"""Where the embedded API answers otherwise than a real kube-apiserver, and why that stands.

This is the whole list. An entry names steps and places in their answers by patterns; each pattern must be needed by at least
one difference, and there are at most `MOST` entries.
"""

from __future__ import annotations

from tests.differential.compare import Allowed

MOST = 40

ALLOWED = (
    # The real server blames itself for what a client did.
    Allowed(
        (
            "basics.create-with-version", "basics.put-bad-version", "patches.strategic-bad-directive", "patches.strategic-no-key",
            "apply.undeclared", "apply.type-error", "apply.custom-duplicate-item", "apply.custom-undeclared",
            "apply.custom-undeclared-strict", "reading.get-version-bad", "watches.bad-version", "watches.custom-bad-version",
            "subresources.bind-nowhere", "subresources.evict-two-budgets",
        ),
        ("code", "body.code", "body.reason", "body.details"),
        "a real server answers a bare 500 to these; ours have a reason, and are 4xx where it is the client's mistake",
    ),
    Allowed(
        ("crds.scale-unset",), ("code", "body.*"),
        "a real server answers 500 for the scale of an object without replicas; none stated are no replicas",
    ),
    # Ours says more, or refuses what a real server lets pass.
    Allowed(
        ("patches.json-test-fails", "patches.json-remove-missing", "patches.json-add-below-missing", "patches.json-bad-op"),
        ("body.details.*",), "ours names the operation of a JSON patch that failed; a real server only says that one did",
    ),
    Allowed(
        ("patches.json-replace-missing",), ("code", "body.*"),
        "RFC 6902 wants the target of a replace to exist; the library of a real server adds it",
    ),
    Allowed(
        ("bodies.bad-utf8",), ("code", "body.*"),
        "bytes that are not UTF-8 are refused; a real server stores replacement characters in their place",
    ),
    Allowed(("bodies.null",), ("code", "body.*"), "a body of null is no object; a real server takes it for an empty one"),
    Allowed(
        ("bodies.put-custom-collection", "bodies.post-custom-object", "bodies.delete-status"), ("code", "body.*"),
        "custom resources of a real server have a handler of their own with other words for a wrong method; ours has one for all",
    ),
    Allowed(("bodies.delete-discovery",), ("code", "body.*"), "a real server answers any method with discovery"),
    Allowed(("basics.head",), ("code",), "HEAD is GET without the body; a real server has no HEAD on objects"),
    Allowed(
        ("subresources.evict-blocked",), ("retryAfter", "body.details.retryAfterSeconds"),
        "with Retry-After kubectl drain retries silently inside its HTTP client and never says which budget blocks it",
    ),
    # Nobody is anonymous.
    Allowed(
        ("rights.bad-scheme",), ("code", "body.*"),
        "a request without a usable credential is 401; a real server asks what system:anonymous may do",
    ),
    Allowed(
        ("rights.bad-token-health",), ("code", "type", "body"),
        "health asks for no credential and looks at none, so that a probe with an old token does not restart the server",
    ),
    # Bodies of refusals.
    Allowed(
        (
            "bodies.unknown-group", "bodies.unknown-version", "bodies.unknown-in-custom-group", "bodies.unknown-path",
            "bodies.cluster-as-namespaced", "descriptions.unknown-version", "crds.no-longer-served",
        ),
        ("type", "body"),
        "a 404 is a Status or plain text by which of its inner servers gives up; ours is a Status except for discovery",
    ),
    Allowed(
        ("bodies.unknown-subresource-custom",), ("body.details.*",),
        "a kind without such a subresource is told from a missing object; a real server looks for the object first",
    ),
    Allowed(
        ("bodies.accept-text", "bodies.accept-html", "bodies.accept-garbage", "bodies.accept-text-object"), ("body.details",),
        "an empty details in 406 for some kinds and not for others; ours never has it",
    ),
    Allowed(
        ("metadata.custom-missing-name", "metadata.custom-annotation-size"), ("body.details.causes",),
        "a real server adds a cause without a field to say that rules were not run",
    ),
    Allowed(("basics.custom-wrong-version",), ("warnings",), "a real server also warns of spec, which it looks up in no schema"),
    Allowed(
        (
            "natives.event-new-incomplete", "natives.event-new-bad-type", "natives.node-bad-taint", "crds.bad-not-structural",
            "crds.bad-rule", "crds.bad-default", "crds.bad-no-versions", "crds.bad-no-storage",
        ),
        ("body.details.group", "body.details.causes", "body.details.causes.0.field"),
        "the same refusal under the name that the field has inside a real server; ours has the name that was sent",
    ),
    # What exists only in one of them.
    Allowed(
        ("watches.future",), ("code", "retryAfter", "body"),
        "a version from the future is from a lost state: ours says so, a real server waits in silence until it is reached",
    ),
    Allowed(
        ("watches.custom-old",), ("body.*",),
        "a real server forgets what happened before it began to serve a kind; the embedded log goes back to its start",
    ),
    Allowed(
        ("reading.page-with-zero",), ("body.metadata.continue", "body.items"),
        "with version 0 a real server reads its cache and forgets the limit",
    ),
    Allowed(("watches.deprecated-path",), ("code", "body"), "the /watch/ paths are deprecated since 1.11 and not served"),
    Allowed(
        ("descriptions.yaml", "descriptions.discovery-yaml", "descriptions.discovery-text"),
        ("code", "type", "body", "body.*"),
        "answers are JSON; kubectl prints YAML itself, and discovery falls back to JSON for whoever accepts nothing else",
    ),
    Allowed(
        ("rights.discovery-allowed", "subresources.token-works", "descriptions.versions"),
        ("body.serverAddressByClientCIDRs.0.serverAddress",), "clients know the address that they called",
    ),
    Allowed(("rights.version-allowed",), ("body.*",), "the version is ours, and there is no emulated one"),
    Allowed(("descriptions.core",), ("body.resources.componentstatuses",), "deprecated since 1.19 and not served"),
    Allowed(
        (
            "rights.impersonate-extra", "rights.ssar-*", "rights.ssrr", "rights.sar", "rights.sar-group", "rights.lsar",
            "rights.whoami",
            "rights.token-review-bad", "subresources.token", "subresources.token-audience", "subresources.token-review*",
        ),
        ("body.metadata", "body.metadata.managedFields", "body.metadata.uid", "body.spec.boundObjectRef", "body.spec.namespace"),
        "answers that are never stored have no owners, times and identities, and repeat the question as it was asked",
    ),
    # Native objects, as Go writes them and as the parts of Kubernetes that do not run here complete them.
    Allowed(
        ("natives.event*", "natives.node-*", "subresources.pod-status*", "subresources.bound"),
        (
            "*.eventTime", "*.firstTimestamp", "*.lastTimestamp", "*.deprecatedFirstTimestamp", "*.deprecatedLastTimestamp",
            "*.lastHeartbeatTime", "*.lastTransitionTime", "*.lastProbeTime", "*.f:lastHeartbeatTime", "*.f:lastTransitionTime",
            "*.f:lastProbeTime",
        ),
        "Go writes a time that is not set as null; ours leaves it out",
    ),
    Allowed(
        ("metadata.role-name-with-colon", "kinds.clusterrole"), ("body.rules",),
        "Go writes an empty list that passed through protobuf as null",
    ),
    Allowed(
        ("kinds.claim", "kinds.volume", "kinds.volume-delete"),
        ("body.metadata.finalizers", "body.metadata.deletionTimestamp", "body.metadata.deletionGracePeriodSeconds"),
        "no controller runs here that would take the finalizers away by which volumes are protected",
    ),
    Allowed(
        ("kinds.daemonset", "kinds.endpoints"),
        ("warnings", "body.metadata.annotations", "body.metadata.managedFields.0.fieldsV1.f:metadata"),
        "what Kubernetes itself calls deprecated is neither announced nor added",
    ),
    Allowed(
        (
            "patches.deployment", "patches.strategic-*", "patches.merge-list", "subresources.deployment", "kinds.replicaset",
            "kinds.statefulset", "kinds.job", "kinds.cronjob", "kinds.claim", "kinds.quota", "kinds.limits", "kinds.service",
            "kinds.policy", "kinds.ingress", "kinds.webhook", "kinds.volume",
        ),
        ("warnings",),
        "nothing acts on these kinds in the embedded API, and it says so to whoever writes one",
    ),
    Allowed(("crds.whole-float",), ("body.spec.size",), "2.0 stays as it was written; a real server turns it into 2"),
    Allowed(("basics.servers-own-fields",), ("body.metadata.generation",), "the generation is the server's for every kind"),
    Allowed(
        ("natives.node", "natives.node-*", "descriptions.node"),
        ("body.spec", "body.spec.taints", "body.status", "body.status.*"),
        "no kubelet reports here, and no controller would take the not-ready taint away",
    ),
    Allowed(
        ("metadata.service-name", "kinds.service"), ("body.spec.clusterIP*", "body.spec.ipFamil*"),
        "there is no service network to give addresses from"
    ),
    Allowed(
        ("subresources.budgets-gone",), ("body.items.*",),
        "budgets are counted by a controller here; the real one of this comparison runs without its disruption controller",
    ),
    Allowed(
        ("subresources.deployment-status", "subresources.deployment-read"), ("body.metadata.managedFields.1.time",),
        "a real server forgets the time of an ownership that came through scale",
    ),
    Allowed(
        ("crds.create", "crds.read", "crds.delete"),
        ("body.metadata.finalizers", "body.metadata.managedFields", "body.status.conditions", "body.status.*"),
        "a definition is accepted, served and guarded in one step here; a real server's controllers do it after the answer",
    ),
)  # fmt: skip
