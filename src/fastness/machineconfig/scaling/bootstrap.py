"""What a Machine of Cluster API boots with: a Secret with the pointer of its pool, when Cluster API is ready for it.

    owned by a Machine ─ its Cluster's infrastructure is there ─ the pool has user-data ─▶ Secret, status.dataSecretName

* The data are the pool's managed user-data: address, authority and ticket. A document that says anything else is not handed on,
  because what stands in user-data is read by everybody who reads the provider's API.
* The name of the Secret is that of the config and stays; what is in it follows the pool until the machine was created with it.
* A config or a Cluster that is paused is left alone.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.cluster_api.bootstrap import FASTNESS_CONFIG
from fastness.kinds.cluster_api.owners import CLUSTER_NAME, CORE, PAUSED, SECRET_TYPE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, metadata, object_name, with_condition

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waits:
    """Why there are no data yet."""

    reason: str
    message: str


def owner(config: Object) -> str:
    """The Machine that a config is for; empty while Cluster API has not said."""
    for reference in metadata(config).get("ownerReferences") or ():
        group = str(reference.get("apiVersion") or "").partition("/")[0]
        if group == CORE and reference.get("kind") == "Machine":
            return str(reference.get("name") or "")
    return ""


def cluster_of(machine: Object) -> str:
    """The Cluster of a Machine."""
    return str((machine.get("spec") or {}).get("clusterName") or "")


def is_paused(config: Object, cluster: Object | None) -> bool:
    """Whether somebody keeps controllers from a config."""
    return PAUSED in annotations_of(config) or bool(((cluster or {}).get("spec") or {}).get("paused"))


def is_created(machine: Object) -> bool:
    """Whether the machine was made with its data: from then on they are history."""
    return bool(((machine.get("status") or {}).get("initialization") or {}).get("infrastructureProvisioned"))


def pointer_for(
    config: Object, machine: Object | None, cluster: Object | None, user_data: Object | None
) -> bytes | Waits:
    """The data of a Machine, or what has to happen before."""
    if machine is None:
        return Waits("WaitingForMachine", "no Machine of Cluster API owns this config yet")
    if cluster is None:
        return Waits(
            "WaitingForCluster", f"there is no Cluster {cluster_of(machine) or '(spec.clusterName is missing)'}"
        )
    if not ((cluster.get("status") or {}).get("initialization") or {}).get("infrastructureProvisioned"):
        return Waits(
            "WaitingForInfrastructure", f"the infrastructure of Cluster {object_name(cluster).name} is not there yet"
        )
    pool = str((config.get("spec") or {}).get("pool") or "")
    if user_data is None:
        return Waits("WaitingForUserData", f"there is no user-data of a pool {pool}: it is made with the pool")
    try:
        pointer = base64.b64decode(str((user_data.get("data") or {}).get("userData") or ""), validate=True)
        document = json.decode(pointer)
    except (binascii.Error, ValueError, JsonError):
        return Waits("WaitingForUserData", f"the user-data of pool {pool} cannot be read")
    if not isinstance(document, dict) or document.keys() != {"ignition"}:
        return Waits("NotAPointer", f"the user-data of pool {pool} hold more than a pointer: they are not handed on")
    return pointer


def data_secret(config: Object, cluster: str, pointer: bytes) -> JsonObject:
    """The Secret that the infrastructure provider reads."""
    place = object_name(config)
    owner_of = {
        "apiVersion": FASTNESS_CONFIG.api_version, "kind": FASTNESS_CONFIG.kind, "name": place.name,
        "uid": metadata(config).get("uid") or "", "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {
            "name": secret_name(config), "namespace": place.namespace, "labels": {CLUSTER_NAME: cluster},
            "ownerReferences": [owner_of],
        },
        "data": {"value": base64.b64encode(pointer).decode("ascii")},
    }  # fmt: skip


def secret_name(config: Object) -> str:
    """The name of the data, which never changes."""
    named = str((config.get("status") or {}).get("dataSecretName") or "")
    return named or f"{object_name(config).name}-bootstrap"


def status(config: Object, waits: Waits | None, now: datetime) -> JsonObject:
    """What a config reports: the Secret, or what is waited for."""
    present, generation = config.get("status") or {}, metadata(config).get("generation", 1)
    conditions = with_condition(
        present.get("conditions") or [], kind="Ready", status="False" if waits else "True",
        reason=waits.reason if waits else "DataSecretAvailable",
        message=waits.message if waits else f"Secret {secret_name(config)} has the pointer", now=now, generation=generation,
    )  # fmt: skip
    made = {"dataSecretName": secret_name(config), "initialization": {"dataSecretCreated": True}}
    # What was told once stays told: Cluster API takes the name once and does not look again.
    kept = {name: present[name] for name in made if name in present}
    return {"observedGeneration": generation, "conditions": conditions, **(kept if waits else made)}
