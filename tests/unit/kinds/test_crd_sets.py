"""Every definition belongs to one set, and what is printed without asking is our own."""

from __future__ import annotations

import pytest

from fastness.app.other_operators import FAMILIES, NEEDS, left_out
from fastness.kinds.crd import manifests
from fastness.kinds.crd.sets import ALL, GROUPS, OTHERS, definitions, own_names, set_of
from fastness.kinds.registry import custom_kinds


def test_every_group_of_ours_is_in_one_set_and_no_set_has_a_group_without_kinds() -> None:
    listed = [group for groups in GROUPS.values() for group in groups]
    assert sorted(listed) == sorted({kind.group for kind in custom_kinds()})


def test_without_asking_only_our_own_definitions_are_given() -> None:
    assert {definition["spec"]["group"] for definition in definitions()} == set(GROUPS["own"])
    assert own_names() == {definition["metadata"]["name"] for definition in definitions()}


def test_sets_add_to_it_and_all_of_them_are_everything() -> None:
    assert {definition["spec"]["group"] for definition in definitions(["nfd"])} == {*GROUPS["own"], *GROUPS["nfd"]}
    assert definitions([ALL]) == definitions(OTHERS) == manifests()
    with pytest.raises(KeyError):
        definitions(["nothing"])


def test_each_family_of_controllers_says_which_definitions_it_waits_for() -> None:
    assert set(NEEDS) == set(FAMILIES)
    assert left_out(()) == {}
    assert left_out(["machineconfiguration.openshift.io", "metal3.io", "nvidia.com"]) == {
        "machine-config": "machineconfig",
        "machine-api": "machines",
    }
    assert set_of("operators.coreos.com") == "olm"
