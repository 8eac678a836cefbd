"""The Accept header of Kubernetes clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.accept import JSON, MAX_RANGES, Media, negotiate, parse

TABLE = Media(as_kind="Table", group="meta.k8s.io", version="v1")
KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("application/json", JSON),
        ("APPLICATION/JSON", JSON),
        ("application/json;charset=utf-8", JSON),
        (KUBECTL, TABLE),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", None),
        ("application/json;as=Table;v=v2;g=meta.k8s.io, application/json", JSON),
        ("application/vnd.kubernetes.protobuf", None),
        ("application/vnd.kubernetes.protobuf,application/json", JSON),
        ("application/json;q=0.1,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9", TABLE),
        ("application/json;q=0", None),
        ("text/html", None),
        ("nonsense", None),
    ],
)
def test_client_gets_what_it_likes_best(header: str, chosen: Media | None) -> None:
    assert negotiate(header, (JSON, TABLE)) == chosen


def test_only_so_many_ranges_are_read() -> None:
    assert len(parse("a/b," * 1000)) == MAX_RANGES


@given(st.text(max_size=60))
def test_any_header_is_understood_or_ignored(header: str) -> None:
    assert negotiate(header, (JSON, TABLE)) in (JSON, TABLE, None)
