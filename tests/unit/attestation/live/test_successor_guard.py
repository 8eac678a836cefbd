"""Which approved images know the next authority of the doors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.live.successor_guard import DOORS_CA, SuccessorGuard, carried, knows
from fastness.crypto.x509 import CertificateAuthority
from fastness.kinds.objects import rfc3339
from fastness.runtime.clock import SystemEntropy

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NEXT = CertificateAuthority.create("doors", NOW, SystemEntropy(), 100 * DAY).certificate
OLD = CertificateAuthority.create("doors", NOW - 300 * DAY, SystemEntropy(), 900 * DAY).certificate


def image(approved: datetime, authority: str | None = None, **meta: Any) -> dict[str, Any]:
    notes = {} if authority is None else {DOORS_CA: authority}
    return {"metadata": {"name": "os", "creationTimestamp": rfc3339(approved), "annotations": notes, **meta}}


@pytest.mark.parametrize(
    ("image_object", "expected"),
    [
        (image(NOW - DAY, carried([OLD, NEXT])), True),
        (image(NOW + DAY, carried([OLD])), False),
        (image(NOW + DAY), True),
        (image(NOW - DAY), False),
        (image(NOW - DAY, carried([OLD]), deletionTimestamp=rfc3339(NOW)), True),
    ],
)
def test_an_image_knows_what_it_says_or_what_was_there_when_it_was_approved(
    image_object: dict[str, Any], expected: bool
) -> None:
    assert knows(image_object, NEXT) is expected


def test_one_image_that_does_not_know_is_enough_to_wait() -> None:
    class Cache:
        def list(self) -> list[dict[str, Any]]:
            return [image(NOW + DAY), image(NOW, carried([OLD]))]

    class Empty:
        def list(self) -> list[dict[str, Any]]:
            return []

    assert not SuccessorGuard(Cache())(NEXT)  # type: ignore[arg-type]  # all that is asked of an informer
    assert SuccessorGuard(Empty())(NEXT)  # type: ignore[arg-type]
