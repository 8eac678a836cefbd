"""kubectl for tests on a bed: as the administrator, in a namespace of the test's own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bed.bed import BUSYBOX
from tests.patience import PATIENCE

PROGRAM = Path(sysconfig.get_path("scripts")) / "kubectl"


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig, in one namespace."""

    kubeconfig: Path
    namespace: str

    @classmethod
    @contextmanager
    def in_new_namespace(cls, kubeconfig: Path) -> Iterator[Kubectl]:
        """A namespace in which pods can be made, until the block ends; its end is not waited for."""
        kubectl = cls(kubeconfig, f"bed-{secrets.token_hex(4)}")
        kubectl.ok("create", "namespace", kubectl.namespace)
        try:
            # Admission refuses pods until the controllers have made their account.
            kubectl.wait("serviceaccount/default", "create")
            yield kubectl
        finally:
            kubectl.ok("delete", "namespace", kubectl.namespace, "--wait=false")

    def ok(self, *words: str, stdin: str = "") -> str:
        """What a command prints; it must succeed."""
        cache = self.kubeconfig.with_name("kubectl-cache")
        done = subprocess.run(
            [PROGRAM, f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", "-n", self.namespace, *words],
            input=stdin, capture_output=True, text=True, check=False, timeout=2 * PATIENCE, env={"PATH": os.defpath},
        )  # fmt: skip
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, document: dict[str, Any]) -> None:
        """Make an object, or change it into this one."""
        self.ok("apply", "-f", "-", stdin=json.dumps(document))

    def wait(self, what: str, fact: str) -> None:
        """Wait for a fact about an object, as `kubectl wait --for` knows them."""
        self.ok("wait", what, f"--for={fact}", f"--timeout={PATIENCE:.0f}s")


def pod(name: str, node: str, command: list[str], image: str = BUSYBOX) -> dict[str, Any]:
    """A Pod that the scheduler puts on one node."""
    container = {"name": "main", "image": image, "command": command}
    spec = {
        "containers": [container], "nodeSelector": {"kubernetes.io/hostname": node}, "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
