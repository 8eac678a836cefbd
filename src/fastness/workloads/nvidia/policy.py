"""ClusterPolicy for confidential guests: what must be in it, why, and what is wrong with a given one.

GPUs go to guests whole (vfio), so everything that would use them on the host is off; the driver is in the guest's image. Only the
fields of the table are judged: NVIDIA's operator has many more, and they are nobody's business here. A field that is not there
has the operator's own default, which is wrong for some of them, so it is named like a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from fastness.kinds.kind import JsonObject

Object = Mapping[str, Any]
NAME: Final = "gpu-cluster-policy"
API_VERSION: Final = "nvidia.com/v1"
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Wrong:
    """One field that keeps confidential GPUs from working."""

    field: str
    present: str
    want: str
    reason: str

    @property
    def sentence(self) -> str:
        """The field, its value, and what to set it to and why."""
        return f"spec.{self.field} is {self.present}: set it to {self.want}, because {self.reason}"


_HOST: Final = "the GPU belongs to the guest, and what runs on the host would take it"
REQUIRED_FIELDS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("ccManager.enabled", True, "nothing else switches GPUs to the confidential mode"),
    ("ccManager.defaultMode", "on", "GPUs that nobody asked about would stay in the open mode"),
    ("sandboxWorkloads.enabled", True, "GPUs are for guests, not for containers of the host"),
    ("sandboxWorkloads.defaultWorkload", "vm-passthrough", "a guest gets the whole device"),
    ("sandboxWorkloads.mode", "kata", "pods ask for GPUs through Kata"),
    ("vfioManager.enabled", True, "nothing else binds GPUs to vfio-pci"),
    ("kataSandboxDevicePlugin.enabled", True, "pods could not request nvidia.com/pgpu without it"),
    ("kataManager.enabled", False, "runtime classes are made from the KataConfig"),
    ("driver.enabled", False, f"the driver is in the guest; {_HOST}"),
    ("devicePlugin.enabled", False, _HOST),
    ("toolkit.enabled", False, _HOST),
    ("dcgm.enabled", False, _HOST),
    ("dcgmExporter.enabled", False, _HOST),
    ("gfd.enabled", True, "runtime classes select nodes by its labels"),
    ("nodeStatusExporter.enabled", True, "the state of the GPUs could not be seen without it"),
    ("cdi.enabled", True, "devices are handed to Kata through CDI"),
    ("operator.defaultRuntime", "crio", "it is the container runtime of the nodes"),
)
REQUIRED_ENV: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("vfioManager.env", "BIND_NVSWITCHES", "true", "guests with several GPUs need the switches between them"),
    ("kataSandboxDevicePlugin.env", "P_GPU_ALIAS", "pgpu", "pods request nvidia.com/pgpu"),
    ("kataSandboxDevicePlugin.env", "NVSWITCH_ALIAS", "nvswitch", "pods request nvidia.com/nvswitch"),
)
_MORE: Final[JsonObject] = {
    "cdi": {"default": False, "nriPluginEnabled": False},
    "daemonsets": {"rollingUpdate": {"maxUnavailable": "1"}, "updateStrategy": "RollingUpdate"},
    "gdrcopy": {"enabled": False},
    "gds": {"enabled": False},
    "mig": {"strategy": "single"},
    "migManager": {"enabled": False},
    "operator": {"initContainer": {}, "runtimeClass": "nvidia", "use_ocp_driver_toolkit": True},
    "toolkit": {"installDir": "/usr/local/nvidia"},
    "validator": {"plugin": {"env": [{"name": "WITH_WORKLOAD", "value": "false"}]}},
    "vgpuDeviceManager": {"enabled": False},
    "vgpuManager": {"enabled": False},
}


def cluster_policy() -> JsonObject:
    """A ClusterPolicy with which confidential GPUs work."""
    spec = deepcopy(_MORE)
    for field, value, _ in REQUIRED_FIELDS:
        section, _, name = field.partition(".")
        spec.setdefault(section, {})[name] = value
    for field, name, value, _ in REQUIRED_ENV:
        section, _, key = field.partition(".")
        spec.setdefault(section, {}).setdefault(key, []).append({"name": name, "value": value})
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterPolicy",
        "metadata": {"name": NAME},
        "spec": dict(sorted(spec.items())),
    }


def check(policy: Object) -> list[Wrong]:
    """Everything in a ClusterPolicy that keeps confidential GPUs from working; total."""
    spec = policy.get("spec")
    return [*_fields(spec), *_environment(spec)]


def _fields(spec: Any) -> Iterator[Wrong]:
    for field, want, reason in REQUIRED_FIELDS:
        value = _at(spec, field)
        # 1 equals True in Python, and NVIDIA's operator takes neither 1 nor "true" for it: the type counts too.
        if value is _MISSING or value != want or isinstance(value, bool) != isinstance(want, bool):
            yield Wrong(field, _quoted(value), _quoted(want), reason)


def _environment(spec: Any) -> Iterator[Wrong]:
    for field, name, want, reason in REQUIRED_ENV:
        entries = _at(spec, field)
        given = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
        value = next((entry.get("value", _MISSING) for entry in given if entry.get("name") == name), _MISSING)
        if value != want:
            yield Wrong(f"{field}[{name}]", _quoted(value), _quoted(want), reason)


def _at(spec: Any, field: str) -> Any:
    for name in field.split("."):
        spec = spec.get(name, _MISSING) if isinstance(spec, Mapping) else _MISSING
    return spec


def _quoted(value: Any) -> str:
    if value is _MISSING:
        return "not set"
    return (
        str(value).lower()
        if isinstance(value, bool)
        else repr(value)[:60]
        if not isinstance(value, str)
        else f'"{value[:60]}"'
    )
