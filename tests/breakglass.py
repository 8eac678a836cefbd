"""Approvers for tests, and overrides that they sign."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.domain.attestation.breakglass import message, statement_of
from fastness.formats import json

KEYS = {
    name: Ed25519Signer(SecretBytes(bytes([number]) * 32)) for number, name in enumerate(("ada", "grace", "eve"), 1)
}


def approver(name: str, key: str = "") -> dict[str, str]:
    """An entry of spec.breakGlass.approvers."""
    return {"name": name, "key": base64.b64encode(KEYS[key or name].verifier.raw).decode()}


APPROVERS = [approver("ada"), approver("grace")]


def override(
    cluster: str,
    now: datetime,
    by: tuple[str, ...] = ("ada", "grace"),
    *,
    pool: str = "worker",
    hours: float = 1.0,
    keys: tuple[str, ...] = (),
    **changes: Any,
) -> str:
    """The text of the annotation, signed by these people; `changes` are made to the statement after they signed."""
    statement = statement_of(cluster, pool, "the values are wrong", now, now + timedelta(hours=hours))
    agreed = [
        {"by": name, "signature": base64.b64encode(KEYS[key].sign(message(statement))).decode()}
        for name, key in zip(by, keys or by, strict=True)
    ]
    return json.encode({"statement": {**statement, **changes}, "agreed": agreed}).decode()
