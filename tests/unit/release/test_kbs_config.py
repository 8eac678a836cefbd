"""Policies that a KbsConfig brings along: in use only as they are written now."""

from __future__ import annotations

from fastness.release.kbs_config import not_in_use


def test_a_policy_of_a_kbs_config_is_in_use_only_as_it_is_written_now() -> None:
    active = {"type": "Active", "status": "True", "reason": "Active", "observedGeneration": 2, "message": ""}
    policy = {"metadata": {"generation": 2}, "spec": {"for": "tpm"}, "status": {"conditions": [active]}}
    assert not_in_use(policy) is None
    assert "being tried" in (not_in_use({**policy, "metadata": {"generation": 3}}) or "")
    refused = {**active, "status": "False", "message": "why"}
    assert "why" in (not_in_use({**policy, "status": {"conditions": [refused]}}) or "")
