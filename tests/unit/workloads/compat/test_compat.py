"""The manual's compatibility tables, cell by cell, and the combinations of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.workloads.compat.combinations import combinations, platform_of, release_of
from fastness.workloads.compat.support import Combination, column, judge, parse_release
from fastness.workloads.compat.tables import ARCHITECTURES, FEATURES, GPU, RELEASES, Level, Platform

RELEASE_NAMES = ["4.19.28", "4.20.18", "4.21.9"]
TABLE_2 = [
    (Platform.BARE_METAL, "tdx", False, "GA GA GA"),
    (Platform.BARE_METAL, "snp", False, "GA GA GA"),
    (Platform.BARE_METAL, "tdx", True, "- - TP"),
    (Platform.BARE_METAL, "snp", True, "- - TP"),
    (Platform.IBM_Z, "se", False, "GA GA GA"),
    (Platform.IBM_Z_PEER, "se", False, "GA GA GA"),
    (Platform.AZURE, "tdx", False, "GA GA GA"),
    (Platform.AZURE, "snp", True, "- - DP"),
]


@pytest.mark.parametrize(("platform", "tee", "gpu", "cells"), TABLE_2)
def test_every_cell_of_the_second_table(platform: Platform, tee: str, gpu: bool, cells: str) -> None:
    architecture = "s390x" if tee == "se" else "x86_64"
    row = [judge(Combination(version, architecture, platform, tee, gpu)) for version in RELEASE_NAMES]
    assert [support.level.name if support.level else "-" for support in row] == cells.split()
    assert all(support.ok or (support.reason and support.hint) for support in row)


def test_tables_have_the_rows_of_the_manual() -> None:
    assert len(FEATURES) == 6
    assert [row.name for row in ARCHITECTURES] == ["x86_64", "s390x"]
    assert {row.gpu for row in FEATURES} == {"", GPU}
    assert all(set(row.levels) == set(RELEASES) for row in FEATURES)


@pytest.mark.parametrize(
    "version", ["4.18.0", "4.19.0", "4.19.27", "4.20.0", "4.20.17", "4.21.0", "4.21.8", "4.20.10", "4.21.9-rc1"]
)
def test_releases_that_are_too_old(version: str) -> None:
    support = judge(Combination(version, tee="tdx"))
    assert not support.ok
    assert support.hint.startswith("Upgrade to ")


@pytest.mark.parametrize(
    "version", ["4.19.28", "4.19.100", "4.20.18", "4.21.9", "4.21.10", "4.22.0", "4.25.1", "5.0.0", "v4.21.9+abc"]
)
def test_releases_that_are_new_enough(version: str) -> None:
    assert judge(Combination(version, tee="tdx")).level is Level.GA


@pytest.mark.parametrize(
    ("combination", "reason"),
    [
        (Combination("4.21.9", "aarch64", tee="tdx"), "the architecture aarch64 is not supported"),
        (Combination("4.21.9", "s390x", Platform.IBM_Z, "se", True), "GPUs are not supported on s390x"),
        (
            Combination("4.20.18", tee="tdx", gpu=True),
            "x86_64 with a GPU needs OpenShift 4.21.9 or later, where KubeletPodResourcesGet is switched on",
        ),
        (Combination("4.21.9"), "no trusted execution environment was found"),
        (Combination("4.21.9", tee="se"), "IBM SE on bare metal is in no row of the table"),
        (Combination("latest", tee="tdx"), "'latest' is not a release"),
        (Combination("4.20.3", tee="snp"), "OpenShift 4.20.3 is older than 4.20.18"),
    ],
)
def test_a_no_names_the_entry_that_says_it(combination: Combination, reason: str) -> None:
    support = judge(combination)
    assert (support.level, support.reason) == (None, reason)
    assert support.hint


def test_previews_are_not_for_production() -> None:
    assert "do not use it in production" in judge(Combination("4.22.0", tee="snp", gpu=True)).reason


def test_releases_are_read_with_care() -> None:
    assert parse_release("4.21.9-rc.1") == (4, 21, 8)
    assert parse_release("4.21") is None
    assert parse_release("9" * 400) is None
    assert column((4, 19, 27)) is None
    assert column((4, 30, 0)) == (4, 21, 9)


def node(name: str, arch: str = "amd64", **labels: str) -> dict[str, Any]:
    own = {"node-role.kubernetes.io/worker": "", **{key.replace("_", "/"): value for key, value in labels.items()}}
    return {"metadata": {"name": name, "labels": own}, "status": {"nodeInfo": {"architecture": arch}}}


def test_a_cluster_is_grouped_into_its_combinations() -> None:
    nodes = [
        node("b", **{"intel.feature.node.kubernetes.io/tdx": "true"}),
        node("a", **{"intel.feature.node.kubernetes.io/tdx": "true"}),
        node("c", **{"amd.feature.node.kubernetes.io/snp": "true", "nvidia.com/gpu.present": "true"}),
        node("z", "s390x", **{"ibm.feature.node.kubernetes.io/se": "true"}),
        {"metadata": {"name": "m", "labels": {}}},
    ]
    groups = combinations(nodes, {"status": {"platformStatus": {"type": "BareMetal"}}}, "4.21.9")
    assert {combination.named: names for combination, names in groups.items()} == {
        "bare metal, x86_64, Intel TDX, OpenShift 4.21.9": ["a", "b"],
        "bare metal, x86_64, AMD SEV-SNP, NVIDIA H100, OpenShift 4.21.9": ["c"],
        "IBM Z bare metal, s390x, IBM SE, OpenShift 4.21.9": ["z"],
    }


def test_release_and_platform_come_from_where_the_cluster_says_them() -> None:
    history = [{"state": "Partial", "version": "4.22.0"}, {"state": "Completed", "version": "4.21.9"}]
    assert release_of({"status": {"history": history}}) == "4.21.9"
    assert release_of({"status": {"desired": {"version": "4.21.8"}}}) == "4.21.8"
    assert release_of(None) == release_of({"status": {"history": "x"}}) == ""
    assert platform_of({"status": {"platform": "Azure"}}, "x86_64") is Platform.AZURE
    assert platform_of(None, "s390x", peer_pods=True) is Platform.IBM_Z_PEER
