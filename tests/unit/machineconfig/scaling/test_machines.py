"""How far a Machine is, what it boots with, and what its deletion waits for."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.scaling.machines import (
    hooks,
    phase,
    pool_of_user_data,
    provider_of,
    secret_of,
    status,
    tee_of,
)

NODE = {"metadata": {"name": "worker-1", "uid": "u1"}}


def machine(reached: str = "", *, deleted: bool = False, **value: Any) -> dict[str, Any]:
    meta = {"name": "m", **({"deletionTimestamp": "2026-11-17T12:00:00Z"} if deleted else {})}
    return {"metadata": meta, "spec": {"providerSpec": {"value": value}}, "status": {"phase": reached}}


def test_a_machine_names_its_provider_its_secret_and_its_kind_of_evidence() -> None:
    ordered = machine(kind="VirtualMachineProviderSpec", userDataSecret={"name": "worker-user-data-managed"}, tee="snp")
    assert (provider_of(ordered), secret_of(ordered), tee_of(ordered)) == (
        "VirtualMachineProviderSpec",
        "worker-user-data-managed",
        "snp",
    )


@pytest.mark.parametrize("spec", [{}, {"providerSpec": None}, {"providerSpec": {"value": "text"}}])
def test_a_machine_of_another_shape_names_nothing(spec: dict[str, Any]) -> None:
    assert (provider_of({"spec": spec}), secret_of({"spec": spec}), tee_of({"spec": spec})) == ("", "", "")


@pytest.mark.parametrize(
    ("secret", "pool"),
    [("worker-user-data-managed", "worker"), ("infra-user-data", "infra"), ("my-secret", "my-secret")],
)
def test_the_pool_follows_from_the_name_of_the_secret(secret: str, pool: str) -> None:
    assert pool_of_user_data(secret) == pool


@pytest.mark.parametrize(
    ("before", "exists", "node", "after"),
    [
        ("", False, "", "Provisioning"),
        ("Provisioning", True, "", "Provisioned"),
        ("Provisioned", True, "worker-1", "Running"),
        ("Running", False, "", "Failed"),
        ("Failed", False, "", "Failed"),
    ],
)
def test_phases_go_one_way(before: str, exists: bool, node: str, after: str) -> None:
    assert phase(machine(before), exists=exists, node=node) == after
    assert phase(machine(before, deleted=True), exists=exists, node=node) == "Deleting"


def test_a_machine_that_its_provider_lost_says_so_and_what_to_do() -> None:
    lost = status(machine("Running"), exists=False, node=None, lost_words="the virtual machine is gone")
    assert lost["phase"] == "Failed"
    assert "delete this Machine" in lost["errorMessage"]
    there = status(machine("Provisioned"), exists=True, node=NODE, lost_words="")
    assert (there["nodeRef"]["name"], there["errorMessage"]) == ("worker-1", None)


def test_hooks_name_who_has_to_agree() -> None:
    held = machine()
    held["spec"]["lifecycleHooks"] = {"preDrain": [{"name": "Backup", "owner": "storage"}]}
    assert hooks(held, "preDrain") == ["Backup of storage"]
    assert hooks(held, "preTerminate") == []
