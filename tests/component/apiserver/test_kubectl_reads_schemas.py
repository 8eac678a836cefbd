"""The real kubectl finds its way by our discovery, OpenAPI and tables."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.fixtures import Embedded
from tests.unit.apiserver.samples import crd

pytestmark = pytest.mark.processes

KUBECTL = Path(sys.executable).with_name("kubectl")


class Kubectl:
    """kubectl with a cache of its own, so that nothing comes from an earlier run."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self.kubeconfig, self.home = kubeconfig, home

    async def run(self, *arguments: str, stdin: Any = None) -> tuple[int, str]:
        """Exit code and everything that it printed."""
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL), "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(self.home / "cache"), *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "HOME": str(self.home)},
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(json.dumps(stdin).encode() if stdin else None), 60)
        return process.returncode or 0, output.decode()

    async def ok(self, *arguments: str, stdin: Any = None) -> str:
        """What it printed; fails when it failed."""
        code, output = await self.run(*arguments, stdin=stdin)
        assert code == 0, f"kubectl {' '.join(arguments)}\n{output}"
        return output


@pytest.fixture
def kubectl(embedded_server: Embedded, tmp_path: Path) -> Kubectl:
    return Kubectl(embedded_server.kubeconfig, tmp_path)


WIDGETS = crd(
    versions=[
        {
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
                {"name": "Note", "type": "string", "jsonPath": ".spec.note", "priority": 1},
            ],
            "schema": {"openAPIV3Schema": {"type": "object", "description": "A thing.", "properties": {
                "spec": {"type": "object", "description": "What is wanted.", "properties": {
                    "size": {"type": "integer", "description": "How large."}, "note": {"type": "string"}}},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            }}},
        }
    ]
)  # fmt: skip


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


async def test_kubectl_explains_native_and_built_in_kinds(kubectl: Kubectl) -> None:
    assert "FIELDS" in await kubectl.ok("explain", "pods.spec.containers")
    assert "machineconfiguration.openshift.io" in await kubectl.ok("explain", "machineconfigpools")


async def test_a_users_kind_works_as_soon_as_it_is_defined(kubectl: Kubectl) -> None:
    await kubectl.ok("create", "-f", "-", stdin=WIDGETS)
    await kubectl.ok("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=20s")
    assert "How large." in await kubectl.ok("explain", "widgets.spec.size")
    assert "created" in await kubectl.ok("apply", "-f", "-", stdin=widget("w", size=3, note="n"))
    assert "configured" in await kubectl.ok("apply", "-f", "-", stdin=widget("w", size=4, note="n"))
    code, output = await kubectl.run("apply", "-f", "-", stdin=widget("w", sise=4))
    assert code != 0
    assert "unknown field" in output
    header, row = (await kubectl.ok("get", "widgets")).splitlines()
    assert header.split() == ["NAME", "SIZE", "READY"]
    assert row.split()[:2] == ["w", "4"]
    wide = (await kubectl.ok("get", "widgets", "-o", "wide")).splitlines()[0]
    assert wide.split() == ["NAME", "SIZE", "READY", "NOTE"]


async def test_kubectl_lists_what_is_served(kubectl: Kubectl) -> None:
    listed = await kubectl.ok("api-resources", "-o", "wide")
    for name in ("pods", "deployments", "machineconfigpools", "customresourcedefinitions"):
        assert name in listed
    assert "machineconfigpools.machineconfiguration.openshift.io" in await kubectl.ok("get", "crd")
