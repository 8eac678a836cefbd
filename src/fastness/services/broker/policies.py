"""The resource policies that count now: AppraisalPolicies for resources that are active.

Every active policy whose pattern covers a path must allow the release; where none does, the built-in one judges. Policies are
compiled once per text. A policy that is marked active and does not compile allows nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from fastness.cluster.informers import Informer
from fastness.domain.attestation.errors import BadPolicy
from fastness.domain.attestation.policy import Request, ResourcePolicy, compile_resource_policy, default_resource_policy
from fastness.domain.attestation.resources import ResourcePath, matches
from fastness.model.kind import JsonObject
from fastness.model.objects import condition

MAX_COMPILED: Final = 128


class ActivePolicies:
    """Asks all policies that concern a resource."""

    def __init__(self, policies: Informer) -> None:
        self._policies = policies
        self._compiled: OrderedDict[str, ResourcePolicy | None] = OrderedDict()

    def allow(self, claims: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Whether all of them let a caller with these claims have the resource."""
        segments = tuple(data["resource-path"])
        path = ResourcePath(*segments)
        request = Request(segments, str(data["plugin"]), data.get("query") or {})
        texts = [str(policy["spec"]["rego"]) for policy in self._policies.list() if _concerns(policy, path)]
        if not texts:
            return default_resource_policy().allow(claims, request)
        judges = [self._judge(text) for text in texts]
        return all(judge is not None and judge.allow(claims, request) for judge in judges)

    def _judge(self, text: str) -> ResourcePolicy | None:
        if text not in self._compiled:
            try:
                self._compiled[text] = compile_resource_policy(text)
            except BadPolicy:
                self._compiled[text] = None
            while len(self._compiled) > MAX_COMPILED:
                self._compiled.popitem(last=False)
        return self._compiled[text]


def _concerns(policy: JsonObject, path: ResourcePath) -> bool:
    pattern = str(policy["spec"]["for"])
    if "/" not in pattern or not policy["spec"].get("active"):
        return False
    found = condition(policy, "Active")
    # Not judged yet counts as active: a policy takes away, and a moment of too little is better than one of too much.
    return (found is None or found.get("status") == "True") and matches(pattern, path)
