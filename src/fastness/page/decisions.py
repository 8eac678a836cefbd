"""Decisions about a machine, taken on the page: written as the user who asks.

What can be decided is a rule of the domain (`attestation/machine/decisions`), which the command line asks too. The write happens
only after the API's authorizer allowed that user to patch this machine, and on the version that was judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.attestation.machine.decisions import (
    DECISIONS,
    MAX_REASON,
    Decision,
    DecisionState,
    decision_patch,
    standing,
)
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import membership_of
from fastness.kube.errors import BadRequest, Conflict, NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.page.admission import Acting
from fastness.page.view_scope import MACHINES, Sight

_AS: Final = WriteOptions(manager="fastness-page")


async def carry_out(acting: Acting, sight: Sight, name: str, form: Mapping[str, str]) -> Decision:
    """Write a decision as the user; raises BadRequest, Forbidden, NotFound, Conflict and what the API says."""
    decision, reason = DECISIONS.get(form.get("decision", "")), form.get("reason", "").strip()
    if decision is None:
        raise BadRequest(f"there is no such decision; there are: {', '.join(DECISIONS)}")
    if decision.reason_required and not reason:
        raise BadRequest(f"to {decision.verb} a machine needs a reason; it is kept on the record")
    if len(reason) > MAX_REASON:
        raise BadRequest(f"the reason is longer than {MAX_REASON} characters")
    sight.require("patch", MACHINES, name)
    found = sight.one(MACHINES, name)
    if found is None:
        raise NotFound(f'machines "{name}" not found', group=MACHINES.group, kind=MACHINES.plural, name=name)
    seen = view(found, Machine)
    if standing(seen, decision) is not DecisionState.OPEN:
        state = membership_of(seen).value.lower()
        raise Conflict(f"{name} is {state}: there is nothing to {decision.verb}")
    async with acting() as cluster:
        await cluster.patch(MACHINES, name, decision_patch(found, decision, reason), PatchType.MERGE, NAMESPACE, _AS)
    return decision
