"""Rules about confidential workloads: what a namespace asks of them, and where they must not be.

A namespace switches its requirements on itself:

    labels:       workloads.fastness.dev/enforcement: deny          or warn; without the label nothing is asked
    annotations:  workloads.fastness.dev/require: initdata,agent-policy,runtime-class      default: all three
                  workloads.fastness.dev/runtime-classes: kata-cc                          default: every confidential class

* `initdata`: pods carry init data that a guest can read. `agent-policy`: there is a policy in it, and no request is open that
  gives the host what it must not have. `runtime-class`: the class is one of those that the namespace allows.
* A value that nobody understands is refused when the namespace is written; one that is there all the same counts as `deny`.
* Nothing that runs in a sandbox belongs into the namespace of an operator: whoever may change the operator there could change
  the workload. The operators' own pods are not touched.
* Templates are judged like pods, so that the author of a Deployment reads the reason and not the log of a controller. An update
  that changes neither init data nor class is not judged again: labels, finalizers and scale must never get stuck.
* Doors ask the policy engine before a review (`policy_to_try`, `AdmissionRequest.trial`), because it needs a process of its own.
  Where there is no engine, the text alone is read (`agent_policy.lint.unconditionally_open`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from fastness.kinds.objects import annotations_of, is_being_deleted, labels_of, metadata
from fastness.kube.admission import (
    AdmissionLookups,
    AdmissionRequest,
    Allowed,
    Denied,
    DeniedCause,
    PolicyTrial,
    forbidden,
    invalid,
)
from fastness.workloads.agent_policy.lint import lint_policy, unconditionally_open
from fastness.workloads.initdata.finding import FATAL, Finding
from fastness.workloads.initdata.lint import lint_encoded, lint_text
from fastness.workloads.initdata.workload import ANNOTATION, OLD_ANNOTATIONS, TEMPLATES, NotAWorkload, pod_of

PREFIX: Final = "workloads.fastness.dev/"
ENFORCEMENT: Final = f"{PREFIX}enforcement"
REQUIRE: Final = f"{PREFIX}require"
CLASSES: Final = f"{PREFIX}runtime-classes"
WARN, DENY = "warn", "deny"
INITDATA, POLICY, CLASS = "initdata", "agent-policy", "runtime-class"
REQUIREMENTS: Final = (INITDATA, POLICY, CLASS)
# Not kata-remote: its virtual machines are confidential only where somebody asked for that, and the class does not say.
CONFIDENTIAL_HANDLERS: Final = ("kata-tdx", "kata-snp", "kata-se")
OPERATOR_NAMESPACES: Final = frozenset({
    "openshift-sandboxed-containers-operator", "trustee-operator-system", "openshift-nfd", "nvidia-gpu-operator",
    "intel-dcap", "openshift-operators", "openshift-machine-config-operator", "fastness-system",
})  # fmt: skip
SANDBOX: Final = "kata"
MOST_LISTED: Final = 3

Object = Mapping[str, Any]


class NamespaceRequirements(NamedTuple):
    """What a namespace asks for: how strictly, what, and which classes (empty: every confidential one)."""

    enforcement: str
    requirements: tuple[str, ...]
    classes: tuple[str, ...]


class Lack(NamedTuple):
    """One requirement that a workload does not meet."""

    field: str
    why: str
    hint: str


def switches_are_known(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a namespace whose switches say something that would silently protect nothing."""
    labels, notes = labels_of(request.new), annotations_of(request.new)
    for place, read, given in (("labels", (ENFORCEMENT,), labels), ("annotations", (REQUIRE, CLASSES), notes)):
        for name in sorted(name for name in given if name.startswith(PREFIX) and name not in read):
            near = get_close_matches(name, (ENFORCEMENT, REQUIRE, CLASSES), n=1)
            problem = f"nobody reads {name} there" + (f"; did you mean {near[0]}?" if near else "")
            return invalid(request, f"metadata.{place}[{name}]", problem)
    level = labels.get(ENFORCEMENT)
    if level not in (None, WARN, DENY):
        return invalid(request, f"metadata.labels[{ENFORCEMENT}]", f"{level!r}: use {WARN} or {DENY}")
    for requirement in _listed(notes.get(REQUIRE, "")):
        if requirement not in REQUIREMENTS:
            problem = f"{requirement!r}: use {', '.join(REQUIREMENTS)}, separated by commas"
            return invalid(request, f"metadata.annotations[{REQUIRE}]", problem)
    return None


