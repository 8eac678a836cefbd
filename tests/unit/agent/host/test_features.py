"""Discovery from recorded files: every source, exact tokens, and nothing where files are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import BadRecording, Directory, Recording, read_recording, recorded
from fastness.workloads.features.builtin import builtin_labels
from fastness.workloads.features.discovered import Features

PARAMETERS = "/sys/module/kvm_amd/parameters"


def _security(files: dict[str, str]) -> dict[str, str]:
    return dict(discover(Recording(files)).attributes["cpu.security"])


def test_an_empty_machine_has_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    for features in (discover(Recording({})), discover(Directory(tmp_path))):
        assert features.flags["cpu.cpuid"] == frozenset()
        assert features.attributes["cpu.security"] == {}
        assert features.instances == {}


def test_a_line_of_capacity_is_found_by_its_whole_name() -> None:
    files = {
        f"{PARAMETERS}/sev": "Y\n",
        f"{PARAMETERS}/sev_es": "1\n",
        "/sys/fs/cgroup/misc.capacity": "sev_es 99\nsev 410\n",
    }
    assert _security(files) == {
        "sev.enabled": "true", "sev.es.enabled": "true", "sev.asids": "410", "sev.encrypted_state_ids": "99",
    }  # fmt: skip
    assert "sev.asids" not in _security({**files, "/sys/fs/cgroup/misc.capacity": "sev_es 99\n"})
    assert "sev.asids" not in _security({**files, f"{PARAMETERS}/sev": "N\n"})


def test_the_old_place_of_capacity_is_read_too() -> None:
    files = {"/sys/module/kvm_intel/parameters/tdx": "Y\n", "/sys/fs/cgroup/misc/misc.capacity": "tdx 7\n"}
    assert _security(files) == {"tdx.enabled": "true", "tdx.total_keys": "7"}


@pytest.mark.parametrize("content", ["N\n", "Y", "y\n", ""])
def test_tdx_is_on_only_with_exactly_the_kernels_answer(content: str) -> None:
    assert _security({"/sys/module/kvm_intel/parameters/tdx": content, "/sys/fs/cgroup/misc.capacity": "tdx 7\n"}) == {}


def test_guests_of_tdx_and_hosts_of_secure_execution_are_seen() -> None:
    assert _security({"/dev/tdx_guest": ""}) == {"tdx.protected": "true"}
    assert _security({"/proc/cpuinfo": "flags\t: sse tdx_guest\n"}) == {"tdx.protected": "true"}
    assert _security({"/sys/firmware/uv/prot_virt_host": "1\n"}) == {"se.enabled": "true"}


def test_sgx_is_the_sum_over_the_nodes_and_absent_when_zero() -> None:
    base = "/sys/devices/system/node"
    assert (
        _security({f"{base}/node0/x86/sgx_total_size": "5\n", f"{base}/node1/x86/sgx_total_size": "6\n"})["sgx.epc"]
        == "11"
    )
    assert _security({f"{base}/node0/x86/sgx_total_size": "0\n", f"{base}/node1/x86/sgx_total_size": "x\n"}) == {}


def test_flags_of_the_processor_have_the_names_that_rules_use() -> None:
    features = discover(recorded("tdx-host"))
    assert {"SSE42", "VMX", "SGX", "SGXLC", "AESNI", "AVX2"} <= features.flags["cpu.cpuid"]
    assert features.flags["cpu.rdt"] == {"RDTMON", "RDTMBA", "RDTL3CA"}
    assert features.attributes["cpu.model"] == {"vendor_id": "Intel", "family": "6", "id": "207"}
    assert features.attributes["cpu.topology"] == {"socket_count": "2", "hardware_multithreading": "true"}
    assert features.attributes["cpu.pstate"]["turbo"] == "true"


def test_kernel_memory_and_system_are_read() -> None:
    features = discover(recorded("tdx-host"))
    assert features.attributes["kernel.version"]["major"] == "5"
    assert features.attributes["kernel.config"]["X86_SGX"] == "y"
    assert features.attributes["kernel.config"]["LOCALVERSION"] == ""
    assert "DEBUG_KERNEL" not in features.attributes["kernel.config"]
    assert features.flags["kernel.enabledmodule"] > features.flags["kernel.loadedmodule"]
    assert features.attributes["system.osrelease"]["VERSION_ID.minor"] == "20"
    assert features.attributes["memory.numa"] == {"is_numa": "true", "node_count": "2"}
    assert features.attributes["kernel.kvm"] == {"enabled": "true"}
    assert "memory.swap" not in features.attributes


def test_devices_are_instances_with_short_classes() -> None:
    features = discover(recorded("h100-host"))
    gpus = [device for device in features.instances["pci.device"] if device["vendor"] == "10de"]
    assert [device["class"] for device in gpus] == ["0302", "0302"]
    assert gpus[0]["iommu_group/type"] == "DMA-FQ"
    assert [device["name"] for device in features.instances["network.device"]] == ["eno1"]
    assert [device["name"] for device in features.instances["network.virtual"]] == ["lo"]


def test_a_directory_gives_the_same_as_the_recording_of_it(tmp_path: Path) -> None:
    files = {
        "/proc/cpuinfo": "flags : sse4_2\n",
        "/sys/bus/pci/devices/0/class": "0x030200\n",
        "/etc/os-release": "ID=x\n",
    }
    for path, content in files.items():
        (tmp_path / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.lstrip("/")).write_text(content)
    assert discover(Directory(tmp_path)) == discover(Recording(files))
    moved = Directory(tmp_path, proc=tmp_path / "nowhere")
    assert discover(moved).flags["cpu.cpuid"] == frozenset()


def test_administrators_can_add_features_by_hand() -> None:
    place = "/etc/kubernetes/node-feature-discovery/features.d"
    features = discover(Recording({f"{place}/a": "# no\nexample.com/rack=7\nready\n"}))
    assert features.attributes["local.feature"] == {"example.com/rack": "7", "ready": "true"}


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"files": []}', b'{"files": {"a": "b"}}', b'{"files": {"/a": 1}}', b'{"files": {"/a/../b": ""}}'],
)
def test_a_broken_recording_is_refused(data: bytes) -> None:
    with pytest.raises(BadRecording):
        read_recording(data)


def test_labels_without_rules_leave_out_counts_and_common_flags() -> None:
    labels = builtin_labels(discover(recorded("h100-host")))
    assert labels["cpu-security.tdx.enabled"] == "true"
    assert labels["cpu-cpuid.VMX"] == "true"
    assert labels["pci-0302_10de.present"] == "true"
    assert not {"cpu-security.tdx.total_keys", "cpu-security.sgx.epc", "cpu-cpuid.SGX", "cpu-cpuid.SSE42"} & set(labels)
    assert "pci-0601_8086.present" not in labels
    assert builtin_labels(Features()) == {}
