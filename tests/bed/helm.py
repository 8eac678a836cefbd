"""helm for tests on a bed: as the administrator, in a namespace of the test's own, with no settings of the user's."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE


@dataclass(frozen=True)
class Helm:
    """helm with a kubeconfig, in one namespace; `home` holds its caches."""

    program: Path
    kubeconfig: Path
    namespace: str
    home: Path
    patience: float = 2 * PATIENCE

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What came of a command."""
        return subprocess.run(
            [self.program, f"--kubeconfig={self.kubeconfig}", "-n", self.namespace, *words],
            capture_output=True, text=True, check=False, timeout=self.patience,
            env={"PATH": os.defpath, "HOME": str(self.home)},
        )  # fmt: skip

    def ok(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        done = self.run(*words)
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout
