"""The record under load: what cannot be queued is refused, and with it the release that waits for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fastness.keys.errors import RecordError
from fastness.record.entry import RecordEntry
from fastness.record.live import record
from tests.virtual import SeededEntropy, VirtualClock


async def test_an_entry_beyond_the_queue_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MOST_WAITING", 0)
    full = record.ClusterRecord(cast("Any", None), VirtualClock(), SeededEntropy(1), "gate")
    with pytest.raises(RecordError, match="too many entries"):
        await full.append(RecordEntry("release", f"sha256:{'a' * 64}", resource="default/test/1"))
