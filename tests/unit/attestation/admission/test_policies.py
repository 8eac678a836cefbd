"""A policy beside the built-in one is an everyday act; one in its place is a lowering, confirmed and on the record."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.admission.acts import LOWER, acts_of
from fastness.attestation.admission.policies import policy_weakenings
from fastness.kinds.fastness_dev.cluster import CONFIRM_LOWER
from fastness.kube.admission import Allowed, Denied
from fastness.kube.confirmation import confirmation
from fastness.kube.places import EMBEDDED
from tests.unit.admission.writes import World, review, write

Object = dict[str, Any]
RESOURCE = "appraisalpolicies.fastness.dev"


def policy(word: str = "", **spec: Any) -> Object:
    notes = {"annotations": {CONFIRM_LOWER: word}} if word else {}
    body = {"for": "tpm", "rego": "package policy", "active": True, **spec}
    return {"metadata": {"name": "mine", "uid": "u", "generation": 2, **notes}, "spec": body}


ALONE = policy(replacesBuiltIn=True)


@pytest.mark.parametrize(
    ("old", "new", "lowers"),
    [
        (policy(), ALONE, True),
        (policy(active=False), policy(active=False, replacesBuiltIn=True), True),
        (ALONE, policy(replacesBuiltIn=True, rego="package policy\n#"), True),
        (ALONE, policy(replacesBuiltIn=True, **{"for": "tdx"}), True),
        (ALONE, policy(replacesBuiltIn=True, active=False), False),
        (ALONE, policy(), False),
        (policy(), policy(rego="package policy\n#"), False),
    ],
)
def test_only_judging_in_place_of_the_built_in_policy_is_a_lowering(old: Object, new: Object, lowers: bool) -> None:
    assert bool(list(policy_weakenings(old, new))) is lowers
    request = write("UPDATE", RESOURCE, new, old, kind="AppraisalPolicy")
    assert isinstance(review(request, World()), Denied) is lowers
    confirmed = {**new, "metadata": {**new["metadata"], "annotations": {CONFIRM_LOWER: confirmation(old, new)}}}
    request = write("UPDATE", RESOURCE, confirmed, old, kind="AppraisalPolicy")
    assert isinstance(review(request, World()), Allowed)
    assert (LOWER in [act.what for act in acts_of(request, EMBEDDED)]) is lowers


def test_it_cannot_be_made_at_once() -> None:
    made = review(write("CREATE", RESOURCE, ALONE, kind="AppraisalPolicy"), World())
    assert isinstance(made, Denied)
    assert isinstance(review(write("CREATE", RESOURCE, policy(), kind="AppraisalPolicy"), World()), Allowed)
