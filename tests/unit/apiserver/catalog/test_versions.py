"""The order of versions and groups."""

from __future__ import annotations

import random

from fastness.apiserver.catalog.catalog import group_key, version_key

BEST_FIRST = [
    "v10",
    "v2",
    "v1",
    "v11beta2",
    "v10beta3",
    "v3beta1",
    "v12alpha1",
    "v11alpha2",
    "foo1",
    "foo10",
    "v01",
    "v1rc1",
]


def test_versions_sort_stable_then_beta_then_alpha_then_the_rest_by_name() -> None:
    shuffled = random.Random(7).sample(BEST_FIRST, len(BEST_FIRST))
    assert sorted(shuffled, key=version_key) == BEST_FIRST


def test_core_group_comes_first_and_foreign_groups_last_by_name() -> None:
    groups = ["b.example", "policy", "", "a.example", "apps"]
    assert sorted(groups, key=group_key) == ["", "apps", "policy", "a.example", "b.example"]
