"""A Machine: whose business it is, what it boots with, what its deletion waits for, what it reports.

    provider_of(machine)         the kind of its provider's part, as `VirtualMachineProviderSpec`
    secret_of(machine)           the Secret that it is created with
    hooks(machine, "preDrain")   who has to agree before it is emptied, or ended

Phases go one way: Provisioning, Provisioned (there is a machine), Running (it became a node); Failed when its provider lost it,
Deleting from the moment somebody wants it gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import is_being_deleted

Object = Mapping[str, Any]
Hook = Literal["preDrain", "preTerminate"]
PROVISIONING: Final = "Provisioning"
PROVISIONED: Final = "Provisioned"
RUNNING: Final = "Running"
FAILED: Final = "Failed"
DELETING: Final = "Deleting"


def provider_of(machine: Object) -> str:
    """The kind of the provider's part of a Machine, or of the template of a set; empty when there is none."""
    return str(provider_value(machine).get("kind") or "")


def secret_of(machine: Object) -> str:
    """The Secret that a Machine is created with; empty when it names none."""
    secret = provider_value(machine).get("userDataSecret")
    return str(secret.get("name") or "") if isinstance(secret, Mapping) else ""


def tee_of(machine: Object) -> str:
    """The kind of evidence that a virtual machine is to have; empty for any."""
    return str(provider_value(machine).get("tee") or "")


def pool_of_user_data(secret: str) -> str:
    """The pool whose machines a Secret is made for; its own name when that does not tell."""
    return secret.removesuffix(names.USER_DATA_SUFFIX).removesuffix(names.UNMANAGED_USER_DATA_SUFFIX)


def hooks(machine: Object, phase: Hook) -> list[str]:
    """Who has to agree before a Machine is emptied, or ended."""
    entries = ((machine.get("spec") or {}).get("lifecycleHooks") or {}).get(phase) or ()
    return [f"{entry.get('name')} of {entry.get('owner')}" for entry in entries if isinstance(entry, Mapping)]


def phase(machine: Object, *, exists: bool, node: str) -> str:
    """How far a Machine is: `exists` when there is a machine for it, `node` the name of its Node."""
    status = machine.get("status") or {}
    if is_being_deleted(machine):
        return DELETING
    if not exists:
        # A machine that was there and is gone does not come back by itself: the set decides, or a person.
        return FAILED if status.get("phase") in (PROVISIONED, RUNNING, FAILED) else PROVISIONING
    return RUNNING if node else PROVISIONED


def status(machine: Object, *, exists: bool, node: Object | None, lost_words: str) -> JsonObject:
    """What a Machine reports; members that are None go away. `lost_words` say what became of one that is gone."""
    reached = phase(machine, exists=exists, node=str(((node or {}).get("metadata") or {}).get("name") or ""))
    lost = reached == FAILED
    return {
        "phase": reached,
        "nodeRef": None
        if node is None
        else {"kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]},
        "errorReason": "MachineLost" if lost else None,
        "errorMessage": f"{lost_words}: delete this Machine, its set makes another" if lost else None,
    }


def provider_value(machine: Object) -> Object:
    """The provider's own part of a Machine, or of the template of a set; empty when there is none."""
    value: Any = machine
    for part in ("spec", "providerSpec", "value"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
