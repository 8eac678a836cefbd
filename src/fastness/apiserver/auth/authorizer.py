"""May they: the node authorizer, then RBAC over the current policy.

The policy is built from the RBAC objects when it is first asked for after a change; a source that counts its changes tells when.
Hot answers come from the cache inside the policy (`kube/access/policy.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fastness.kube.access.errors import BadImpersonation
from fastness.kube.access.impersonation import impersonation
from fastness.kube.access.node import NodeLookups, authorize_node
from fastness.kube.access.policy import Policy, authorize
from fastness.kube.access.user import Attributes, Decision, User, refusal
from fastness.kube.errors import BadRequest, Forbidden


class PolicySource(Protocol):
    """The RBAC objects of the store."""

    def rbac_generation(self) -> int:
        """A number that changes whenever one of the four RBAC kinds does; asked on every request."""

    def rbac_objects(self, resource: str) -> Iterable[Mapping[str, Any]]:
        """All objects of clusterroles, clusterrolebindings, roles or rolebindings."""


class Authorizer:
    """Decides for the embedded API."""

    def __init__(self, source: PolicySource, nodes: NodeLookups) -> None:
        self._source = source
        self._nodes = nodes
        self._policy: Policy | None = None

    def policy(self) -> Policy:
        """The policy of now."""
        generation = self._source.rbac_generation()
        policy = self._policy
        if policy is None or policy.generation != generation:
            objects = self._source.rbac_objects
            policy = self._policy = Policy.build(
                objects("clusterroles"),
                objects("clusterrolebindings"),
                objects("roles"),
                objects("rolebindings"),
                generation,
            )
        return policy

    def decide(self, attrs: Attributes) -> Decision:
        """Whether the request is allowed, and why."""
        if attrs.user.node:
            # As with --authorization-mode=Node,RBAC: Node is asked, then RBAC, and the first that is not indifferent decides:
            # "no opinion" here is not yet a refusal.
            decision = authorize_node(attrs, self._nodes)
            if decision.allowed or decision.denied:
                return decision
            by_role = authorize(attrs, self.policy())
            return by_role if by_role.allowed else decision
        return authorize(attrs, self.policy())

    def require(self, attrs: Attributes) -> None:
        """Raise Forbidden, in the words of kube-apiserver, unless the request is allowed."""
        decision = self.decide(attrs)
        if not decision.allowed:
            raise Forbidden(refusal(attrs, decision.reason), group=attrs.group, kind=attrs.resource, name=attrs.name)

    def impersonated(self, user: User, headers: Iterable[tuple[str, str]]) -> User:
        """The user that the request acts as; raises Forbidden, BadRequest."""
        try:
            assumed = impersonation(user, headers)
        except BadImpersonation as error:
            raise BadRequest(error.message) from error
        if assumed is None:
            return user
        # Each user, group, uid and extra is asked for by itself: whoever may be "jane" may not thereby be in system:masters.
        for attrs in assumed.needs:
            self.require(attrs)
        return assumed.user
