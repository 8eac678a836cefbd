"""Who may ask what a token is worth: a part of ours, by its certificate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from fastness.http.refusals import Refusal
from fastness.release.door.broker.introspect import internal_caller


class Bare:
    """A request over a connection without a client certificate."""

    peer = None


def test_nobody_asks_without_a_certificate() -> None:
    with pytest.raises(Refusal) as refused:
        internal_caller(cast("Any", Bare()), cast("Any", None), datetime(2026, 1, 1, tzinfo=UTC))
    assert (refused.value.status, refused.value.code) == (401, "certificate-required")
