"""Marking a Machine: a proof that was judged before the machine's next boot was known does not count after it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.attestation.live.writer import Outcome, Verdicts
from fastness.attestation.policy.claims import TrustVector
from fastness.attestation.verdict.conclude import Conclusion
from fastness.attestation.verdict.dispute import Boot
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Conflict

NOW = datetime(2026, 6, 1, tzinfo=UTC)
A, B = "a" * 64, "b" * 64
AFFIRMED = Conclusion((), TrustVector({}), {}, "Affirmed", "", accepted=True)


def stored(**status: Any) -> JsonObject:
    return {
        "metadata": {"name": "machine-1", "namespace": "fastness-system", "uid": "u", "resourceVersion": "7"},
        "spec": {"id": "i", "approval": "Approved"},
        "status": {"keyThumbprint": "sha256:1", "conditions": [], **status},
    }


class Api:
    """An API whose Machine is newer than the one that the verifier had: every write of an old version is a conflict."""

    def __init__(self, machine: JsonObject) -> None:
        self.machine = machine
        self.written: list[JsonObject] = []

    async def get(self, *_: Any) -> JsonObject:
        return self.machine

    async def patch(self, _resource: Any, _name: str, patch: JsonObject, *_: Any) -> JsonObject:
        if patch["metadata"]["resourceVersion"] != self.machine["metadata"]["resourceVersion"]:
            raise Conflict("another version")
        self.written.append(patch["status"])
        return self.machine


@pytest.mark.parametrize(
    ("cached", "boot"),
    [
        ({"boot": {"launch": A}}, Boot(A)),  # the verifier's cache is behind
        ({"boot": {"launch": B}, "formerBoots": [A]}, Boot(A)),  # it came up in between
    ],
)
async def test_a_later_boot_that_was_judged_meanwhile_wins(cached: JsonObject, boot: Boot) -> None:
    now = stored(boot={"launch": B}, formerBoots=[A])
    now["metadata"]["resourceVersion"] = "8"
    api: Any = Api(now)
    verdict = {"metadata": {"name": "v"}, "spec": {"evidence": {"type": "snp"}}}
    outcome = Outcome(AFFIRMED, "p", (), simulated=True, boot=boot)
    informer: Any = None
    with pytest.raises(Conflict):
        await Verdicts(api, informer).mark(stored(**cached), verdict, outcome, NOW)
    assert api.written == []
    later = Outcome(AFFIRMED, "p", (), simulated=True, boot=Boot(B))
    await Verdicts(api, informer).mark(stored(**cached), verdict, later, NOW)
    assert [("boot" in status, "lastAttested" in status) for status in api.written] == [(False, True)]
