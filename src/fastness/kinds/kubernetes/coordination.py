"""Lease: who holds a role, and until when.

Times carry microseconds here, unlike everywhere else in the API.
"""

from __future__ import annotations

from fastness.kinds.kubernetes.native import native
from fastness.kinds.objects import Metadata, View

LEASE = native("coordination.k8s.io", "Lease")


class LeaseSpec(View):
    """Holder, term and how often the lease changed hands."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(View):
    """A lease as leader election sees it."""

    metadata: Metadata = Metadata()
    spec: LeaseSpec = LeaseSpec()
