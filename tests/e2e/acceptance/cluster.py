"""A cluster as the source documents' users see it: `fastness up`, kubectl, the command line, the roots of virtual machines.

Nothing is made here that the users' own steps would not make.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.live import FASTNESS, Live, Outcome, environment, run

GROUP = "machineconfiguration.openshift.io"


def machine_config(
    name: str, role: str = "worker", config: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A MachineConfig as a user writes it."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {f"{GROUP}/role": role}},
        "spec": {"config": {"ignition": {"version": "3.4.0"}, **(config or {})}, **spec},
    }


def a_file(path: str, text: str) -> dict[str, Any]:
    """An Ignition config that lays down one file."""
    return {"storage": {"files": [{"path": path, "mode": 0o644, "contents": {"source": f"data:,{text}"}}]}}


class Acceptance:
    """A running cluster with so many workers."""

    def __init__(self, live: Live, workers: int) -> None:
        self.live = live
        self.workers = workers

    def kubectl(self, *words: str, stdin: Any = None) -> Outcome:
        """Run kubectl as administrator; it must succeed."""
        outcome = self.live.kubectl(*words, stdin=stdin)
        assert outcome.code == 0, (words, outcome.err)
        return outcome

    def apply(self, obj: dict[str, Any]) -> Outcome:
        """`kubectl apply` of one object."""
        return self.kubectl("apply", "-f", "-", stdin=obj)

    def fastness(self, *words: str) -> Outcome:
        """Run the command line as administrator."""
        env = environment(self.live.home, KUBECONFIG=str(self.live.kubeconfig))
        return run([FASTNESS, *words], env, cwd=self.live.home)

    def confirm(self, **spec: Any) -> None:
        """Change the ConfidentialCluster as a person does who reads the refusal of a lowering and confirms it."""
        words = ("patch", "confidentialcluster", "cluster", "--type=merge", "-p")
        answer = self.live.kubectl(*words, json.dumps({"spec": spec}))
        if answer.code:
            note, _, digest = answer.err.split("annotation ")[1].strip().partition("=")
            self.kubectl(*words, json.dumps({"spec": spec, "metadata": {"annotations": {note: digest}}}))

    def get(self, *words: str) -> dict[str, Any]:
        """An object, or a list of objects, as JSON; empty when there is none."""
        outcome = self.live.kubectl("get", *words, "-o", "json")
        return dict(outcome.json) if outcome.code == 0 else {}

    def condition(self, kind: str, name: str, type_name: str) -> dict[str, Any]:
        """A condition of an object; empty when it does not have it."""
        conditions = self.get(kind, name).get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == type_name), {})

    def degraded(self, pool: str = "worker") -> str:
        """The message of RenderDegraded; empty while the pool can be rendered."""
        condition = self.condition("mcp", pool, "RenderDegraded")
        return str(condition.get("message")) if condition.get("status") == "True" else ""

    def rendered(self, pool: str = "worker") -> str:
        """The rendered config that the pool wants."""
        return str(self.get("mcp", pool).get("spec", {}).get("configuration", {}).get("name", ""))

    def rendered_configs(self) -> set[str]:
        """All rendered configs that exist."""
        return {row[0] for row in self.kubectl("get", "mc", "--no-headers").rows if row[0].startswith("rendered-")}

    def updated(self, pool: str = "worker") -> bool:
        """Whether all of a pool's nodes are at what it wants, and nothing is wrong."""
        status = self.get("mcp", pool).get("status", {})
        count = status.get("machineCount")
        good = {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
        at = status.get("configuration", {}).get("name")
        return (
            count == status.get("updatedMachineCount") == status.get("readyMachineCount")
            and good.get("Updated") == "True" != good.get("Degraded")
            and at == self.rendered(pool)
        )

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes."""
        return list(self.get("nodes").get("items", []))

    def ready(self) -> list[str]:
        """The names of nodes that are Ready."""
        return [row[0] for row in self.kubectl("get", "nodes", "--no-headers").rows if row[1].startswith("Ready")]

    def roots(self) -> list[Path]:
        """The root directories of the machines that run."""
        return sorted(self.live.state.glob("machines/*/root"))

    def contents(self, path: str) -> set[str | None]:
        """What a file holds, over all machines; None where it is missing."""
        files = [root / path.lstrip("/") for root in self.roots()]
        return {file.read_text() if file.exists() else None for file in files}

    def events(self, reason: str) -> list[dict[str, Any]]:
        """Events with a reason."""
        return [event for event in self.get("events", "-A").get("items", []) if event["reason"] == reason]
