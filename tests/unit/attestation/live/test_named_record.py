"""Which object a person wrote, for an entry about what came of it."""

from __future__ import annotations

import pytest

from fastness.attestation.live.named_record import act_resource
from fastness.record.entry import RecordEntry


@pytest.mark.parametrize(
    ("entry", "resource"),
    [
        (RecordEntry("break-glass-begins", "sha256:1", "machine/m"), "confidentialclusters/cluster"),
        (RecordEntry("break-glass-ends", "sha256:1", "machine/m"), "confidentialclusters/cluster"),
        (RecordEntry("machine-distrusted", "sha256:1", "machine/m", detail={"by": "stolen,old"}), "distrusts/stolen"),
        (RecordEntry("distrust-begins", "sha256:1", "distrust/stolen"), "distrusts/stolen"),
        (RecordEntry("machine-quarantine", "sha256:1", "machine/m"), "machines/fastness-system/m"),
    ],
)
def test_an_entry_leads_to_the_object_that_was_written(entry: RecordEntry, resource: str) -> None:
    assert act_resource(entry) == resource
