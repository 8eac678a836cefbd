"""The resource policies that count now: what `PolicyBook` makes of the AppraisalPolicies in the cache.

The book is made anew when a policy changes, not for each request. Deciding which text of a policy is active belongs to its
controller; asking all that concern a path, and the built-in one where none does, belongs to the book.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.cluster.informers import Informer
from fastness.domain.attestation.policybook import PolicyBook


class ActivePolicies:
    """Asks all policies that concern a resource."""

    def __init__(self, policies: Informer) -> None:
        self._policies = policies
        self._book: PolicyBook | None = None
        policies.subscribe(self._changed)

    def allow(self, claims: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
        """Whether all of them let a caller with these claims have the resource."""
        return not self.refusing(claims, tuple(data["resource-path"]), data.get("query") or {})

    def refusing(self, claims: Mapping[str, Any], path: tuple[str, ...], query: Mapping[str, str] | None = None) -> str:
        """The policy that refuses a resource to a caller with these claims; empty when none does."""
        if self._book is None:
            self._book = PolicyBook.of(self._policies.list())
        return self._book.allows(path, claims, query or {})

    def _changed(self, _old: object, _new: object) -> None:
        self._book = None
