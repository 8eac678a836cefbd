"""Approvers for tests, and overrides that they sign."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

from fastness.attestation.verdict.approvers import CONFIG_MAP as APPOINTMENTS
from fastness.attestation.verdict.approvers import CONTENT, Appointments, change_message, change_statement
from fastness.attestation.verdict.breakglass import message, statement_of
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.port import Cluster

KEYS = {
    name: Ed25519Signer(SecretBytes(bytes([number]) * 32)) for number, name in enumerate(("ada", "grace", "eve"), 1)
}


def approver(name: str, key: str = "") -> dict[str, str]:
    """An entry of spec.breakGlass.approvers."""
    return {"name": name, "key": base64.b64encode(KEYS[key or name].verifier.raw).decode()}


APPROVERS = [approver("ada"), approver("grace")]


def people(*names: str) -> dict[str, str]:
    """Approvers as appointments name them."""
    return {entry["name"]: entry["key"] for entry in map(approver, names)}


async def appointed(cluster: Cluster, approvers: dict[str, str] | None = None) -> None:
    """Let approvers count, as the controllers do when the time has come."""
    counting = people("ada", "grace") if approvers is None else approvers
    data = {CONTENT: json.encode(Appointments(counting).to_json()).decode()}
    meta = {"name": APPOINTMENTS, "namespace": NAMESPACE}
    await cluster.create(CONFIG_MAP.resource, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})


def signed_change(cluster: Any, present: dict[str, str], desired: dict[str, str], by: tuple[str, ...]) -> str:
    """The text of the annotation with which these people agree to other approvers."""
    statement = change_statement(cluster, present, desired)
    agreed = [
        {"by": name, "signature": base64.b64encode(KEYS[name].sign(change_message(statement))).decode()} for name in by
    ]
    return json.encode({"statement": statement, "agreed": agreed}).decode()


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
