"""A cluster that is only pretended: objects in dictionaries, and everybody else played by a few lines.

`look` lets the state machine decide and does what it says; `others` lets the rollout of pools, or the pods of the DaemonSets,
make one step. Nodes can fail, vanish, come and stop being ready in between. After every step it is checked that never more
nodes are unavailable through us than the budget allows.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds.kata import names
from fastness.kinds.kata.config import FINALIZER
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import annotations_of, labels_of
from fastness.workloads.kata.inputs import (
    Action,
    Ensure,
    Hold,
    Inputs,
    LetGo,
    Mark,
    Operator,
    Plan,
    Ref,
    Remember,
    Remove,
    at,
    pod_use,
)
from fastness.workloads.kata.mode import FeatureGates
from fastness.workloads.kata.peer_pods import CONFIG_NAMES
from fastness.workloads.kata.plan import needs_pods, plan
from fastness.workloads.kata.status import status_patch
from tests.unit.workloads.kata.builders import config, node, pool

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUSY = (InstallState.INSTALLING, InstallState.UNINSTALLING, InstallState.WAITING_FOR_REBOOT)
WORKER_CONFIG = "rendered-worker-1"


class PretendCluster:
    """One KataConfig and its cluster."""

    def __init__(self, gates: FeatureGates, count: int, *, served: bool = True, **spec: Any) -> None:
        self.gates, self.served = gates, served
        self.config: JsonObject | None = config(**spec)
        self.nodes: dict[str, JsonObject] = {}
        self.pods: list[JsonObject] = []
        self.objects: dict[Ref, JsonObject] = {}
        self.broken: set[str] = set()
        self.packages: set[str] = set()
        self.reasons: list[str] = []
        self.console = True
        self.operator = Operator()
        for number in range(count):
            self.add(f"worker-{number}")

    # ------------------------------------------------------------ what happens to it

    def add(self, name: str, **labels: str) -> None:
        notes = {mco.CURRENT_CONFIG: WORKER_CONFIG, mco.STATE: "Done"}
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]
        self.nodes.setdefault(name, node(name, labels, notes=notes, conditions=ready))

    def vanish(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.broken.discard(name)
        self.packages.discard(name)

    def ready(self, name: str, *, yes: bool) -> None:
        if name in self.nodes:
            self.nodes[name]["status"]["conditions"][0]["status"] = "True" if yes else "False"

    def delete(self) -> None:
        if self.config is not None:
            self.config["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            if not self.config["metadata"].get("finalizers"):
                self.config = None

    # ------------------------------------------------------------ our side

    def inputs(self) -> Inputs:
        inputs = Inputs(
            copy.deepcopy(self.config), self.gates, [*copy.deepcopy(self.nodes).values()], self._pools(),
            copy.deepcopy(self.objects), served=self.served, console=self.console,
            operator=self.operator, now=NOW,
        )  # fmt: skip
        classes = [ref.name for ref in self.objects if ref.kind == "RuntimeClass"]
        return replace(inputs, pods=pod_use(self.pods, classes)) if needs_pods(inputs) else inputs

    def look(self) -> Plan:
        step = plan(self.inputs())
        for action in step.actions:
            self._do(action)
        if self.config is not None and step.status is not None:
            patch = status_patch(self.config, step.status, NOW)
            if patch is not None:
                self.config["status"] = apply_merge_patch(self.config.get("status") or {}, patch)
                reason = self.config["status"]["conditions"][0]["reason"]
                self.reasons += [] if self.reasons[-1:] == [reason] else [reason]
        self.check()
        return step

    def check(self) -> None:
        """Never more than one node unavailable through us."""
        working = [name for name, member in self.nodes.items() if labels_of(member).get(names.STATE_LABEL) in BUSY]
        assert len(working) <= 1, working

    def _do(self, action: Action) -> None:
        match action:
            case Hold(mode):
                assert self.config is not None
                self.config["metadata"]["finalizers"] = [FINALIZER]
                self.config["metadata"].setdefault("annotations", {})[names.MODE_IN_USE] = mode
            case Ensure():
                self._ensure(action)
            case Remove(ref):
                present = self.objects.get(ref)
                if present is not None and present["metadata"].get("finalizers"):
                    present["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                else:
                    self.objects.pop(ref, None)
            case Mark(name, labels, notes):
                meta = {"labels": dict(labels), "annotations": dict(notes)}
                self.nodes[name] = apply_merge_patch(self.nodes[name], {"metadata": meta})
            case LetGo(ref, _):
                if ref.kind == "KataConfig":
                    self.config = None
                else:
                    self.objects.pop(ref)
            case Remember(version):
                self.operator = self.operator._replace(recorded=version)

    def _ensure(self, action: Ensure) -> None:
        present = self.objects.setdefault(action.ref, copy.deepcopy(action.obj))
        for path in action.owned:
            parent = at(present, path[:-1])
            parent[path[-1]] = copy.deepcopy(at(action.obj, path))
        present["metadata"].setdefault("labels", {}).update(labels_of(action.obj))

    # ------------------------------------------------------------ everybody else

    def _pools(self) -> list[JsonObject]:
        if not self.served:
            return []
        pools = [pool("master"), pool("worker", WORKER_CONFIG, machines=len(self.nodes))]
        if Ref("MachineConfigPool", names.POOL) in self.objects:
            level = at(self.objects.get(Ref("ContainerRuntimeConfig", names.RUNTIME_CONFIG)), ("spec",))
            carried = Ref("MachineConfig", names.EXTENSION_CONFIG) in self.objects
            remote = [name for name in CONFIG_NAMES if Ref("MachineConfig", name) in self.objects]
            rendered = (
                f"rendered-kata-oc-{int(carried)}-{len(remote)}-{level and level['containerRuntimeConfig']['logLevel']}"
            )
            pools.append(pool(names.POOL, rendered, (names.EXTENSION_CONFIG if carried else "00-worker", *remote)))
        return pools

    def others(self) -> None:
        """One step of the rollout, or of the DaemonSets' pods."""
        self._roll_out(names.POOL)
        self._roll_out("worker")
        if Ref("DaemonSet", names.INSTALLER, names.NAMESPACE) in self.objects:
            for name, member in self.nodes.items():
                self._installer(name, member)
        self.check()

    def _roll_out(self, name: str) -> None:
        target = next(
            (
                candidate["spec"]["configuration"]["name"]
                for candidate in self._pools()[1:]
                if candidate["metadata"]["name"] == name
            ),
            "",
        )
        members = [
            member
            for member in self.nodes.values()
            if target and (names.ROLE_LABEL in labels_of(member)) == (name == names.POOL)
        ]
        for member in members:
            notes, broken = member["metadata"]["annotations"], member["metadata"]["name"] in self.broken
            if notes[mco.STATE] == "Working" and self._is_ready(member):
                notes |= (
                    {mco.STATE: "Degraded", mco.REASON: "no"}
                    if broken
                    else {mco.STATE: "Done", mco.CURRENT_CONFIG: target}
                )
            elif notes[mco.STATE] == "Degraded" and (not broken or notes[mco.CURRENT_CONFIG] == target):
                notes[mco.STATE] = "Done"
        taken = sum(
            member["metadata"]["annotations"][mco.STATE] == "Working" or not self._is_ready(member)
            for member in members
        )
        behind = [member for member in members if member["metadata"]["annotations"][mco.STATE] == "Done"]
        for member in [member for member in behind if annotations_of(member)[mco.CURRENT_CONFIG] != target][
            : max(0, 1 - taken)
        ]:
            member["metadata"]["annotations"][mco.STATE] = "Working"

    def _installer(self, name: str, member: JsonObject) -> None:
        labels, notes = member["metadata"]["labels"], member["metadata"]["annotations"]
        state, broken = labels.get(names.STATE_LABEL), name in self.broken
        if not self._is_ready(member):
            return
        if names.ROLE_LABEL in labels and state is None:
            labels[names.STATE_LABEL] = (
                InstallState.INSTALLED if name in self.packages else InstallState.WAITING_TO_INSTALL
            )
        elif state == InstallState.FAILED:
            labels[names.STATE_LABEL] = InstallState.WAITING_TO_INSTALL
        elif state == InstallState.FAILED_TO_UNINSTALL:
            labels[names.STATE_LABEL] = InstallState.WAITING_TO_UNINSTALL
        elif state == InstallState.INSTALLING:
            labels[names.STATE_LABEL] = InstallState.FAILED if broken else InstallState.INSTALLED
            notes |= {names.FAILURE: "no"} if broken else {}
            self.packages |= set() if broken else {name}
        elif state == InstallState.UNINSTALLING:
            labels[names.STATE_LABEL] = InstallState.FAILED_TO_UNINSTALL if broken else InstallState.WAITING_FOR_REBOOT
            notes |= {names.FAILURE: "no"} if broken else {}
        elif state == InstallState.WAITING_FOR_REBOOT:
            labels[names.STATE_LABEL] = InstallState.UNINSTALLED
            self.packages.discard(name)
        if labels.get(names.STATE_LABEL) == InstallState.INSTALLED:
            notes.pop(names.FAILURE, None)

    @staticmethod
    def _is_ready(member: JsonObject) -> bool:
        return bool(member["status"]["conditions"][0]["status"] == "True")

    def settle(self, rounds: int = 200) -> None:
        """Let everybody work until a whole round changes nothing."""
        for _ in range(rounds):
            before = copy.deepcopy((self.config, self.nodes, self.objects))
            self.look()
            self.others()
            if before == (self.config, self.nodes, self.objects):
                return
        raise AssertionError(f"it does not come to rest: {(self.config or {}).get('status')}")

    @property
    def in_progress(self) -> tuple[str, str]:
        condition = ((self.config or {}).get("status") or {})["conditions"][0]
        return condition["status"], condition["reason"]

    @property
    def classes(self) -> list[str]:
        return sorted(ref.name for ref in self.objects if ref.kind == "RuntimeClass")
