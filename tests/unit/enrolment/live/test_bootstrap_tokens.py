"""Which Secrets are tokens that the broker released: only they say which machine may become a node."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from fastness.enrolment.live.bootstrap_tokens import (
    KEY,
    LABEL,
    MACHINE,
    NAMESPACE,
    TYPE,
    is_bootstrap_token,
    join_token,
)
from fastness.kinds.kind import JsonObject
from fastness.protocol.kbs_path import parse_path


def token(**change: Any) -> JsonObject:
    meta = {
        "name": "bootstrap-token-abcdef", "namespace": NAMESPACE, "labels": {LABEL: "true"},
        "annotations": {MACHINE: "uid", KEY: "sha256:aa"},
    }  # fmt: skip
    data = {"token-id": "abcdef", "expiration": "2026-01-01T00:00:00Z"}
    given = {name: change.pop(name) for name in tuple(change) if name in data}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in {**data, **given}.items()}
    kind = change.pop("type", TYPE)
    return {"type": kind, "metadata": {**meta, **change}, "data": encoded}


def test_a_token_of_the_broker_names_its_machine_and_its_key() -> None:
    read = join_token(token())
    assert read is not None
    assert (read.id, read.machine, read.key, read.expires.isoformat()) == (
        "abcdef", "uid", "sha256:aa", "2026-01-01T00:00:00+00:00",
    )  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"type": "Opaque"}, {"labels": {}}, {"labels": {LABEL: "false"}}, {"name": "bootstrap-token-fedcba"},
        {"token-id": "fedcba"}, {"annotations": {}}, {"annotations": {MACHINE: "uid"}}, {"annotations": {KEY: "sha256:aa"}},
        {"annotations": {MACHINE: "", KEY: "sha256:aa"}}, {"expiration": "soon"}, {"expiration": ""},
    ],
    ids=str,
)  # fmt: skip
def test_a_secret_that_lacks_a_sign_of_the_broker_is_no_token_of_a_machine(change: dict[str, Any]) -> None:
    assert join_token(token(**change)) is None


@pytest.mark.parametrize(
    ("path", "token"),
    [
        ("machine/uid/bootstrap-token", True),
        ("pool/worker/bootstrap-token", False),
        ("default/uid/bootstrap-token", False),
        ("machine/uid/disk-root", False),
    ],
)
def test_only_the_bootstrap_token_of_a_machine_is_made_on_demand(path: str, token: bool) -> None:
    parsed = parse_path(path)
    assert parsed is not None
    assert is_bootstrap_token(parsed) is token
