"""AppraisalPolicies: tried before they judge.

A policy that was changed is tried in a process of its own: it must be readable, stay within its bounds, pass its cases, refuse at
least one of them, and refuse a machine that showed nothing. Only then does its text become `status.active`, which is what
verifiers read. A text that does not pass leaves the older one where it is, also across restarts, because the older one stands in
the object itself.

* Switched off (`spec.active` false) takes the policy away at once; the built-in one judges alone again.
* That a text judges in place of the built-in policy (`replacesBuiltIn`) was confirmed where the object was written. The
  confirmation goes with the change that it was for.
* A generation is tried once. The result is a function of the text, so another look at the same text changes nothing.
* A text that passed and then gave no answer within its bounds in service has `WithinBounds` False while it judges. Doors may not
  write the status of policies, since that is where verifiers read the text; so it is read off the verdicts that they left
  (`attestation.status.policy_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from fastness.attestation.live.policy_workers import Try, run_trial
from fastness.attestation.policy.cases import NOTHING, REFUSES_NONE, Trial
from fastness.attestation.policy.policy import policy_version
from fastness.attestation.status.policy_bounds import bounded, exceeding
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name, rfc3339, with_condition
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock

POLICIES = APPRAISAL_POLICY.resource
MAX_NAMED = 5
UNDECIDED = Scope(fields="spec.result=NotAssessed")
_STATUS = WriteOptions(manager="appraisal-policies", subresource="status")
_AS = WriteOptions(manager="appraisal-policies")


def _waited_for(verdict: Mapping[str, Any]) -> Iterable[ObjectName]:
    """The policy whose answer a verdict had to do without."""
    unanswered = exceeding(verdict)
    return (ObjectName("", unanswered.name),) if unanswered is not None else ()


class Policies:
    """Tries policies and activates those that pass."""

    name = "appraisal-policies"
    sources: Sequence[Source] = (Source(POLICIES), Source(VERDICT.resource, _waited_for, UNDECIDED, delay=1.0))
    writes: Sequence[Resource] = (POLICIES, EVENTS)

    def __init__(self, cluster: Cluster, clock: Clock, attempt: Try = run_trial) -> None:
        self._cluster = cluster
        self._clock = clock
        self._try = attempt
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """Try a policy that has not been tried in this form."""
        try:
            policy = await self._cluster.get(POLICIES, key.name)
        except NotFound:
            return GONE
        generation = policy["metadata"].get("generation", 0)
        status = policy.get("status") or {}
        if is_being_deleted(policy):
            return Done()
        verdicts = (await self._cluster.list(VERDICT.resource, UNDECIDED)).items
        if status.get("observedGeneration") == generation:
            await self._set_bounds(policy, verdicts)
            return Done()
        trial = await self._try(policy["spec"])
        now = self._clock.now()
        judged = judged_status(policy, trial, now)
        judged["conditions"] = bounded(judged, generation, verdicts, now)
        # The trial took a while: if the policy changed meanwhile, this conflicts and the new text is tried instead.
        version = policy["metadata"]["resourceVersion"]
        await self._cluster.patch(
            POLICIES,
            key.name,
            {"metadata": {"resourceVersion": version}, "status": judged},
            PatchType.MERGE,
            options=_STATUS,
        )
        await self._tell(policy, trial, judged)
        await self._take_off(policy)
        return Done()

    async def _set_bounds(self, policy: JsonObject, verdicts: Iterable[JsonObject]) -> None:
        """Say of a text that was tried already whether it kept its bounds since."""
        status, meta = policy.get("status") or {}, policy["metadata"]
        conditions = bounded(status, meta.get("generation", 0), verdicts, self._clock.now())
        if conditions != list(status.get("conditions") or ()):
            patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": {"conditions": conditions}}
            await self._cluster.patch(POLICIES, object_name(policy).name, patch, PatchType.MERGE, options=_STATUS)

    async def _take_off(self, policy: JsonObject) -> None:
        """Take a confirmation off that was used: its digest fits no other change, and it only confuses readers."""
        if CONFIRM_LOWER in annotations_of(policy) and policy["spec"].get("replacesBuiltIn"):
            patch = {"metadata": {"annotations": {CONFIRM_LOWER: None}}}
            await self._cluster.patch(POLICIES, object_name(policy).name, patch, PatchType.MERGE, options=_AS)

    async def _tell(self, policy: JsonObject, trial: Trial, status: Mapping[str, Any]) -> None:
        if not trial.good:
            await self._recorder.warning(policy, "PolicyRefused", _why(trial))
        elif status["active"] is not None:
            await self._recorder.normal(policy, "PolicyActive", f"version {status['version']} judges from now on")


def judged_status(policy: Mapping[str, Any], trial: Trial, now: datetime) -> JsonObject:
    """The status of a policy after a trial; `active` is None to take it away."""
    spec, old = policy["spec"], policy.get("status") or {}
    version = policy_version(str(spec["rego"]))
    active = _active(spec, old.get("active"), trial, version, now)
    generation = policy["metadata"].get("generation", 0)
    conditions = list(old.get("conditions") or ())
    for kind, status, reason, message in (
        _parsed(trial),
        _cases(trial),
        _judging(spec, active, trial, version),
    ):
        conditions = with_condition(
            conditions, kind=kind, status=status, reason=reason, message=message, now=now, generation=generation
        )
    return {
        "observedGeneration": generation,
        "conditions": conditions,
        "cases": trial.passed if trial.parsed else f"0/{len(spec.get('cases') or ())}",
        "failedCases": [result.name for result in trial.failed],
        "version": version,
        "active": active,
    }


def _active(
    spec: Mapping[str, Any], old: Mapping[str, Any] | None, trial: Trial, version: str, now: datetime
) -> JsonObject | None:
    if not spec.get("active", False):
        return None
    if not trial.good:
        return dict(old) if old else None
    replaces = bool(spec.get("replacesBuiltIn", False))
    made = {"for": spec["for"], "rego": spec["rego"], "version": version, "replacesBuiltIn": replaces}
    if old and {**old, "replacesBuiltIn": bool(old.get("replacesBuiltIn"))} == {**made, "since": old.get("since")}:
        return dict(old)
    return {**made, "since": rfc3339(now)}


def _parsed(trial: Trial) -> tuple[str, str, str, str]:
    if trial.error is not None:
        return "Parsed", "False", "Unreadable", trial.error
    return "Parsed", "True", "Readable", "the policy can be evaluated"


def _cases(trial: Trial) -> tuple[str, str, str, str]:
    if not trial.parsed:
        return "CasesPass", "Unknown", "Unreadable", "the policy cannot be evaluated"
    if trial.failed:
        reason = "AcceptsNothing" if any(result.name == NOTHING for result in trial.failed) else "CasesFail"
        return "CasesPass", "False", reason, _why(trial)
    if not trial.refuses:
        return "CasesPass", "False", "NothingRefused", _why(trial)
    return "CasesPass", "True", "AllPass", f"{trial.passed} cases pass"


def _judging(
    spec: Mapping[str, Any], active: Mapping[str, Any] | None, trial: Trial, version: str
) -> tuple[str, str, str, str]:
    if not spec.get("active", False):
        return "Active", "False", "SwitchedOff", "spec.active is false"
    if active is None:
        return "Active", "False", "NotAccepted", "the policy does not pass, and there is no older one"
    if active["version"] == version and trial.good:
        how = "in place of" if active.get("replacesBuiltIn") else "beside"
        return "Active", "True", "Judging", f"version {version} judges {active['for']} {how} the built-in policy"
    message = f"the present text does not pass; version {active['version']} still judges {active['for']}"
    return "Active", "True", "OlderVersion", message


def _why(trial: Trial) -> str:
    if trial.error is not None:
        return trial.error
    if not trial.failed and not trial.refuses:
        return REFUSES_NONE
    failures = "; ".join(f"{result.name}: {result.detail}" for result in trial.failed[:MAX_NAMED])
    more = len(trial.failed) - MAX_NAMED
    return f"{failures}; and {more} more" if more > 0 else failures
