"""MachineConfigs for hosts of confidential guests: the manual's, and what is recognised in others."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.formats.data_url import decode, encode
from fastness.machineconfig.render.validate import examine
from fastness.workloads.host_configs import (
    IOMMU_ARGUMENTS,
    TDX_ARGUMENTS,
    iommu_config,
    recognise_iommu,
    recognise_tdx,
    tdx_config,
)

Object = dict[str, Any]


def test_configs_are_those_of_the_manual() -> None:
    tdx, iommu = tdx_config("kata-oc"), iommu_config("worker")
    assert tdx["metadata"] == {
        "name": "99-enable-intel-tdx",
        "labels": {"machineconfiguration.openshift.io/role": "kata-oc"},
    }
    assert tdx["spec"]["kernelArguments"] == ["kvm_intel.tdx=1", "nohibernate"]
    (file,) = tdx["spec"]["config"]["storage"]["files"]
    assert (file["path"], file["mode"]) == ("/etc/modules-load.d/vsock.conf", 420)
    assert decode(file["contents"]["source"]) == b"vsock-loopback\n"
    assert iommu["metadata"]["name"] == "100-iommu-kernel-args"
    assert iommu["spec"] == {
        "config": {"ignition": {"version": "3.2.0"}}, "kernelArguments": ["amd_iommu=on", "intel_iommu=on"],
    }  # fmt: skip


@pytest.mark.parametrize("config", [tdx_config("kata-oc"), iommu_config("master")])
def test_configs_can_be_rendered(config: Object) -> None:
    examined = examine(config)
    assert [problem for problem in examined.problems if problem.severity == "error"] == []
    assert examined.document is not None


def test_our_own_configs_are_recognised_for_the_roles_of_a_pool() -> None:
    recognised = recognise_tdx([tdx_config("kata-oc"), tdx_config("other")], ("kata-oc", "worker"))
    assert (recognised.complete, recognised.configs) == (True, ("99-enable-intel-tdx",))
    assert recognise_iommu([iommu_config("worker")], ("kata-oc", "worker")).complete
    assert not recognise_tdx([tdx_config("master")], ("kata-oc", "worker")).complete


def other(name: str, arguments: Any, files: Any = ()) -> Object:
    labels = {"machineconfiguration.openshift.io/role": "worker"}
    spec = {"kernelArguments": arguments, "config": {"storage": {"files": files}}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def test_the_same_in_other_words_is_recognised() -> None:
    file = {"path": "/etc/modules-load.d/mine.conf", "contents": {"source": encode(b"# mine\nvsock_loopback\n")}}
    configs = [other("50-a", ["quiet nohibernate"]), other("51-b", ["kvm_intel.tdx=1"], [file])]
    recognised = recognise_tdx(configs, ("worker",))
    assert recognised.complete
    assert set(recognised.configs) == {"50-a", "51-b"}


def test_what_is_missing_is_named_with_its_reason() -> None:
    recognised = recognise_tdx([other("50-a", ["kvm_intel.tdx=1"])], ("worker",))
    assert [missing.split(":")[0] for missing in recognised.missing] == ["nohibernate", "module vsock-loopback"]
    assert recognised.configs == ("50-a",)
    iommu = recognise_iommu([other("50-a", ["amd_iommu=on"])], ("worker",))
    assert [missing.split(":")[0] for missing in iommu.missing] == ["intel_iommu=on"]
    assert recognise_iommu([other("50-a", ["amd_iommu=on"])], ("worker",), "snp").complete
    rendered = [other("rendered-worker-1", [*TDX_ARGUMENTS, *IOMMU_ARGUMENTS])]
    assert recognise_iommu(rendered, ("worker",)).missing


@pytest.mark.parametrize("arguments", [None, "kvm_intel.tdx=1", [5, None]])
@pytest.mark.parametrize(
    "files", [None, [None], [{"path": 5}], [{"path": "/etc/modules-load.d/a", "contents": {"source": "x:"}}]]
)
def test_shapes_that_are_wrong_are_not_recognised_and_nothing_breaks(arguments: Any, files: Any) -> None:
    assert len(recognise_tdx([other("50-a", arguments, files)], ("worker",)).missing) == 3
