"""An override counts only if two approvers with two keys signed exactly this, for this cluster, not too long, and now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.verdict.breakglass import ANNOTATION, BadOverride, agreed_override, listed_approvers
from fastness.attestation.verdict.breakglass import live_override as live_override_of
from tests.breakglass import APPROVERS, approver, override

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UID = "0b0e7f0e-0000-4000-8000-000000000001"


def live_override(cluster: Any, now: datetime) -> Any:
    """The override of a cluster whose approvers all count."""
    return live_override_of(cluster, now, listed_approvers(cluster))


def cluster(text: str | None, approvers: list[dict[str, str]] | None = None) -> dict[str, Any]:
    notes = {} if text is None else {ANNOTATION: text}
    people = APPROVERS if approvers is None else approvers
    return {"metadata": {"uid": UID, "annotations": notes}, "spec": {"breakGlass": {"approvers": people}}}


def test_two_approvers_make_an_override_that_names_them_and_ends_by_itself() -> None:
    cluster_object = cluster(override(UID, NOW))
    live = live_override(cluster_object, NOW)
    assert live is not None
    assert (live.pool, live.by) == ("worker", ("ada", "grace"))
    assert live_override(cluster_object, NOW + timedelta(hours=1)) is None
    assert live_override(cluster_object, NOW - timedelta(minutes=6)) is None
    assert live_override(cluster(None), NOW) is None
    assert live_override(None, NOW) is None


BAD: dict[str, tuple[str, list[dict[str, str]] | None, str]] = {
    "one approver": (override(UID, NOW, ("ada",)), None, "not-agreed"),
    "nobody": (override(UID, NOW, ()), None, "not-agreed"),
    "the same approver twice": (override(UID, NOW, ("ada", "ada")), None, "not-agreed"),
    "one person under two names with one key": (
        override(UID, NOW, ("ada", "grace"), keys=("ada", "ada")),
        [approver("ada"), approver("grace", "ada")],
        "not-agreed",
    ),
    "somebody who is no approver": (override(UID, NOW, ("ada", "eve")), None, "not-agreed"),
    "an approver's name with another's key": (override(UID, NOW, keys=("ada", "eve")), None, "not-agreed"),
    "no approvers named by the cluster": (override(UID, NOW), [], "not-agreed"),
    "another reason than the one signed": (
        override(UID, NOW, reason="other"),
        None,
        "not-agreed",
    ),
    "a later end than the one signed": (override(UID, NOW, expires="2026-03-01T15:00:00Z"), None, "not-agreed"),
    "another cluster": (override(UID.replace("1", "2"), NOW), None, "other-cluster"),
    "five hours": (override(UID, NOW, hours=5), None, "too-long"),
    "an end before the beginning": (override(UID, NOW, hours=-1), None, "too-long"),
    "a time that is none": (override(UID, NOW, expires="soon"), None, "unreadable"),
    "a time without a zone": (override(UID, NOW, expires="2026-03-01T13:00:00"), None, "unreadable"),
    "a member too many": (override(UID, NOW, more="x"), None, "unreadable"),
    "a reason that is no text": (override(UID, NOW, reason=7), None, "unreadable"),
    "no reason": (override(UID, NOW, reason=""), None, "unreadable"),
    "no JSON": ("{", None, "unreadable"),
    "a list": ("[]", None, "unreadable"),
    "nothing signed": ('{"statement": {}, "agreed": []}', None, "unreadable"),
    "too long a text": ('"' + "x" * 9000 + '"', None, "unreadable"),
}


@pytest.mark.parametrize("case", BAD)
def test_anything_less_counts_for_nothing_and_says_why(case: str) -> None:
    text, approvers, code = BAD[case]
    with pytest.raises(BadOverride) as refused:
        agreed_override(cluster(text, approvers), listed_approvers(cluster(text, approvers)))
    assert refused.value.code == code
    assert live_override(cluster(text, approvers), NOW) is None


@pytest.mark.parametrize(
    "agreed", ["null", "7", '["ada"]', '[{"by": 1, "signature": 2}]', '[{"by": "ada", "signature": "%"}]']
)
def test_nonsense_instead_of_signatures_is_no_signature(agreed: str) -> None:
    signed = override(UID, NOW, ())
    text = signed.replace('"agreed":[]', f'"agreed":{agreed}')
    assert text != signed
    assert live_override(cluster(text), NOW) is None
