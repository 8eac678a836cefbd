"""Feature discovery: what a machine can do, read from its files.

Each source is a function from a tree to the elements of some features; `SOURCES` names them all. A missing file means a missing
element, never an error. What is found is what the host says of itself: good enough to place pods, and no proof of anything.

The result goes to the cluster as a NodeFeature (`agent.kata.features`), where rules turn it into labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fastness.agent.host.devices import DEVICES
from fastness.agent.host.host_tree import Tree
from fastness.workloads.features.discovered import Features, merged

Source = Callable[[Tree], Features]
_CPUINFO_NAMES: Final = {
    "sse4_2": "SSE42", "sse4_1": "SSE4", "pni": "SSE3", "ssse3": "SSSE3", "sgx_lc": "SGXLC", "aes": "AESNI", "pclmulqdq": "CLMUL",
    "avx512f": "AVX512F", "avx512_vnni": "AVX512VNNI", "avx512_bf16": "AVX512BF16", "amx_tile": "AMXTILE", "amx_int8": "AMXINT8",
    "amx_bf16": "AMXBF16", "sha_ni": "SHA", "ht": "HTT", "abm": "LZCNT", "nx": "NX", "cx16": "CX16",
}  # fmt: skip
_RDT: Final = {
    "cqm": "RDTMON", "cqm_occup_llc": "RDTCMT", "cqm_mbm_total": "RDTMBM", "mba": "RDTMBA", "cat_l3": "RDTL3CA",
    "cat_l2": "RDTL2CA",
}  # fmt: skip
_CONFIGS: Final = (
    "/proc/config.gz", "/usr/src/linux-{0}/.config", "/usr/src/linux/.config", "/usr/lib/modules/{0}/config",
    "/usr/lib/ostree-boot/config-{0}", "/usr/lib/kernel/config-{0}", "/lib/modules/{0}/build/.config", "/boot/config-{0}",
)  # fmt: skip
_LOCAL: Final = "/etc/kubernetes/node-feature-discovery/features.d"
_VERSION: Final = re.compile(r"([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")


def discover(tree: Tree) -> Features:
    """Everything that the sources find on a machine; total."""
    return merged(source(tree) for source in SOURCES)


def _cpu(tree: Tree) -> Features:
    info = _cpuinfo(tree)
    flags = info.get("flags", info.get("Features", "")).split()
    model = {
        "vendor_id": _VENDORS.get(info.get("vendor_id", ""), info.get("vendor_id", "")),
        "family": info.get("cpu family", ""),
        "id": info.get("model", ""),
    }
    facts = {
        "cpu.model": {name: value for name, value in model.items() if value},
        "cpu.topology": dict(_topology(tree, info)),
        "cpu.pstate": dict(_pstate(tree)),
        "cpu.cstate": {"enabled": "true"} if tree.names("/sys/devices/system/cpu/cpuidle") else {},
        "cpu.coprocessor": {"nx_gzip": "true"}
        if tree.exists("/sys/devices/vio/ibm,compression-v1/nx_gzip_caps")
        else {},
    }
    return Features(
        {
            "cpu.cpuid": frozenset(_CPUINFO_NAMES.get(flag, flag.upper()) for flag in flags),
            "cpu.rdt": frozenset(_RDT[flag] for flag in flags if flag in _RDT),
        },
        {name: elements for name, elements in facts.items() if elements},
    )


_VENDORS: Final = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}


def _cpuinfo(tree: Tree) -> dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in (tree.text("/proc/cpuinfo") or "").splitlines():
        name, separator, value = line.partition(":")
        if not separator and fields:
            break
        if separator:
            fields.setdefault(name.strip(), value.strip())
    return fields


def _topology(tree: Tree, info: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    sockets = set(re.findall(r"(?m)^physical id\s*:\s*(\d+)", tree.text("/proc/cpuinfo") or ""))
    if sockets:
        yield "socket_count", str(len(sockets))
    if info.get("siblings") and info.get("cpu cores"):
        yield "hardware_multithreading", _bool(info["siblings"] != info["cpu cores"])


def _pstate(tree: Tree) -> Iterator[tuple[str, str]]:
    status, no_turbo = (_line(tree, f"/sys/devices/system/cpu/intel_pstate/{name}") for name in ("status", "no_turbo"))
    if status:
        yield "status", status
    if no_turbo:
        yield "turbo", _bool(no_turbo == "0")
    governor = _line(tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if status and governor:
        yield "scaling", governor


def _security(tree: Tree) -> Features:
    return Features({}, {"cpu.security": {**_amd(tree), **_intel(tree), **_sgx(tree), **_ibm(tree)}})


def _amd(tree: Tree) -> dict[str, str]:
    enabled = {
        element: (tree.text(f"/sys/module/kvm_amd/parameters/{file}") or "")[:1] in ("1", "Y")
        for element, file in (("sev.enabled", "sev"), ("sev.es.enabled", "sev_es"), ("sev.snp.enabled", "sev_snp"))
    }
    elements = {element: "true" for element, on in enabled.items() if on}
    capacity = _capacity(tree)
    for element, needs, line in (
        ("sev.asids", "sev.enabled", "sev"),
        ("sev.encrypted_state_ids", "sev.es.enabled", "sev_es"),
    ):
        if enabled[needs] and line in capacity:
            elements[element] = capacity[line]
    return elements


def _intel(tree: Tree) -> dict[str, str]:
    elements: dict[str, str] = {}
    if tree.text("/sys/module/kvm_intel/parameters/tdx") == "Y\n":
        elements["tdx.enabled"] = "true"
        keys = _capacity(tree).get("tdx")
        if keys is not None:
            elements["tdx.total_keys"] = keys
    if "tdx_guest" in _cpuinfo(tree).get("flags", "").split() or tree.exists("/dev/tdx_guest"):
        elements["tdx.protected"] = "true"
    return elements


def _sgx(tree: Tree) -> dict[str, str]:
    base = "/sys/devices/system/node"
    sizes = [_line(tree, f"{base}/{node}/x86/sgx_total_size") for node in tree.names(base) if node.startswith("node")]
    total = sum(int(size) for size in sizes if size.isascii() and size.isdigit())
    return {"sgx.enabled": "true", "sgx.epc": str(total)} if total > 0 else {}


def _ibm(tree: Tree) -> dict[str, str]:
    return {"se.enabled": "true"} if tree.text("/sys/firmware/uv/prot_virt_host") == "1\n" else {}


def _capacity(tree: Tree) -> dict[str, str]:
    """The lines of misc.capacity; the first word is the whole name, so that sev never takes the line of sev_es."""
    text = tree.text("/sys/fs/cgroup/misc.capacity") or tree.text("/sys/fs/cgroup/misc/misc.capacity") or ""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[1].isascii() and pair[1].isdigit()}


def _kernel(tree: Tree) -> Features:
    # Sandboxes leave out the first file, but hardly ever the second.
    release = _line(tree, "/proc/sys/kernel/osrelease") or "".join((tree.text("/proc/version") or "").split()[2:3])
    loaded = frozenset(line.split()[0] for line in (tree.text("/proc/modules") or "").splitlines() if line.split())
    builtin = (tree.text(f"/lib/modules/{release}/modules.builtin") or "").splitlines()
    # The kernel calls a module by underscores, whatever its file is called.
    enabled = loaded | {line.rpartition("/")[2].split(".ko")[0].replace("-", "_") for line in builtin if line}
    attributes: dict[str, Mapping[str, str]] = {"kernel.config": _kernel_config(tree, release)}
    if release:
        attributes["kernel.version"] = {"full": release, **_parts(release)}
    if (tree.text("/sys/fs/selinux/enforce") or "").startswith("1"):
        attributes["kernel.selinux"] = {"enabled": "true"}
    if tree.exists("/sys/devices/virtual/misc/kvm"):
        attributes["kernel.kvm"] = {"enabled": "true"}
    return Features({"kernel.loadedmodule": loaded, "kernel.enabledmodule": enabled}, attributes)


def _parts(release: str) -> dict[str, str]:
    version = _VERSION.match(release)
    return {} if version is None else {"major": version[1], "minor": version[2], "revision": version[3] or "0"}


def _kernel_config(tree: Tree, release: str) -> dict[str, str]:
    text = next((content for place in _CONFIGS if (content := tree.text(place.format(release))) is not None), "")
    pairs = (line.split("=", 1) for line in text.splitlines() if line.startswith("CONFIG_") and "=" in line)
    return {name.removeprefix("CONFIG_"): value.strip().strip('"') for name, value in pairs}


def _memory(tree: Tree) -> Features:
    nodes = [name for name in tree.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    swaps = (tree.text("/proc/swaps") or "").splitlines()[1:]
    attributes: dict[str, Mapping[str, str]] = {}
    if nodes:
        attributes["memory.numa"] = {"is_numa": _bool(len(nodes) > 1), "node_count": str(len(nodes))}
    if swaps:
        attributes["memory.swap"] = {"enabled": "true"}
    base = "/sys/kernel/mm/hugepages"
    pages = {name: _line(tree, f"{base}/{name}/nr_hugepages") for name in tree.names(base)}
    if pages:
        on = any(count not in ("", "0") for count in pages.values())
        attributes["memory.hugepages"] = {
            "enabled": _bool(on),
            **{name: count for name, count in pages.items() if count},
        }
    return Features({}, attributes)


def _system(tree: Tree) -> Features:
    release = dict(_assignments(tree.text("/etc/os-release") or tree.text("/usr/lib/os-release") or ""))
    if "VERSION_ID" in release:
        major, _, minor = release["VERSION_ID"].partition(".")
        release |= {"VERSION_ID.major": major, "VERSION_ID.minor": minor}
    base = "/sys/devices/virtual/dmi/id"
    dmi = {name: _line(tree, f"{base}/{name}") for name in ("sys_vendor", "product_name", "bios_vendor", "board_name")}
    name = _line(tree, "/proc/sys/kernel/hostname") or _line(tree, "/etc/hostname")
    facts = {
        "system.osrelease": release,
        "system.dmiid": {key: value for key, value in dmi.items() if value},
        "system.name": {"nodename": name} if name else {},
    }
    return Features({}, {feature: elements for feature, elements in facts.items() if elements})


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, separator, value = line.strip().partition("=")
        if separator and name and not name.startswith("#"):
            yield name, value.strip("\"'")


def _local(tree: Tree) -> Features:
    """What an administrator wrote down on the machine: `name=value`, or a name alone for true."""
    labels: dict[str, str] = {}
    for file in tree.names(_LOCAL):
        for line in (tree.text(f"{_LOCAL}/{file}") or "").splitlines()[:1000]:
            name, separator, value = line.strip().partition("=")
            if name and not name.startswith("#"):
                labels[name] = value if separator else "true"
    return Features({}, {"local.feature": labels, "local.label": labels}) if labels else Features()


def _line(tree: Tree, path: str) -> str:
    return (tree.text(path) or "").strip()


def _bool(value: bool) -> str:
    return "true" if value else "false"


SOURCES: Final[tuple[Source, ...]] = (_cpu, _security, _kernel, _memory, _system, _local, *DEVICES)
