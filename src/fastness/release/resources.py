"""Who may read which resource of the key broker: code, asked before any policy.

    machine/<uid>/<tag>                     that machine
    pool/<name>/<tag>                       attested members of the pool
    tenant/<name>/<tag>                     attested members of the tenant
    default/attestation-status/status       whoever attested
    anything else                           whom a ResourceBinding names, if it proved what the binding requires

* A path (`protocol.kbs_path`) is parsed once, and nothing downstream sees another spelling.
* A reserved word at the front belongs to the rule above for good: no binding opens another machine's, pool's or tenant's place.
* The answer is a `Denial` or None; policy can only take away from what is allowed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.attestation.policy.claims import MANDATORY, proves_host
from fastness.kinds.trusted_execution.subject import Subject
from fastness.protocol.kbs_path import ResourcePath
from fastness.protocol.resource_patterns import covers

_RESERVED: Final = ("machine", "pool", "tenant")


STATUS: Final = ResourcePath("default", "attestation-status", "status")


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a path is not the caller's; the code is stable."""

    code: str
    detail: str


def may_read(path: ResourcePath, subject: Subject, bindings: Iterable[Mapping[str, Any]] = ()) -> Denial | None:
    """Why the subject may not read a path, or None when it may; `bindings` are ResourceBinding objects."""
    if path.repository in _RESERVED:
        own = {"machine": subject.machine, "pool": subject.pool, "tenant": subject.tenant}[path.repository]
        # An empty name is nobody's: a machine without a tenant is not a member of the tenant "".
        if own and path.type == own:
            return None
        return Denial(f"other-{path.repository}", f"this belongs to another {path.repository}")
    if path == STATUS:
        return None
    bound = [binding for binding in bindings if _binds(binding, path, subject)]
    if any(_satisfied(binding, subject.tee) for binding in bound):
        return None
    if bound:
        return Denial("evidence-too-weak", f"the resource asks for more than evidence of {subject.tee or 'no kind'}")
    return Denial("not-bound", "no ResourceBinding lets this machine read the resource")


def _binds(binding: Mapping[str, Any], path: ResourcePath, subject: Subject) -> bool:
    spec = binding.get("spec") or {}
    subjects = spec.get("subjects") or {}
    named = (
        (subject.machine, subjects.get("machines")),
        (subject.pool, subjects.get("pools")),
        (subject.tenant, subjects.get("tenants")),
    )
    if not any(own and own in (listed or ()) for own, listed in named):
        return False
    return covers(str(spec.get("resource") or ""), path.segments)


def _satisfied(binding: Mapping[str, Any], tee: str) -> bool:
    """Whether a kind of evidence is what a binding requires; who proved nothing satisfies no demand."""
    requires = (binding.get("spec") or {}).get("requires") or {}
    accepted = requires.get("evidence")
    if accepted and tee not in accepted:
        return False
    return not requires.get("tee") or (tee in MANDATORY and proves_host(tee))
