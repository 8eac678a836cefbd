"""The MachineConfigs that hosts of confidential guests need: made here, and recognised however somebody else made them.

    TDX     99-enable-intel-tdx      kvm_intel.tdx=1 nohibernate, and the module for vsock loopback (quotes travel that way)
    IOMMU   100-iommu-kernel-args    amd_iommu=on intel_iommu=on: a GPU is handed to a guest through the IOMMU

Both vendors' arguments at once do no harm: each kernel reads its own. "100-" sorts before "99-", and arguments follow the order
of names. `recognise` looks at what configs do and not at their names, so that a cluster which has them already is not rebooted
for the sake of a name. Kernel arguments of a host are allowed because nothing that a guest proves depends on them; in a pool of
confidential machines they are refused (`kinds.fastness_dev.trust_model`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.data_url import decode
from fastness.formats.errors import FormatError
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import labels_of, object_name

Object = Mapping[str, Any]
TDX_NAME: Final = "99-enable-intel-tdx"
IOMMU_NAME: Final = "100-iommu-kernel-args"
TDX_ARGUMENTS: Final = ("kvm_intel.tdx=1", "nohibernate")
IOMMU_ARGUMENTS: Final = ("amd_iommu=on", "intel_iommu=on")
MODULES_PATH: Final = "/etc/modules-load.d/vsock.conf"
MODULE: Final = "vsock-loopback"
MODULES_SOURCE: Final = "data:text/plain;charset=utf-8;base64,dnNvY2stbG9vcGJhY2sK"
MODE: Final = 0o644


@dataclass(frozen=True, slots=True)
class Recognised:
    """What the configs of a role do about one thing: which of them do it, and what is missing, with reasons."""

    configs: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


def tdx_config(role: str) -> JsonObject:
    """The config that switches TDX on for hosts of a role."""
    file = {"path": MODULES_PATH, "mode": MODE, "contents": {"source": MODULES_SOURCE}}
    return _config(TDX_NAME, role, TDX_ARGUMENTS, {"storage": {"files": [file]}})


def iommu_config(role: str) -> JsonObject:
    """The config that switches the IOMMU on for hosts of a role."""
    return _config(IOMMU_NAME, role, IOMMU_ARGUMENTS, {})


def _config(name: str, role: str, arguments: tuple[str, ...], more: JsonObject) -> JsonObject:
    return {
        "apiVersion": mco.API_VERSION, "kind": "MachineConfig", "metadata": {"name": name, "labels": {mco.ROLE_LABEL: role}},
        "spec": {"kernelArguments": list(arguments), "config": {"ignition": {"version": "3.2.0"}, **more}},
    }  # fmt: skip


def recognise_tdx(configs: Iterable[Object], roles: Iterable[str]) -> Recognised:
    """What the configs of some roles do about TDX."""
    mine = _of_roles(configs, roles)
    reasons = {
        "kvm_intel.tdx=1": "the kernel does not offer TDX to guests without it",
        "nohibernate": "a host with TDX cannot hibernate, and the kernel refuses TDX while it might",
    }
    users, missing = _arguments(mine, reasons)
    loaders = [object_name(config).name for config in mine if MODULE in _modules(config)]
    if not loaders:
        missing.append(f"module {MODULE}: guests reach the quoting service of their host through it")
    return Recognised(tuple(dict.fromkeys([*users, *loaders])), tuple(missing))


def recognise_iommu(configs: Iterable[Object], roles: Iterable[str], tee: str = "") -> Recognised:
    """What the configs of some roles do about the IOMMU; with a TEE only its vendor's argument counts."""
    reason = "a GPU is handed to a guest through the IOMMU"
    arguments = {"tdx": ("intel_iommu=on",), "snp": ("amd_iommu=on",)}.get(tee, IOMMU_ARGUMENTS)
    users, missing = _arguments(_of_roles(configs, roles), dict.fromkeys(arguments, reason))
    return Recognised(tuple(users), tuple(missing))


def _of_roles(configs: Iterable[Object], roles: Iterable[str]) -> list[Object]:
    """The configs that people write for some roles; rendered ones only repeat them."""
    chosen = set(roles)
    return [
        config for config in configs
        if labels_of(config).get(mco.ROLE_LABEL) in chosen and not object_name(config).name.startswith("rendered-")
    ]  # fmt: skip


def _arguments(configs: Iterable[Object], reasons: Mapping[str, str]) -> tuple[list[str], list[str]]:
    by_argument = {
        argument: [object_name(config).name for config in configs if argument in _kernel_arguments(config)]
        for argument in reasons
    }
    users = dict.fromkeys(name for users_of_it in by_argument.values() for name in users_of_it)
    return list(users), [f"{name}: {reasons[name]}" for name, users_of_it in by_argument.items() if not users_of_it]


def _kernel_arguments(config: Object) -> set[str]:
    spec = config.get("spec")
    arguments = spec.get("kernelArguments") if isinstance(spec, Mapping) else None
    # One entry may hold several arguments, as on a command line.
    return (
        {word for entry in arguments if isinstance(entry, str) for word in entry.split()}
        if isinstance(arguments, list)
        else set()
    )


def _modules(config: Object) -> set[str]:
    """The modules that files of a config have loaded at boot."""
    modules: set[str] = set()
    place: Any = config
    for key in ("spec", "config", "storage", "files"):
        place = place.get(key) if isinstance(place, Mapping) else None
    for file in place if isinstance(place, list) else ():
        contents = file.get("contents") if isinstance(file, Mapping) else None
        source = contents.get("source") if isinstance(contents, Mapping) else None
        if not isinstance(source, str) or not str(file.get("path")).startswith("/etc/modules-load.d/"):
            continue
        try:
            text = decode(source).decode(errors="replace")
        except FormatError:
            continue
        modules |= {line.strip().replace("_", "-") for line in text.splitlines()}
    return modules
