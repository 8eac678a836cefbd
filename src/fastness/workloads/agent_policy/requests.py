"""The requests of the host, what each gives it, and what people call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastness.workloads.initdata.finding import Severity

PACKAGE: Final = "agent_policy"
IGNORE_ALL: Final = "AllowRequestsFailingPolicy"
REQUESTS: Final = (
    "AddARPNeighborsRequest", "AddSwapPathRequest", "AddSwapRequest", "CloseStdinRequest", "CopyFileRequest",
    "CreateContainerRequest", "CreateSandboxRequest", "DestroySandboxRequest", "ExecProcessRequest", "GetDiagnosticDataRequest",
    "GetIPTablesRequest", "GetMetricsRequest", "GetOOMEventRequest", "GuestDetailsRequest", "ListInterfacesRequest",
    "ListRoutesRequest", "MemAgentCompactConfig", "MemAgentMemcgConfig", "MemHotplugByProbeRequest", "OnlineCPUMemRequest",
    "PauseContainerRequest", "ReadStreamRequest", "RemoveContainerRequest", "RemoveStaleVirtiofsShareMountsRequest",
    "ReseedRandomDevRequest", "ResizeVolumeRequest", "ResumeContainerRequest", "SetGuestDateTimeRequest", "SetIPTablesRequest",
    "SetPolicyRequest", "SignalProcessRequest", "StartContainerRequest", "StatsContainerRequest", "TtyWinResizeRequest",
    "UpdateContainerRequest", "UpdateEphemeralMountsRequest", "UpdateInterfaceRequest", "UpdateRoutesRequest",
    "VolumeStatsRequest", "WaitProcessRequest", "WriteStreamRequest",
)  # fmt: skip
# In samples still, and no request of the agent any more.
LEGACY: Final = ("PullImageRequest", "StartTracingRequest", "StopTracingRequest")
# What a host needs to start, watch and end a pod; the defaults of upstream's generator of policies.
HARMLESS: Final = (
    "DestroySandboxRequest", "GetOOMEventRequest", "GuestDetailsRequest", "OnlineCPUMemRequest", "RemoveContainerRequest",
    "RemoveStaleVirtiofsShareMountsRequest", "SignalProcessRequest", "StartContainerRequest", "StatsContainerRequest",
    "TtyWinResizeRequest", "WaitProcessRequest",
)  # fmt: skip
# What an unconditional yes gives the host. A request that is not here gives it nothing that it could not have anyway.
PERMISSIVE: Final[Mapping[str, tuple[Severity, str]]] = {
    IGNORE_ALL: (Severity.CRITICAL, "the agent obeys every request, whatever the policy says of it"),
    "SetPolicyRequest": (Severity.CRITICAL, "the host can replace this policy by another one"),
    "ExecProcessRequest": (Severity.CRITICAL, "the host can run any program beside the workload and read its memory"),
    "CreateContainerRequest": (Severity.HIGH, "the host can start any image with any command and any mount"),
    "CopyFileRequest": (Severity.HIGH, "the host can write files that the workload reads"),
    "GetDiagnosticDataRequest": (Severity.HIGH, "the host can fetch diagnostic data out of the guest"),
    "UpdateEphemeralMountsRequest": (Severity.HIGH, "the host can mount over what the workload uses"),
    "AddSwapRequest": (Severity.HIGH, "the host can have memory written to a device that it reads"),
    "AddSwapPathRequest": (Severity.HIGH, "the host can have memory written to a file that it reads"),
    "ReadStreamRequest": (Severity.MEDIUM, "the host reads everything that the workload prints"),
    "WriteStreamRequest": (Severity.MEDIUM, "the host can type into the workload"),
    "CloseStdinRequest": (Severity.MEDIUM, "the host can end the input of the workload"),
    "UpdateInterfaceRequest": (Severity.MEDIUM, "the host can change every network interface, loopback included"),
    "UpdateRoutesRequest": (Severity.MEDIUM, "the host can send all traffic through itself"),
    "AddARPNeighborsRequest": (Severity.MEDIUM, "the host can pass for a neighbour on the network"),
    "SetIPTablesRequest": (Severity.MEDIUM, "the host can redirect connections inside the guest"),
    "GetIPTablesRequest": (Severity.MEDIUM, "the host reads how the guest filters connections"),
    "MemHotplugByProbeRequest": (Severity.MEDIUM, "the host decides at which addresses memory appears"),
    "ReseedRandomDevRequest": (Severity.MEDIUM, "the host contributes to what should be random"),
    "SetGuestDateTimeRequest": (Severity.MEDIUM, "the host can turn the clock back to when a certificate was valid"),
    "PullImageRequest": (Severity.MEDIUM, "an old request; where it still exists the host chooses the image"),
}
VERBS: Final[Mapping[str, str]] = {
    "exec": "ExecProcessRequest",
    "logs": "ReadStreamRequest",
    "attach": "WriteStreamRequest",
    "cp": "ExecProcessRequest",
    "stats": "StatsContainerRequest",
    "kill": "SignalProcessRequest",
    "create": "CreateContainerRequest",
    "set-policy": "SetPolicyRequest",
}
# The one request that the agent refuses without an error.
QUIET: Final = "ReadStreamRequest"
QUIET_REMARK: Final = "the agent answers a refused read with nothing, so `kubectl logs` is empty instead of failing"


def request_named(name: str) -> str | None:
    """The request that a person means: kubectl's verb, the request itself, or the request without its ending."""
    request = VERBS.get(name.lower()) or next(
        (candidate for candidate in REQUESTS if name in (candidate, candidate.removesuffix("Request"))), None
    )
    return request or (name if name in LEGACY else None)
