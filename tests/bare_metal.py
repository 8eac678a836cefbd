"""An actor over the Cluster port that moves BareMetalHosts as the operator of that project documents it.

    "" ─ registering ─ inspecting ─ preparing ─ available ─┬─ online and image or customDeploy: provisioning ─ provisioned
                                                           └─ image gone, or another URL: deprovisioning ─ available

One step per look and host, so that a test sees every state. Paused hosts stand still. As that operator it provisions nothing that
is offline, and changes nothing for other user-data alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import USER_DATA_NAMESPACE
from fastness.kinds.objects import annotations_of, is_being_deleted, object_name
from fastness.kinds.openshift.machines import BARE_METAL_HOST
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions

HOSTS = BARE_METAL_HOST.resource
STATUS = WriteOptions(subresource="status")
_NEXT = {"": "registering", "registering": "inspecting", "inspecting": "preparing", "preparing": "available"}


def host(name: str, number: int = 1, **spec: Any) -> JsonObject:
    """A host as a user registers it."""
    bmc = {"address": f"redfish://10.0.0.{number}/redfish/v1/Systems/1", "credentialsName": f"{name}-bmc"}
    body = {"bmc": bmc, "bootMACAddress": f"52:54:00:00:00:{number:02x}", "bootMode": "UEFISecureBoot", "online": False}
    return {
        "apiVersion": BARE_METAL_HOST.api_version, "kind": BARE_METAL_HOST.kind,
        "metadata": {"name": name, "namespace": USER_DATA_NAMESPACE, "labels": {"rack": "7"}}, "spec": {**body, **spec},
    }  # fmt: skip


class BareMetalOperator:
    """Moves every host one step at a time; `states` has all that each host went through."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.states: dict[str, list[str]] = {}
        self.failing: dict[str, str] = {}

    async def step(self) -> None:
        """One look at all hosts."""
        for stored in (await self._cluster.list(HOSTS, Scope(namespace=USER_DATA_NAMESPACE))).items:
            if "baremetalhost.metal3.io/paused" not in annotations_of(stored):
                # A host that was deleted since the look is nobody's to move: the test deletes hosts under the actor's hands.
                with suppress(NotFound):
                    await self._move(stored)

    async def _move(self, stored: JsonObject) -> None:
        name, spec, status = object_name(stored).name, stored["spec"], stored.get("status") or {}
        provisioning = dict(status.get("provisioning") or {})
        before = provisioning.get("state", "")
        after = self._next(stored, before, provisioning)
        provisioning["state"] = after
        if after == "provisioned":
            provisioning["image"] = spec.get("image")
            provisioning["customDeploy"] = spec.get("customDeploy")
        elif after == "available":
            provisioning |= {"image": None, "customDeploy": None}
        error = self.failing.get(name, "") if after == "provisioning" else ""
        patch: JsonObject = {
            "provisioning": provisioning, "poweredOn": bool(spec.get("online")) and after == "provisioned",
            "operationalStatus": "error" if error else "OK", "errorMessage": error,
            "errorType": "provisioning error" if error else "",
            "errorCount": int(status.get("errorCount") or 0) + 1 if error else 0,
        }  # fmt: skip
        if after not in ("", "registering"):
            address = f"192.168.7.{int(spec['bootMACAddress'][-2:], 16)}"
            patch["hardware"] = {
                "hostname": name,
                "nics": [{"name": "eno1", "mac": spec["bootMACAddress"], "ip": address}],
            }
        if before != after:
            self.states.setdefault(name, []).append(after)
        await self._cluster.patch(HOSTS, name, {"status": patch}, PatchType.MERGE, USER_DATA_NAMESPACE, STATUS)

    def _next(self, stored: JsonObject, state: str, provisioning: JsonObject) -> str:
        spec, running = stored["spec"], provisioning.get("image") or provisioning.get("customDeploy")
        asked = spec.get("image") or spec.get("customDeploy")
        if state in _NEXT:
            return _NEXT[state]
        if state == "available":
            return "provisioning" if spec.get("online") and asked and not is_being_deleted(stored) else "available"
        if state == "provisioning":
            if not asked:
                return "deprovisioning"
            return "provisioning" if object_name(stored).name in self.failing else "provisioned"
        if state == "provisioned":
            changed = (asked or {}).get("url") != (running or {}).get("url")
            return "deprovisioning" if not asked or changed or is_being_deleted(stored) else "provisioned"
        return "available"
