"""Who makes the machines of a set, by the kind of its providerSpec.

Fastness makes virtual machines (where a simulation runs) and takes hosts of Metal3. Everything else is made by the controllers of
its own provider: a set for them is left alone, and a condition on it says so, because a set that nobody moves looks like one that
is stuck.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import with_condition
from fastness.machineconfig.scaling.machines import provider_of

Object = Mapping[str, Any]
VIRTUAL: Final = "VirtualMachineProviderSpec"
METAL3: Final = "BareMetalMachineProviderSpec"
PROVIDERS: Final = (METAL3,)
"""Those whose machines are made wherever Fastness runs."""
MANAGED: Final = "Managed"
OTHERS: Final[Mapping[str, str]] = {
    "AWSMachineProviderConfig": "aws", "AzureMachineProviderSpec": "azure", "GCPMachineProviderSpec": "gcp",
    "VSphereMachineProviderSpec": "vsphere", "OpenstackProviderSpec": "openstack", "NutanixMachineProviderConfig": "nutanix",
    "PowerVSMachineProviderConfig": "powervs", "IBMCloudMachineProviderSpec": "ibmcloud",
    "KubevirtMachineProviderSpec": "kubevirt",
}  # fmt: skip
"""Providers by the kinds of their part of a Machine."""


def unmanaged(template: Object, providers: Collection[str]) -> str | None:
    """Why nobody here makes machines of a template; None for one whose provider is among these."""
    kind = provider_of(template)
    if kind in providers:
        return None
    if kind == VIRTUAL:
        return "not managed by Fastness: no virtual machines run beside this control plane"
    if kind in OTHERS:
        return f"not managed by Fastness: provider {OTHERS[kind]} ({kind}); its own controllers make the machines"
    named = f"provider {kind}" if kind else "spec.template.spec.providerSpec.value.kind is missing"
    return f"not managed by Fastness: {named}; it makes machines of {', '.join(sorted(providers))}"


def managed_condition(machine_set: Object, why_not: str | None, now: datetime) -> list[JsonObject]:
    """The conditions of a set, with the one that says whether its machines are made here."""
    present = (machine_set.get("status") or {}).get("conditions") or []
    status, reason = ("True", "AsExpected") if why_not is None else ("False", "OtherProvider")
    message = why_not or "machines are made and taken away as replicas says"
    return with_condition(present, kind=MANAGED, status=status, reason=reason, message=message, now=now)
