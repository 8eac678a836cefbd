"""A user's settings over the cluster's: what wins, what belongs together, what goes elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.settings.merge import merge_settings, sizing_file

JsonObject = dict[str, Any]
BASE: JsonObject = {
    "maxPods": 250,
    "serializeImagePulls": False,
    "rotateCertificates": True,
    "protectKernelDefaults": True,
    "staticPodPath": "/etc/kubernetes/manifests",
    "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": "/a"}},
    "systemCgroups": "/system.slice",
    "systemReservedCgroup": "/system.slice",
    "enforceNodeAllocatable": ["pods", "system-reserved-compressible"],
}
_NAMES = st.sampled_from([*BASE, "reservedSystemCPUs", "evictionHard", "x509", "anonymous"])
_PLAIN = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "/system.slice", "pods"])
_LISTS = st.lists(st.sampled_from(["pods", "system-reserved", "kube-reserved"]), max_size=3)
_VALUES = st.recursive(_PLAIN | _LISTS, lambda inner: st.dictionaries(_NAMES, inner, max_size=2), max_leaves=4)


def test_what_is_set_wins_member_by_member() -> None:
    merged = merge_settings(
        BASE, {"maxPods": 500, "authentication": {"webhook": {"enabled": True}}, "evictionHard": {"a": "1"}}
    )
    assert merged.settings["maxPods"] == 500
    assert merged.settings["authentication"] == {**BASE["authentication"], "webhook": {"enabled": True}}
    assert merged.settings["evictionHard"] == {"a": "1"}
    assert merged.ineffective == ()


def test_an_empty_value_does_not_take_away_what_the_cluster_set_and_is_named() -> None:
    user = {
        "maxPods": 0,
        "rotateCertificates": False,
        "authentication": {"x509": {"clientCAFile": ""}},
        "cpuCFSQuota": False,
    }
    merged = merge_settings(BASE, user)
    assert {name: merged.settings[name] for name in BASE} == BASE
    assert merged.ineffective == ("maxPods", "rotateCertificates", "authentication.x509.clientCAFile")
    assert merged.settings["cpuCFSQuota"] is False, "where the cluster says nothing the user is heard"


def test_two_empty_values_are_meant() -> None:
    merged = merge_settings(BASE, {"protectKernelDefaults": False, "staticPodPath": ""})
    assert (merged.settings["protectKernelDefaults"], merged.settings["staticPodPath"]) == (False, "")
    assert merged.ineffective == ()
    assert merge_settings(BASE, {"protectKernelDefaults": 0}).ineffective == ("protectKernelDefaults",)


def test_taints_of_the_cluster_stay_beside_the_users() -> None:
    """Attack: a KubeletConfig whose taints take away the one that keeps pods off a machine without a proof."""
    unproved, own = {"key": "fastness.dev/not-attested", "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoSchedule"}
    base = {**BASE, "registerWithTaints": [unproved]}
    for taints in ([own], [own, unproved]):
        once = merge_settings(base, {"registerWithTaints": taints}).settings
        assert once["registerWithTaints"] == [unproved, own]
        assert merge_settings(once, {"registerWithTaints": taints}).settings == once
    assert merge_settings(base, {"registerWithTaints": []}).settings == base
    assert merge_settings(BASE, {"registerWithTaints": [own]}).settings["registerWithTaints"] == [own]


def test_null_says_nothing() -> None:
    assert merge_settings(BASE, {"maxPods": None, "a": {"b": None}}).settings == {**BASE, "a": {}}


@pytest.mark.parametrize("user", [{"authentication": "off"}, {"maxPods": {"a": 1}}, {"enforceNodeAllocatable": "pods"}])
def test_a_value_of_another_kind_is_refused(user: JsonObject) -> None:
    """Every kubelet of the pool would fail to read its file."""
    with pytest.raises(BadSettings, match=f"{next(iter(user))} must be"):
        merge_settings(BASE, user)


@given(st.dictionaries(_NAMES, _VALUES, max_size=5))
def test_merging_twice_is_merging_once(user: JsonObject) -> None:
    try:
        once = merge_settings(BASE, user).settings
    except BadSettings:
        return
    assert merge_settings(once, user).settings == once


@pytest.mark.parametrize(
    ("user", "cgroup", "enforced"),
    [
        ({}, "/system.slice", ["pods", "system-reserved-compressible"]),
        ({"enforceNodeAllocatable": ["pods"]}, None, ["pods"]),
        ({"enforceNodeAllocatable": ["pods", "system-reserved"]}, "/system.slice", ["pods", "system-reserved"]),
        ({"enforceNodeAllocatable": ["pods"], "systemReservedCgroup": "/a"}, "/a", ["pods"]),
        ({"reservedSystemCPUs": "0-1"}, None, ["pods"]),
        ({"reservedSystemCPUs": "0-1", "enforceNodeAllocatable": ["kube-reserved"]}, None, ["pods", "kube-reserved"]),
        ({"reservedSystemCPUs": "0", "enforceNodeAllocatable": ["pods", "system-reserved"]}, None, ["pods"]),
        ({"reservedSystemCPUs": "0", "systemReservedCgroup": "/a"}, None, ["pods"]),
    ],
)
def test_a_reserve_is_enforced_where_its_group_is(user: JsonObject, cgroup: str | None, enforced: list[str]) -> None:
    settings = merge_settings(BASE, user).settings
    assert settings.get("systemReservedCgroup") == cgroup
    assert settings["enforceNodeAllocatable"] == enforced


@pytest.mark.parametrize(
    ("settings", "automatic", "text", "left"),
    [
        ({}, None, "", None),
        ({}, True, "true 1Gi 500m 1Gi", None),
        ({}, False, "false 1Gi 500m 1Gi", None),
        ({"systemReserved": {"memory": "3Gi"}}, None, "false 3Gi 500m 1Gi", None),
        ({"systemReserved": {"cpu": "1", "pid": "100"}}, False, "false 1Gi 1 1Gi", {"pid": "100"}),
        ({"systemReserved": {"ephemeral-storage": "9G"}}, None, "false 1Gi 500m 9G", None),
        ({"systemReserved": {"pid": "100"}}, None, "", {"pid": "100"}),
    ],
)
def test_reserves_go_to_the_service_that_sizes_them(settings: Any, automatic: Any, text: str, left: Any) -> None:
    rest, environment = sizing_file({"a": 1, **settings}, automatic)
    assert rest == {"a": 1, **({"systemReserved": left} if left else {})}
    names = ("NODE_SIZING_ENABLED", "SYSTEM_RESERVED_MEMORY", "SYSTEM_RESERVED_CPU", "SYSTEM_RESERVED_ES")
    assert environment == "".join(f"{name}={value}\n" for name, value in zip(names, text.split(), strict=False))


@pytest.mark.parametrize("value", ["much", "1Gi\nEVIL=1", "$(reboot)"])
def test_a_reserve_that_is_no_quantity_never_reaches_the_environment(value: str) -> None:
    with pytest.raises(BadSettings, match=r"systemReserved\.memory: .* is not a quantity"):
        sizing_file({"systemReserved": {"memory": value}}, None)