def requirements_of(namespace: Object | None) -> NamespaceRequirements | None:
    """What a namespace asks of its workloads; None when it asks for nothing."""
    level = labels_of(namespace or {}).get(ENFORCEMENT)
    if level is None:
        return None
    notes = annotations_of(namespace or {})
    named = [requirement for requirement in _listed(notes.get(REQUIRE, "")) if requirement in REQUIREMENTS]
    # A level that nobody understands must not protect nothing: it counts as deny.
    return NamespaceRequirements(
        WARN if level == WARN else DENY, tuple(named) or REQUIREMENTS, _listed(notes.get(CLASSES, ""))
    )


def not_beside_an_operator(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | None:
    """Refuse a sandboxed workload in the namespace of an operator."""
    pod = _judged(request)
    if pod is None or not _is_sandboxed(pod, lookups):
        return None
    if request.namespace not in OPERATOR_NAMESPACES and not lookups.has_operator_group(request.namespace):
        return None
    why = (
        f"{request.namespace} is the namespace of an operator: whoever may change the operator could change the workload; "
        "create a namespace of its own for it"
    )
    return forbidden(request, why, DeniedCause("metadata.namespace", "FieldValueForbidden", "Forbidden: an operator's"))


def class_exists(request: AdmissionRequest, lookups: AdmissionLookups) -> Allowed | None:
    """Warn about a template whose runtime class is missing: its pods would be refused one by one, out of sight."""
    pod = _judged(request) if request.kind != "Pod" else None
    name = class_of(pod) if pod is not None else ""
    if not name or lookups.runtime_class(name) is not None:
        return None
    return Allowed((f'its pods will be refused: RuntimeClass "{name}" not found; {existing(lookups)}',))


def namespace_gets_what_it_asks(request: AdmissionRequest, lookups: AdmissionLookups) -> Denied | Allowed | None:
    """Refuse or warn about a workload that lacks what its namespace requires."""
    pod = _judged(request)
    wants = requirements_of(lookups.namespace(request.namespace)) if pod is not None else None
    if pod is None or wants is None:
        return None
    lacks = list(_lacks(pod, wants, lookups, request.trial))
    if not lacks:
        return None
    if wants.enforcement == WARN:
        return Allowed(tuple(f"{lack.field}: {lack.why}. {lack.hint}" for lack in lacks))
    reasons = "; ".join(f"{lack.why} ({lack.hint})" for lack in lacks)
    causes = [DeniedCause(lack.field, "FieldValueForbidden", f"Forbidden: {lack.why}") for lack in lacks]
    return forbidden(request, f"namespace {request.namespace} does not allow it: {reasons}", *causes)


def policy_to_try(request: AdmissionRequest, lookups: AdmissionLookups) -> str | None:
    """The policy that the engine should be asked about before a review; None where its answer would change nothing."""
    pod = _judged(request)
    wants = requirements_of(lookups.namespace(request.namespace)) if pod is not None else None
    if pod is None or wants is None or POLICY not in wants.requirements:
        return None
    text = lint_encoded(_notes(pod).get(ANNOTATION, ""))[1]
    policy = lint_text(text, sized=True)[1].get("policy.rego") if text is not None else None
    if policy is None or any(finding.severity in FATAL for finding in lint_policy(policy)):
        return None
    return policy


def existing(lookups: AdmissionLookups) -> str:
    """The runtime classes that there are, in words."""
    names = sorted(lookups.runtime_classes())
    return f"there are: {', '.join(names)}" if names else "there are none: create a KataConfig first"


def class_of(pod: Object) -> str:
    """The runtime class that a pod or a template asks for; empty for none."""
    spec = pod.get("spec")
    return str(spec.get("runtimeClassName") or "") if isinstance(spec, Mapping) else ""


def _lacks(
    pod: Object, wants: NamespaceRequirements, lookups: AdmissionLookups, trial: PolicyTrial | None
) -> Iterator[Lack]:
    if CLASS in wants.requirements:
        yield from _class_lacks(class_of(pod), wants.classes, lookups)
    encoded = _notes(pod).get(ANNOTATION, "")
    if INITDATA in wants.requirements or POLICY in wants.requirements:
        yield from _initdata_lacks(encoded, pod, wants, trial)


def _class_lacks(name: str, allowed: tuple[str, ...], lookups: AdmissionLookups) -> Iterator[Lack]:
    classes = allowed or tuple(
        sorted(candidate for candidate in lookups.runtime_classes() if _is_confidential(candidate, lookups))
    )
    if name in classes:
        return
    use = f"Use {' or '.join(classes)}." if classes else f"No confidential class exists; {existing(lookups)}."
    why = f"runtime class {name} is not allowed here" if name else "it has no runtime class and is not confidential"
    yield Lack("spec.runtimeClassName", why, use)


def _initdata_lacks(
    encoded: str, pod: Object, wants: NamespaceRequirements, trial: PolicyTrial | None
) -> Iterator[Lack]:
    field = f"metadata.annotations[{ANNOTATION}]"
    if not encoded:
        old = [name for name in OLD_ANNOTATIONS if name in _notes(pod)]
        why = f"nothing reads the annotation {old[0]}" if old else "it carries no init data"
        yield Lack(field, why, "Add it with `fastness initdata apply`.")
        return
    findings, text = lint_encoded(encoded)
    if text is None:
        yield Lack(field, _summary(findings), findings[0].hint)
        return
    more, entries = lint_text(text, sized=True)
    wrong = [finding for finding in (*findings, *more) if finding.severity in FATAL]
    if wrong:
        yield Lack(field, _summary(wrong), wrong[0].hint)
    if POLICY in wants.requirements:
        yield from _policy_lacks(entries.get("policy.rego"), field, trial)


def _policy_lacks(policy: str | None, field: str, trial: PolicyTrial | None) -> Iterator[Lack]:
    write = "Write one with `fastness policy agent write`."
    # Then the policy of the guest image decides, and that of upstream's images allows everything.
    if policy is None:
        yield Lack(field, "its init data has no agent policy, and nobody here knows that of the guest image", write)
        return
    opened, unreadable = trial if trial is not None else PolicyTrial(unconditionally_open(policy))
    wrong = [finding for finding in lint_policy(policy, opened, unreadable) if finding.severity in FATAL]
    if wrong:
        yield Lack(field, f"its agent policy is not restrictive: {_summary(wrong)}", wrong[0].hint)


def _summary(findings: list[Finding]) -> str:
    first = "; ".join(finding.message for finding in findings[:MOST_LISTED])
    return first + (f"; and {len(findings) - MOST_LISTED} more" if len(findings) > MOST_LISTED else "")


def _judged(request: AdmissionRequest) -> Object | None:
    """The pod or template to look at; None when there is none, it goes away, or nothing of interest changed."""
    pod = _pod_in(request.kind, request.new)
    if pod is None or is_being_deleted(request.new):
        return None
    if request.old is not None:
        before = _pod_in(request.kind, request.old)
        if before is not None and _interest(before) == _interest(pod):
            return None
    return pod


def _pod_in(kind: str, obj: Object) -> Object | None:
    if kind not in TEMPLATES:
        return None
    try:
        return pod_of({**obj, "kind": kind})
    except NotAWorkload:
        return None


def _interest(pod: Object) -> tuple[Any, ...]:
    notes = _notes(pod)
    return class_of(pod), *(notes.get(name) for name in (ANNOTATION, *OLD_ANNOTATIONS))


def _notes(pod: Object) -> Mapping[str, str]:
    """The annotations of a pod or template that are texts."""
    annotations = metadata(pod).get("annotations") if isinstance(pod.get("metadata"), Mapping) else None
    given = annotations if isinstance(annotations, Mapping) else {}
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _is_sandboxed(pod: Object, lookups: AdmissionLookups) -> bool:
    name = class_of(pod)
    handler = _handler(name, lookups) if name else ""
    return bool(_notes(pod).get(ANNOTATION)) or name.startswith(SANDBOX) or handler.startswith(SANDBOX)


def _is_confidential(name: str, lookups: AdmissionLookups) -> bool:
    return _handler(name, lookups).startswith(CONFIDENTIAL_HANDLERS)


def _handler(name: str, lookups: AdmissionLookups) -> str:
    runtime_class = lookups.runtime_class(name)
    return str(runtime_class.get("handler") or "") if runtime_class is not None else ""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in (part.strip() for part in text.split(",")) if part)
