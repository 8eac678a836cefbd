"""Labels that need no rule: what discovery found, under names of its own.

`cpu.security` and `cpu.cpuid` become one label per element, without those that are only meant for rules (counts of keys) or that
say too little (flags that every machine of the field has). Version numbers, devices and the operating system follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastness.workloads.features.discovered import Features

FOR_RULES_ONLY: Final = frozenset({"tdx.total_keys", "sgx.epc", "sev.encrypted_state_ids", "sev.asids"})
COMMON_FLAGS: Final = frozenset({
    "BMI1", "BMI2", "CLMUL", "CMOV", "CX16", "ERMS", "F16C", "HTT", "LZCNT", "MMX", "MMXEXT", "NX", "POPCNT", "RDRAND", "RDSEED",
    "RDTSCP", "SGX", "SGXLC", "SSE", "SSE2", "SSE3", "SSE4", "SSE42", "SSSE3", "TDX_GUEST",
})  # fmt: skip
DEVICE_CLASSES: Final = ("03", "0b40", "12")
_SIMPLE: Final = {
    "kernel.version": "kernel-version",
    "kernel.selinux": "kernel-selinux",
    "cpu.model": "cpu-model",
    "cpu.pstate": "cpu-pstate",
}


def builtin_labels(features: Features) -> dict[str, str]:
    """The labels of a node without any rule; names still lack their prefix."""
    return dict(_labels(features))


def _labels(features: Features) -> Iterator[tuple[str, str]]:
    attributes = features.attributes
    for element, value in attributes.get("cpu.security", {}).items():
        if element not in FOR_RULES_ONLY:
            yield f"cpu-security.{element}", value
    for flag in features.flags.get("cpu.cpuid", frozenset()) - COMMON_FLAGS:
        yield f"cpu-cpuid.{flag}", "true"
    for feature, name in _SIMPLE.items():
        for element, value in attributes.get(feature, {}).items():
            yield f"{name}.{element}", value.rstrip("+")
    if attributes.get("cpu.topology", {}).get("hardware_multithreading"):
        yield "cpu-hardware_multithreading", attributes["cpu.topology"]["hardware_multithreading"]
    if attributes.get("memory.numa", {}).get("is_numa") == "true":
        yield "memory-numa", "true"
    for element in ("ID", "VERSION_ID", "VERSION_ID.major", "VERSION_ID.minor"):
        if attributes.get("system.osrelease", {}).get(element):
            yield f"system-os_release.{element}", attributes["system.osrelease"][element]
    yield from _devices(features)


def _devices(features: Features) -> Iterator[tuple[str, str]]:
    for device in features.instances.get("pci.device", ()):
        kind, vendor = device.get("class", ""), device.get("vendor", "")
        if vendor and kind.startswith(DEVICE_CLASSES):
            yield f"pci-{kind}_{vendor}.present", "true"
    disks = features.instances.get("storage.block", ())
    if any(disk.get("rotational") == "0" for disk in disks):
        yield "storage-nonrotationaldisk", "true"
    networks = features.instances.get("network.device", ())
    if any(device.get("sriov_totalvfs", "0") not in ("", "0") for device in networks):
        yield "network-sriov.capable", "true"
