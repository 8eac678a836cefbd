"""A real API server with the definitions in `deploy/crds`, as a user would apply them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fastness.kinds import registry
from fastness.kinds.crd.files import load
from tests.patience import PATIENCE
from tests.realkube import RealKube

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DIRECTORY = Path(__file__).resolve().parents[3] / "deploy" / "crds"
APPLY = {"Content-Type": "application/apply-patch+yaml"}


@pytest.fixture(scope="session")
def api(real_kube: RealKube) -> Iterator[httpx.Client]:
    """A client of a server that has all our definitions established."""
    with real_kube.client() as client:
        for definition in load(DIRECTORY):
            name = definition["metadata"]["name"]
            answer = client.patch(
                f"{CRDS}/{name}",
                params={"fieldManager": "fastness-crds", "force": "true"},
                headers=APPLY,
                json=definition,
            )
            assert answer.is_success, f"{name}: {answer.text}"
        wait_until_established(client)
        yield client


def wait_until_established(client: httpx.Client) -> None:
    """Wait until all of our definitions are established and their storage answers, which comes a moment later."""
    definitions = {definition["metadata"]["name"] for definition in load(DIRECTORY)}
    deadline = time.monotonic() + PATIENCE
    while missing := definitions - {
        name for name, states in conditions(client).items() if states.get("Established") == "True"
    }:
        assert time.monotonic() < deadline, f"not established: {sorted(missing)}"
        time.sleep(0.1)
    for kind in registry.custom_kinds():
        while client.get(kind.resource.path()).status_code in (404, 429):
            assert time.monotonic() < deadline, f"not served: {kind.crd_name}"
            time.sleep(0.1)


def conditions(client: httpx.Client) -> dict[str, dict[str, str]]:
    """Condition statuses by definition."""
    items = client.get(CRDS).raise_for_status().json()["items"]
    return {
        item["metadata"]["name"]: {
            entry["type"]: entry["status"] for entry in item.get("status", {}).get("conditions", [])
        }
        for item in items
    }
