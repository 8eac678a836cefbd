"""Grants for tests of what they open: as `release.authorise` makes them, without the decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from fastness.attestation.policy.query import Answer, drive
from fastness.kinds.trusted_execution.subject import GRANTING, Basis, Grant, ProvenCaller, Subject
from fastness.protocol.kbs_path import ResourcePath
from fastness.release.authorise import ClusterRules, Denial, authorise

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)
SUBJECT = Subject("uid", "machine-a", "sha256:" + "a" * 64, "worker", tee="tpm", endorsement="ek-certificate")


def grant_of(
    resource: object,
    subject: Subject = SUBJECT,
    basis: Basis = Basis.VERDICT,
    claims: Mapping[str, Any] | None = None,
    credential: str = "",
) -> Grant:
    """Leave for a machine to have a resource."""
    caller = ProvenCaller(subject, "v", {}, FOREVER, basis, claims=claims or {}, credential=credential)
    return Grant("grant-1", caller, str(resource), GRANTING)


def path_denial(path: ResourcePath, subject: Subject, bindings: Iterable[Mapping[str, Any]] = ()) -> str:
    """The code by which a path is denied to a subject; empty where what comes after the path is asked."""
    caller = ProvenCaller(subject, "v", {}, FOREVER)
    rules = ClusterRules()
    outcome = drive(authorise(caller, path, rules, None, bindings, revoked=False, now=NOW), lambda _: Answer())
    return outcome.code if isinstance(outcome, Denial) and outcome.code != "not-endorsed" else ""
