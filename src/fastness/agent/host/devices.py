"""Feature discovery, the part about things of which a machine has several: PCI and USB devices, disks, networks, memory modules.

Each is a list of instances with the attributes that the kernel shows as files. An attribute whose file is missing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fastness.agent.host.host_tree import Tree
from fastness.workloads.features.discovered import Features

_PCI: Final = (
    "vendor", "device", "subsystem_vendor", "subsystem_device", "sriov_totalvfs", "iommu_group/type", "iommu/intel-iommu/version",
)  # fmt: skip
_USB: Final = {"class": "bDeviceClass", "vendor": "idVendor", "device": "idProduct", "serial": "serial"}
_BLOCK: Final = ("dax", "rotational", "nr_zones", "zoned")
_NET: Final = {
    "operstate": "operstate", "speed": "speed", "mtu": "mtu", "sriov_numvfs": "device/sriov_numvfs",
    "sriov_totalvfs": "device/sriov_totalvfs",
}  # fmt: skip


def _pci(tree: Tree) -> Features:
    def each() -> Iterator[Mapping[str, str]]:
        for name in tree.names("/sys/bus/pci/devices"):
            base = f"/sys/bus/pci/devices/{name}"
            kind = _read(tree, f"{base}/class").removeprefix("0x")[:4]
            rest = {attribute: _read(tree, f"{base}/{attribute}").removeprefix("0x") for attribute in _PCI}
            yield _given({"class": kind, **rest})

    return _several("pci.device", each())


def _usb(tree: Tree) -> Features:
    def each() -> Iterator[Mapping[str, str]]:
        for name in tree.names("/sys/bus/usb/devices"):
            attributes = {key: _read(tree, f"/sys/bus/usb/devices/{name}/{file}") for key, file in _USB.items()}
            if attributes["vendor"]:
                yield _given(attributes)

    return _several("usb.device", each())


def _storage(tree: Tree) -> Features:
    return _several(
        "storage.block",
        (
            _given(
                {
                    "name": name,
                    **{attribute: _read(tree, f"/sys/block/{name}/queue/{attribute}") for attribute in _BLOCK},
                }
            )
            for name in tree.names("/sys/block")
        ),
    )


def _network(tree: Tree) -> Features:
    names = tree.names("/sys/class/net")
    real = {name for name in names if tree.exists(f"/sys/class/net/{name}/device")}

    def attributes_of(name: str) -> Mapping[str, str]:
        return _given(
            {"name": name, **{key: _read(tree, f"/sys/class/net/{name}/{file}") for key, file in _NET.items()}}
        )

    instances = {
        "network.device": tuple(attributes_of(name) for name in names if name in real),
        "network.virtual": tuple(
            attributes_of(name) for name in names if name not in real and name != "bonding_masters"
        ),
    }
    return Features({}, {}, {feature: attributes for feature, attributes in instances.items() if attributes})


def _persistent_memory(tree: Tree) -> Features:
    base = "/sys/bus/nd/devices"
    return _several(
        "memory.nv",
        (
            _given(
                {
                    "name": name,
                    **{attribute: _read(tree, f"{base}/{name}/{attribute}") for attribute in ("devtype", "mode")},
                }
            )
            for name in tree.names(base)
        ),
    )


def _several(feature: str, attributes: Iterator[Mapping[str, str]]) -> Features:
    instances = tuple(attributes)
    return Features({}, {}, {feature: instances}) if instances else Features()


def _read(tree: Tree, path: str) -> str:
    return (tree.text(path) or "").strip()


def _given(elements: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in elements.items() if value}


DEVICES: Final[tuple[Callable[[Tree], Features], ...]] = (_pci, _usb, _storage, _network, _persistent_memory)
